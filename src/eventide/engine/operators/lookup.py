"""Lookups in a streamed table as of application time: rows wait until the table is known up to their time.

Laws. *Emitted*: a row is emitted in the round in which the heartbeat of the table reaches its time. *Late*: a row at or
before the heartbeat of its own input is late, because versions that held then may be gone; so is a version at or before
the heartbeat of the table, because rows that it would have held for may have been emitted. *Freed*: versions that a
later one replaces for all rows that can still come go together, when there are twice as many versions as were needed
the last time: so freeing costs no more than ingesting them did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa

from eventide.engine.operators.frontier import UNKNOWN, OperatorFrontier, after
from eventide.engine.operators.join import Frontiers, Two, further, side_of
from eventide.engine.operators.join_sides import (
    JoinSide,
    carried_columns,
    least_value,
    pairs_layout,
    side_layout,
    side_stamps,
)
from eventide.engine.operators.operator import Ingested, InputProgress, Late, Operator, Output, output_layout
from eventide.engine.operators.time_range import from_time, known_times, least_live, least_since
from eventide.engine.relations.executor import Executor, Inputs, Statement, one_row
from eventide.engine.relations.relation import Layout, Relation
from eventide.engine.relations.segments import Segments
from eventide.eventtime.instant import FOREVER, NEVER, Instants, shift
from eventide.plan.bound.join import SIDES
from eventide.plan.bound.join_inputs import LEFT, PREFIXES, RIGHT
from eventide.plan.bound.lookup import BoundLookup
from eventide.plan.bound.rows import IDENTITY
from eventide.plan.expressions.columns import quoted
from eventide.plan.sql.join import (
    COUNT,
    PASSED,
    alone_text,
    lookup_exact,
    needed_text,
    output_order,
    output_text,
    pair_columns,
    pair_side_text,
    versions_text,
)

READY = Statement(
    "SELECT held.* FROM held CROSS JOIN limits WHERE held.__t >= limits.__was AND held.__t < limits.__now "
    "UNION ALL SELECT new.* FROM new CROSS JOIN limits WHERE new.__t < limits.__now",
    identified=True,
)
OWN_SPAN = tuple(PREFIXES[RIGHT] + name for name in ("__t", "__k0"))
"""What is emitted spans the row alone: a version may be as old as the table."""


@dataclass(frozen=True)
class LookupOperator(Operator):
    """The rows that wait and the versions, as `held`; after the last freeing there were `settled` versions."""

    bound: BoundLookup
    executor: Executor
    held: Two
    new: Two
    frontiers: Frontiers = (UNKNOWN, UNKNOWN)
    frontier: OperatorFrontier = UNKNOWN
    settled: int = 0
    begins: int = NEVER

    @classmethod
    def start(cls, bound: BoundLookup, executor: Executor, begins: int = NEVER) -> LookupOperator:
        """A lookup that has seen nothing; rows and versions before `begins` are not for it."""
        rows, versions = (Segments(side_layout(bound.joined, side)) for side in (LEFT, RIGHT))
        return cls(bound, executor, (rows, versions), (rows, versions), begins=begins)

    @property
    def name(self) -> str:
        """The name that others read it by."""
        return self.bound.name

    @property
    def holds(self) -> Instants:
        """The times of rows that wait; versions stay as long as the table does."""
        return known_times(self.held[LEFT])

    @property
    def state(self) -> Mapping[str, Segments]:
        """The rows that wait, and the versions."""
        return dict(zip(SIDES, self.held, strict=True))

    def with_state(self, state: Mapping[str, Segments]) -> Self:
        """A copy whose rows are elsewhere or in other files."""
        return replace(self, held=(state[SIDES[LEFT]], state[SIDES[RIGHT]]))

    def own(self, rows: Relation) -> Relation:
        """The rows and versions whose time is not before it began."""
        return from_time(self.executor, rows, self.begins)

    def layout(self, port: str) -> Layout:
        """The columns of rows, or of versions."""
        return self.held[side_of(self.bound.joined, port)].layout

    def stamps(self, port: str, clock: int) -> Mapping[str, int]:
        """The clock, for rows without a time of their own."""
        return side_stamps(self.bound.joined, side_of(self.bound.joined, port), clock)

    def ingest(self, port: str, rows: Relation, sources: pa.Table | None = None) -> tuple[Self, Ingested]:
        """Add rows or versions; those at or before the heartbeat of their input are late."""
        side = side_of(self.bound.joined, port)
        heartbeat = self.frontiers[side].time
        accepted = from_time(self.executor, rows, after(heartbeat))
        late = Late.before(rows.rows - accepted.rows, "__t", after(heartbeat)) if accepted.rows < rows.rows else None
        new = self.new[side].add(accepted)
        both = (new, self.new[RIGHT]) if side == LEFT else (self.new[LEFT], new)
        return replace(self, new=both), Ingested(rows.rows, late)

    def would_emit(self, inputs: Sequence[InputProgress]) -> bool:
        """Whether inputs that have come so far would let a row go; rows that just came may be."""
        if any(side.parts for side in self.new):
            return True
        first = least_since(self.held[LEFT], "__t", after(self.frontiers[RIGHT].time))
        return first is not None and first < after(self._further(inputs)[RIGHT].time)

    def advance(self, inputs: Sequence[InputProgress], limit: int | None = None) -> tuple[Self, Output]:
        """Emit the rows that the table is known for; free versions that no row can ask for any more."""
        frontiers = self._further(inputs)
        was, now = after(self.frontiers[RIGHT].time), after(frontiers[RIGHT].time)
        versions = self.held[RIGHT].add(*self.new[RIGHT].parts).merged(self.executor.merged)
        # Heartbeats may trail far behind what has come: versions of later times are not read.
        output = self._output(self._ready(was, now), versions.within("__t", NEVER, shift(now, -1)))
        waiting = self.held[LEFT].add(*self.new[LEFT].parts).trimmed("__t", now).merged(self.executor.merged)
        nothing = (Segments(waiting.layout), Segments(versions.layout))
        run = replace(self, held=(waiting, versions), new=nothing, frontiers=frontiers)
        earliest, frontier = run._promise(frontiers, now)
        return replace(run, frontier=frontier)._freed(earliest), output

    def frontier_at(self, inputs: Sequence[InputProgress]) -> OperatorFrontier:
        """Its frontier once its inputs have come so far, which lets no row go."""
        return self._promise(self._further(inputs), after(self.frontiers[RIGHT].time))[1]

    def _further(self, inputs: Sequence[InputProgress]) -> Frontiers:
        return further(self.bound.ports, self.frontiers, inputs)

    def _ready(self, was: int, now: int) -> Relation:
        """The rows that the table has become known for, and those that came when it was already."""
        held = self.held[LEFT].within("__t", was, shift(now, -1)) if now > was else Segments(self.held[LEFT].layout)
        new = self.new[LEFT].within("__t", NEVER, shift(now, -1))
        if now == NEVER or (not held.parts and not new.parts):
            return Relation.nothing(held.layout)
        inputs: Inputs = {"held": held, "new": new, "limits": one_row(was=was, now=now)}
        return self.executor.relation(READY, inputs, held.layout)

    def _output(self, ready: Relation, versions: Segments) -> Output:
        """Rows with their versions, and, where the lookup keeps all rows, those without."""
        joined, layout = self.bound.joined, output_layout(self.bound.outputs)
        if ready.rows == 0:
            return Output.of(layout)
        found = Relation.nothing(pairs_layout(joined))
        if versions.parts:
            sides = pair_side_text(joined, LEFT, "ready"), pair_side_text(joined, RIGHT, "versions")
            text = self._matches(*sides)
            found = self.executor.relation(
                Statement(text, self._portable), {"ready": ready, "versions": versions}, found.layout
            )
        columns = [
            f"CAST(NULL AS BIGINT) AS {column.name}" if column.name in OWN_SPAN else quoted(column.name)
            for side in (LEFT, RIGHT)
            for column in pair_columns(joined, side)
        ]
        every = f"SELECT {', '.join(columns)}, CAST(2 AS BIGINT) AS {COUNT} FROM found"
        if self.bound.lookup.keeps_all:
            same = " AND ".join(f"ready.{one.name} = found.l_{one.name}" for one in IDENTITY)
            alone = f"(SELECT ready.* FROM ready LEFT ANTI JOIN found ON {same})"
            every += f" UNION ALL {alone_text(joined, LEFT, alone)}"
        text = f"SELECT * FROM ({output_text(joined, f'({every})')})"
        statement = Statement(
            text,
            self._portable,
            output_order(joined),
            fail_safe=lambda: f"SELECT * FROM ({output_text(joined, f'({every})', fail_safe=True)})",
        )
        return Output.of(layout, self.executor.relation(statement, {"found": found, "ready": ready}, layout))

    def _matches(self, rows: str, versions: str) -> str:
        """The statement for each row with its version."""
        return versions_text(self.bound, rows, versions)

    @property
    def _portable(self) -> bool:
        return all(port.driver_exact for port in self.bound.ports) and lookup_exact(self.bound)

    def _promise(self, frontiers: Frontiers, ready: int) -> tuple[int, OperatorFrontier]:
        """The earliest time of a row that waits; and what later rows are like: rows to come, or those that wait."""
        columns = carried_columns(self.bound.joined, LEFT)
        held = least_live(self.executor, self.held[LEFT], ("__t", *columns), ready)
        earliest = held.get("__t", FOREVER)
        time = min(frontiers[LEFT].time, shift(earliest, -1))
        least = {}
        for name, parts in self.bound.carried.items():
            side = JoinSide(self.bound.joined, LEFT)
            coming = [side.least(frontiers[LEFT], part.column) for part in parts]
            if (known := least_value(parts, coming, [held.get(part.column) for part in parts])) is not None:
                least[name] = known
        return earliest, self.frontier.further(OperatorFrontier(time, least))

    def _freed(self, earliest: int) -> Self:
        """Without the versions that a later one replaces, once they may be as many as those that are needed."""
        waiting, versions = self.held
        if self.frontiers[LEFT].is_over and earliest == FOREVER:
            return replace(self, held=(Segments(waiting.layout), Segments(versions.layout)), settled=0)
        first = min(after(self.frontiers[LEFT].time), earliest)
        oldest = versions.least("__t")
        if versions.rows <= 2 * self.settled or oldest is None or oldest > first:
            return self
        flagged = f"(SELECT versions.*, versions.__t <= limits.__first AS {PASSED} FROM versions CROSS JOIN limits)"
        statement = Statement(needed_text(self.bound, flagged), self._portable, identified=True)
        inputs: Inputs = {"versions": versions, "limits": one_row(first=first)}
        needed = self.executor.relation(statement, inputs, versions.layout)
        return replace(self, held=(waiting, Segments(versions.layout).add(needed)), settled=needed.rows)

    def snapshot(self) -> dict[str, Any]:
        """What is saved besides the rows, as plain data."""
        frontiers = [one.saved() for one in self.frontiers]
        known = {"settled": self.settled, "begins": self.begins}
        return {"frontiers": frontiers, "frontier": self.frontier.saved(), **known}

    def restored(self, saved: Mapping[str, Any], state: Mapping[str, Segments]) -> Self:
        """The operator as it was saved; its files may still hold rows that were emitted."""
        rows, table = (OperatorFrontier.restored(one) for one in saved["frontiers"])
        return replace(
            self,
            held=(state[SIDES[LEFT]].trimmed("__t", after(table.time)), state[SIDES[RIGHT]]),
            frontiers=(rows, table),
            frontier=OperatorFrontier.restored(saved["frontier"]),
            settled=saved["settled"],
            begins=saved.get("begins", NEVER),
        )
