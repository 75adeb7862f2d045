"""Joins: rows of both sides wait for partners until time has passed them.

Laws. *Pairs* are emitted in the round in which their second row comes. *Alone*: a row of a side that the join keeps is
emitted alone in the round in which no partner can come any more: at once, if a band or key of it is NULL. *Late*: a row
is late if its time is at or before the promised heartbeat, or if one of its band values is below the floor of its side
(`join_side`): partners of it may be gone. Every other row is joined as if all had come in order. *Costs*: a round reads
the new rows, the segments that their bands reach, and those in which rows are freed. (Gigascope paper, section 5.5, for
outer joins by epochs; Stream Mill paper, figures 1 and 6, for the window join and the time of a pair.)

Which rows of a kept side had a partner is a relation of identities beside the rows; what is freed without being in it
is emitted alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.operators.frontier import UNKNOWN, Frontier
from eventide.engine.operators.join_side import Floors, JoinSide, least_value
from eventide.engine.operators.join_statements import MATCHED, JoinStatements
from eventide.engine.operators.operator import Ingested, Input, Late, Operator, Output, output_layout
from eventide.engine.operators.time_range import known_times
from eventide.engine.relations.executor import Executor
from eventide.engine.relations.relation import Layout, Relation
from eventide.engine.relations.segments import Segments
from eventide.engine.relations.statement import Statement, one_row
from eventide.eventtime.instant import FOREVER, NEVER, Instants, shift
from eventide.plan.bound.join import SIDES, BoundJoin
from eventide.plan.bound.join_inputs import LEFT, RIGHT
from eventide.plan.bound.query import instant_sql
from eventide.plan.sql.join import COUNT, alone_text, met_columns, side_columns, told_order

Two = tuple[Segments, Segments]
Frontiers = tuple[Frontier, Frontier]


@dataclass(frozen=True)
class Join(Operator):
    """What a join holds; `new` came since it last advanced, `matched` are the identities of rows that had a partner."""

    bound: BoundJoin
    executor: Executor
    held: Two
    new: Two
    matched: Two
    frontiers: Frontiers = (UNKNOWN, UNKNOWN)
    frontier: Frontier = UNKNOWN
    floors: tuple[Floors, Floors] = ((), ())
    earliest_alone: tuple[int, int] = (FOREVER, FOREVER)
    """By side, the earliest time of a held row that may be emitted alone."""
    least_held: tuple[Mapping[str, int], Mapping[str, int]] = ({}, {})
    """By side, the least values of the columns of held rows that outputs carry time from."""
    is_read: bool = True
    """Whether an operator reads its rows, and so wants to know what columns have at least."""

    @classmethod
    def start(cls, bound: BoundJoin, executor: Executor, is_read: bool = True) -> Join:
        """A join that has seen nothing."""
        left, right = (Segments(side_layout(bound, side)) for side in (LEFT, RIGHT))
        never = (NEVER,) * len(bound.bands)
        nobody = Segments(MATCHED)
        return cls(
            bound, executor, (left, right), (left, right), (nobody, nobody), floors=(never, never), is_read=is_read
        )

    @property
    def name(self) -> str:
        """The name that others read it by."""
        return self.bound.name

    @property
    def holds(self) -> Instants:
        """The times of rows that are held."""
        both = Segments(self.held[LEFT].layout, (*self.held[LEFT].parts, *self.held[RIGHT].parts))
        return known_times(both)

    @property
    def state(self) -> Mapping[str, Segments]:
        """The rows of both sides; of a side that the join keeps, also which of them had a partner."""
        rows = dict(zip(SIDES, self.held, strict=True))
        return rows | {f"{SIDES[side]}_matched": self.matched[side] for side in self._kept_sides}

    def with_state(self, state: Mapping[str, Segments]) -> Join:
        """The same with the same rows, elsewhere or in other files."""
        matched = tuple(state.get(f"{side}_matched", Segments(MATCHED)) for side in SIDES)
        held = (state[SIDES[LEFT]], state[SIDES[RIGHT]])
        return replace(self, held=held, matched=(matched[LEFT], matched[RIGHT]))

    @property
    def _kept_sides(self) -> list[int]:
        return [side for side in (LEFT, RIGHT) if self.bound.keeps[side]]

    @property
    def _statements(self) -> JoinStatements:
        return JoinStatements(self.bound)

    # Rows come in

    def layout(self, port: str) -> Layout:
        """The columns of the rows of a side."""
        return self.held[side_of(self.bound, port)].layout

    def stamps(self, port: str, clock: int) -> Mapping[str, int]:
        """The clock, also in what bands compare, for rows without a time of their own."""
        return side_stamps(self.bound, side_of(self.bound, port), clock)

    def ingest(self, port: str, rows: Relation, sources: pa.Table | None = None) -> tuple[Join, Ingested]:
        """Add rows; those whose partners may be gone, or whose time is promised to be over, are late."""
        side = side_of(self.bound, port)
        time, floors = self.frontier.time, self.floors[side]
        known = [("__t", time + 1 if time != NEVER else NEVER)]
        known += [(f"__k{band}", floor) for band, floor in enumerate(floors, 1)]
        accepted, late = rows, None
        if any((low := rows.least(column)) is not None and low < first for column, first in known):
            limits = {"time": time, **{f"floor{band}": floor for band, floor in enumerate(floors, 1)}}
            inputs = {"found": rows, "limits": one_row(**limits)}
            accepted = self.executor.relation(self._statements.accepted(), inputs, rows.layout)
            conditions = [
                f"__t <= {time}",
                *(f"COALESCE(__k{band} < {floor}, FALSE)" for band, floor in enumerate(floors, 1)),
            ]
            late = Late(rows.rows - accepted.rows, " OR ".join(conditions)) if accepted.rows < rows.rows else None
        new = self.new[side].add(accepted)
        return replace(self, new=(new, self.new[RIGHT]) if side == LEFT else (self.new[LEFT], new)), Ingested(
            rows.rows, late
        )

    # Rows go out

    def would_emit(self, inputs: Sequence[Input]) -> bool:
        """Whether inputs that have come so far would emit or free a row; rows that just came always do."""
        if any(side.parts for side in self.new):
            return True
        was, now = self._done(self.floors), self._done(self._floors(self._further(inputs)))
        return any(
            (low := self.held[side].least(f"__k{band}")) is not None and max(low, before) < limit
            for side in (LEFT, RIGHT)
            for band, (before, limit) in enumerate(zip(was[side], now[side], strict=True), 1)
        )

    def advance(self, inputs: Sequence[Input], limit: int | None = None) -> tuple[Join, Output]:
        """Emit pairs of the rows that came, and those alone that no partner can come for; free what is done with."""
        frontiers = self._further(inputs)
        floors = self._floors(frontiers)
        done = self._done(floors)
        layout = output_layout(self.bound.outputs)
        if self._kept_sides:
            run, output = self._outer(floors, layout)
        else:
            run, output = self, self._inner(layout)
        held = [self._freed(side, run.held[side].add(*self.new[side].parts), done[side]) for side in (LEFT, RIGHT)]
        nothing = (Segments(self.new[LEFT].layout), Segments(self.new[RIGHT].layout))
        run = replace(run, held=(held[LEFT], held[RIGHT]), new=nothing, frontiers=frontiers, floors=floors)
        changed = floors != self.floors or any(side.parts for side in self.new)
        run = run._steered() if changed else run
        return replace(run, frontier=run._promise(frontiers)), output

    def frontier_at(self, inputs: Sequence[Input]) -> Frontier:
        """Its frontier once its inputs have come so far, which frees no row."""
        return self._promise(self._further(inputs))

    def _further(self, inputs: Sequence[Input]) -> Frontiers:
        now = {one.port: one.frontier for one in inputs}
        left, right = (into.query.name for into in self.bound.ports)
        return self.frontiers[LEFT].further(now[left]), self.frontiers[RIGHT].further(now[right])

    def _floors(self, frontiers: Frontiers) -> tuple[Floors, Floors]:
        left, right = (JoinSide(self.bound, side).floors(one) for side, one in enumerate(frontiers))
        return left, right

    def _done(self, floors: tuple[Floors, Floors]) -> tuple[Floors, Floors]:
        """By side, the band values below which rows are done with."""
        return JoinSide(self.bound, LEFT).done(floors[RIGHT]), JoinSide(self.bound, RIGHT).done(floors[LEFT])

    def _near(self, side: int) -> Segments:
        """The held segments of a side that may have partners of the new rows of the other one."""
        other = self.new[1 - side]
        low = other.least("__k1")
        if low is None:
            return Segments(self.held[side].layout)
        high = max(part.summary.greatest["__k1"] for part in other.parts if "__k1" in part.summary.greatest)
        return self.held[side].within("__k1", *JoinSide(self.bound, 1 - side).partners(low, high))

    def _meeting(self) -> tuple[bool, bool, dict[str, Segments]]:
        """Whether there are new left rows, and new right rows with held left ones; and what is joined."""
        left, right = self._near(LEFT), self._near(RIGHT)
        tables = {"new_left": self.new[LEFT], "new_right": self.new[RIGHT], "held_left": left, "held_right": right}
        first = bool(self.new[LEFT].parts) and bool(self.new[RIGHT].parts or right.parts)
        return first, bool(self.new[RIGHT].parts and left.parts), tables

    def _inner(self, layout: Layout) -> Output:
        """Pairs, as the user sees them."""
        first, second, tables = self._meeting()
        if not first and not second:
            return Output.of(layout)
        said = self._statements

        def text(fail_safe: bool) -> str:
            pairs = said.pairs(first, second, fail_safe)
            return said.emitted(f"SELECT *, CAST(2 AS BIGINT) AS {COUNT} FROM ({pairs})", fail_safe)

        statement = Statement(text(False), said.portable, told_order(self.bound), fail_safe=lambda: text(True))
        return Output.of(layout, self.executor.relation(_wrapped(statement), tables, layout))

    def _outer(self, floors: tuple[Floors, Floors], layout: Layout) -> tuple[Join, Output]:
        """Pairs, and rows alone of the sides that the join keeps."""
        first, second, tables = self._meeting()
        said, pairs = self._statements, Relation.nothing(pairs_layout(self.bound))
        if first or second:
            statement = Statement(
                said.pairs(first, second), said.portable, fail_safe=lambda: said.pairs(first, second, True)
            )
            pairs = self.executor.relation(statement, tables, pairs.layout)
        parts = [f"SELECT *, CAST(2 AS BIGINT) AS {COUNT} FROM pairs"]
        inputs: dict[str, Relation] = {"pairs": pairs}
        matched = list(self.matched)
        for side in self._kept_sides:
            if pairs.rows:
                matched[side] = matched[side].add(self.executor.relation(said.matched(side), {"pairs": pairs}, MATCHED))
            alone = self._alone(side, floors, matched[side])
            if alone.rows:
                inputs[f"alone_{SIDES[side]}"] = alone
                parts.append(alone_text(self.bound, side, f"alone_{SIDES[side]}"))
        run = replace(self, matched=(matched[LEFT], matched[RIGHT]))
        if not any(rows.rows for rows in inputs.values()):
            return run, Output.of(layout)
        every = " UNION ALL ".join(parts)
        statement = Statement(
            said.emitted(every), said.portable, told_order(self.bound), fail_safe=lambda: said.emitted(every, True)
        )
        return run, Output.of(layout, self.executor.relation(_wrapped(statement), inputs, layout))

    def _alone(self, side: int, floors: tuple[Floors, Floors], matched: Segments) -> Relation:
        """The rows of a side that no partner has come for, and none can."""
        was, now = self._done(self.floors)[side], self._done(floors)[side]
        held = Segments(self.held[side].layout)
        for band, (before, limit) in enumerate(zip(was, now, strict=True), 1):
            if limit > before:
                reached = self.held[side].within(f"__k{band}", NEVER, shift(limit, -1))
                held = held.add(*(part for part in reached.parts if part not in held.parts))
        if not held.parts and not self.new[side].parts:
            return Relation.nothing(held.layout)
        limits = {f"now{band}": limit for band, limit in enumerate(now, 1)}
        limits |= {f"was{band}": limit for band, limit in enumerate(was, 1)}
        inputs = {"held": held, "new": self.new[side], "matched": matched, "limits": one_row(**limits)}
        return self.executor.relation(self._statements.alone(side), inputs, held.layout)

    def _freed(self, side: int, rows: Segments, done: Floors) -> Segments:
        """Without the rows that are done with; and in fewer segments, where there are many."""
        for band, limit in enumerate(done, 1):
            rows = rows.trimmed(f"__k{band}", limit)
        parts = (_with_partners(part, self.bound.keys) for part in rows.parts)
        return Segments(rows.layout).add(*parts).merged(self.executor.merged)

    def _steered(self) -> Join:
        """With what the driver has to know of the rows that are held now."""
        earliest, least, matched = [FOREVER, FOREVER], [], list(self.matched)
        for side in (LEFT, RIGHT):
            held = self.held[side]
            limits = one_row(**{f"now{band}": limit for band, limit in enumerate(self._done(self.floors)[side], 1)})
            inputs = {"found": held, "limits": limits}
            if held.parts and self.bound.keeps[side]:
                found = self.executor.table(
                    self._statements.earliest_alone(), {**inputs, "matched": self.matched[side]}
                )
                first = found.column("first")[0].as_py()
                earliest[side] = FOREVER if first is None else first
            oldest = held.least("__t")
            freed = matched[side].since("__t", FOREVER if oldest is None else oldest)
            matched[side] = freed.merged(self.executor.merged)
            least.append(self._least(side, inputs))
        return replace(
            self,
            earliest_alone=(earliest[LEFT], earliest[RIGHT]),
            least_held=(least[LEFT], least[RIGHT]),
            matched=(matched[LEFT], matched[RIGHT]),
        )

    def _least(self, side: int, inputs: Mapping[str, Any]) -> Mapping[str, int]:
        """The least values of the columns that outputs carry time from, in the rows of a side."""
        held, columns = self.held[side], carried_columns(self.bound, side) if self.is_read else {}
        if held.place == "driver" or not columns:
            return {name: low for name in columns if (low := held.least(name)) is not None}
        [found] = self.executor.table(self._statements.least(columns), inputs).to_pylist()
        return {name: value for name, value in found.items() if value is not None}

    def _promise(self, frontiers: Frontiers) -> Frontier:
        """What later output rows are like: pairs with a later row, or held rows alone."""
        alone = [shift(self.earliest_alone[side], -1) for side in self._kept_sides]
        time = max(self.frontier.time, min(*(one.time for one in frontiers), *alone))
        least = {}
        for name, parts in self.bound.carried.items():
            coming = [
                JoinSide(self.bound, part.side).accepted_from(frontiers[part.side], time, part.column) for part in parts
            ]
            held = [self.least_held[part.side].get(part.column) for part in parts]
            if (known := least_value(parts, coming, held)) is not None:
                least[name] = known
        return self.frontier.further(Frontier(time, least))

    # What the round record keeps

    def snapshot(self) -> dict[str, Any]:
        """Plain data beside the rows."""
        return {"frontiers": [one.saved() for one in self.frontiers], "frontier": self.frontier.saved()}

    def restored(self, saved: Mapping[str, Any], state: Mapping[str, Segments]) -> Join:
        """The same, continued from what was saved; rows that are done with may still be in the files."""
        left, right = (Frontier.restored(one) for one in saved["frontiers"])
        floors = self._floors((left, right))
        run = self.with_state(state)
        held = [run._freed(side, run.held[side], done) for side, done in enumerate(self._done(floors))]
        frontier = Frontier.restored(saved["frontier"])
        run = replace(run, held=(held[LEFT], held[RIGHT]), frontiers=(left, right), frontier=frontier, floors=floors)
        return run._steered()


def side_of(bound: BoundJoin, port: str) -> int:
    """The side that a port leads to."""
    return [into.query.name for into in bound.ports].index(port)


def side_layout(bound: BoundJoin, side: int) -> Layout:
    """The columns of the rows of a side; of their times, bands and columns that carry time the edges are known."""
    bands = (f"__k{band}" for band in range(1, len(bound.bands) + 1))
    return Layout(side_columns(bound, side), ("__t", *bands, *carried_columns(bound, side)))


def side_stamps(bound: BoundJoin, side: int, clock: int) -> dict[str, int]:
    """The columns of a port that tell a time, for rows that have the clock's."""
    bands = {f"__k{place}": band.values[side].of(clock) for place, band in enumerate(bound.bands, 1)}
    return {"__pane": clock, "__t": clock, "__k0": clock, **bands}


def pairs_layout(bound: BoundJoin) -> Layout:
    """The columns of pairs."""
    return Layout((*met_columns(bound, LEFT), *met_columns(bound, RIGHT)))


def carried_columns(bound: BoundJoin, side: int) -> dict[str, str]:
    """The columns of a side that outputs carry time from, each with the SQL that tells it as a number."""
    types = {column.name: column.type for column in side_columns(bound, side)}
    names = dict.fromkeys(part.column for parts in bound.carried.values() for part in parts if part.side == side)
    return {name: instant_sql(name, types[name]) for name in names if name in types}


def _with_partners(part: Relation, keys: Sequence[str]) -> Relation:
    """A relation of the driver without the rows whose keys are NULL: they have no partners."""
    if part.table is None or not any(part.table.column(key).null_count for key in keys):
        return part
    for key in keys:
        assert part.table is not None
        part = part.kept(pc.is_valid(part.table.column(key)))
    return part


def _wrapped(statement: Statement) -> Statement:
    """The same, so that an order may follow."""
    fail_safe = statement.fail_safe
    return replace(
        statement,
        sql=f"SELECT * FROM ({statement.sql})",
        fail_safe=None if fail_safe is None else lambda: f"SELECT * FROM ({fail_safe()})",
    )
