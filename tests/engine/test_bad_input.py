"""Mistakes and mishaps: each is told by an error of our own with the way out, and nothing is lost by it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.crash.differences import calm
from benchmarks.harness import REPOSITORY
from eventide.errors import CheckpointError, DeclarationError, EngineError, InputError
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Input, Stream, columns
from eventide.plan.declared.window import RowWindow, Window
from eventide.sinks.sink import Memory
from tests.engine import full_disk
from tests.engine.small_streams import made, put, stream, tumbling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def session(request: pytest.FixtureRequest) -> SparkSession | None:
    """Each test on both engines: None is the local one."""
    found: SparkSession | None = request.getfixturevalue("spark") if request.param == "spark" else None
    return found


spark_is_slow = pytest.mark.parametrize(
    "session", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.slow])], indirect=True
)
"""For what is refused before an engine has anything to do: both say it by the same lines."""


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    put(tmp_path / "in", 0, [1, 12, 25])
    return tmp_path / "in"


def count(**changes: Any) -> Query:
    return replace(tumbling("q"), **changes)


@spark_is_slow
@pytest.mark.parametrize(
    "query",
    [
        count(select=named_as(x="sum(speed)")),
        count(where="speed > 3"),
        count(having="max(speed) > 3"),
        count(groups=named_as("speed")),
    ],
    ids=["select", "where", "having", "group"],
)
def test_a_column_that_is_not_there_is_named_with_those_that_are(
    query: Query, session: SparkSession | None, inputs: Path, tmp_path: Path
) -> None:
    with pytest.raises(DeclarationError, match="query 'q', stream 's' has no column 'speed': It has t, k, v"):
        made(session, Program((stream(inputs),), (query,)), tmp_path / "checkpoint", {})
    made(session, Program((stream(inputs),), (tumbling("q"),)), tmp_path / "checkpoint", {}).stop()


@pytest.mark.parametrize("role", ["time", "arrival"])
def test_time_is_not_taken_from_a_column_that_cannot_tell_it(role: str) -> None:
    given = {"time": "t", role: "label"}
    with pytest.raises(DeclarationError, match=r"cannot take its .*time from 'label': it is STRING, and time must be"):
        Stream("s", columns("t BIGINT, label STRING"), **given)  # type: ignore[arg-type]


def test_a_time_column_of_another_type_than_declared_is_told_with_both_types(
    session: SparkSession | None, inputs: Path, tmp_path: Path
) -> None:
    wrong = replace(stream(inputs), columns=columns("t TIMESTAMP, k STRING, v INT"))
    with pytest.raises(InputError, match=r"declares t TIMESTAMP, but .* has t BIGINT: declare it as it is there"):
        made(session, Program((wrong,), (tumbling("q"),)), tmp_path / "checkpoint", {}).start(bounded=True).await_end()


@pytest.mark.parametrize("kind", [Window, RowWindow])
@pytest.mark.parametrize("length", [0, -10])
def test_a_window_that_holds_nothing_or_does_not_move_is_refused(kind: type[Window | RowWindow], length: int) -> None:
    with pytest.raises(DeclarationError, match=f"RANGE {length} holds nothing: give a RANGE above 0"):
        kind(length)
    with pytest.raises(DeclarationError, match=f"SLIDE {length} is not above 0: give how far"):
        kind(10, length)


@spark_is_slow
def test_a_checkpoint_of_another_query_is_refused_with_the_differences_and_stays_as_it_was(
    session: SparkSession | None, inputs: Path, tmp_path: Path
) -> None:
    sink = Memory()
    program = Program((stream(inputs),), (tumbling("q"),))
    with made(session, program, tmp_path / "checkpoint", {"q": sink}) as first:
        first.on_round(lambda work: first.stop())
        first.start().await_end()
    with pytest.raises(CheckpointError) as refused:
        made(session, Program((stream(inputs),), (tumbling("q", 20),)), tmp_path / "checkpoint", {"q": sink})
    assert "query q: changed, begins anew after the rows that have come (RANGE was 10, is now 20" in str(refused.value)
    assert "Declare it as it was to continue; accept what is said here (--accept" in str(refused.value)
    made(session, program, tmp_path / "checkpoint", {"q": sink}).start(bounded=True).await_end()
    assert [row["window_end"] for row in sink.rows("q")] == [10, 20, 30]


def test_a_path_at_which_nothing_is_is_told_before_the_start(session: SparkSession | None, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"stream 's': there is nothing at .*nowhere: check the path, or make the"):
        made(session, Program((stream(tmp_path / "nowhere"),), (tumbling("q"),)), tmp_path / "checkpoint", {})


def test_a_format_that_is_not_known_is_told_with_the_one_that_was_meant(
    session: SparkSession | None, inputs: Path, tmp_path: Path
) -> None:
    wrong = replace(stream(inputs), input=Input("parket", str(inputs)))
    with pytest.raises(InputError, match=r"there is no format 'parket': did you mean parquet"):
        made(session, Program((wrong,), (tumbling("q"),)), tmp_path / "checkpoint", {})


def test_a_file_that_cannot_be_read_ends_the_engine_and_mended_it_is_continued_from(
    session: SparkSession | None, inputs: Path, tmp_path: Path
) -> None:
    sink = Memory()
    program = Program((stream(inputs),), (tumbling("q"),))
    broken = inputs / "0001.parquet"
    broken.write_bytes(b"this is no Parquet file at all")
    os.utime(broken, (1_700_000_001,) * 2)
    put(inputs, 2, [41, 52])
    with pytest.raises((InputError, EngineError), match=r"0001\.parquet"):
        made(session, program, tmp_path / "checkpoint", {"q": sink}).start(bounded=True).await_end()
    put(inputs, 1, [27, 33])
    made(session, program, tmp_path / "checkpoint", {"q": sink}).start(bounded=True).await_end()
    assert [(row["window_end"], row["n"]) for row in sink.rows("q")] == [
        (10, 1),
        (20, 1),
        (30, 2),
        (40, 1),
        (50, 1),
        (60, 1),
    ]


def test_a_checkpoint_that_is_no_folder_is_refused(session: SparkSession | None, inputs: Path, tmp_path: Path) -> None:
    (tmp_path / "checkpoint").write_text("something else", encoding="utf-8")
    with pytest.raises(EngineError, match=r"it is not a folder .* Name a folder, or move away the file of that name"):
        made(session, Program((stream(inputs),), (tumbling("q"),)), tmp_path / "checkpoint", {})


def own_disks() -> bool:
    """Whether this machine lets us have a small disk of our own."""
    try:
        return subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


needs_own_disk = pytest.mark.skipif(not own_disks(), reason="no small disk of our own without `unshare -rm`")


@pytest.mark.parametrize(
    "mode",
    [
        "limit",
        pytest.param("local", marks=[needs_own_disk, pytest.mark.slow]),
        pytest.param("spark", marks=[needs_own_disk, pytest.mark.spark, pytest.mark.slow]),
    ],
)
def test_a_full_disk_ends_the_engine_and_with_more_room_it_goes_on_exactly(mode: str, tmp_path: Path) -> None:
    calm(tmp_path / "calm", full_disk.FILES, full_disk.SLIDING)
    command = [] if mode == "limit" else ["unshare", "-rm"]
    command += [sys.executable, "-m", "tests.engine.full_disk", mode, str(tmp_path / "full"), str(tmp_path / "calm")]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert done.stderr == ""
    assert found["said"]
    for sentence in found.pop("said"):
        assert re.search("no room left|No space left|File too large", sentence)
        assert re.search("free some space.* start again", sentence)
    assert found == {"lost": 0, "duplicated": 0, "changed": 0}
