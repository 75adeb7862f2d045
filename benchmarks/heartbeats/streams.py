"""Parts (c) and (d): every policy on every stream, real and generated, row at a time.

Streams are independent of each other, so they are shared out to a pool of processes.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass

from rich.progress import Progress

from benchmarks.heartbeats.generated import BEFORE, SEEDS
from benchmarks.heartbeats.generated_after import AFTER
from benchmarks.heartbeats.generated_further import FURTHER
from benchmarks.heartbeats.recordings import RUNS
from eventide.eventtime.heartbeat import Policy
from eventide.profile.dry_run import Outcome, dry_runs, timetable
from eventide.profile.profiling import CLAIRVOYANT, FIXED_BEST, ONLINE, OURS, YARDSTICKS, clairvoyant, fixed_best
from eventide.profile.reading import Recording
from eventide.testing.streams import HARD_CASES

SEED = 1
PERMITTED = (0.001, 0.01, 0.05)
PROMISED = (0.01, 0.05)
"""The drop ratios at which the promise must hold."""
HEADLINE = 0.01
"""The drop ratio at which policies are compared."""

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
    """A stream by name: recorded (`real`), a hard case, or of a family that was written before or after the freeze."""

    name: str
    real: bool
    family: str = ""
    seed: int = SEED

    def load(self) -> Recording | None:
        """Read or generate it; None where a recording is not there.

        >>> recording = Stream("in_order", real=False).load()
        >>> recording.rows if recording else 0
        20000
        """
        if self.real:
            return next(run for run in RUNS if run.name == self.name).load()
        return {"before": {**BEFORE, **FURTHER}, "after": AFTER}.get(self.family, HARD_CASES)[self.name](self.seed)


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


@dataclass(frozen=True)
class Task:
    """Run these policies, the yardsticks among them, on one stream for these drop ratios."""

    stream: Stream
    permitted: tuple[float, ...]
    policies: tuple[str, ...]

    def run(self) -> list[Measured]:
        """All outcomes; none where the stream is not there."""
        recording = self.stream.load()
        if recording is None:
            return []
        plan = timetable(recording, None)
        pairs = [(name, ratio) for ratio in self.permitted for name in self.policies]
        declared = {(name, ratio): ONLINE[name](ratio) for name, ratio in pairs if name in ONLINE}
        # Policies that do not listen to the ratio are equal for all of them: run once.
        key_of: dict[Policy, str] = {policy: f"{name} {ratio}" for (name, ratio), policy in declared.items()}
        runs = dry_runs(plan, {key: policy for policy, key in key_of.items()})
        outcomes = {pair: runs[key_of[policy]].outcome for pair, policy in declared.items()}
        for ratio in self.permitted:
            outcomes[CLAIRVOYANT, ratio] = clairvoyant(plan, ratio)
            outcomes[FIXED_BEST, ratio] = fixed_best(plan, ratio).run.outcome
        return [Measured(self.stream, ratio, name, outcomes[name, ratio]) for name, ratio in pairs]


def tasks(quick: bool) -> list[Task]:
    """Every policy and drop ratio on recordings; on hard cases ours at 1 and 5 %, the others at 1 % on some.

    >>> {task.permitted for task in tasks(quick=True)}
    {(0.01,)}
    """
    permitted = (HEADLINE,) if quick else PERMITTED
    ours = (OURS, *YARDSTICKS)
    others = tuple(name for name in ONLINE if name != OURS)
    real = [Task(Stream(run.name, real=True), permitted, (*ours, *others)) for run in RUNS]
    hard = [Stream(name, real=False) for name in (NAMED_CASES if quick else HARD_CASES)]
    generated = [Task(stream, permitted if quick else PROMISED, ours) for stream in hard]
    compared = [] if quick else [Task(Stream(name, real=False), (HEADLINE,), others) for name in NAMED_CASES]
    return [*real, *generated, *compared, *families(quick)]


def families(quick: bool) -> list[Task]:
    """Every policy at the headline ratio on all families, ours and the yardsticks on four more seeds; quick: on some.

    >>> len(families(quick=False)), len(families(quick=True))
    (300, 6)
    """
    found = [
        Task(
            Stream(name, real=False, family=family, seed=seed),
            (HEADLINE,),
            (OURS, *YARDSTICKS, *(name for name in ONLINE if name != OURS and seed == SEED and not quick)),
        )
        for family, streams in (("before", {**BEFORE, **FURTHER}), ("after", AFTER))
        for name in streams
        for seed in SEEDS
    ]
    return found[::50] if quick else found


def measure(quick: bool) -> list[Measured]:
    """Run all tasks."""
    todo = tasks(quick)
    measured: dict[Task, list[Measured]] = {}
    with ProcessPoolExecutor() as pool, Progress(transient=True) as progress:
        bar = progress.add_task("streams", total=len(todo))
        running = {pool.submit(task.run): task for task in todo}
        for done in as_completed(running):
            measured[running[done]] = done.result()
            progress.advance(bar)
    return [one for task in todo for one in measured[task]]
