"""One round while it is worked on: what each step leaves for the next. Nothing of it has happened yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from eventide.engine.early_state import EarlyState
from eventide.engine.groupwise_run import GroupwiseRun
from eventide.engine.operator_run import Frontier, Kept, OperatorRun
from eventide.engine.query_run import QueryRun
from eventide.engine.reduction import Reduction
from eventide.engine.row_run import RowRun
from eventide.engine.taken import Answers, Taken
from eventide.results.results import Results

Run = QueryRun | RowRun | GroupwiseRun
Positions = dict[str, dict[str, Any]]
Observer = Callable[[int, str], None]
"""Told the round and the step that has just ended; tests use it to kill the process exactly there."""


@dataclass
class Round:
    """The work of one round, and afterwards its report."""

    number: int
    batch: int | None
    clock: int
    promises: dict[str, int]
    rows: Mapping[str, Any]
    positions: Positions
    ending: bool
    runs: dict[str, Run]
    operators: dict[str, OperatorRun] = field(default_factory=dict)
    reductions: dict[str, Reduction] = field(default_factory=dict)
    taken: dict[str, Taken] = field(default_factory=dict)
    heartbeats: dict[str, int] = field(default_factory=dict)
    frontiers: dict[str, Frontier] = field(default_factory=dict)
    answers: dict[str, Answers] = field(default_factory=dict)
    results: dict[str, Results] = field(default_factory=dict)
    late: dict[str, list[pa.Table]] = field(default_factory=dict)
    rejects: dict[str, list[pa.Table]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    early: dict[str, EarlyState] = field(default_factory=dict)
    """What queries know of their early answers after this round."""
    came: dict[str, int] = field(default_factory=dict)
    """How many rows came to each query and operator."""
    silent: dict[str, int] = field(default_factory=dict)
    """The streams without rows that may be asked for their time, each with the clock that it goes by."""
    added: dict[str, dict[str, list[pa.Table]]] = field(default_factory=dict)
    """What operators are to keep, by kind, turn by turn."""
    saved: dict[str, dict[str, Any]] = field(default_factory=dict)
    """What else is to be in the round record about a query or operator."""
    careful: set[str] = field(default_factory=set)
    """The streams that were read in the careful way, because a row breaks a query."""
    over: dict[str, list[str]] = field(default_factory=dict)
    """The sources of each stream that are declared over."""
    prodded: dict[str, int] = field(default_factory=dict)
    """Up to when queries were asked for early answers."""
    passed: dict[str, tuple[int, float]] = field(default_factory=dict)
    """How many rows went through each queue, and how many seconds whoever reads it took for them."""

    def prod(self, query: str, up_to: int) -> None:
        """A query was asked for early answers, up to a time."""
        self.prodded[query] = max(self.prodded.get(query, up_to), up_to)

    def kept(self, operator: str) -> dict[str, Kept]:
        """What an operator keeps, with all that came to it in this round."""
        found = self.operators[operator].kept()
        added = self.added.get(operator, {})
        return {kind: replace(kept, added=_all(added.get(kind, []))) for kind, kept in found.items()}

    def late_rows(self) -> int:
        """Rows that went to the late table."""
        return sum(part.num_rows for parts in self.late.values() for part in parts)

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """The results of a query in this round."""
        return self.results[query].batches()


def _all(tables: list[pa.Table]) -> pa.Table | None:
    return pa.concat_tables(tables) if tables else None
