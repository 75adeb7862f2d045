"""Find out all that a dry run tells of a recording: its disorder, and what each policy would have done.

>>> import tempfile
>>> from pathlib import Path
>>> from eventide.profile.files import ColumnNames
>>> from eventide.profile.reading import read
>>> path = Path(tempfile.mkdtemp(), "ten.csv")
>>> _ = path.write_text("at,seen\\n" + "".join(f"{t},{t + 3}\\n" for t in range(10)))
>>> [reading] = read([str(path)], ColumnNames("at", "seen"))
>>> found = profile(reading, drop_ratio=0.1, names=["own_progress"])
>>> {name: outcome.lag_mean for name, outcome in found.outcomes.items()}
{'clairvoyant': 0.0, 'fixed_best': 0.0, 'own_progress': 0.9}

*Policies.* They are compared by name, each for a permitted drop ratio. Beside them stand two yardsticks that know the
whole recording: `clairvoyant`, and `fixed_best`, which is what `withWatermark` would do with the best constant.

>>> sorted(candidates(0.01, ["own_progress", "delay_quantile"]))
['delay_quantile', 'own_progress']
>>> candidates(0.01, ["magic"])  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: no policy 'magic': choose from adaptive_window, clairvoyant, delay_quantile, ...

*Yardsticks.* Both know the whole recording. *Clairvoyant* is the limit of what any policy can do: it drops the p x rows
that come latest behind the largest time seen before them, and releases a kept row as soon as every kept row with an
earlier or equal time has arrived.

*Fixed, best in hindsight* is the constant that people guess today (heartbeat = largest time seen so far - D) as good
as it can be guessed: the smallest D that drops no more than p.

>>> from eventide.profile.reading import Recording
>>> from eventide.profile.dry_run import timetable
>>> r = Recording.of("one late", time=[10, 20, 12, 30], arrival=[10, 20, 21, 30], source=["a"] * 4)
>>> best = fixed_best(timetable(r, None), 0.2)
>>> best.delay, best.run.outcome.drop_ratio
(9, 0.0)
>>> clairvoyant(timetable(r, None), 0.2).lag_mean
0.25

*Lag against loss.* What does every policy do when more or less may be lost? The dry run has shown one permitted ratio;
a few others are tried around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.instant import NEVER, Instants, shift_all
from eventide.eventtime.policies.adaptive_window import AdaptiveWindow
from eventide.eventtime.policies.delay_quantile import DelayQuantile
from eventide.eventtime.policies.disorder_histogram import DisorderHistogram
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.kim import Kim, KimAdhoc
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.quality_driven import QualityDriven
from eventide.eventtime.policies.skew.estimated import EstimatedSkew
from eventide.profile.disorder import Disorder, disorder
from eventide.profile.dry_run import DryRun, Outcome, Timetable, dry_runs, judged, timetable
from eventide.profile.reading import LoadedRecording

OURS = "eventide"
CLAIRVOYANT, FIXED_BEST = "clairvoyant", "fixed_best"
YARDSTICKS = (CLAIRVOYANT, FIXED_BEST)

ONLINE: dict[str, Callable[[float], Policy]] = {
    OURS: lambda drop_ratio: DropRatio(drop_ratio),
    "kim": lambda drop_ratio: Kim(drop_ratio),
    "kim_adhoc": lambda drop_ratio: KimAdhoc(drop_ratio),
    "delay_quantile": lambda drop_ratio: DelayQuantile(1 - drop_ratio, window_rows=1000),
    "adaptive_window": lambda drop_ratio: AdaptiveWindow(1 - drop_ratio),
    "quality_driven": lambda drop_ratio: QualityDriven(drop_ratio),
    # These wait for what they know, whatever may be lost.
    "disorder_histogram": lambda drop_ratio: DisorderHistogram(),
    "own_progress": lambda drop_ratio: OwnProgress(),
    "skew_adaptive": lambda drop_ratio: EstimatedSkew(),
}

MEANING = {
    OURS: "Eventide's own: DRATIO p",
    CLAIRVOYANT: "limit, knows the future",
    FIXED_BEST: "largest time - D, D in hindsight",
    "kim": "Kim et al., adaptive buffer",
    "kim_adhoc": "Kim et al., ad hoc estimator",
    "delay_quantile": "clock - delay quantile",
    "adaptive_window": "the same since delays changed (ADWIN)",
    "quality_driven": "largest time - K, K by what was lost (AQ-K-slack)",
    "disorder_histogram": "95 % of each source's disorder (as Confluent)",
    "own_progress": "every source's own progress",
    "skew_adaptive": "STREAM, estimated skew bounds",
}


def check_names(names: Iterable[str]) -> None:
    """Refuse names that are neither a policy nor a yardstick."""
    for name in names:
        if name not in MEANING:
            raise DeclarationError(f"no policy {name!r}: choose from {', '.join(sorted(MEANING))}")


def candidates(drop_ratio: float, names: Iterable[str] = ()) -> dict[str, Policy]:
    """The online policies among these names, or all, declared for a drop ratio."""
    wanted = list(names) or list(ONLINE)
    check_names(wanted)
    return {name: declare(drop_ratio) for name, declare in ONLINE.items() if name in wanted}


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


@dataclass(frozen=True, eq=False)
class Profile:
    """The findings. `round` is None for row at a time; `fixed_delay` is the D of `fixed_best`."""

    reading: LoadedRecording
    drop_ratio: float
    round: int | None
    disorder: Disorder
    outcomes: dict[str, Outcome]
    runs: dict[str, DryRun]
    fixed_delay: int


def profile(
    reading: LoadedRecording,
    drop_ratio: float,
    round: int | None = None,
    names: Sequence[str] = (),
    progress: Callable[[str, float], None] = lambda stage, share: None,
) -> Profile:
    """Measure a recording and run policies over it, by row or in rounds; `progress` gets stage and share done."""
    recording = reading.recording
    progress("measuring disorder", 0.0)
    measured = disorder(recording)
    plan = timetable(recording, round)
    progress("computing the limits", 0.0)
    best = fixed_best(plan, drop_ratio)
    outcomes = {CLAIRVOYANT: clairvoyant(plan, drop_ratio)}
    runs = dry_runs(plan, candidates(drop_ratio, names), lambda share: progress("running policies", share))
    online = {name: run.outcome for name, run in runs.items()}
    # Ours first among the online ones, beside the constant it replaces.
    outcomes |= {name: online.pop(name) for name in (OURS,) if name in online}
    outcomes |= {FIXED_BEST: best.run.outcome, **online}
    return Profile(reading, drop_ratio, round, measured, outcomes, {**runs, FIXED_BEST: best.run}, best.delay)


RATIOS = (0.001, 0.01, 0.03, 0.1)


@dataclass(frozen=True)
class Point:
    """What was permitted, and what came of it."""

    permitted: float
    outcome: Outcome


def trade_off(
    profile: Profile,
    ratios: Sequence[float] = RATIOS,
    progress: Callable[[str, float], None] = lambda stage, share: None,
) -> dict[str, list[Point]]:
    """The outcome of every policy of a profile at every ratio, ascending; once for a policy that heeds no ratio."""
    curves = {name: [Point(profile.drop_ratio, outcome)] for name, outcome in profile.outcomes.items()}
    names = list(profile.runs)
    known = candidates(profile.drop_ratio, names).values()
    plan = timetable(profile.reading.recording, profile.round)
    declared: dict[tuple[str, float], Policy] = {}
    for ratio in ratios:
        if ratio != profile.drop_ratio:
            curves[CLAIRVOYANT].append(Point(ratio, clairvoyant(plan, ratio)))
            curves[FIXED_BEST].append(Point(ratio, fixed_best(plan, ratio).run.outcome))
            others = candidates(ratio, names).items()
            declared |= {(name, ratio): policy for name, policy in others if policy not in known}
    runs = dry_runs(plan, declared, lambda share: progress("weighing lag against loss", share))
    for (name, ratio), run in runs.items():
        curves[name].append(Point(ratio, run.outcome))
    return {name: sorted(points, key=lambda point: point.permitted) for name, points in curves.items()}
