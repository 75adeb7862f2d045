"""A warm start: what a drop ratio policy would have learned from a recording, before the stream begins.

`DRATIO 1% LEARNED FROM 'recording.parquet'` runs the policy over the recording once, in the rounds that `eventide
profile` would take, and starts the stream with the slacks and lags found there. The recording has the columns of the
stream: its time, its sources, and the arrival if the stream says one. Sources are not carried over, nor is any
heartbeat: a stream of other sources may learn from it.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp(), "ten.csv")
>>> _ = path.write_text("at,seen\\n" + "".join(f"{10 * t},{10 * t}\\n" for t in range(200)))
>>> policy = learn(DropRatio(0.01, Learned(str(path))), Columns("at", "seen"), unit="none")
>>> policy.start().account.warm
True
"""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

from eventide.errors import InputError
from eventide.eventtime.drop_ratio import DropRatio, Learned
from eventide.profile.dry_run import timetable
from eventide.profile.files import Columns
from eventide.profile.reading import read
from eventide.profile.rounds import usual_round

__all__ = ["DropRatio", "Learned", "learn"]


def learn(policy: Any, columns: Columns, unit: str | None = None, folder: Path | None = None) -> Any:
    """The same policy, or one that wraps it, after reading the recording that it names, if it names any."""
    if isinstance(policy, DropRatio):
        unread = policy.learned is not None and not policy.learned.state
        return _learned(policy, policy.learned.origin, columns, unit, folder) if unread and policy.learned else policy
    inner = getattr(policy, "inner", None)
    if inner is None or not is_dataclass(policy):
        return policy
    changed = learn(inner, columns, unit, folder)
    return policy if changed is inner else replace(policy, inner=changed)  # type: ignore[type-var]


def _learned(policy: DropRatio, origin: str, columns: Columns, unit: str | None, folder: Path | None) -> DropRatio:
    path = origin if folder is None or Path(origin).is_absolute() else str(folder / origin)
    readings = list(read([path], columns, unit))
    if not readings or readings[0].recording.rows == 0:
        raise InputError(f"{origin}: nothing can be learned from a recording without rows")
    recording = readings[0].recording
    generator = DropRatio(policy.ratio).start()
    plan = timetable(recording, usual_round(recording, readings[0].plain))
    questions, asked = plan.questions.tolist(), 0
    for arrivals, after in zip(plan.arrivals(), plan.after.tolist(), strict=True):
        for clock in questions[asked:after]:
            generator.heartbeats(clock)
        generator.observe(arrivals)
        generator.heartbeats(questions[after])
        asked = after + 1
    return policy.learned_from(generator.snapshot(), origin)
