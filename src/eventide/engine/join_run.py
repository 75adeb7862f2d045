"""A join while it runs: rows of both sides wait for partners until time has passed them.

Laws. *Pairs* are told in the round in which their second row comes. *Alone*: a row of a side that the join keeps is
told alone in the round in which no partner can come any more: at once, if a band or key of it is NULL. *Late*: a row is
late if its time is at or before the promised heartbeat, or if one of its band values is below the floor of its side
(`join_side`): partners of it may be gone. Every other row is joined as if all had come in order. *Costs*: a round
reads the new rows, the held rows that their bands reach, and those that are freed. (Gigascope paper, section 5.5, for
outer joins by epochs; Stream Mill paper, figures 1 and 6, for the window join and the time of a pair.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.held_rows import HeldRows
from eventide.engine.join_rows import Two, judged, met, schema_of, side_of, stamped, told, with_rows
from eventide.engine.join_side import Floors, JoinSide, frontier_of, further, least_value, plain
from eventide.engine.operator_run import Frontier, Kept
from eventide.engine.taken import Answer, Taken
from eventide.engine.workbench import Bench
from eventide.errors import DataFaultError
from eventide.eventtime.instant import NEVER, Instants, shift
from eventide.plan.bound_join import SIDES, BoundJoin
from eventide.plan.join_names import LEFT, PREFIXES, RIGHT
from eventide.plan.join_text import ID, met_columns, pairs_text, side_columns

LEFT_ROWS, RIGHT_ROWS = "eventide_left", "eventide_right"

UNKNOWN = Frontier()


@dataclass(frozen=True)
class JoinRun:
    """What a join holds; `new` came since it last advanced, `added` and `found` are what the last advance kept."""

    bound: BoundJoin
    bench: Bench
    held: tuple[HeldRows, HeldRows]
    new: Two
    added: Two
    found: Two
    frontiers: tuple[Frontier, Frontier] = (UNKNOWN, UNKNOWN)
    frontier: Frontier = UNKNOWN
    floors: tuple[Floors, Floors] = ((), ())
    numbered: tuple[int, int] = (0, 0)

    @classmethod
    def start(cls, bound: BoundJoin, bench: Bench) -> JoinRun:
        """A join that has seen nothing."""
        empty = tuple(schema_of(side_columns(bound, side)).empty_table() for side in (LEFT, RIGHT))
        ids = tuple(table.select(["__t", ID]) for table in empty)
        rows = tuple(table.drop_columns([ID]) for table in empty)
        never = (NEVER,) * len(bound.bands)
        held = (HeldRows(empty[LEFT]), HeldRows(empty[RIGHT]))
        both = (empty[LEFT], empty[RIGHT])
        return cls(bound, bench, held, (rows[LEFT], rows[RIGHT]), both, (ids[LEFT], ids[RIGHT]), floors=(never, never))

    @property
    def rows(self) -> int:
        """Rows that are held."""
        return sum(side.rows for side in self.held)

    @property
    def bytes(self) -> int:
        """Memory of the rows that are held."""
        return sum(side.bytes for side in self.held)

    @property
    def holds(self) -> Instants:
        """The times of rows that are held, ascending, each once."""
        times = [chunk.times for side in self.held for chunk in side.chunks]
        return np.unique(np.concatenate(times)) if times else np.zeros(0, dtype=np.int64)

    # Rows come in

    def stamped(self, port: str, chunk: pa.Table, clock: int) -> pa.Table:
        """Rows without a time of their own: theirs is the clock of the round."""
        return stamped(self.bound, side_of(self.bound, port), chunk, clock)

    def take(self, port: str, chunk: pa.Table) -> tuple[JoinRun, Taken]:
        """Add the rows of a round; those whose partners may be gone, or whose time is promised to be over, are late."""
        side = side_of(self.bound, port)
        tests = [pc.less_equal(chunk.column("__t"), self.frontier.time)] if self.frontier.time != NEVER else []
        for place, floor in enumerate(self.floors[side], 1):
            if floor != NEVER:
                tests.append(pc.fill_null(pc.less(chunk.column(f"__k{place}"), floor), False))
        rows, taken = judged(chunk, tests, self.new[side].schema)
        return replace(self, new=with_rows(self.new, side, rows)), taken

    # Rows go out

    def would_tell(self, frontiers: Mapping[str, Frontier]) -> bool:
        """Whether these frontiers of the ports' inputs would tell or free a row; rows that just came always do."""
        floors = self._floors(self._further(frontiers))
        done = self._done(floors)
        return any(table.num_rows for table in self.new) or any(
            held.would_free(bounds) for held, bounds in zip(self.held, done, strict=True)
        )

    def advance(self, frontiers: Mapping[str, Frontier]) -> tuple[JoinRun, Answer]:
        """Tell pairs of the rows that came, and those alone that no partner can come for; free what is done with."""
        now = self._further(frontiers)
        floors = self._floors(now)
        new, hopeless = zip(*(self._numbered(side) for side in (LEFT, RIGHT)), strict=True)
        pairs = self._pairs(new)
        held, found, alone = [], [], []
        for side, bounds in enumerate(self._done(floors)):
            rows, matched = self.held[side].added(new[side]), self.held[side].empty.select(["__t", ID])
            if self.bound.keeps[side] and pairs.num_rows:
                rows, matched = self._matching(side, rows, pairs)
            rows, freed = rows.freed(bounds)
            held.append(rows)
            found.append(matched)
            alone.append([*freed, hopeless[side]] if self.bound.keeps[side] else [])
        run = replace(
            self,
            held=(held[LEFT], held[RIGHT]),
            new=(self.new[LEFT].slice(0, 0), self.new[RIGHT].slice(0, 0)),
            added=(self._staying(LEFT, new[LEFT], floors), self._staying(RIGHT, new[RIGHT], floors)),
            found=(found[LEFT], found[RIGHT]),
            frontiers=now,
            floors=floors,
            numbered=(self.numbered[LEFT] + new[LEFT].num_rows, self.numbered[RIGHT] + new[RIGHT].num_rows),
        )
        return replace(run, frontier=run._promise(self.frontier)), told(self.bound, self.bench, pairs, alone)

    def _further(self, frontiers: Mapping[str, Frontier]) -> tuple[Frontier, Frontier]:
        left, right = (into.query.name for into in self.bound.ports)
        return further(self.frontiers[LEFT], frontiers[left]), further(self.frontiers[RIGHT], frontiers[right])

    def _floors(self, frontiers: tuple[Frontier, Frontier]) -> tuple[Floors, Floors]:
        left, right = (JoinSide(self.bound, side).floors(one) for side, one in enumerate(frontiers))
        return left, right

    def _done(self, floors: tuple[Floors, Floors]) -> tuple[Floors, Floors]:
        return JoinSide(self.bound, LEFT).done(floors[RIGHT]), JoinSide(self.bound, RIGHT).done(floors[LEFT])

    def _numbered(self, side: int) -> Two:
        """The new rows with their numbers; apart from them, without, those that NULL keeps from having a partner."""
        rows = self.new[side]
        compared = [*(f"__k{place}" for place in range(1, len(self.bound.bands) + 1)), *self.bound.keys]
        lacking = reduce(pc.or_, (pc.is_null(rows.column(name)) for name in compared))
        hopeless = rows.filter(lacking)
        rows = rows.filter(pc.invert(lacking)) if hopeless.num_rows else rows
        order = pa.array(np.argsort(rows.column("__k1").to_numpy(), kind="stable"))
        numbers = self.numbered[side] + np.arange(rows.num_rows, dtype=np.int64)
        nothing = pa.array(np.full(hopeless.num_rows, -1, dtype=np.int64))
        return rows.take(order).add_column(0, ID, pa.array(numbers)), hopeless.add_column(0, ID, nothing)

    def _pairs(self, new: tuple[pa.Table, ...]) -> pa.Table:
        """New left rows with all right rows, and held left rows with new right rows."""
        found = [schema_of((*met_columns(self.bound, LEFT), *met_columns(self.bound, RIGHT))).empty_table()]
        if new[LEFT].num_rows:
            right = pa.concat_tables([self._near(LEFT, new[LEFT]), new[RIGHT]])
            found += self._joined(new[LEFT], right)
        if new[RIGHT].num_rows:
            found += self._joined(self._near(RIGHT, new[RIGHT]), new[RIGHT])
        return pa.concat_tables(found)

    def _near(self, side: int, rows: pa.Table) -> pa.Table:
        """The held rows of the other side that these may have for partners."""
        edges = pc.min_max(rows.column("__k1")).as_py()
        return self.held[1 - side].near(*JoinSide(self.bound, side).partners(edges["min"], edges["max"]))

    def _joined(self, left: pa.Table, right: pa.Table) -> list[pa.Table]:
        if left.num_rows == 0 or right.num_rows == 0:
            return []
        tables = {LEFT_ROWS: met(left, LEFT), RIGHT_ROWS: met(right, RIGHT)}
        try:
            pairs = self.bench.ask(pairs_text(self.bound, LEFT_ROWS, RIGHT_ROWS), tables)
        except DataFaultError:
            pairs = self.bench.ask(pairs_text(self.bound, LEFT_ROWS, RIGHT_ROWS, careful=True), tables)
        schema = schema_of((*met_columns(self.bound, LEFT), *met_columns(self.bound, RIGHT)))
        return [pairs.cast(schema)] if pairs.num_rows else []

    def _matching(self, side: int, rows: HeldRows, pairs: pa.Table) -> tuple[HeldRows, pa.Table]:
        edges = pc.min_max(pairs.column(f"{PREFIXES[side]}__k1")).as_py()
        numbers = np.unique(pairs.column(PREFIXES[side] + ID).to_numpy())
        return rows.matching(numbers, edges["min"], edges["max"])

    def _staying(self, side: int, rows: pa.Table, floors: tuple[Floors, Floors]) -> pa.Table:
        """Those of the new rows that are not done with already."""
        staying, _ = HeldRows(self.held[side].empty).added(rows).freed(self._done(floors)[side])
        return staying.table()

    def _promise(self, before: Frontier) -> Frontier:
        """What later output rows are like: pairs with a later row, or held rows alone."""
        alone = [side.earliest_alone for side, kept in zip(self.held, self.bound.keeps, strict=True) if kept]
        time = min(*(one.time for one in self.frontiers), *(shift(earliest, -1) for earliest in alone))
        time = max(before.time, time)
        least = {}
        for name, parts in self.bound.carried.items():
            coming = [
                JoinSide(self.bound, part.side).accepted_from(self.frontiers[part.side], time, part.column)
                for part in parts
            ]
            held = [self.held[part.side].least(part.column) for part in parts]
            if (known := least_value(parts, coming, held)) is not None:
                least[name] = known
        return further(before, Frontier(time, least))

    # What the round record keeps

    def saved(self) -> dict[str, Any]:
        """Plain data for the round record, beside the rows."""
        return {
            "frontiers": [plain(one) for one in self.frontiers],
            "frontier": plain(self.frontier),
            "numbered": list(self.numbered),
        }

    def kept(self) -> dict[str, Kept]:
        """The rows of both sides; of a side that the join keeps, also which of them had a partner."""
        series = {}
        for side, name in enumerate(SIDES):
            held, live = self.held[side], self.held[side].earliest
            series[name] = Kept(_some(self.added[side]), live, held.table)
            if self.bound.keeps[side]:
                series[f"{name}_matched"] = Kept(_some(self.found[side]), live, held.matched)
        return series

    @classmethod
    def restored(
        cls, bound: BoundJoin, bench: Bench, saved: dict[str, Any], tables: Mapping[str, list[pa.Table]]
    ) -> JoinRun:
        """Continue from what was saved; the tables may hold more than is still needed."""
        run = cls.start(bound, bench)
        left, right = (frontier_of(one) for one in saved["frontiers"])
        floors = run._floors((left, right))
        held = []
        for side, (name, bounds) in enumerate(zip(SIDES, run._done(floors), strict=True)):
            empty = run.held[side].empty
            rows = pa.concat_tables(
                [empty, *(table.select(empty.column_names).cast(empty.schema) for table in tables.get(name, ()))]
            )
            matched = [table.column(ID).to_numpy() for table in tables.get(f"{name}_matched", ())]
            flags = np.isin(rows.column(ID).to_numpy(), np.concatenate([np.zeros(0, dtype=np.int64), *matched]))
            held.append(run.held[side].added(rows, flags).freed(bounds)[0])
        return replace(
            run,
            held=(held[LEFT], held[RIGHT]),
            frontiers=(left, right),
            frontier=frontier_of(saved["frontier"]),
            floors=floors,
            numbered=(saved["numbered"][LEFT], saved["numbered"][RIGHT]),
        )


def _some(table: pa.Table) -> pa.Table | None:
    return table if table.num_rows else None
