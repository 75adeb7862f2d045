"""Streams that learn from a recording before their first row: what is read and refused, and what a restart does."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eventide
from eventide.api.query import ContinuousQuery
from eventide.commands.check import findings_of
from eventide.errors import InputError, LanguageError
from eventide.eventtime.heartbeat import layers
from eventide.eventtime.policies.drop_ratio.learned import Learned
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.wrappers.cap import Cap
from eventide.plan.declared.fingerprint import described
from eventide.plan.declared.program import Program
from eventide.plan.declared.stream import Stream, columns
from eventide.profile.learning import check_recording, experienced, unlearned
from eventide.report.operators import in_words
from eventide.sinks.sink import Memory

ROWS = pa.table(
    {
        "t": np.repeat(np.arange(0, 1_000, 10), 2),
        "at": np.repeat(np.arange(0, 1_000, 10), 2),
        "who": ["b", "a"] * 100,
    }
)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "recording.parquet"
    pq.write_table(ROWS, path)
    return path


def stream(origin: Path, declared: str = "t BIGINT, at BIGINT, who STRING", **more: object) -> Stream:
    policy = Cap(DropRatio(0.01, Learned(str(origin))), rows=1_000)
    told = {"time": "t", "arrival": "at", "source": ("who",), "policy": policy, **more}
    return Stream("s", columns(declared), **told)  # type: ignore[arg-type]


def state_of(one: Stream) -> object:
    [policy] = [layer for layer in layers(one.policy) if isinstance(layer, DropRatio)]
    return None if policy.learned is None else policy.learned.state


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_every_format_of_recordings_says_the_same(recording: Path, ending: str) -> None:
    other = recording.with_suffix(f".{ending}")
    rows = ROWS.to_pylist()
    lines = [",".join(ROWS.column_names), *(",".join(map(str, row.values())) for row in rows)]
    other.write_text("\n".join(lines if ending == "csv" else map(json.dumps, rows)) + "\n")
    assert repr(state_of(experienced(stream(other)))) == repr(state_of(experienced(stream(recording))))


def test_sources_that_are_expected_by_name_come_first(recording: Path) -> None:
    assert experienced(stream(recording)).known == ("b", "a")
    assert experienced(stream(recording, known=("a", "c"))).known == ("a", "c", "b")


def test_sources_named_by_two_columns_are_those_of_the_stream(tmp_path: Path) -> None:
    path = tmp_path / "two.parquet"
    pq.write_table(pa.table({"t": [1, 2], "x": ["n", "s"], "y": ["1", None]}), path)
    two = stream(path, "t BIGINT, x STRING, y STRING", arrival=None, source=("x", "y"))
    assert experienced(two, "/", "none").known == ("n/1", "s/none")


def test_a_stream_that_is_not_to_learn_stays_as_it_is(recording: Path) -> None:
    cold = unlearned(stream(recording))
    assert cold.policy == Cap(DropRatio(0.01), rows=1_000)
    assert experienced(cold) is unlearned(cold) is cold


def test_a_recording_that_is_not_there_or_misfits_is_refused(recording: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        check_recording(stream(tmp_path / "absent.csv"))
    with pytest.raises(InputError, match="no column 'tt': did you mean 't'"):
        check_recording(stream(recording, "tt BIGINT, at BIGINT, who STRING", time="tt"))
    with pytest.raises(InputError, match="'t' holds plain numbers, and the stream has times"):
        check_recording(stream(recording, "t TIMESTAMP, at TIMESTAMP, who STRING"))


SCRIPT = """CREATE STREAM s (t BIGINT, at BIGINT, who STRING) FROM json 'in'
TIMESTAMP BY t ARRIVAL BY at SOURCE BY who DRATIO 1% LEARNED FROM '{}';
SELECT count(*) AS n FROM s [RANGE 50];
"""


def test_check_says_that_the_recording_is_not_there_and_where_it_is_named(recording: Path) -> None:
    assert [one.severity for one in findings_of(SCRIPT.format(recording), "s.sql")[0]] == []
    [found] = findings_of(SCRIPT.format("absent.csv"), "s.sql")[0]
    assert (found.severity, found.line) == ("error", 1)
    assert found.message.startswith("absent.csv") or "absent.csv: no such file" in found.message


@pytest.mark.parametrize("clauses", ["", "DELAY 5", "SLACK 5", "DRATIO 5% ESTIMATOR KIM"])
def test_nothing_but_the_drop_ratio_learns_from_a_recording(clauses: str) -> None:
    with pytest.raises(LanguageError, match="LEARNED FROM is for DRATIO without an ESTIMATOR"):
        eventide.sql(f"CREATE STREAM s (t BIGINT) {clauses} LEARNED FROM 'last_week.csv'")


def with_stragglers(rows: int) -> pa.Table:
    """A row every ten; every tenth one is 55 behind."""
    at = np.arange(0, 10 * rows, 10)
    late = np.where(np.arange(rows) % 10 == 9, 55, 0)
    return pa.table({"t": at - late, "at": at, "who": ["a"] * rows})


def counting(rows: list[pa.RecordBatch], learned: Path | None) -> ContinuousQuery:
    source = eventide.stream(rows, time="t", arrival="at", source="who", name="s")
    return source.drop_ratio(0.01, learned=learned).window(20).agg(n="count(*)")


def test_a_learned_start_loses_none_of_the_first_stragglers_and_a_cold_one_does(tmp_path: Path) -> None:
    pq.write_table(with_stragglers(2_000), tmp_path / "before.parquet")
    rounds = with_stragglers(21).to_batches(max_chunksize=1)
    late = []
    for learned in (None, tmp_path / "before.parquet"):
        with counting(rounds, learned).start(Memory(), bounded=True) as running:
            assert running.awaitTermination(300)
            late.append(running.status().streams[0].late)
    assert late[1] == 0 < late[0]


def test_a_restart_goes_on_from_its_checkpoint_and_reads_no_recording(tmp_path: Path) -> None:
    before = tmp_path / "before.parquet"
    pq.write_table(with_stragglers(200), before)
    rounds = with_stragglers(40).to_batches(max_chunksize=4)
    whole, memory = Memory(), Memory()
    with counting(rounds, before).start(whole, bounded=True) as running:
        running.awaitTermination(300)
    with counting(rounds[:4], before).start(memory, tmp_path / "kept", bounded=False) as running:
        running.awaitTermination(300)
    before.unlink()
    with counting(rounds, before).start(memory, tmp_path / "kept", bounded=True) as running:
        running.awaitTermination(300)
    assert memory.table("query").to_pylist() == whole.table("query").to_pylist()


def test_explain_names_the_recording() -> None:
    words = in_words(DropRatio(0.01, Learned("last_week.csv")), unitless=False)
    assert words == "as early as losing at most 1 % of the rows allows, from the start as last_week.csv showed"


def test_another_recording_is_no_other_program(tmp_path: Path) -> None:
    one, other = (stream(tmp_path / name) for name in ("one.csv", "other.csv"))
    assert described(Program((one,))) == described(Program((other,))) == described(Program((unlearned(one),)))
