"""Traces of heartbeats: one is sampled at a source, and followed through every operator above it.

Gigascope's heartbeats carry a `trace_id`, and each query node adds its own name and the time at which it received them,
so that a heartbeat that has come to the top has the delays of all operators on its way (Gigascope paper, section 6.2).

Laws. A heartbeat has arrived at an operator when the first of its inputs that read the stream is through with it, and
has left when the operator is (`introspection.passage`): what is between is the time it waited there, for other sources
or inputs, for the end of its windows, or for its turn. It leaves each operator once, never before it arrived, and none
above before the first one below. What is kept is bounded: of each stream `IN_FLIGHT`, thinned where more are on their
way, and `FINISHED` in all.

>>> traces = HeartbeatTraces()
>>> traces.sample("s", "a", 7, Moment(0, 10, 10.0))
>>> def look(round, at, **through):
...     plan, same = {"q": ("s",)}, lambda _, time: time
...     return Passage(Moment(round, at, at), plan, through.__getitem__, same, lambda _: at - 1)
>>> traces.follow(look(0, 11.0, s=5, q=0)), traces.follow(look(1, 14.0, s=9, q=0))
((), ())
>>> [trace] = traces.follow(look(2, 20.0, s=9, q=8))
>>> [(visit.step, visit.waited) for visit in trace.visits], trace.over.at
([('s', 3.0), ('q', 6.0)], 20.0)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

IN_FLIGHT = 16
FINISHED = 64


@dataclass(frozen=True)
class Moment:
    """A round, its clock, and a time of the machine in seconds since 1970; of a stopped run that is not known."""

    round: int
    clock: int
    at: float | None


@dataclass(frozen=True)
class Visit:
    """A heartbeat at a stream or operator: up to what time that has to come, when it arrived, and when it left."""

    step: str
    time: int
    arrived: Moment
    left: Moment | None = None

    @property
    def waited(self) -> float | None:
        """The seconds it waited; None while it does, or where the times are not known."""
        if self.left is None or self.left.at is None or self.arrived.at is None:
            return None
        return self.left.at - self.arrived.at


@dataclass(frozen=True)
class HeartbeatTrace:
    """A heartbeat of one source, sampled at some moment, and where it has been since.

    `over` is the commit of the round in which it left the last operator: then all that it let go was emitted.
    """

    number: int
    stream: str
    source: str
    time: int
    sampled: Moment
    visits: tuple[Visit, ...] = ()
    over: Moment | None = None

    @cached_property
    def waiting(self) -> tuple[Visit, ...]:
        """Where it has arrived and not left."""
        return tuple(visit for visit in self.visits if visit.left is None)


@dataclass(frozen=True)
class Passage:
    """How far everything has come after a round: `plan` has what each step reads, from below.

    `through` tells up to when a step is through, `carried` the time that rows have behind it, `done` when it was done
    in this round; `moment` is that of the commit.
    """

    moment: Moment
    plan: Mapping[str, tuple[str, ...]]
    through: Callable[[str], int]
    carried: Callable[[str, int], int | None]
    done: Callable[[str], float | None]

    def follow(self, trace: HeartbeatTrace) -> HeartbeatTrace:
        """The trace after this round."""
        visits = {visit.step: visit for visit in trace.visits} or {
            trace.stream: Visit(trace.stream, trace.time, trace.sampled)
        }
        self._leave(visits, trace.stream)
        for step, inputs in self.plan.items():
            come = [visits[read] for read in inputs if read in visits and visits[read].left is not None]
            if step not in visits and come:
                behind = [time for one in come if (time := self.carried(one.step, one.time)) is not None]
                first = min((one.left for one in come if one.left is not None), key=lambda left: left.round)
                if behind:
                    visits[step] = Visit(step, max(behind), first)
            self._leave(visits, step)
        is_over = all(visit.left is not None for visit in visits.values())
        return replace(trace, visits=tuple(visits.values()), over=self.moment if is_over else None)

    def _leave(self, visits: dict[str, Visit], step: str) -> None:
        visit = visits.get(step)
        if visit is None or visit.left is not None or self.through(step) < visit.time:
            return
        done, arrived = self.done(step), visit.arrived.at
        # In the round in which it arrived an operator may have had its last turn before.
        at = done if done is None or arrived is None else max(done, arrived)
        visits[step] = replace(visit, left=Moment(self.moment.round, self.moment.clock, at))


@dataclass
class HeartbeatTraces:
    """The traces of an engine; changed by the thread of its rounds, read by any."""

    in_flight: tuple[HeartbeatTrace, ...] = ()
    finished: deque[HeartbeatTrace] = field(default_factory=lambda: deque(maxlen=FINISHED))
    sampled: int = 0

    def sample(self, stream: str, source: str, time: int, at: Moment) -> None:
        """Follow one more heartbeat, which a source has just given."""
        own = [one for one in self.in_flight if one.stream == stream]
        if len(own) >= IN_FLIGHT:
            # Every other one: those that are longest on their way stay, and the way behind them is covered.
            dropped = {one.number for one in own[1::2]}
            self.in_flight = tuple(one for one in self.in_flight if one.number not in dropped)
        self.sampled += 1
        self.in_flight = (*self.in_flight, HeartbeatTrace(self.sampled, stream, source, time, at))

    def follow(self, passage: Passage) -> tuple[HeartbeatTrace, ...]:
        """Let all go on that are on their way; those that are over with this round."""
        now = [passage.follow(trace) for trace in self.in_flight]
        over = tuple(trace for trace in now if trace.over is not None)
        self.in_flight = tuple(trace for trace in now if trace.over is None)
        self.finished.extend(over)
        return over


@dataclass(frozen=True)
class StepWaits:
    """How long heartbeats waited at a stream or operator: how many did, the mean and the longest, in seconds."""

    step: str
    traces: int
    mean: float
    longest: float


def waits_of(traces: Iterable[HeartbeatTrace]) -> list[StepWaits]:
    """How long heartbeats waited at each step, over all of these traces that have left it.

    >>> moments = [Moment(0, 0, 1.0), Moment(1, 0, 3.0)]
    >>> waits_of([HeartbeatTrace(1, "s", "", 5, moments[0], (Visit("s", 5, *moments),))])
    [StepWaits(step='s', traces=1, mean=2.0, longest=2.0)]
    """
    found: dict[str, list[float]] = {}
    for trace in traces:
        for visit in trace.visits:
            if visit.waited is not None:
                found.setdefault(visit.step, []).append(visit.waited)
    return [StepWaits(step, len(all_), sum(all_) / len(all_), max(all_)) for step, all_ in found.items()]
