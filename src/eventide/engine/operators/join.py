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

from collections.abc import Callable, Mapping, Sequence
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
from eventide.engine.relations.statement import Statement, Step, StepResults, one_row
from eventide.eventtime.instant import FOREVER, NEVER, Instants, shift
from eventide.plan.bound.join import SIDES, BoundJoin
from eventide.plan.bound.join_inputs import LEFT, RIGHT
from eventide.plan.bound.query import instant_sql
from eventide.plan.sql.join import COUNT, alone_text, met_columns, output_order, side_columns

Two = tuple[Segments, Segments]
Frontiers = tuple[Frontier, Frontier]

PAIRS, EMITTED = "pairs", "emitted"


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
        layout = output_layout(self.bound.outputs)
        run = replace(self, frontiers=frontiers)
        if floors == self.floors and not any(side.parts for side in self.new):
            return replace(run, frontier=run._promise(frontiers)), Output.of(layout)
        steps, tables = self._emitting(floors, layout)
        steps += self._steering(met=any(step.name == PAIRS for step in steps))
        found = self.executor.run(steps, {**tables, **self._inputs(floors)})
        run = run._freed(floors, found)._steered(found)
        emitted = found.relations.get(EMITTED)
        return replace(run, frontier=run._promise(frontiers)), Output.of(layout, *([emitted] if emitted else []))

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

    def _emitting(self, floors: tuple[Floors, Floors], layout: Layout) -> tuple[list[Step], dict[str, Segments]]:
        """The steps that emit pairs, and rows alone of the sides that the join keeps; and the rows that they read."""
        said, near = self._statements, (self._near(LEFT), self._near(RIGHT))
        new_left, new_right = (bool(side.parts) for side in self.new)
        first, second = (
            new_left and bool(self.new[RIGHT].parts or near[RIGHT].parts),
            new_right and bool(near[LEFT].parts),
        )
        tables = {f"near_{name}": rows for name, rows in zip(SIDES, near, strict=True)}
        if not self._kept_sides:
            pairs = _emitted(self.bound, lambda fail_safe: _both(said.pairs(first, second, fail_safe)))
            return [Step(EMITTED, pairs, layout)] if first or second else [], tables
        steps, parts, needs = list[Step](), list[str](), list[str]()
        if first or second:
            pairs = Statement(
                said.pairs(first, second), said.portable, fail_safe=lambda: said.pairs(first, second, True)
            )
            steps = [Step(PAIRS, pairs, pairs_layout(self.bound))]
            steps += [Step(f"met_{SIDES[side]}", said.matched(side), MATCHED, (PAIRS,)) for side in self._kept_sides]
            parts, needs = [_both(PAIRS)], [PAIRS]
        for side in self._kept_sides:
            ending = self._ending(side, floors)
            if ending.parts or self.new[side].parts:
                name = f"alone_{SIDES[side]}"
                tables[f"ending_{SIDES[side]}"] = ending
                steps.append(Step(name, said.alone(side, first or second), ending.layout))
                parts.append(alone_text(self.bound, side, name))
                needs.append(name)
        if steps:
            steps.append(Step(EMITTED, _emitted(self.bound, lambda _: " UNION ALL ".join(parts)), layout, tuple(needs)))
        return steps, tables

    def _ending(self, side: int, floors: tuple[Floors, Floors]) -> Segments:
        """The held segments of a side in which no partner can come for some row any more, as it could before."""
        found = Segments(self.held[side].layout)
        for band, (was, now) in enumerate(zip(self._done(self.floors)[side], self._done(floors)[side], strict=True), 1):
            if now > was:
                reached = self.held[side].within(f"__k{band}", NEVER, shift(now, -1))
                found = found.add(*(part for part in reached.parts if part not in found.parts))
        return found

    def _steering(self, met: bool) -> list[Step]:
        """The steps that tell what the driver has to know of the rows that are held."""
        steps = []
        for side in (LEFT, RIGHT):
            columns = carried_columns(self.bound, side) if self.is_read else {}
            if not self.held[side].parts and not self.new[side].parts:
                continue
            if self.bound.keeps[side]:
                steps.append(Step(f"first_{SIDES[side]}", self._statements.earliest_alone(side, met)))
            if columns:
                steps.append(Step(f"least_{SIDES[side]}", self._statements.least(side, columns)))
        return steps

    def _inputs(self, floors: tuple[Floors, Floors]) -> dict[str, Segments | pa.Table]:
        """What the steps of a round read, whatever they are."""
        found: dict[str, Segments | pa.Table] = {}
        was, now = self._done(self.floors), self._done(floors)
        for side, name in enumerate(SIDES):
            limits = {f"now{band}": limit for band, limit in enumerate(now[side], 1)}
            limits |= {f"was{band}": limit for band, limit in enumerate(was[side], 1)}
            found |= {
                f"held_{name}": self.held[side],
                f"new_{name}": self.new[side],
                f"limits_{name}": one_row(**limits),
            }
            if self.bound.keeps[side]:
                found[f"matched_{name}"] = self.matched[side]
        return found

    def _freed(self, floors: tuple[Floors, Floors], found: StepResults) -> Join:
        """With the rows that came, and without those that are done with; in fewer segments, where there are many."""
        held, matched = [], []
        for side, done in enumerate(self._done(floors)):
            rows = self.held[side].add(*self.new[side].parts)
            for band, limit in enumerate(done, 1):
                rows = rows.trimmed(f"__k{band}", limit)
            parts = (_with_partners(part, self.bound.keys) for part in rows.parts)
            held.append(Segments(rows.layout).add(*parts).merged(self.executor.merged))
            oldest, met = held[side].least("__t"), found.relations.get(f"met_{SIDES[side]}")
            met_too = self.matched[side].add(*([met] if met is not None else []))
            matched.append(met_too.since("__t", FOREVER if oldest is None else oldest).merged(self.executor.merged))
        nothing = (Segments(self.new[LEFT].layout), Segments(self.new[RIGHT].layout))
        return replace(
            self, held=(held[LEFT], held[RIGHT]), matched=(matched[LEFT], matched[RIGHT]), new=nothing, floors=floors
        )

    def _steered(self, found: StepResults) -> Join:
        """With what the driver has to know of the rows that are held now."""
        earliest, least = [FOREVER, FOREVER], list[Mapping[str, int]]()
        for side, name in enumerate(SIDES):
            if f"first_{name}" in found.tables:
                first = found.tables[f"first_{name}"].column("first")[0].as_py()
                earliest[side] = FOREVER if first is None else first
            [known] = found.tables[f"least_{name}"].to_pylist() if f"least_{name}" in found.tables else [{}]
            least.append({column: value for column, value in known.items() if value is not None})
        return replace(self, earliest_alone=(earliest[LEFT], earliest[RIGHT]), least_held=(least[LEFT], least[RIGHT]))

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
        run = replace(self.with_state(state), frontiers=(left, right), frontier=Frontier.restored(saved["frontier"]))
        found = run.executor.run(run._steering(met=False), run._inputs(floors))
        return run._freed(floors, found)._steered(found)


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


def _both(pairs: str) -> str:
    """Pairs among what is emitted: two rows each."""
    return f"SELECT *, CAST(2 AS BIGINT) AS {COUNT} FROM {pairs if pairs == PAIRS else f'({pairs})'}"


def _emitted(bound: BoundJoin, rows: Callable[[bool], str]) -> Statement:
    """What the user sees of pairs and rows alone."""
    said = JoinStatements(bound)

    def text(fail_safe: bool) -> str:
        return f"SELECT * FROM ({said.emitted(rows(fail_safe), fail_safe)})"

    return Statement(text(False), said.portable, output_order(bound), fail_safe=lambda: text(True))
