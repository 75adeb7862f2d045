"""Joins: rows of both sides wait for partners until time has passed them.

Laws. *Pairs* are emitted in the round in which their second row comes; a semi join emits the left row alone, once.
*Alone*: a row of a side that the join keeps is emitted alone in the round in which no partner can come any more: at
once, if a band or key of it is NULL. *Late*: a row is late if its time is at or before the promised heartbeat, or if
one of its band values is below the floor of its side (`join_sides`): partners of it may be gone. Every other row is
joined as if all had come in order. *Costs*: a round reads the new rows, the segments that their bands reach, and those
in which rows are freed. (Gigascope paper, section 5.5; Stream Mill paper, figures 1 and 6.)

Which rows of a kept side had a partner is a relation of identities beside the rows; what is freed without being in it
is emitted alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from eventide.engine.operators.frontier import UNKNOWN, OperatorFrontier
from eventide.engine.operators.join_sides import (
    FIRST,
    MATCHED,
    JoinSide,
    JoinStatements,
    carried_columns,
    least_value,
    pairs_layout,
    side_layout,
    side_stamps,
    with_partners,
)
from eventide.engine.operators.operator import Ingested, InputProgress, Late, Operator, Output, output_layout
from eventide.engine.operators.slow_flush import Floors, floors_within
from eventide.engine.operators.time_range import from_time, known_times
from eventide.engine.relations.executor import Executor, Statement, StatementStep, StepResults, one_row
from eventide.engine.relations.relation import SEQUENCE, Layout, Relation
from eventide.engine.relations.segments import Segments
from eventide.eventtime.instant import FOREVER, NEVER, Instants, shift
from eventide.plan.bound.join import SIDES, BoundJoin
from eventide.plan.bound.join_inputs import LEFT, RIGHT
from eventide.plan.bound.query import BoundQuery
from eventide.plan.declared.join import JoinKind
from eventide.plan.sql.join import COUNT, alone_text, output_order

Two = tuple[Segments, Segments]
Frontiers = tuple[OperatorFrontier, OperatorFrontier]

PAIRS, CHOSEN, EMITTED = "pairs", "chosen", "emitted"

KnownRows = Mapping[int, Mapping[str, int]]
"""Of the rows of a sequence: the earliest time of one that may be emitted alone, under the name `FIRST`, and the least
values of the columns that outputs carry time from. A round changes it for the segments that it reads, and no others."""


@dataclass(frozen=True)
class JoinOperator(Operator):
    """What a join holds; `new` came since it last advanced, `matched` are the identities of rows that had a partner."""

    bound: BoundJoin
    executor: Executor
    held: Two
    new: Two
    matched: Two
    frontiers: Frontiers = (UNKNOWN, UNKNOWN)
    frontier: OperatorFrontier = UNKNOWN
    floors: tuple[Floors, Floors] = ((), ())
    known: tuple[KnownRows, KnownRows] = ({}, {})
    """By side and sequence, what the driver has to know of the rows that are held."""
    is_read: bool = True
    """Whether an operator reads its rows, and so wants to know what columns have at least."""
    begins: int = NEVER

    @classmethod
    def start(cls, bound: BoundJoin, executor: Executor, is_read: bool = True, begins: int = NEVER) -> JoinOperator:
        """A join that has seen nothing; rows before `begins` are not for it."""
        left, right = (Segments(side_layout(bound, side)) for side in (LEFT, RIGHT))
        never = (NEVER,) * len(bound.bands)
        nobody = Segments(MATCHED)
        nothing = (left, right)
        run = cls(bound, executor, nothing, nothing, (nobody, nobody), floors=(never, never), is_read=is_read)
        return replace(run, begins=begins)

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

    def with_state(self, state: Mapping[str, Segments]) -> JoinOperator:
        """A copy whose rows are elsewhere or in other files."""
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

    def own(self, rows: Relation) -> Relation:
        """The rows whose time is not before it began."""
        return from_time(self.executor, rows, self.begins)

    def layout(self, port: str) -> Layout:
        """The columns of the rows of a side."""
        return self.held[side_of(self.bound, port)].layout

    def stamps(self, port: str, clock: int) -> Mapping[str, int]:
        """The clock, also in what bands compare, for rows without a time of their own."""
        return side_stamps(self.bound, side_of(self.bound, port), clock)

    def ingest(self, port: str, rows: Relation, sources: pa.Table | None = None) -> tuple[JoinOperator, Ingested]:
        """Add rows; those whose partners may be gone, or whose time is promised to be over, are late."""
        side = side_of(self.bound, port)
        time, floors = self.frontier.time, self.floors[side]
        known = [("__t", time + 1 if time != NEVER else NEVER)]
        known += [(f"__k{band}", floor) for band, floor in enumerate(floors, 1)]
        accepted, late = rows, None
        if any((low := rows.least(column)) is not None and low < first for column, first in known):
            tables = {"limits": one_row(time=time, **{f"floor{band}": low for band, low in enumerate(floors, 1)})}
            accepted = self.executor.relation(self._statements.accepted(), {"found": rows, **tables}, rows.layout)
            if accepted.rows < rows.rows:
                condition = self._statements.late("timed")
                late = Late(rows.rows - accepted.rows, condition, "CROSS JOIN limits", tables)
        new = self.new[side].add(accepted)
        both = (new, self.new[RIGHT]) if side == LEFT else (self.new[LEFT], new)
        return replace(self, new=both), Ingested(rows.rows, late)

    # Rows go out

    def would_emit(self, inputs: Sequence[InputProgress]) -> bool:
        """Whether inputs that have come so far would emit or free a row; rows that just came always do."""
        if any(side.parts for side in self.new):
            return True
        was, now = self._done(self.floors), self._done(self._floors(self._further(inputs)))
        return any(
            (low := self.held[side].least(f"__k{band}")) is not None and max(low, before) < limit
            for side in (LEFT, RIGHT)
            for band, (before, limit) in enumerate(zip(was[side], now[side], strict=True), 1)
        )

    def advance(self, inputs: Sequence[InputProgress], limit: int | None = None) -> tuple[JoinOperator, Output]:
        """Emit pairs of the rows that came, and those alone that no partner can come for; free what is done with."""
        frontiers = self._further(inputs)
        floors = self._slowly(frontiers, limit)
        layout = output_layout(self.bound.outputs)
        run = replace(self, frontiers=frontiers)
        if floors == self.floors and not any(side.parts for side in self.new):
            return replace(run, frontier=run._promise(frontiers)), Output.of(layout)
        near, ending = ([one(side) for side in (LEFT, RIGHT)] for one in (self._near, partial(self._ending, floors)))
        touched = [_union(*two) for two in zip(near, ending, strict=True)]
        read = self._inputs(floors, {"near": near, "ending": ending, "touched": touched})
        steps = self._emitting(near, ending, layout)
        steps += self._steering(touched, with_pairs=any(step.name == PAIRS for step in steps))
        found = self.executor.run(steps, read)
        run = run._steered(touched, found)._freed(floors, found)
        emitted = found.relations.get(EMITTED)
        return replace(run, frontier=run._promise(frontiers)), Output.of(layout, *([emitted] if emitted else []))

    def _slowly(self, frontiers: Frontiers, limit: int | None) -> tuple[Floors, Floors]:
        """Floors that free no more than about so many rows of a side that are emitted alone."""
        now = self._floors(frontiers)
        if limit is None or self.bound.join.kind is JoinKind.SEMI or all(one.is_over for one in frontiers):
            return now
        kept = {side: self.held[side].add(*self.new[side].parts) for side in self._kept_sides}
        return floors_within(self.executor, kept, self.floors, now, self._done, limit)

    def frontier_at(self, inputs: Sequence[InputProgress]) -> OperatorFrontier:
        """Its frontier once its inputs have come so far, which frees no row."""
        return self._promise(self._further(inputs))

    def _further(self, inputs: Sequence[InputProgress]) -> Frontiers:
        return further(self.bound.ports, self.frontiers, inputs)

    def _floors(self, frontiers: Frontiers) -> tuple[Floors, Floors]:
        left, right = (JoinSide(self.bound, side).floors(one) for side, one in enumerate(frontiers))
        return left, right

    def _done(self, floors: tuple[Floors, Floors]) -> tuple[Floors, Floors]:
        """By side, the band values below which rows are done with."""
        return JoinSide(self.bound, LEFT).done(floors[RIGHT]), JoinSide(self.bound, RIGHT).done(floors[LEFT])

    def _near(self, side: int) -> Segments:
        """The held segments of a side that may have partners of the new rows of the other one."""
        other, found = self.new[1 - side], self.held[side]
        for place in range(len(self.bound.bands)):
            band = f"__k{place + 1}"
            low, highs = other.least(band), [part.greatest(band) for part in other.parts]
            if low is None:
                return Segments(found.layout)
            high = max(one for one in highs if one is not None)
            found = found.within(band, *JoinSide(self.bound, 1 - side).partners(place, low, high))
        return found

    def _emitting(self, near: Sequence[Segments], ending: Sequence[Segments], layout: Layout) -> list[StatementStep]:
        """The steps that emit pairs, and rows alone of the sides that the join keeps."""
        kind = self.bound.join.kind
        statements, parts, needs = self._statements, list[str](), list[str]()
        first = bool(self.new[LEFT].parts and (self.new[RIGHT].parts or near[RIGHT].parts))
        second = bool(self.new[RIGHT].parts and near[LEFT].parts)
        if not self._kept_sides:
            pairs = _emitted(self.bound, lambda fail_safe: _both(statements.pairs(first, second, fail_safe)))
            return [StatementStep(EMITTED, pairs, layout)] if first or second else []
        steps = list[StatementStep]()
        if first or second:
            text, safe = statements.pairs(first, second), partial(statements.pairs, first, second, True)
            pairs = Statement(text, statements.portable, fail_safe=safe)
            steps = [StatementStep(PAIRS, pairs, pairs_layout(self.bound))]
            steps += [
                StatementStep(f"met_{SIDES[side]}", statements.matched(side), MATCHED, (PAIRS,))
                for side in self._kept_sides
            ]
            if kind is JoinKind.SEMI:
                steps.append(StatementStep(CHOSEN, statements.chosen(), self.held[LEFT].layout, (PAIRS,)))
                parts, needs = [alone_text(self.bound, LEFT, CHOSEN)], [CHOSEN]
            elif not kind.chooses:
                parts, needs = [_both(PAIRS)], [PAIRS]
        for side in self._kept_sides if kind is not JoinKind.SEMI else ():
            if ending[side].parts or self.new[side].parts:
                needs.append(f"alone_{SIDES[side]}")
                steps.append(StatementStep(needs[-1], statements.alone(side, first or second), self.held[side].layout))
                parts.append(alone_text(self.bound, side, needs[-1]))
        if parts:
            emitted = _emitted(self.bound, lambda _: " UNION ALL ".join(parts))
            steps.append(StatementStep(EMITTED, emitted, layout, tuple(needs)))
        return steps

    def _ending(self, floors: tuple[Floors, Floors], side: int) -> Segments:
        """The held segments of a side in which no partner can come for some row any more, as it could before."""
        found = Segments(self.held[side].layout)
        for band, (was, now) in enumerate(zip(self._done(self.floors)[side], self._done(floors)[side], strict=True), 1):
            if now > was:
                found = _union(found, self.held[side].within(f"__k{band}", NEVER, shift(now, -1)))
        return found

    def _steering(self, touched: Sequence[Segments], with_pairs: bool) -> list[StatementStep]:
        """The steps that tell what the driver has to know of the rows that are held, in segments that change."""
        steps = []
        for side in (LEFT, RIGHT):
            columns = carried_columns(self.bound, side) if self.is_read else {}
            if not touched[side].parts and not self.new[side].parts:
                continue
            if self.bound.keeps[side]:
                steps.append(StatementStep(f"first_{SIDES[side]}", self._statements.earliest_alone(side, with_pairs)))
            if columns:
                steps.append(StatementStep(f"least_{SIDES[side]}", self._statements.least(side, columns)))
        return steps

    def _inputs(
        self, floors: tuple[Floors, Floors], some: Mapping[str, Sequence[Segments]]
    ) -> dict[str, Segments | pa.Table]:
        """What the steps of a round read: `some` of the held rows, the new ones, identities of matched ones, limits."""
        found: dict[str, Segments | pa.Table] = {}
        was, now = self._done(self.floors), self._done(floors)
        for side, name in enumerate(SIDES):
            limits = {f"now{band}": limit for band, limit in enumerate(now[side], 1)}
            limits |= {f"was{band}": limit for band, limit in enumerate(was[side], 1)}
            read = some["touched"][side]
            times = [edge for part in read.parts for edge in (part.least("__t"), part.greatest("__t"))]
            known = [edge for edge in times if edge is not None]
            found |= {f"{kind}_{name}": sides[side] for kind, sides in some.items()}
            found |= {
                f"new_{name}": self.new[side],
                f"matched_{name}": self.matched[side].within("__t", min(known, default=0), max(known, default=-1)),
                f"limits_{name}": one_row(**limits),
            }
        return found

    def _steered(self, touched: Sequence[Segments], found: StepResults) -> JoinOperator:
        """With what the driver has to know of the rows that are held, where segments of them were read."""
        known = []
        for side, name in enumerate(SIDES):
            spans = [(part.least(SEQUENCE), part.greatest(SEQUENCE)) for part in touched[side].parts]
            of_side: dict[int, dict[str, int]] = {
                sequence: dict(values)
                for sequence, values in self.known[side].items()
                if not any(low is not None and high is not None and low <= sequence <= high for low, high in spans)
            }
            for step in (f"first_{name}", f"least_{name}"):
                for row in found.tables[step].to_pylist() if step in found.tables else ():
                    values = of_side.setdefault(row.pop(SEQUENCE), {})
                    values |= {column: value for column, value in row.items() if value is not None}
            known.append(of_side)
        return replace(self, known=(known[LEFT], known[RIGHT]))

    def _least_known(self, side: int, column: str) -> int | None:
        return min((values[column] for values in self.known[side].values() if column in values), default=None)

    def _freed(self, floors: tuple[Floors, Floors], found: StepResults) -> JoinOperator:
        """With the rows that came, and without those that are done with; in fewer segments, where there are many."""
        held, matched = [], []
        for side, done in enumerate(self._done(floors)):
            rows = self.held[side].add(*self.new[side].parts)
            for band, limit in enumerate(done, 1):
                rows = rows.trimmed(f"__k{band}", limit)
            parts = (with_partners(part, self._statements.compared) for part in rows.parts)
            limits = one_row(**{f"now{band}": limit for band, limit in enumerate(done, 1)})
            let_go = partial(self._merged, side, limits)
            held.append(Segments(rows.layout).add(*parts).merged(let_go))
            oldest, with_pairs = held[side].least("__t"), found.relations.get(f"met_{SIDES[side]}")
            met_too = self.matched[side].add(*([with_pairs] if with_pairs is not None else []))
            matched.append(met_too.since("__t", FOREVER if oldest is None else oldest).merged(self.executor.merged))
        nothing = (Segments(self.new[LEFT].layout), Segments(self.new[RIGHT].layout))
        return replace(
            self, held=(held[LEFT], held[RIGHT]), matched=(matched[LEFT], matched[RIGHT]), new=nothing, floors=floors
        )

    def _merged(self, side: int, limits: pa.Table, segments: Segments) -> Relation:
        """Several segments as one, without what is done with: a row that lives long keeps no others."""
        tables: dict[str, Segments | pa.Table] = {"segments": segments, f"limits_{SIDES[side]}": limits}
        return self.executor.relation(self._statements.living(side), tables, segments.layout)

    def _promise(self, frontiers: Frontiers) -> OperatorFrontier:
        """What later output rows are like: pairs with a later row, or held rows alone."""
        firsts = (self._least_known(side, FIRST) for side in self._kept_sides)
        alone = (FOREVER if first is None else shift(first, -1) for first in firsts)
        time = max(self.frontier.time, min(*(one.time for one in frontiers), *alone))
        least = {}
        for name, parts in self.bound.carried.items():
            coming = [
                JoinSide(self.bound, part.side).accepted_from(frontiers[part.side], time, part.column) for part in parts
            ]
            held = [self._least_known(part.side, part.column) for part in parts]
            if (known := least_value(parts, coming, held)) is not None:
                least[name] = known
        return self.frontier.further(OperatorFrontier(time, least))

    # What the round record keeps

    def snapshot(self) -> dict[str, Any]:
        """What is saved besides the rows, as plain data."""
        frontiers = [one.saved() for one in self.frontiers]
        saved = {"frontiers": frontiers, "frontier": self.frontier.saved(), "begins": self.begins}
        # Where rows wait that are too many, they are behind the frontiers.
        return saved if self.floors == self._floors(self.frontiers) else saved | {"floors": self.floors}

    def restored(self, saved: Mapping[str, Any], state: Mapping[str, Segments]) -> JoinOperator:
        """The operator as it was saved; its files may still hold rows that are not needed any more."""
        left, right = (OperatorFrontier.restored(one) for one in saved["frontiers"])
        floors = self._floors((left, right))
        if "floors" in saved:
            floors = tuple(saved["floors"][LEFT]), tuple(saved["floors"][RIGHT])
        run = replace(
            self.with_state(state), frontiers=(left, right), frontier=OperatorFrontier.restored(saved["frontier"])
        )
        run = replace(run, begins=saved.get("begins", NEVER))
        found = run.executor.run(run._steering(run.held, with_pairs=False), run._inputs(floors, {"touched": run.held}))
        return run._steered(run.held, found)._freed(floors, found)


def side_of(bound: BoundJoin, port: str) -> int:
    """The side that a port leads to."""
    return [into.query.name for into in bound.ports].index(port)


def further(ports: tuple[BoundQuery, BoundQuery], frontiers: Frontiers, inputs: Sequence[InputProgress]) -> Frontiers:
    """The frontiers of both sides, moved on to those of the inputs."""
    now = {one.port: one.frontier for one in inputs}
    left, right = (into.query.name for into in ports)
    return frontiers[LEFT].further(now[left]), frontiers[RIGHT].further(now[right])


def _union(some: Segments, more: Segments) -> Segments:
    return some.add(*(part for part in more.parts if part not in some.parts))


def _both(pairs: str) -> str:
    """Pairs among what is emitted: two rows each."""
    return f"SELECT *, CAST(2 AS BIGINT) AS {COUNT} FROM {pairs if pairs == PAIRS else f'({pairs})'}"


def _emitted(bound: BoundJoin, rows: Callable[[bool], str]) -> Statement:
    """What the user sees of pairs and rows alone."""
    statements = JoinStatements(bound)

    def text(fail_safe: bool) -> str:
        return f"SELECT * FROM ({statements.emitted(rows(fail_safe), fail_safe)})"

    return Statement(text(False), statements.portable, output_order(bound), fail_safe=lambda: text(True))
