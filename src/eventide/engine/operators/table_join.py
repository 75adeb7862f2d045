"""Join with a table as it is: each row with all rows of its keys, as the table was read last.

Laws. *Read*: rows that come into the port of the table in a round are all that it holds from then on; what was emitted
before is not revised. *Emitted*: a row is emitted in the round in which it comes; before the table was read for the
first time rows wait. The table as it was read is state, so a round that is run again sees the same. *Late*: a row at or
before the heartbeat of its own input is late, because who reads the rows was promised that none of such a time comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import pyarrow as pa

from eventide.engine.operators.frontier import UNKNOWN, OperatorFrontier
from eventide.engine.operators.join import Frontiers, further, side_of
from eventide.engine.operators.lookup import LookupOperator
from eventide.engine.operators.operator import Ingested, InputProgress
from eventide.engine.operators.time_range import from_time
from eventide.engine.relations.relation import Relation
from eventide.engine.relations.segments import Segments
from eventide.eventtime.instant import FOREVER
from eventide.plan.bound.join_inputs import LEFT, RIGHT
from eventide.plan.sql.join import matches_text


@dataclass(frozen=True)
class TableJoinOperator(LookupOperator):
    """The rows that wait, and the table; it `is_read` once there was a first time."""

    is_read: bool = field(default=False, kw_only=True)

    def own(self, rows: Relation) -> Relation:
        """All of them: only rows can be older than the join, and `ingest` knows which side they are of."""
        return rows

    def ingest(self, port: str, rows: Relation, sources: pa.Table | None = None) -> tuple[Self, Ingested]:
        """Add rows, or let these be the table."""
        if side_of(self.bound.joined, port) == LEFT:
            return super().ingest(port, from_time(self.executor, rows, self.begins), sources)
        table = Segments(self.held[RIGHT].layout).add(rows)
        waiting, _ = self.held
        return replace(self, held=(waiting, table), is_read=True), Ingested(rows.rows)

    def _further(self, inputs: Sequence[InputProgress]) -> Frontiers:
        rows, _ = further(self.bound.ports, self.frontiers, inputs)
        return rows, OperatorFrontier(FOREVER) if self.is_read else UNKNOWN

    def _matches(self, rows: str, table: str) -> str:
        return matches_text(self.bound, rows, table)

    def _freed(self, earliest: int) -> Self:
        """All of it: the table stays as it is until it is read again."""
        return self

    def snapshot(self) -> dict[str, Any]:
        """What is saved besides the rows, as plain data."""
        return super().snapshot() | {"is_read": self.is_read}

    def restored(self, saved: Mapping[str, Any], state: Mapping[str, Segments]) -> Self:
        """The operator as it was saved; its files may still hold rows that were emitted."""
        return replace(super().restored(saved, state), is_read=saved["is_read"])
