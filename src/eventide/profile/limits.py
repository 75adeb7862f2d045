"""The two yardsticks of every dry run, both with knowledge of the whole recording.

*Clairvoyant* is the limit of what any policy can do: it drops the p x rows that come latest behind the largest time
seen before them, and releases a kept row as soon as every kept row with an earlier or equal time has arrived.

*Fixed, best in hindsight* is the constant that people guess today (heartbeat = largest time seen so far - D) as good
as it can be guessed: the smallest D that drops no more than p.

>>> from eventide.profile.recording import Recording
>>> from eventide.profile.dry_run import timetable
>>> r = Recording.of("one late", time=[10, 20, 12, 30], arrival=[10, 20, 21, 30], source=["a"] * 4)
>>> best = fixed_best(timetable(r, None), 0.2)
>>> best.delay, best.run.outcome.drop_ratio
(9, 0.0)
>>> clairvoyant(timetable(r, None), 0.2).lag_mean
0.25
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.instant import NEVER, Instants, shift_all
from eventide.profile.dry_run import DryRun, judged
from eventide.profile.outcome import Outcome
from eventide.profile.timetable import Timetable


@dataclass(frozen=True, eq=False)
class FixedBest:
    """The best constant delay, and what it does."""

    delay: int
    run: DryRun


def permitted_rows(drop_ratio: float, rows: int) -> int:
    """How many rows a share permits to drop.

    >>> permitted_rows(0.29, 100), int(0.29 * 100)
    (29, 28)
    """
    # Decimal shares are not exact in binary; a billionth of a row makes up for it.
    return int(drop_ratio * rows + 1e-9)


def lateness(plan: Timetable) -> Instants:
    """How far each row lies behind the largest time that had arrived at an earlier step; `NEVER` at the first step.

    Negative for a row that is ahead of all others.
    """
    time = plan.recording.time
    if not len(time):
        return time
    largest = np.maximum.accumulate(time)
    first = plan.first_row[plan.step_of_row]
    return np.where(first == 0, NEVER, largest[np.maximum(first, 1) - 1] - time)


def clairvoyant(plan: Timetable, drop_ratio: float) -> Outcome:
    """The limit: the least lag possible for one who knows the future and may drop this share of the rows."""
    recording = plan.recording
    kept = ~_latest(lateness(plan), permitted_rows(drop_ratio, recording.rows))
    here = plan.questions[plan.after][plan.step_of_row]
    rows = np.flatnonzero(kept)
    rows = rows[np.argsort(recording.time[rows], kind="stable")]
    time = recording.time[rows]
    arrived = np.maximum.accumulate(here[rows])
    # Rows of one time wait for the last of them.
    last = np.flatnonzero(np.append(time[1:] != time[:-1], True))
    released = np.zeros(recording.rows, dtype=np.int64)
    released[rows] = np.repeat(arrived[last], np.diff(last, prepend=-1))
    return Outcome.of(recording, kept, released)


def _latest(behind: Instants, count: int) -> NDArray[np.bool_]:
    """The `count` rows that are farthest behind; of equal ones the last to arrive."""
    if count == 0:
        return np.zeros(len(behind), dtype=np.bool_)
    least = np.partition(behind, len(behind) - count)[len(behind) - count]
    latest: NDArray[np.bool_] = behind > least
    tied = np.flatnonzero(behind == least)
    latest[tied[len(tied) - (count - np.count_nonzero(latest)) :]] = True
    return latest


def fixed_best(plan: Timetable, drop_ratio: float) -> FixedBest:
    """The smallest constant delay that drops no more than the permitted share, known only in hindsight."""
    rows = plan.recording.rows
    permitted = permitted_rows(drop_ratio, rows)
    behind = lateness(plan)
    # A row is dropped when it is behind by D or more: D must pass the latest row that has to be kept.
    must_keep = int(np.partition(behind, rows - permitted - 1)[rows - permitted - 1]) if rows else NEVER
    delay = max(0, must_keep + 1)
    return FixedBest(delay, judged(plan, _largest_minus(plan, delay)))


def _largest_minus(plan: Timetable, delay: int) -> Instants:
    """The answers of the fixed delay to all questions of a timetable."""
    largest = np.maximum.accumulate(plan.recording.time)[plan.first_row[1:] - 1]
    observed = np.searchsorted(plan.after, np.arange(len(plan.questions)), side="right")
    seen = np.concatenate(([NEVER], largest))[observed]
    return shift_all(seen, -delay)
