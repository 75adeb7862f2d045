"""Parts (c) and (d): every policy on every stream, real and generated, row at a time.

Streams are independent of each other, so each is one task of a pool of processes.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from rich.progress import Progress

from benchmarks.heartbeats.recordings import RUNS
from eventide.eventtime.heartbeat import Policy
from eventide.profile.candidates import CLAIRVOYANT, FIXED_BEST, ONLINE, OURS
from eventide.profile.dry_run import dry_runs, timetable
from eventide.profile.limits import clairvoyant, fixed_best
from eventide.profile.outcome import Outcome
from eventide.profile.recording import Recording
from eventide.testing.streams import HARD_CASES

SEED = 1
PERMITTED = (0.001, 0.01, 0.05)
NAMED_CASES = (
    "backlog",
    "delay_step",
    "clock_jump",
    "silent_half",
    "heavy_tail",
    "bursts",
    "future_row",
    "new_sources",
)
"""The hard cases of the quick form."""


@dataclass(frozen=True)
class Stream:
    """A stream by name: recorded (`real`) or generated."""

    name: str
    real: bool

    def load(self) -> Recording | None:
        """Read or generate it; None where a recording is not there.

        >>> recording = Stream("in_order", real=False).load()
        >>> recording.rows if recording else 0
        20000
        """
        if self.real:
            return next(run for run in RUNS if run.name == self.name).load()
        return HARD_CASES[self.name](SEED)


@dataclass(frozen=True)
class Measured:
    """What one policy, permitted one drop ratio, did on one stream."""

    stream: Stream
    permitted: float
    policy: str
    outcome: Outcome

    @property
    def excess(self) -> float:
        """Rows lost over rows permitted, after the first 1,000; 0 for a shorter stream."""
        return (self.outcome.drop_ratio_after_1000 or 0.0) / self.permitted

    @property
    def source_excess(self) -> float:
        """The same for the worst source with 1,000 rows or more; 0 without one."""
        return (self.outcome.worst_source_drop_ratio or 0.0) / self.permitted

    @property
    def lag(self) -> float:
        """Mean lag in units of the stream, at least 1 so that ratios exist."""
        return max(self.outcome.lag_mean or 0.0, 1.0)


def measure_stream(stream: Stream, permitted: tuple[float, ...], policies: tuple[str, ...]) -> list[Measured]:
    """Run these online policies and the two yardsticks on one stream; nothing where it is not there."""
    recording = stream.load()
    if recording is None:
        return []
    plan = timetable(recording, None)
    declared = {(name, ratio): ONLINE[name](ratio) for ratio in permitted for name in policies}
    # Policies that do not listen to the ratio are equal for all of them: run once.
    key_of: dict[Policy, str] = {policy: f"{name} {ratio}" for (name, ratio), policy in declared.items()}
    runs = dry_runs(plan, {key: policy for policy, key in key_of.items()})
    measured = [
        Measured(stream, ratio, name, runs[key_of[policy]].outcome) for (name, ratio), policy in declared.items()
    ]
    for ratio in permitted:
        measured.append(Measured(stream, ratio, CLAIRVOYANT, clairvoyant(plan, ratio)))
        measured.append(Measured(stream, ratio, FIXED_BEST, fixed_best(plan, ratio).run.outcome))
    return measured


def measure(quick: bool) -> list[Measured]:
    """All streams: every policy and drop ratio, or in the quick form fewer of each."""
    permitted = (0.01,) if quick else PERMITTED
    everyone = tuple(ONLINE)
    tasks = [(Stream(run.name, real=True), permitted, everyone) for run in RUNS]
    cases: Iterable[str] = NAMED_CASES if quick else HARD_CASES
    tasks += [(Stream(name, real=False), permitted, (OURS,) if quick else everyone) for name in cases]
    measured: dict[Stream, list[Measured]] = {}
    with ProcessPoolExecutor() as pool, Progress(transient=True) as progress:
        bar = progress.add_task("streams", total=len(tasks))
        running = {pool.submit(measure_stream, *task): task[0] for task in tasks}
        for done in as_completed(running):
            measured[running[done]] = done.result()
            progress.advance(bar)
    return [one for stream, *_ in tasks for one in measured[stream]]
