"""The two sides of a join: what frontiers say of each, and the statements over the rows that are held.

Laws. *Floor*: later rows of a side have no band value below its floor, by the frontier of its input. *Done*: a left
row is done with when by some band its partners would lie below the floor of the right side, a right row when those
left rows would that could have it for a partner. So a row whose band values are all at or above its own side's floor
still finds every partner it has, even if it is behind its side's heartbeat: it is not late. Of what a row says itself
there is no floor: it ends that row alone, when the other side has passed it. *Statements* are the same
text every round; what changes from round to round they find in the table `limits`: of each band the values below which
rows are late (`floor`), are done with (`now`), and were done with before (`was`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil

import pyarrow.compute as pc

from eventide.engine.operators.frontier import OperatorFrontier
from eventide.engine.operators.slow_flush import Floors
from eventide.engine.relations.executor import Statement
from eventide.engine.relations.relation import SEQUENCE, Layout, Relation
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, shift
from eventide.plan.bound.join import SIDES, BoundJoin, SideTimeOutput
from eventide.plan.bound.join_inputs import LEFT, PREFIXES, RIGHT, STAMP
from eventide.plan.bound.query import instant_sql
from eventide.plan.bound.rows import IDENTITY
from eventide.plan.declared.stream import Derived
from eventide.plan.declared.temporal import time_columns
from eventide.plan.expressions.columns import Column, quoted
from eventide.plan.sql.join import driver_exact, output_text, pair_columns, pair_side_text, pairs_text, side_columns

MATCHED = Layout((Column("__t", "BIGINT"), *IDENTITY), ("__t",))
FIRST = "__first"
SAME = " AND ".join(f"found.{column.name} = matched.{column.name}" for column in IDENTITY)


@dataclass(frozen=True)
class JoinStatements:
    """The statements of one join; what changes from round to round they find in the table `limits`."""

    bound: BoundJoin

    @cached_property
    def portable(self) -> bool:
        """Whether DuckDB gives Spark's answer."""
        return all(port.driver_exact for port in self.bound.ports) and driver_exact(self.bound)

    @property
    def _bands(self) -> range:
        return range(1, len(self.bound.bands) + 1)

    def dead(self, rows: str, limits: str) -> str:
        """Whether a row is below the limit of some band."""
        return "(" + " OR ".join(f"{rows}.__k{band} < limits.__{limits}{band}" for band in self._bands) + ")"

    def hopeless(self, rows: str) -> str:
        """Whether NULL keeps a row from having a partner."""
        return "(" + " OR ".join(f"{rows}.{name} IS NULL" for name in self.compared) + ")"

    @property
    def compared(self) -> list[str]:
        """The columns that rows are compared by: bands, then keys."""
        return [*(f"__k{band}" for band in self._bands), *self.bound.keys]

    def living(self, side: int) -> Statement:
        """The rows of `segments` that partners can still come for."""
        live = f"NOT {self.dead('found', 'now')} AND NOT {self.hopeless('found')}"
        text = f"SELECT found.* FROM segments found CROSS JOIN limits_{SIDES[side]} limits WHERE {live}"
        return Statement(text, identified=True)

    def accepted(self) -> Statement:
        """The rows `found` that are not late."""
        text = f"SELECT found.* FROM found CROSS JOIN limits WHERE NOT ({self.late('found')})"
        return Statement(text, identified=True)

    def late(self, rows: str) -> str:
        """The condition by which a row is late: its time is over, or partners of it may have been dropped."""
        return f"{rows}.__t <= limits.__time OR COALESCE({self.dead(rows, 'floor')}, FALSE)"

    def pairs(self, new_left: bool, new_right: bool, fail_safe: bool = False) -> str:
        """New left rows with all right rows, and held left rows with new right rows."""
        parts = []
        if new_left:
            right = "(SELECT * FROM near_right UNION ALL SELECT * FROM new_right)"
            parts.append(self._pairs("new_left", right, fail_safe))
        if new_right:
            parts.append(self._pairs("near_left", "new_right", fail_safe))
        return " UNION ALL ".join(parts)

    def _pairs(self, left: str, right: str, fail_safe: bool) -> str:
        sides = pair_side_text(self.bound, LEFT, left), pair_side_text(self.bound, RIGHT, right)
        return pairs_text(self.bound, *sides, fail_safe)

    def emitted(self, rows: str, fail_safe: bool = False) -> str:
        """The output columns of pairs, and of rows without a partner."""
        return output_text(self.bound, f"({rows})", fail_safe)

    def alone(self, side: int, with_pairs: bool) -> Statement:
        """Of the rows that no partner can come for any more, held and new, those that never had one."""
        name, limits = SIDES[side], f"limits_{SIDES[side]} limits"
        held = (
            f"SELECT held.* FROM ending_{name} held CROSS JOIN {limits} WHERE {self.dead('held', 'now')} "
            f"AND NOT {self.dead('held', 'was')} AND NOT {self.hopeless('held')}"
        )
        new = (
            f"SELECT new.* FROM new_{name} new CROSS JOIN {limits} "
            f"WHERE {self.dead('new', 'now')} OR {self.hopeless('new')}"
        )
        return Statement(f"SELECT found.* {_unmatched(f'{held} UNION ALL {new}', side, with_pairs)}", identified=True)

    def matched(self, side: int) -> Statement:
        """The identities of rows of a side that had a partner."""
        prefix = PREFIXES[side]
        named = ", ".join(f"{prefix}{column.name} AS {column.name}" for column in MATCHED.columns)
        return Statement(f"SELECT DISTINCT {named} FROM pairs")

    def chosen(self) -> Statement:
        """The left rows of pairs that had no partner before, each once."""
        columns = [(column.name, PREFIXES[LEFT] + column.name) for column in side_columns(self.bound, LEFT)]
        own = ", ".join(f"{quoted(prefixed)} AS {quoted(name)}" for name, prefixed in columns)
        one, other = (", ".join(PREFIXES[side] + column.name for column in IDENTITY) for side in (LEFT, RIGHT))
        first = f"row_number() OVER (PARTITION BY {one} ORDER BY {other}) AS __place"
        kept = ", ".join(f"found.{quoted(name)}" for name, _ in columns)
        text = (
            f"SELECT {kept} FROM (SELECT {own}, {first} FROM pairs) found LEFT ANTI JOIN matched_left matched ON {SAME}"
        )
        return Statement(f"{text} WHERE found.__place = 1", identified=True)

    def earliest_alone(self, side: int, with_pairs: bool) -> Statement:
        """By sequence, the earliest time of a held row that may still be emitted alone."""
        found = f"SELECT {self._live_columns} FROM {self._live(side)}"
        minima = f"SELECT found.{SEQUENCE}, min(found.__t) AS {FIRST} {_unmatched(found, side, with_pairs)}"
        return Statement(f"{minima} GROUP BY found.{SEQUENCE}")

    def least(self, side: int, columns: Mapping[str, str]) -> Statement:
        """By sequence, the least values of columns, each with the SQL that tells it, in held rows."""
        minima = ", ".join(f"min({sql}) AS {quoted(name)}" for name, sql in columns.items())
        return Statement(f"SELECT found.{SEQUENCE}, {minima} FROM {self._live(side)} GROUP BY found.{SEQUENCE}")

    @property
    def _live_columns(self) -> str:
        return ", ".join(f"found.{column.name}" for column in MATCHED.columns)

    def _live(self, side: int) -> str:
        """Rows of a side that partners can still come for."""
        rows = f"(SELECT * FROM touched_{SIDES[side]} UNION ALL SELECT * FROM new_{SIDES[side]}) found"
        live = f"NOT {self.dead('found', 'now')} AND NOT {self.hopeless('found')}"
        return f"{rows} CROSS JOIN limits_{SIDES[side]} limits WHERE {live}"


