"""Lag against loss: what every policy does when more or less may be lost.

The dry run has shown one permitted ratio; a few others are tried around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eventide.eventtime.heartbeat import Policy
from eventide.profile.candidates import CLAIRVOYANT, FIXED_BEST, candidates
from eventide.profile.dry_run import dry_runs, timetable
from eventide.profile.limits import clairvoyant, fixed_best
from eventide.profile.outcome import Outcome
from eventide.profile.profiling import Profile

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
