"""A round that a crash broke off is run again with its rows and its clock; what came since is in the next."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide.engine.checkpoint.checkpoint import Checkpoint
from eventide.engine.local.engine import LocalEngine
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Input, Stream, columns
from eventide.plan.declared.window import Window
from eventide.sinks.sink import Memory
from eventide.sources.local_input import Batches, LocalInput
from eventide.sources.standard_input import StandardInput
from tests.engine.small_streams import made

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM = Stream("s", columns("t BIGINT"), time="t", policy=FixedDelay(0))
COUNT = Query("q", "s", Window(1000), named_as(n="count(*)"))


class KilledError(BaseException):
    """The process is gone."""


def killed_at(round: int) -> Callable[[int, str], None]:
    def observe(number: int, step: str) -> None:
        if (number, step) == (round, "emit"):
            raise KilledError

    return observe


def write(path: Path, times: list[int], second: int) -> None:
    """A file of JSON lines that was written to at that second."""
    path.parent.mkdir(exist_ok=True)
    hidden = path.parent / f".{path.name}"
    hidden.write_text("".join(json.dumps({"t": time}) + "\n" for time in times))
    os.utime(hidden, (1_700_000_000 + second,) * 2)
    hidden.rename(path)


def killed(spark: SparkSession | None, stream: Stream, state: Path, round: int) -> None:
    running = made(spark, Program((stream,), (COUNT,)), state, {}, observer=killed_at(round))
    with pytest.raises(KilledError):
        running.start(bounded=True).await_end()


def rounds_of(spark: SparkSession | None, stream: Stream, state: Path) -> list[tuple[int, int]]:
    """How many rows each round had from here on, and its clock."""
    running = made(spark, Program((stream,), (COUNT,)), state, {"q": Memory()})
    found: list[tuple[int, int]] = []
    running.on_round(lambda work: found.append((work.rows, work.clock)))
    running.start(bounded=True).await_end()
    return found


def intended(state: Path, round: int) -> int:
    """The clock that a round was meant to have."""
    with Checkpoint.open(str(state)) as checkpoint:
        meant = checkpoint.pending(round - 1)
        assert meant is not None
        return meant.clock


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def session(request: pytest.FixtureRequest) -> SparkSession | None:
    """Each test on both engines: None is the local one."""
    found: SparkSession | None = request.getfixturevalue("spark") if request.param == "spark" else None
    return found


def test_files_that_came_after_the_crash_are_in_the_next_round(session: SparkSession | None, tmp_path: Path) -> None:
    """An honest row that came after the crash was stamped, and judged, by the clock of before it."""
    stream = replace(STREAM, input=Input("json", str(tmp_path / "in"), max_files=2))
    write(tmp_path / "in" / "a", [1], 1)
    write(tmp_path / "in" / "c", [2, 3], 3)
    killed(session, stream, tmp_path / "state", 0)
    meant = intended(tmp_path / "state", 0)
    # By its age the new file would come before one that the round had.
    write(tmp_path / "in" / "b", [4, 5, 6, 7], 2)
    rounds = rounds_of(session, stream, tmp_path / "state")
    assert [rows for rows, _ in rounds] == [3, 4, 0]
    assert rounds[0][1] == meant < rounds[1][1]


def test_a_file_that_was_read_in_part_is_read_to_the_same_row_again(tmp_path: Path) -> None:
    stream = replace(STREAM, input=Input("json", str(tmp_path / "in"), max_rows=2))
    write(tmp_path / "in" / "a", [1, 2, 3, 4, 5], 1)
    killed(None, stream, tmp_path / "state", 1)
    more = replace(STREAM, input=Input("json", str(tmp_path / "in"), max_rows=100))
    assert [rows for rows, _ in rounds_of(None, more, tmp_path / "state")] == [2, 1, 0]


def test_lines_that_were_added_to_a_followed_file_are_in_the_next_round(tmp_path: Path) -> None:
    stream = replace(STREAM, input=Input("follow", str(tmp_path / "log")))
    (tmp_path / "log").write_text('{"t": 1}\n{"t": 2}\n')
    killed(None, stream, tmp_path / "state", 0)
    with (tmp_path / "log").open("a") as log:
        log.write('{"t": 3}\n{"t": 4}\n{"t": 5}\n')
    os.rename(tmp_path / "log", tmp_path / "log.1")
    (tmp_path / "log").write_text('{"t": 6}\n')
    assert [rows for rows, _ in rounds_of(None, stream, tmp_path / "state")] == [2, 3, 1, 0]


def given_rounds(given: LocalInput, state: Path, round: int | None = None) -> list[tuple[int, int]]:
    """The rounds over an input that a test has made, killed in one of them if that is said."""
    observer = None if round is None else killed_at(round)
    running = LocalEngine(Program((STREAM,), (COUNT,)), str(state), {}, {"s": given}, observer=observer)
    found: list[tuple[int, int]] = []
    running.on_round(lambda work: found.append((work.rows, work.clock)))
    if round is not None:
        with pytest.raises(KilledError):
            running.run()
    else:
        running.run()
    return found


def test_batches_are_cut_where_they_were(tmp_path: Path) -> None:
    given_rounds(Batches(STREAM, [pa.table({"t": [1, 2]})]), tmp_path / "state", 0)
    meant = intended(tmp_path / "state", 0)
    rounds = given_rounds(Batches(STREAM, [pa.table({"t": [1, 2, 3, 4, 5]})]), tmp_path / "state")
    assert [rows for rows, _ in rounds] == [2, 3, 0]
    assert rounds[0][1] == meant


def test_a_replay_gives_again_what_was_due_then(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [1, 2, 3]}), tmp_path / "r.parquet")
    options = (("schedules", str(tmp_path / "schedules")), ("speed", "max"))
    stream = replace(STREAM, input=Input("replay", str(tmp_path / "r.parquet"), options, max_rows=2))
    killed(None, stream, tmp_path / "state", 0)
    more = replace(STREAM, input=Input("replay", str(tmp_path / "r.parquet"), options, max_rows=9))
    assert [rows for rows, _ in rounds_of(None, more, tmp_path / "state")] == [2, 1, 0]


def changed_shorter(path: Path) -> None:
    write(path, [9], 9)


def changed_in_its_second_line(path: Path) -> None:
    path.write_text('{"t": 1}\n\n\n{"t": 2}\n{"t": 3}\n')


@pytest.mark.parametrize("change", [Path.unlink, changed_shorter, changed_in_its_second_line])
def test_a_round_whose_file_is_another_one_now_is_another_round_with_a_clock_of_its_own(
    change: Callable[[Path], Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stream = replace(STREAM, input=Input("json", str(tmp_path / "in")))
    write(tmp_path / "in" / "a", [1, 2], 1)
    write(tmp_path / "in" / "b", [3], 2)
    killed(None, stream, tmp_path / "state", 0)
    meant = intended(tmp_path / "state", 0)
    change(tmp_path / "in" / "a")
    there = sum(1 for path in (tmp_path / "in").iterdir() for line in path.read_text().splitlines() if line)
    rounds = rounds_of(None, stream, tmp_path / "state")
    assert sum(rows for rows, _ in rounds) == there
    assert all(clock > meant for _, clock in rounds)
    assert "round 0 was broken off, and its rows are not all there any more (s)" in caplog.text


def test_what_a_pipe_has_given_is_not_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    piped = replace(STREAM, input=Input("stdin"))
    given_rounds(StandardInput(piped, io.BytesIO(b'{"t": 1}\n')), tmp_path / "state", 0)
    rounds = given_rounds(StandardInput(piped, io.BytesIO(b'{"t": 7}\n{"t": 8}\n')), tmp_path / "state")
    assert [rows for rows, _ in rounds] == [2, 0]
    assert "broken off" in caplog.text


def test_of_two_rounds_that_are_run_again_the_second_has_the_clock_of_now(
    session: SparkSession | None, tmp_path: Path
) -> None:
    """The record of the round before was damaged, too, and Spark's log was taken back with it."""
    stream = replace(STREAM, input=Input("json", str(tmp_path / "in"), max_files=1))
    for number in range(4):
        write(tmp_path / "in" / str(number), [number], number)
    killed(session, stream, tmp_path / "state", 3)
    meant = intended(tmp_path / "state", 3)
    (tmp_path / "state" / "rounds" / "0000000002.json").write_bytes(b"torn")
    (tmp_path / "in" / "3").unlink()
    write(tmp_path / "in" / "4", [4, 4], 4)
    rounds = rounds_of(session, stream, tmp_path / "state")
    assert [rows for rows, _ in rounds] == [1, 2, 0]
    assert rounds[1][1] > meant
