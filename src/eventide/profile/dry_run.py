"""Run policies over a recording, and see which rows they drop and how long the others wait.

A row is dropped when its time is at or below the last heartbeat given before it arrives. A kept row is released at
the first question that is answered with a heartbeat at or above its time; a row that no heartbeat reaches is released
when the recording ends.

>>> from eventide.profile.reading import Recording
>>> from eventide.eventtime.policies.fixed_delay import FixedDelay
>>> r = Recording.of("late", time=[10, 20, 5, 30], arrival=[10, 20, 21, 30], source=["a"] * 4)
>>> run = dry_run(r, FixedDelay(5))
>>> run.outcome.drop_ratio, run.outcome.lag_mean
(0.25, 6.666666666666667)

*The outcome.* How many rows a policy dropped, and how long the kept ones waited. The *lag* of a kept row is the time
from its arrival to its release. The mean number of rows in the buffer follows from it by Little's law: rows waiting on
average = all the waiting / the length of the recording.

>>> from eventide.profile.reading import Recording
>>> r = Recording.of("three", time=[1, 3, 2], arrival=[0, 10, 20], source=["a", "a", "b"])
>>> o = Outcome.of(r, kept=np.array([True, True, False]), released=np.array([10, 20, 20]))
>>> o.drop_ratio, o.lag_mean, o.buffered_mean_rows
(0.3333333333333333, 10.0, 1.0)

*The timetable.* It says when heartbeats are asked for, and which rows arrive between two questions. *Row at a time*: a
question at the clock of a row just before it arrives, one at the same clock just after. *In rounds*: the rows whose
arrival falls into [k x length, (k + 1) x length) arrive together at its end; the question at the end of one round is
the last one before the rows of the next. Silent rounds are not gone through one by one: during a silence heartbeats are
asked for after 1, 2, 4, 8, ... rounds and at its end, so that a policy can move on time alone and a long gap costs next
to nothing.

>>> from eventide.profile.reading import Recording
>>> r = Recording.of("gap", time=[1, 2, 3], arrival=[12, 15, 99], source=["a", "a", "a"])
>>> t = Timetable.in_rounds(r, 10)
>>> t.questions.tolist(), t.after.tolist(), t.first_row.tolist()
([10, 20, 30, 40, 60, 90, 100], [1, 6], [0, 2, 3])
>>> Timetable.row_at_a_time(r).questions.tolist()
[12, 12, 15, 15, 99, 99]
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.instant import Instants
from eventide.profile.reading import Recording

WARM_UP_ROWS = 1_000
"""A policy that starts with nothing is judged after so many rows."""

LARGE_SOURCE_ROWS = 1_000
"""Only a source with so many rows has a drop ratio worth comparing."""

STRETCH_ROWS = 10_000
"""A stretch of so many consecutive rows shows what the total hides."""


@dataclass(frozen=True)
class Outcome:
    """Ratios of rows dropped, and lags in the units of the recording; None where there is nothing to measure."""

    drop_ratio: float
    drop_ratio_after_1000: float | None
    worst_source_drop_ratio: float | None
    worst_stretch_drop_ratio: float
    lag_mean: float | None
    lag_p95: float | None
    buffered_mean_rows: float

    @classmethod
    def of(cls, recording: Recording, kept: NDArray[np.bool_], released: Instants) -> Outcome:
        """Count and average; `released` need only hold for the rows in `kept`."""
        dropped = ~kept
        # A round ends after its rows have arrived, but a heartbeat may have passed a row of the future long before.
        lags = np.maximum(released[kept] - recording.arrival[kept], 0)
        duration = float(recording.arrival[-1] - recording.arrival[0]) if recording.rows else 0.0
        return cls(
            drop_ratio=float(dropped.mean()) if len(dropped) else 0.0,
            drop_ratio_after_1000=float(dropped[WARM_UP_ROWS:].mean()) if len(dropped) > WARM_UP_ROWS else None,
            worst_source_drop_ratio=_worst_source(recording, dropped),
            worst_stretch_drop_ratio=_worst_stretch(dropped),
            lag_mean=float(lags.mean()) if len(lags) else None,
            lag_p95=float(np.quantile(lags, 0.95)) if len(lags) else None,
            buffered_mean_rows=float(lags.sum(dtype=np.float64)) / duration if duration > 0 else 0.0,
        )


def _worst_source(recording: Recording, dropped: NDArray[np.bool_]) -> float | None:
    rows = np.bincount(recording.source)
    large = rows >= LARGE_SOURCE_ROWS
    if not large.any():
        return None
    lost = np.bincount(recording.source[dropped], minlength=len(rows))
    return float((lost[large] / rows[large]).max())


def _worst_stretch(dropped: NDArray[np.bool_]) -> float:
    length = min(STRETCH_ROWS, len(dropped))
    if length == 0:
        return 0.0
    lost = np.concatenate(([0], np.cumsum(dropped)))
    return float((lost[length:] - lost[:-length]).max() / length)


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
        """A timetable in which every row is a step."""
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


PROGRESS_EVERY = 64
Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, eq=False)
class DryRun:
    """The outcome, which rows were kept, and the heartbeats: one for every clock at which one was asked for."""

    outcome: Outcome
    kept: NDArray[np.bool_]
    clock: Instants
    heartbeat: Instants


def dry_run(recording: Recording, policy: Policy, round: int | None = None) -> DryRun:
    """Run one policy: row at a time, or in rounds of a length."""
    return dry_runs(timetable(recording, round), {"": policy})[""]


def timetable(recording: Recording, round: int | None) -> Timetable:
    """Row at a time without a round length, in rounds with one."""
    return Timetable.row_at_a_time(recording) if round is None else Timetable.in_rounds(recording, round)


def dry_runs(
    plan: Timetable, policies: Mapping[Name, Policy], progress: Callable[[float], None] = lambda share: None
) -> dict[Name, DryRun]:
    """Run several policies side by side, so that each step is summarised once; `progress` gets the share done."""
    questions = plan.questions.tolist()
    runners = [policy.start() for policy in policies.values()]
    answers: list[list[int]] = [[] for _ in runners]
    # Bound methods, fetched once: the loop below is all Python that runs per row.
    parts = [
        (runner.observe, runner.heartbeats, answer.append) for runner, answer in zip(runners, answers, strict=True)
    ]
    asked = 0
    for step, (arrivals, after) in enumerate(zip(plan.arrivals(), plan.after.tolist(), strict=True), start=1):
        waiting = questions[asked:after]
        last = questions[after]
        asked = after + 1
        for observe, heartbeats, note in parts:
            for clock in waiting:
                note(heartbeats(clock).combined)
            observe(arrivals)
            note(heartbeats(last).combined)
        if step % PROGRESS_EVERY == 0:
            progress(step / plan.steps)
    return {
        name: judged(plan, np.array(answer, dtype=np.int64)) for name, answer in zip(policies, answers, strict=True)
    }


def judged(plan: Timetable, heartbeat: Instants) -> DryRun:
    """What the answers to all questions of a timetable mean for the rows."""
    recording = plan.recording
    kept = recording.time > np.repeat(heartbeat[plan.after - 1], np.diff(plan.first_row))
    # Heartbeats never go back, so the first answer at or above a time is found by halving. A kept row lies above
    # every answer before its arrival: what is found comes after it.
    answer = np.searchsorted(heartbeat, recording.time, side="left")
    released = plan.questions[np.minimum(answer, len(heartbeat) - 1)]
    return DryRun(Outcome.of(recording, kept, released), kept, plan.questions, heartbeat)