def _unmatched(rows: str, side: int, with_pairs: bool) -> str:
    """Rows of a side that never had a partner, neither before (`matched`) nor, with pairs, in this round."""
    names = [f"matched_{SIDES[side]}", *([f"met_{SIDES[side]}"] if with_pairs else [])]
    matched = " UNION ALL ".join(f"SELECT * FROM {name}" for name in names)
    return f"FROM ({rows}) found LEFT ANTI JOIN ({matched}) matched ON {SAME}"


"""The least later value of each band."""


@dataclass(frozen=True)
class JoinSide:
    """One side of a join, as far as time is concerned."""

    bound: BoundJoin
    side: int

    def least(self, frontier: OperatorFrontier, column: str) -> int | Fraction | None:
        """The least later value of a column with time; None where nothing is known, FOREVER where none comes."""
        if frontier.time >= EDGE:
            return FOREVER
        stream = self.bound.ports[self.side].stream
        known = [frontier.least[column]] if column in frontier.least else []
        below = None if column == STAMP else time_columns(stream)[column]
        if frontier.time > -EDGE and (column == STAMP or below is not None):
            later = frontier.time + 1
            known.append(later if below is None else below(later))
        return max(known, default=None)

    def floors(self, frontier: OperatorFrontier) -> Floors:
        """The least later values of the bands."""
        found = []
        for band in self.bound.bands:
            value = band.temporal(self.side)
            if value is None:
                found.append(FOREVER if frontier.time >= EDGE else NEVER)
                continue
            least = self.least(frontier, value.column)
            known = least is not None and least != FOREVER
            found.append(value.of(least) if known and least is not None else NEVER if least is None else FOREVER)
        return tuple(max(NEVER, min(FOREVER, floor)) for floor in found)

    def done(self, others: Floors) -> Floors:
        """Rows with a value below these are done with, where the other side has these floors."""
        ends = [band.end_of(self.side) for band in self.bound.bands]
        return tuple(_passed(end, other) for end, other in zip(ends, others, strict=True))

    def partners(self, place: int, low: int, high: int) -> tuple[int, int]:
        """Where the values of the partners of rows lie whose own, of that band, are from `low` to `high`."""
        band = self.bound.bands[place]
        first, last = band.end_of(RIGHT), band.end_of(LEFT)
        if self.side == RIGHT:
            first, last = last, first
        return NEVER if first is None else shift(low, -first), FOREVER if last is None else shift(high, last)

    def accepted_from(self, frontier: OperatorFrontier, promised: int, column: str) -> int | Fraction | None:
        """The least value of a column with time in rows that are not late; None and FOREVER as in `least`.

        Rows of a stream may be behind its heartbeat and yet not late.
        """
        least = self.least(frontier, column)
        stream = self.bound.ports[self.side].stream
        if least is None or least == FOREVER or isinstance(stream, Derived) or column != stream.time:
            return least
        values = [value for band in self.bound.bands if (value := band.temporal(self.side)) is not None]
        firsts = [value.first(value.of(least), ceil(least)) for value in values]
        return max(*firsts, promised + 1) if promised > -EDGE else max(firsts)


