"""What goes into a round, and what a committed round reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from eventide.eventtime.arrivals import Arrivals
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


@dataclass(frozen=True)
class Work:
    """What an operator, or the reading of a stream, did in a round or in several: rows in and out, and its seconds.

    The statistics that Gigascope's heartbeats carry: selectivity, rate, cost of a row (Gigascope paper, section 6.3).

    >>> work = Work(100, 20, 0.002).and_then(Work(100, 20, 0.002))
    >>> work, work.selectivity, work.seconds_per_row
    (Work(rows_in=200, rows_out=40, seconds=0.004), 0.2, 2e-05)
    """

    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0

    def and_then(self, other: Work) -> Work:
        """Both together."""
        return Work(self.rows_in + other.rows_in, self.rows_out + other.rows_out, self.seconds + other.seconds)

    @property
    def selectivity(self) -> float | None:
        """Rows out per row in; None before the first row."""
        return self.rows_out / self.rows_in if self.rows_in else None

    @property
    def seconds_per_row(self) -> float | None:
        """Seconds per row in; None before the first row."""
        return self.seconds / self.rows_in if self.rows_in else None


@dataclass(frozen=True)
class RoundReport:
    """A round that was committed: its results by query, how many rows came to each operator, how many were late by
    stream, and how many were rejected by reason.

    `rows` is how many rows of streams were read, wanted or not; `ending`: it was the last round of a bounded run.
    `work` is that of each stream and operator, `sinks` the seconds that the sink of each query took. `arrivals` are the
    cells of each stream that had rows, `late_by_source` counts late rows that the driver has seen.
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

    def late_rows(self) -> int:
        """Rows that went to the late table."""
        return sum(self.late.values())

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """The results of a query in this round."""
        return self.results[query].batches()
