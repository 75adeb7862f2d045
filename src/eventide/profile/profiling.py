"""Everything a dry run finds out about one recording: its disorder, and what each policy would have done with it.

>>> import tempfile
>>> from pathlib import Path
>>> from eventide.profile.files import Columns
>>> from eventide.profile.reading import read
>>> path = Path(tempfile.mkdtemp(), "ten.csv")
>>> _ = path.write_text("at,seen\\n" + "".join(f"{t},{t + 3}\\n" for t in range(10)))
>>> [reading] = read([str(path)], Columns("at", "seen"))
>>> found = profile(reading, drop_ratio=0.1, names=["own_progress"])
>>> {name: outcome.lag_mean for name, outcome in found.outcomes.items()}
{'clairvoyant': 0.0, 'fixed_best': 0.0, 'own_progress': 0.9}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eventide.profile.candidates import CLAIRVOYANT, FIXED_BEST, OURS, candidates
from eventide.profile.disorder import Disorder, disorder
from eventide.profile.dry_run import DryRun, dry_runs, timetable
from eventide.profile.limits import clairvoyant, fixed_best
from eventide.profile.outcome import Outcome
from eventide.profile.reading import Reading


@dataclass(frozen=True, eq=False)
class Profile:
    """The findings. `round` is None for row at a time; `fixed_delay` is the D of `fixed_best`."""

    reading: Reading
    drop_ratio: float
    round: int | None
    disorder: Disorder
    outcomes: dict[str, Outcome]
    runs: dict[str, DryRun]
    fixed_delay: int


def profile(
    reading: Reading,
    drop_ratio: float,
    round: int | None = None,
    names: Sequence[str] = (),
    progress: Callable[[str, float], None] = lambda stage, share: None,
) -> Profile:
    """Measure a recording and run policies over it, by row or in rounds; `progress` is told stage and share done."""
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
