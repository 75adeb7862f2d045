"""A lookup while it runs: rows wait until the table is known up to their time, versions are held while they may count.

Laws. *Told*: a row is told in the round in which the heartbeat of the table reaches its time. *Late*: a row at or
before the heartbeat of its own input is late, because versions that held then may be gone; so is a version at or before
the heartbeat of the table, because rows that it would have held for may have been told. *Freed*: versions that a later
one replaces for all rows that can still come go together, when they are as many as the others: so freeing costs no
more than taking them did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.held_rows import HeldRows
from eventide.engine.join_rows import Two, judged, met, schema_of, side_of, stamped, told, with_rows
from eventide.engine.join_run import JoinRun
from eventide.engine.join_side import JoinSide, frontier_of, further, least_value, plain
from eventide.engine.operator_run import Frontier, Kept
from eventide.engine.taken import Answer, Taken
from eventide.engine.workbench import Bench
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, Instants, shift
from eventide.plan.bound_join import SIDES
from eventide.plan.bound_lookup import PASSED, BoundLookup, needed_text, versions_text
from eventide.plan.join_names import LEFT, PREFIXES, RIGHT
from eventide.plan.join_text import ID, met_columns

ROWS, VERSIONS = "eventide_rows", "eventide_versions"
UNKNOWN = Frontier()


@dataclass(frozen=True)
class LookupRun:
    """The rows that wait and the versions, as `held`; `settled` of the versions were needed when last looked at."""

    bound: BoundLookup
    bench: Bench
    held: tuple[HeldRows, HeldRows]
    new: Two
    added: Two
    frontiers: tuple[Frontier, Frontier] = (UNKNOWN, UNKNOWN)
    frontier: Frontier = UNKNOWN
    numbered: tuple[int, int] = (0, 0)
    settled: int = 0

    @classmethod
    def start(cls, bound: BoundLookup, bench: Bench) -> LookupRun:
        """A lookup that has seen nothing."""
        run = JoinRun.start(bound.joined, bench)
        return cls(bound, bench, run.held, run.new, run.added)

    @property
    def rows(self) -> int:
        """Rows that wait, and versions."""
        return sum(side.rows for side in self.held)

    @property
    def bytes(self) -> int:
        """Their memory."""
        return sum(side.bytes for side in self.held)

    @property
    def holds(self) -> Instants:
        """The times of rows that wait; versions of a table stay as long as it does."""
        times = [chunk.times for chunk in self.held[LEFT].chunks]
        return np.unique(np.concatenate(times)) if times else np.zeros(0, dtype=np.int64)

    def stamped(self, port: str, chunk: pa.Table, clock: int) -> pa.Table:
        """Rows that came into a port without a time of their own: theirs is the clock of the round."""
        return stamped(self.bound.joined, side_of(self.bound.joined, port), chunk, clock)

    def take(self, port: str, chunk: pa.Table) -> tuple[Self, Taken]:
        """Add the rows or versions of a round; those at or before the heartbeat of their input are late."""
        side = side_of(self.bound.joined, port)
        heartbeat = self.frontiers[side].time
        late_by = [pc.less_equal(chunk.column("__t"), heartbeat)] if heartbeat != NEVER else []
        rows, taken = judged(chunk, late_by, self.new[side].schema)
        if side == RIGHT:
            rows = rows.filter(pc.invert(reduce(pc.or_, (pc.is_null(rows.column(key)) for key in self.bound.keys))))
        return replace(self, new=with_rows(self.new, side, rows)), taken

    def would_tell(self, frontiers: Mapping[str, Frontier]) -> bool:
        """Whether these frontiers of the ports' inputs would tell a row; rows that just came may be told."""
        ready = self._ready(self._further(frontiers)[RIGHT])
        return any(table.num_rows for table in self.new) or self.held[LEFT].would_free((ready,))

    def advance(self, frontiers: Mapping[str, Frontier]) -> tuple[Self, Answer]:
        """Tell the rows that the table is known for; free versions that no row can ask for any more."""
        now = self._further(frontiers)
        new = [self._numbered(side) for side in (LEFT, RIGHT)]
        versions = self.held[RIGHT].added(new[RIGHT])
        waiting, ready = self.held[LEFT].added(new[LEFT]).freed((self._ready(now[RIGHT]),))
        staying = new[LEFT].filter(pc.greater_equal(new[LEFT].column("__t"), self._ready(now[RIGHT])))
        answer = self._told(pa.concat_tables(ready) if ready else waiting.empty, versions)
        run = replace(
            self,
            held=(waiting, versions),
            new=(self.new[LEFT].slice(0, 0), self.new[RIGHT].slice(0, 0)),
            added=(staying, new[RIGHT]),
            frontiers=now,
            numbered=(self.numbered[LEFT] + new[LEFT].num_rows, self.numbered[RIGHT] + new[RIGHT].num_rows),
        )
        return replace(run, frontier=run._promise())._freed(), answer

    def _further(self, frontiers: Mapping[str, Frontier]) -> tuple[Frontier, Frontier]:
        left, right = (into.query.name for into in self.bound.ports)
        return further(self.frontiers[LEFT], frontiers[left]), further(self.frontiers[RIGHT], frontiers[right])

    @staticmethod
    def _ready(table: Frontier) -> int:
        """Rows before this time can be told."""
        return shift(table.time, 1) if abs(table.time) < EDGE else FOREVER if table.time > 0 else NEVER

    def _numbered(self, side: int) -> pa.Table:
        numbers = self.numbered[side] + np.arange(self.new[side].num_rows, dtype=np.int64)
        return self.new[side].add_column(0, ID, pa.array(numbers))

    def _told(self, ready: pa.Table, versions: HeldRows) -> Answer:
        """Rows with their versions, and, where the lookup keeps all rows, those without."""
        joined = self.bound.joined
        found = schema_of((*met_columns(joined, LEFT), *met_columns(joined, RIGHT))).empty_table()
        if ready.num_rows and versions.rows:
            tables = {ROWS: met(ready, LEFT), VERSIONS: met(versions.table(), RIGHT)}
            found = self.bench.ask(versions_text(self.bound, ROWS, VERSIONS), tables).cast(found.schema)
        # What is told spans the row alone: a version may be as old as the table.
        for name in ("__t", "__k0"):
            place = found.schema.get_field_index(PREFIXES[RIGHT] + name)
            found = found.set_column(place, found.schema.field(place), pa.nulls(found.num_rows, pa.int64()))
        with_version = pa.array(np.isin(ready.column(ID).to_numpy(), found.column(PREFIXES[LEFT] + ID).to_numpy()))
        alone = [ready.filter(pc.invert(with_version))] if self.bound.lookup.keeps_all else []
        return told(joined, self.bench, found, [alone, []])

    def _promise(self) -> Frontier:
        """Later output rows are later rows, or rows that wait."""
        rows, waiting = self.frontiers[LEFT], self.held[LEFT]
        time = min(rows.time, shift(waiting.earliest, -1))
        least = {}
        for name, parts in self.bound.carried.items():
            coming = [JoinSide(self.bound.joined, LEFT).least(rows, part.column) for part in parts]
            held = [waiting.least(part.column) for part in parts]
            if (known := least_value(parts, coming, held)) is not None:
                least[name] = known
        return further(self.frontier, Frontier(time, least))

    def _freed(self) -> Self:
        """Without the versions that a later one replaces, once they may be as many as those that are needed."""
        versions, rows, waiting = self.held[RIGHT], self.frontiers[LEFT], self.held[LEFT]
        if rows.is_over and waiting.rows == 0:
            return replace(self, held=(waiting, HeldRows(versions.empty)), settled=0)
        first = min(self._ready(rows), waiting.earliest)
        passed = sum(int(np.searchsorted(chunk.first, first, side="right")) for chunk in versions.chunks)
        if passed <= 2 * self.settled:
            return self
        table = versions.table()
        flagged = table.append_column(PASSED, pc.less_equal(table.column("__t"), first))
        needed = self.bench.ask(needed_text(self.bound, VERSIONS), {VERSIONS: flagged})
        needed = needed.select(table.column_names).cast(table.schema)
        settled = pc.sum(pc.less_equal(needed.column("__t"), first)).as_py() or 0
        return replace(self, held=(waiting, HeldRows(versions.empty).added(needed)), settled=settled)

    # What the round record keeps

    def saved(self) -> dict[str, Any]:
        """Plain data for the round record, beside the rows."""
        return {
            "frontiers": [plain(one) for one in self.frontiers],
            "frontier": plain(self.frontier),
            "numbered": list(self.numbered),
            "oldest": self.held[RIGHT].earliest,
        }

    def kept(self) -> dict[str, Kept]:
        """The rows that wait, and the versions."""
        both = zip(SIDES, self.held, self.added, strict=True)
        return {name: Kept(added if added.num_rows else None, held.earliest, held.table) for name, held, added in both}

    @classmethod
    def restored(
        cls, bound: BoundLookup, bench: Bench, saved: dict[str, Any], tables: Mapping[str, list[pa.Table]]
    ) -> LookupRun:
        """Continue from what was saved; versions that a later one has replaced do no harm among the tables."""
        run = cls.start(bound, bench)
        rows, table = (frontier_of(one) for one in saved["frontiers"])
        held = []
        for name, empty in zip(SIDES, run.added, strict=True):
            parts = [part.select(empty.column_names).cast(empty.schema) for part in tables.get(name, ())]
            held.append(HeldRows(empty).added(pa.concat_tables([empty, *parts])))
        return replace(
            run,
            # What ended a version may be gone from the tables, so the version goes as well.
            held=(held[LEFT].freed((cls._ready(table),))[0], held[RIGHT].freed((saved["oldest"],))[0]),
            frontiers=(rows, table),
            frontier=frontier_of(saved["frontier"]),
            numbered=(saved["numbered"][LEFT], saved["numbered"][RIGHT]),
        )
