"""Streams that learn from the checkpoint of an earlier run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import eventide
from eventide.commands.check import findings_of
from eventide.engine.learning import begun, check_learning
from eventide.errors import CheckpointError
from eventide.eventtime.policies.drop_ratio.learned import Learned
from eventide.eventtime.policies.drop_ratio.policy import DropRatio, DropRatioGenerator
from eventide.plan.declared.stream import Stream, columns
from eventide.sinks.sink import Memory

ROWS = pa.table({"t": np.arange(0, 600, 10), "at": np.arange(0, 600, 10), "who": ["b", "a", "b"] * 20})


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a run over some rounds."""
    folder = tmp_path_factory.mktemp("earlier") / "state"
    rows = eventide.stream(ROWS.to_batches(max_chunksize=12), time="t", arrival="at", source="who", name="s")
    with rows.drop_ratio(0.01).idle_after(9_999).window(50).agg(n="count(*)").start(Memory(), folder) as running:
        assert running.awaitTermination(300)
    return folder


def stream(origin: Path, ratio: float = 0.01, name: str = "s", known: tuple[str, ...] = ()) -> Stream:
    declared = columns("t BIGINT, at BIGINT, who STRING")
    policy = DropRatio(ratio, Learned(str(origin)))
    return Stream(name, declared, time="t", arrival="at", source=("who",), policy=policy, known=known)


def test_a_checkpoint_teaches_what_the_policy_of_its_stream_has_learned(earlier: Path) -> None:
    progress = begun(stream(earlier))
    assert progress.stream == stream(earlier)
    assert progress.sources.to_pylist() == ["b", "a"]
    assert isinstance(progress.generator, DropRatioGenerator)
    assert progress.generator.account.rows == 0
    ladder = progress.generator.snapshot()["ladder"]
    # Five rounds are four trials of each source: of the first round nothing was expected yet.
    assert ladder["seen"].array.tolist() == [8, 4, 4]


def test_a_checkpoint_that_cannot_teach_says_why(earlier: Path) -> None:
    with pytest.raises(CheckpointError, match="it has no stream 'other' to learn from, but s"):
        check_learning(stream(earlier, name="other"))
    with pytest.raises(CheckpointError, match=r"had another drop ratio there, 0.01"):
        check_learning(stream(earlier, ratio=0.05))
    with pytest.raises(CheckpointError, match="numbered its sources otherwise there"):
        check_learning(stream(earlier, known=("a",)))
    assert begun(stream(earlier, known=("b",))).sources.to_pylist() == ["b", "a"]


def test_a_checkpoint_of_another_policy_teaches_nothing(tmp_path: Path) -> None:
    rows = eventide.stream(ROWS, time="t", arrival="at", source="who", name="s").delay(5)
    with rows.window(50).agg(n="count(*)").start(Memory(), tmp_path / "state") as running:
        assert running.awaitTermination(300)
    with pytest.raises(CheckpointError, match="went by another policy there"):
        check_learning(stream(tmp_path / "state"))


def test_check_and_a_run_take_a_checkpoint_and_leave_it_as_it_is(earlier: Path) -> None:
    before = {path: path.read_bytes() for path in earlier.rglob("*") if path.is_file()}
    script = f"""CREATE STREAM s (t BIGINT, at BIGINT, who STRING) FROM json 'in'
    TIMESTAMP BY t ARRIVAL BY at SOURCE BY who DRATIO 1% LEARNED FROM '{earlier}';
    SELECT count(*) AS n FROM s [RANGE 50];"""
    assert findings_of(script, "s.sql")[0] == []
    rows = eventide.stream(ROWS, time="t", arrival="at", source="who", name="s").drop_ratio(0.01, learned=earlier)
    with rows.window(50).agg(n="count(*)").start(Memory(), bounded=True) as running:
        assert running.awaitTermination(300)
        assert running.status().streams[0].rows == 60
    assert {path: path.read_bytes() for path in earlier.rglob("*") if path.is_file()} == before
