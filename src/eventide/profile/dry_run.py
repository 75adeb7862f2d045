"""Run policies over a recording, and see which rows they would have dropped and when they would have released the rest.

A row is dropped when its time is at or below the last heartbeat given before it arrives. A kept row is released at
the first question that is answered with a heartbeat at or above its time; a row that no heartbeat reaches is released
when the recording ends.

>>> from eventide.profile.recording import Recording
>>> from eventide.eventtime.policies.fixed_delay import FixedDelay
>>> r = Recording.of("late", time=[10, 20, 5, 30], arrival=[10, 20, 21, 30], source=["a"] * 4)
>>> run = dry_run(r, FixedDelay(5))
>>> run.outcome.drop_ratio, run.outcome.lag_mean
(0.25, 6.666666666666667)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.instant import Instants
from eventide.profile.outcome import Outcome
from eventide.profile.recording import Recording
from eventide.profile.timetable import Timetable

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
    """Run several policies side by side, so that each step is summarised once; `progress` is told the share done."""
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
