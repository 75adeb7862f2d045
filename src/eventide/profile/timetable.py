"""The timetable of a dry run: when heartbeats are asked for, and which rows arrive between two questions.

*Row at a time*: a question at the clock of a row just before it arrives, one at the same clock just after. *In
rounds*: the rows whose arrival falls into [k x length, (k + 1) x length) arrive together at its end; the question at
the end of one round is the last one before the rows of the next. Silent rounds are not gone through one by one:
during a silence heartbeats are asked for after 1, 2, 4, 8, ... rounds and at its end, so that a policy can move on
time alone and a long gap costs next to nothing.

>>> from eventide.profile.recording import Recording
>>> r = Recording.of("gap", time=[1, 2, 3], arrival=[12, 15, 99], source=["a", "a", "a"])
>>> t = Timetable.in_rounds(r, 10)
>>> t.questions.tolist(), t.after.tolist(), t.first_row.tolist()
([10, 20, 30, 40, 60, 90, 100], [1, 6], [0, 2, 3])
>>> Timetable.row_at_a_time(r).questions.tolist()
[12, 12, 15, 15, 99, 99]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.instant import Instants
from eventide.profile.recording import Recording


@dataclass(frozen=True, eq=False)
class Timetable:
    """The clocks of all questions, in order, and the steps at which rows arrive.

    Step k brings the rows from `first_row[k]` up to `first_row[k + 1]`; the first question after it is number
    `after[k]`, the last one before it is number `after[k] - 1`. `cell_width` says how finely a step is summarised.
    """

    recording: Recording
    questions: Instants
    after: NDArray[np.intp]
    first_row: NDArray[np.intp]
    cell_width: int | None

    @classmethod
    def row_at_a_time(cls, recording: Recording) -> Timetable:
        """Every row is a step."""
        clock = recording.arrival
        return cls._of(recording, clock, clock, np.arange(len(clock) + 1), length=None)

    @classmethod
    def in_rounds(cls, recording: Recording, length: int) -> Timetable:
        """Every round that brings rows is a step."""
        if length < 1:
            raise DeclarationError(f"a round of {length} has no length: give 1s, 250ms, ..., or row")
        number = recording.arrival // length
        first_row = np.append(np.flatnonzero(np.diff(number, prepend=number[:1] - 1)), len(number))
        opens = number[first_row[:-1]] * length
        return cls._of(recording, opens, opens + length, first_row, length)

    @classmethod
    def _of(
        cls, recording: Recording, opens: Instants, closes: Instants, first_row: NDArray[np.intp], length: int | None
    ) -> Timetable:
        """Lay out the questions: after a step, at ticks in the silence that follows, just before the next step, ..."""
        silence = np.append([1], opens[1:] - closes[:-1]) if len(opens) else opens
        ticks = np.zeros(len(opens), dtype=np.intp)
        if length is not None:
            silent_rounds = silence[1:] // length
            ticks[1:] = np.ceil(np.log2(np.maximum(silent_rounds, 1))).astype(np.intp)
        before = ticks + (silence > 0)
        after = np.cumsum(before + 1) - 1
        questions = np.empty(int(after[-1]) + 1 if len(after) else 0, dtype=np.int64)
        questions[after - 1] = opens
        questions[after] = closes
        if length is not None:
            step = np.repeat(np.arange(len(ticks)), ticks)
            doubling = np.arange(len(step)) - np.repeat(np.cumsum(ticks) - ticks, ticks)
            questions[after[step - 1] + 1 + doubling] = closes[step - 1] + (length << doubling)
        # A quarter of a round: fine enough that one straggler does not look like a whole late round.
        width = None if length is None else max(1, length // 4)
        return cls(recording, questions, after.astype(np.intp), first_row.astype(np.intp), width)

    @property
    def steps(self) -> int:
        """How many times rows arrive."""
        return len(self.after)

    @cached_property
    def step_of_row(self) -> NDArray[np.intp]:
        """The step at which each row arrives."""
        return np.repeat(np.arange(self.steps), np.diff(self.first_row))

    def arrivals(self) -> Iterator[Arrivals]:
        """The steps, as a policy sees them."""
        clocks = self.questions[self.after].tolist()
        if self.cell_width is None:
            for clock, source, time in zip(
                clocks, self.recording.source.tolist(), self.recording.time.tolist(), strict=True
            ):
                yield Arrivals.of_row(clock, source, time)
            return
        bounds = self.first_row.tolist()
        for clock, first, last in zip(clocks, bounds[:-1], bounds[1:], strict=True):
            rows = slice(first, last)
            yield Arrivals.of_rows(clock, self.recording.source[rows], self.recording.time[rows], self.cell_width)
