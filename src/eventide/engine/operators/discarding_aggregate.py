"""Aggregates over windows of time whose early results give only what has come since the last ones: discarding panes.

Laws. *Discarding*: an early result of a window and group is the result over the rows that have come since the query was
last asked by its own prods; the early results of a window and group, put together, are of each of its rows once, but
for the rows that come after the last of them. Final results are over all rows, as without. *Asked from outside*, it
answers over all rows, and that counts for nothing: the next early result is as if nobody had asked.

*State*: beside its slices those that have come since, once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import pyarrow as pa

from eventide.engine.operators.operator import Ingested, InputProgress, Output
from eventide.engine.operators.slices import compacted, slice_layout
from eventide.engine.operators.window_aggregate import EarlyWindowAggregate, WindowAggregate
from eventide.engine.relations.executor import Executor
from eventide.engine.relations.relation import Relation
from eventide.engine.relations.segments import Segments
from eventide.eventtime.instant import NEVER
from eventide.plan.bound.query import BoundQuery


@dataclass(frozen=True)
class DiscardingAggregate(WindowAggregate):
    """The state of one query, and the slices that came since it was asked."""

    fresh: Segments | None = None
    """What came since its own prods asked it last; None stands for nothing."""

    @classmethod
    def start(cls, query: BoundQuery, executor: Executor, begins: int = NEVER) -> DiscardingAggregate:
        """A query that has seen nothing; rows before `begins` are not for it."""
        own = WindowAggregate.start(query, executor, begins)
        return cls(**vars(own), fresh=Segments(slice_layout(query)))

    @property
    def since(self) -> Segments:
        """The slices that came since it was asked."""
        return Segments(self.slices.layout) if self.fresh is None else self.fresh

    @property
    def state(self) -> Mapping[str, Segments]:
        """The slices, and those that came since it was asked."""
        return {**super().state, "fresh": self.since}

    def with_state(self, state: Mapping[str, Segments]) -> Self:
        """A copy whose slices are elsewhere or in other files."""
        return replace(super().with_state(state), fresh=state["fresh"])

    def ingest(
        self, port: str, rows: Relation, sources: pa.Table | None = None
    ) -> tuple[DiscardingAggregate, Ingested]:
        """Add slices, and remember that they have come."""
        run, ingested = super().ingest(port, rows, sources)
        assert isinstance(run, DiscardingAggregate)
        return replace(run, fresh=self.since.add(*run.slices.parts[len(self.slices.parts) :])), ingested

    def advance(self, inputs: Sequence[InputProgress], limit: int | None = None) -> tuple[DiscardingAggregate, Output]:
        """Emit the windows that close; then forget what no open window needs."""
        run, output = super().advance(inputs, limit)
        assert isinstance(run, DiscardingAggregate)
        fresh = compacted(self.executor, self.query, self.since)
        return replace(run, fresh=fresh.trimmed("__pane", run.needed)), output

    def early(self) -> EarlyWindowAggregate:
        """A copy that answers a prod, over all rows."""
        return EarlyWindowAggregate(**{one.name: getattr(self, one.name) for one in fields(EarlyWindowAggregate)})

    def since_asked(self) -> DiscardingAggregate:
        """A copy that holds only what came since it was asked."""
        return replace(self, slices=self.since)

    def asked(self) -> DiscardingAggregate:
        """A copy that was asked: what has come until now is told."""
        return replace(self, fresh=Segments(self.slices.layout))

    def restored(self, saved: Mapping[str, Any], state: Mapping[str, Segments]) -> DiscardingAggregate:
        """The operator as it was saved; its slices may still hold some that are not needed any more."""
        run = super().restored(saved, state)
        assert isinstance(run, DiscardingAggregate)
        return replace(run, fresh=state["fresh"].trimmed("__pane", run.needed))
