"""Aggregates without a window whose values are shown as they change: EMIT CHANGES under STATE TTL.

Laws. *Life*: the state of a group is one session whose gap is the TTL (`plan.declared.window.LifeWindow`): rows go on
with it that come at most the TTL after another one of it, by their times, whatever rounds they came in. *Changed*: a
round that brings rows of a group emits the new value of the group, once, which takes the place of its last one.
*Forgotten*: when the heartbeat reaches the end of a life, the last row and the TTL, its value is emitted once more, as
final, and the state is dropped; a later row begins anew. *Any cut*: of each group the last row that is emitted, and all
final rows, are the same however the rows of the streams are cut into rounds, while every row comes before the heartbeat
passes it; which values are shown in between says when rounds were. *The last life*: where rows out of order make two
lives of a group, both open, its value is that of the later one; it is emitted again behind the end of the earlier one,
so that it stays the last.

*State* is that of sessions; what a round has changed is forgotten when the next one begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import pyarrow as pa

from eventide.engine.operators.operator import Ingested, InputProgress, Output
from eventide.engine.operators.session_aggregate import EarlySessionAggregate, SessionAggregate
from eventide.engine.operators.slices import result_layout
from eventide.engine.relations.relation import Relation
from eventide.engine.relations.segments import Segments
from eventide.plan.sql.sessions import LIVE, changed_text


@dataclass(frozen=True)
class ChangingAggregate(SessionAggregate):
    """The stretches of open lives, and which of them this round has changed."""

    fresh: tuple[Relation, ...] = ()
    """The stretches that have come in this round."""
    ended: tuple[Relation, ...] = ()
    """The results of lives that have ended in this round."""

    @property
    def may_wait(self) -> bool:
        """A value that changed is shown in the same round."""
        return False

    def begin(self, clock: int, budget: int) -> Self:
        """A round begins, in which nothing has changed yet."""
        return replace(self, fresh=(), ended=())

    def ingest(self, port: str, rows: Relation, sources: pa.Table | None = None) -> tuple[ChangingAggregate, Ingested]:
        """Add stretches, and remember them for this round."""
        run, ingested = super().ingest(port, rows, sources)
        assert isinstance(run, ChangingAggregate)
        fresh = run.slices.parts[len(self.slices.parts) :]
        return replace(run, fresh=(*self.fresh, *fresh)), ingested

    def advance(self, inputs: Sequence[InputProgress], limit: int | None = None) -> tuple[Self, Output]:
        """Emit the lives that end, then the values that have changed."""
        run, output = super().advance(inputs, limit)
        run = replace(run, ended=(*self.ended, *output.final.parts))
        changed = Segments(output.final.layout)
        if run.slices.parts and (run.fresh or run.ended):
            changed = changed.add(run._changed())
        return run, replace(output, changed=changed)

    def _changed(self) -> Relation:
        """The values of groups that have changed in this round and live on."""
        layout = result_layout(self.query)
        fresh, ended = Segments(self.slices.layout, self.fresh), Segments(layout, self.ended)
        inputs = {LIVE: self.slices, "fresh": fresh, "ended": ended}
        return self.executor.relation(self._results(changed_text), inputs, layout)

    def early(self) -> EarlySessionAggregate:
        """A copy that answers a prod."""
        own = {one.name: getattr(self, one.name) for one in fields(EarlySessionAggregate)}
        return EarlySessionAggregate(**own)
