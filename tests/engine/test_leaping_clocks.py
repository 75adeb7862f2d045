"""Clocks that leap ahead for a moment, and clocks that are set right."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from eventide.engine.local.backend import LocalBackend
from eventide.engine.round.engine import Engine
from eventide.engine.steady_clock import BELIEVED_AFTER, LEAP, SteadyClock
from eventide.engine.stream_progress import StreamProgress
from eventide.eventtime.policies.clock_skew import ClockSkew
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import Window

SECOND = 1_000_000
DAY = 86_400 * SECOND
START = 1_800_000_000 * SECOND


class Machine:
    """A wall clock that somebody sets, and the time that passes."""

    def __init__(self) -> None:
        self.wall, self.passed = START, 7

    def wait(self, length: int) -> None:
        self.wall += length
        self.passed += length

    def clock(self) -> SteadyClock:
        return SteadyClock(lambda: self.wall, lambda: self.passed)


def test_a_leap_that_stays_is_believed_after_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine()
    clock = machine.clock()
    machine.wall += DAY
    machine.wait(10)
    assert clock() == START + 10
    machine.wait(BELIEVED_AFTER)
    assert clock() == START + DAY + 10 + BELIEVED_AFTER
    assert "it is not followed" in caplog.text
    assert "it is believed now" in caplog.text


def test_a_small_leap_a_step_back_and_a_long_sleep_are_followed_at_once() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.wall += LEAP
    assert clock() == START + LEAP
    machine.wall = START
    assert clock() == START
    machine.wait(DAY)
    assert clock() == START + DAY


def test_a_glitch_of_the_clock_makes_no_honest_row_late(tmp_path: Path) -> None:
    """Under CLOCK SKEW every row of the next day was late."""
    machine = Machine()
    stream = Stream("s", columns("t TIMESTAMP"), time="t", policy=ClockSkew(5 * SECOND))
    program = Program((stream,), (Query("q", "s", Window(10), named_as(n="count(*)")),))
    engine = Engine(program, LocalBackend(), str(tmp_path), now=machine.clock())
    late = 0
    for leap in (0, DAY, 0, 0):
        machine.wait(SECOND)
        rows = pa.table(
            {"t": pa.array([machine.wall], pa.timestamp("us", "UTC")), "_malformed": pa.nulls(1, pa.string())}
        )
        machine.wall += leap
        late += engine.round({"s": rows}).late_rows()
        machine.wall -= leap
    engine.close()
    assert late == 0


ARRIVING = Stream("s", columns("t TIMESTAMP, at TIMESTAMP"), time="t", arrival="at", policy=ClockSkew(5 * SECOND))


def clocks(*rounds: list[int], time: StreamProgress | None = None) -> list[int]:
    """The clock of a stream after each round of rows that arrived then, a cell each."""
    time = time or StreamProgress.start(ARRIVING)
    found = []
    for arrived in rounds:
        cells = {"__n": [1] * len(arrived), "__lo": arrived, "__hi": arrived, "__at": arrived}
        summary = pa.table({name: pa.array(values, pa.int64()) for name, values in cells.items()})
        time.observe(time.moment(0, summary), summary, ())
        found.append(time.clock)
    return found


def test_a_leap_of_one_row_is_dropped_when_the_next_round_does_not_agree(caplog: pytest.LogCaptureFixture) -> None:
    assert clocks([0, 5], [DAY], [10], [DAY], [20, 2 * DAY], [30]) == [5, 5, 10, 10, 20, 30]
    assert caplog.text.count("did not agree: it has not moved time") == 2


def test_rows_that_come_every_two_hours_move_the_clock_one_round_later() -> None:
    step = 2 * LEAP
    assert clocks([0], [step], [2 * step], [3 * step]) == [0, 0, step, 2 * step]


def test_several_cells_of_a_round_beyond_a_silence_are_believed_at_once() -> None:
    assert clocks([0, 5], [DAY, DAY + 9]) == [5, DAY + 9]
    assert clocks([0, 5, DAY, DAY + 9, 9 * DAY]) == [DAY + 9]


def test_a_leap_that_waits_to_be_confirmed_is_remembered_by_the_record() -> None:
    time = StreamProgress.start(ARRIVING)
    assert clocks([0], [DAY], time=time) == [0, 0]
    again = StreamProgress.restored(ARRIVING, time.saved(), time.sources)
    assert clocks([DAY + 9], time=again) == [DAY + 9]