def _passed(end: int | None, other: int) -> int:
    """The values that no partner can come for; where there is no end, none but at the end of the other side."""
    return shift(other, -end) if end is not None else FOREVER if other == FOREVER else NEVER


def least_value(
    parts: Sequence[SideTimeOutput], coming: Sequence[int | Fraction | None], held: Sequence[int | None]
) -> int | Fraction | None:
    """The least later value of an output: of each part, by what comes and what is held; None where one is not known."""
    if any(one is None for one in coming):
        return None
    values = [
        part.attribute.value(ceil(one))
        for part, two in zip(parts, zip(coming, held, strict=True), strict=True)
        for one in two
        if one is not None and one != FOREVER
    ]
    return min(values, default=None)


def side_stamps(bound: BoundJoin, side: int, clock: int) -> dict[str, int]:
    """The columns of a port that tell a time, for rows that have the clock's."""
    values = {f"__k{place}": band.temporal(side) for place, band in enumerate(bound.bands, 1)}
    bands = {name: value.of(clock) for name, value in values.items() if value is not None}
    return {"__pane": clock, "__t": clock, "__k0": clock, **bands}


def carried_columns(bound: BoundJoin, side: int) -> dict[str, str]:
    """The columns of a side that outputs carry time from, each with the SQL that tells it as a number."""
    types = {column.name: column.type for column in side_columns(bound, side)}
    names = dict.fromkeys(part.column for parts in bound.carried.values() for part in parts if part.side == side)
    return {name: instant_sql(name, types[name]) for name in names if name in types}


def with_partners(part: Relation, compared: Sequence[str]) -> Relation:
    """A relation of the driver without the rows of which NULL is compared: they have no partners."""
    if part.table is None or not any(part.table.column(name).null_count for name in compared):
        return part
    for name in compared:
        assert part.table is not None
        part = part.kept(pc.is_valid(part.table.column(name)))
    return part


def side_layout(bound: BoundJoin, side: int) -> Layout:
    """The columns of the rows of a side; of their times, bands and columns that carry time the edges are known."""
    bands = (f"__k{band}" for band in range(1, len(bound.bands) + 1))
    return Layout(side_columns(bound, side), (SEQUENCE, "__t", *bands, *carried_columns(bound, side)))


def pairs_layout(bound: BoundJoin) -> Layout:
    """The layout of the pairs of a join."""
    return Layout((*pair_columns(bound, LEFT), *pair_columns(bound, RIGHT)))
