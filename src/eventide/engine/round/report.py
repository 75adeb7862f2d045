"""What goes into a round, and what a committed round reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from eventide.engine.operators.operator import Work
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.instant import Instants
from eventide.results.results import Results

STEPS = ("reduce", "heartbeats", "advance", "prod", "emit", "commit")
"""The steps of a round, in their order."""
Positions = dict[str, dict[str, Any]]
Observer = Callable[[int, str], None]
"""Called with the round and the step that has just ended; tests use it to kill the process exactly there."""


@dataclass(frozen=True)
class RoundInput:
    """The rows of a round by stream, its clock, and what else was settled before it started.

    `heartbeats` are promises given from outside, `ended_sources` the sources of each stream that are over with this
    round, `budgets` how many rows may go through each queue. `ending`: it is the last round of a bounded run.
    """

    number: int
    batch: int | None
    clock: int
    rows: Mapping[str, Any]
    positions: Positions
    heartbeats: Mapping[str, int] = field(default_factory=dict)
    ended_sources: Mapping[str, list[str]] = field(default_factory=dict)
    budgets: Mapping[str, int] = field(default_factory=dict)
    ending: bool = False


Stretch = tuple[float, float]
"""From when to when, in seconds after the beginning of a round."""


@dataclass(frozen=True)
class RoundTimes:
    """When a round began, in seconds since 1970, and when its steps, and the streams and operators in them, worked.

    A stream works while it is read, an operator from the beginning of its first turn to the end of its last one.

    >>> RoundTimes(100.0, {"heartbeats": (0.0, 0.5)}, {"q": (0.5, 2.0)}).done("q")
    102.0
    """

    began: float = 0.0
    steps: Mapping[str, Stretch] = field(default_factory=dict)
    turns: Mapping[str, Stretch] = field(default_factory=dict)

    def done(self, name: str, step: str = "advance") -> float:
        """When a stream or operator was done; where it had no turn, when the step was over in which it could have."""
        return self.began + (self.turns.get(name) or self.steps.get(step, (0.0, 0.0)))[1]


@dataclass(frozen=True)
class RoundReport:
    """A round that was committed: its results by query, how many rows came to each operator, how many were late by
    stream, and how many were rejected by reason.

    `rows` is how many rows of streams were read, wanted or not; `ending`: it was the last round of a bounded run.
    `work` is that of each stream and operator, `sinks` the seconds that the sink of each query took. `arrivals` are the
    cells of each stream that had rows, `late_by_source` counts late rows that the driver has seen, `by_source` has the
    heartbeats of each stream's sources.
    """

    number: int
    clock: int
    heartbeats: Mapping[str, int]
    results: Mapping[str, Results]
    rows_in: Mapping[str, int]
    late: Mapping[str, int]
    rejected: Mapping[str, int]
    seconds: Mapping[str, float] = field(default_factory=dict)
    rows: int = 0
    ending: bool = False
    work: Mapping[str, Work] = field(default_factory=dict)
    sinks: Mapping[str, float] = field(default_factory=dict)
    arrivals: Mapping[str, Arrivals] = field(default_factory=dict)
    late_by_source: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    times: RoundTimes = field(default_factory=RoundTimes)
    by_source: Mapping[str, Instants] = field(default_factory=dict)

    def late_rows(self) -> int:
        """Rows that went to the late table."""
        return sum(self.late.values())

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """The results of a query in this round."""
        return self.results[query].batches()
