"""Bind joins to their inputs: `bind_join` makes a `BoundJoin`, all that the engine needs to know.

*Binding.* Every name is checked, and every band is made of whole numbers that never fall as time grows. A chunk of a
port has, behind `__k0` (the start of the row's span), the value of each band, then the keys; of the columns it keeps
those that the condition, WHERE or SELECT speak of. Keys that are compared have one type. An output that is made of a
column with time carries time too: its least later value is known (`JoinOperator.frontier`).

>>> from eventide.plan.declared.join import Band, Side
>>> from eventide.plan.declared.stream import columns
>>> flow = [Stream(name, columns("time BIGINT, ip STRING, len INT"), time="time") for name in ("flow1", "flow2")]
>>> left, right = (Side(one.name, keys=("ip",)) for one in flow)
>>> epochs = Join("flows", left, right, (Band("time div 60", "time div 60"),))
>>> bound = bind_join(epochs, flow[0], flow[1], lambda stream, sql: "BIGINT" if "time" in sql else "STRING")
>>> [key.sql for key in bound.ports[0].keys]
['CAST(`time` AS BIGINT)', 'CAST(time div 60 AS BIGINT)', 'ip']
>>> [column.name for column in bound.outputs][:4], list(bound.carried)[:1]
(['flow1_time', 'flow1_ip', 'flow1_len', 'flow2_time'], ['flow1_time'])

*Outputs.* The engine knows the ports of a join, its bands in whole numbers, and what it emits. An output that is made
of a column with time carries time on. The row of a time t may be a pair whose other row has that time; then its own row
lies no further back than the bands reach. So each such output has a least value for t.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, lcm

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.eventtime.instant import EDGE, FOREVER, NEVER
from eventide.plan.bound.join_inputs import (
    LEFT,
    PREFIXES,
    RIGHT,
    STAMP,
    TIME_TYPES,
    BandValue,
    JoinNames,
    RowValue,
    TemporalAttribute,
    WholeBand,
    attribute,
    meeting,
    names_of,
    text,
)
from eventide.plan.bound.query import BoundQuery, Key
from eventide.plan.bound.rows import port
from eventide.plan.declared.join import Band, Join, Side
from eventide.plan.declared.query import Named, check_names
from eventide.plan.declared.stream import Derived, Least, Stream, TimeKind, kind_of
from eventide.plan.declared.temporal import Temporal, temporal, time_columns
from eventide.plan.declared.window import Window
from eventide.plan.expressions.columns import Column
from eventide.plan.expressions.parse import aggregates_in, check_columns, columns_in, parsed
from eventide.plan.expressions.spark_types import common


@dataclass(frozen=True)
class SideTimeOutput:
    """An output that carries time: the side and the column it is made of, and how."""

    side: int
    column: str
    attribute: Temporal


@dataclass(frozen=True)
class BoundJoin:
    """What the engine needs to know of a join; `condition`, `where` and `values` speak of names where rows meet."""

    join: Join
    ports: tuple[BoundQuery, BoundQuery]
    bands: tuple[WholeBand, ...]
    condition: str | None
    where: str | None
    values: tuple[Named, ...]
    types: tuple[str, ...]
    spelled: tuple[str, ...]
    """The outputs as the user wrote them."""

    @property
    def name(self) -> str:
        """The name that others read it by."""
        return self.join.name

    @property
    def outputs(self) -> tuple[Column, ...]:
        """The columns that the user selects."""
        return tuple(Column(value.name, kind) for value, kind in zip(self.values, self.types, strict=True))

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of a chunk that are compared for being equal."""
        first = 1 + len(self.bands)
        return tuple(f"__k{place}" for place in range(first, len(self.ports[LEFT].keys)))

    @property
    def keeps(self) -> tuple[bool, bool]:
        """The sides whose rows are emitted alone where they have no partner."""
        return self.join.kind.keeps_left, self.join.kind.keeps_right

    @property
    def time_kind(self) -> TimeKind:
        """What the times of its rows look like."""
        kinds = {port.stream.time_kind for port in self.ports}
        return kinds.pop() if len(kinds) == 1 else TimeKind.TIMESTAMP

    @property
    def results(self) -> Derived:
        """Its rows as a stream for whoever reads it."""
        carries = tuple((name, least_of_all(map(self._least, parts))) for name, parts in self.carried.items())
        return Derived.of(self.name, self.outputs, self.time_kind, Window(1), carries)

    @cached_property
    def carried(self) -> dict[str, tuple[SideTimeOutput, ...]]:
        """The outputs that carry time: of COALESCE, which may be either side's, what each part of it is made of."""
        found = {}
        for value in self.values:
            expression = parsed(value.sql, "an output")
            coalesced = isinstance(expression, exp.Coalesce)
            parts = [expression.this, *expression.expressions] if coalesced else [expression]
            carried = [self._carried(part) for part in parts]
            if None not in carried:
                found[value.name] = tuple(one for one in carried if one is not None)
        return found

    def _carried(self, expression: exp.Expression) -> SideTimeOutput | None:
        for side, (prefix, into) in enumerate(zip(PREFIXES, self.ports, strict=True)):
            for name in columns_in(expression):
                carrier = next((one for one in time_columns(into.stream) if prefix + one == name), None)
                kind = None if carrier is None else kind_of(into.stream.column(carrier))
                found = None if kind is None else temporal(expression, name, kind)
                # A fraction is rounded when it is computed, so its least value is not exactly known.
                if carrier is not None and found is not None and found.increasing and found.whole:
                    return SideTimeOutput(side, carrier, found)
        return None

    def _least(self, carried: SideTimeOutput) -> Least | None:
        """What an output has at least in a row of a time; None where only the running operator knows."""
        side, other = carried.side, 1 - carried.side
        own, theirs = (time_columns(self.ports[one].stream) for one in (side, other))
        time, of_column = self.ports[side].stream.time, own[carried.column]
        end = None if time is None else own[time]
        dated = [
            (mine, its, reach, least_of)
            for band in self.bands
            if (mine := band.temporal(side)) is not None
            and (its := band.temporal(other)) is not None
            and (reach := band.end_of(side)) is not None
            and mine.column == time
            and (least_of := _at_least(its.column, theirs)) is not None
        ]
        if of_column is None or end is None or not dated:
            return None
        # The time column of a stream is its time; that of results is one later.
        ahead = int(end(0))

        def reached(mine: BandValue, its: BandValue, reach: int, known: Least, t: int) -> int:
            """The first time of a partner of a row of the other side that has time t."""
            return mine.first(its.of(known(t)) - reach, t) - ahead

        def least(t: int) -> int:
            since = min(t, max(reached(*one, t) for one in dated))
            return ceil(carried.attribute.value(ceil(of_column(since))))

        return least


def least_of_all(leasts: Iterable[Least | None]) -> Least | None:
    """What holds of all of them; None where one is not known."""
    every = list(leasts)
    known = [least for least in every if least is not None]
    return (lambda t: min(least(t) for least in known)) if len(known) == len(every) else None


def _at_least(column: str, known: Mapping[str, Least | None]) -> Least | None:
    return (lambda t: t) if column == STAMP else known[column]


__all__ = ["SIDES", "BoundJoin", "bind_join"]

SIDES = ("left", "right")

TypeOf = Callable[[Stream, str], str]
"""The Spark type of an expression over a stream."""


def bind_join(
    join: Join,
    left: Stream,
    right: Stream,
    type_of: TypeOf,
    by_time: bool = True,
) -> BoundJoin:
    """Check a join against its inputs; whether their times compare only where it goes `by_time`.

    `type_of` is asked about expressions over `left`, `right` and `join_inputs.meeting(join, left, right)`.
    """
    if by_time:
        _check_scales(join, left.time_kind, right.time_kind, left.name, right.name)
    bands = tuple(_reach(join, band, (left, right), type_of, by_time) for band in join.bands)
    for side, given in ((LEFT, join.left), (RIGHT, join.right)):
        if all(band.end_of(side) is None for band in bands):
            raise DeclarationError(
                f"join {join.name!r} could never let go of a row of {given.alias!r}: no band says until when its "
                "partners come"
            )
    keys = _keys(join, (left, right), type_of)
    names = names_of(join, left, right)
    both = meeting(join, left, right)
    condition = _condition(names, join.condition, "the condition", both, type_of)
    where = _condition(names, join.where, "WHERE", both, type_of)
    select = join.select or names.every
    check_names(join.name, select)
    values = [names.over_pairs(item.sql, f"{item.name!r}") for item in select]
    types = tuple(type_of(both, text(value)) for value in values)
    spoken = [*values, *(one for one in (condition, where) if one is not None)]
    ports = tuple(
        port(
            join.name,
            SIDES[side],
            stream,
            names.spoken(side, spoken),
            (*(Key(f"band{j}", band.values[side].sql, "BIGINT") for j, band in enumerate(bands)), *keys[side]),
            _side_where(join, given, stream, type_of),
        )
        for side, (stream, given) in enumerate(((left, join.left), (right, join.right)))
    )
    return BoundJoin(
        join,
        (ports[LEFT], ports[RIGHT]),
        bands,
        None if condition is None else text(condition),
        None if where is None else text(where),
        tuple(Named(item.name, text(value)) for item, value in zip(select, values, strict=True)),
        types,
        tuple(item.sql for item in select),
    )


def _check_scales(join: Join, left: TimeKind, right: TimeKind, of_left: str, of_right: str) -> None:
    if (left is TimeKind.SEQUENCE) != (right is TimeKind.SEQUENCE):
        numbers, times = (of_left, of_right) if left is TimeKind.SEQUENCE else (of_right, of_left)
        raise DeclarationError(
            f"join {join.name!r}: {numbers!r} counts in plain numbers and {times!r} in times, which do not compare: "
            f"make a TIMESTAMP of the first, with timestamp_seconds for example, or a number of the second"
        )


def _reach(
    join: Join,
    band: Band,
    streams: tuple[Stream, Stream],
    type_of: TypeOf,
    by_time: bool,
) -> WholeBand:
    if not band.is_closed and (bounded := _by_a_row(join, band, streams, type_of)) is not None:
        return bounded
    left, right = (
        _attribute(join, stream, sql, type_of) for stream, sql in zip(streams, (band.left, band.right), strict=True)
    )
    if by_time:
        _check_scales(join, _scale(left), _scale(right), band.left, band.right)
    if left.temporal.increasing != right.temporal.increasing:
        grows, falls = (band.left, band.right) if left.temporal.increasing else (band.right, band.left)
        raise DeclarationError(
            f"join {join.name!r}: {grows!r} grows with time and {falls!r} falls, so rows could never be let go: "
            "relate attributes that both grow, or both fall"
        )
    whole = lcm(left.denominator, right.denominator)
    if not left.temporal.increasing:
        whole = -whole
    low, high = (None if end is None else end * whole for end in (band.low, band.high))
    if whole < 0:
        low, high = high, low
    return _with_ends(join, band, left.value(whole), right.value(whole), low, high)


def _by_a_row(join: Join, band: Band, streams: tuple[Stream, Stream], type_of: TypeOf) -> WholeBand | None:
    """The band where the side that its one end bounds says itself where that is; None where time tells both sides."""
    own = LEFT if band.low is None else RIGHT
    texts = (band.left, band.right)
    if _is_temporal(join, streams[own], texts[own]):
        return None
    found = _attribute(join, streams[1 - own], texts[1 - own], type_of)
    if not found.temporal.increasing or found.denominator != 1:
        raise DeclarationError(
            f"join {join.name!r}: {texts[1 - own]!r} is compared with what a row says, so it must grow with time, in "
            "whole numbers"
        )
    type = _checked(join, streams[own], texts[own], "band", type_of)
    value = RowValue.of(join.name, streams[own], texts[own], type)
    kind = TimeKind.TIMESTAMP if type in TIME_TYPES else TimeKind.SEQUENCE
    kinds = (kind, _scale(found)) if own == LEFT else (_scale(found), kind)
    _check_scales(join, *kinds, band.left, band.right)
    if own == LEFT:
        return _with_ends(join, band, value, found.value(1), None, band.high)
    return _with_ends(join, band, found.value(1), value, band.low, None)


def _is_temporal(join: Join, stream: Stream, sql: str) -> bool:
    expression = parsed(sql, f"a band of join {join.name!r}")
    stamp = [] if stream.time is not None else [STAMP]
    named = [name for name in columns_in(expression) if name in (*time_columns(stream), *stamp)]
    return any(temporal(expression, name, _kind_of(stream, name)) is not None for name in named)


def _kind_of(stream: Stream, name: str) -> TimeKind:
    return (None if name == STAMP else kind_of(stream.column(name))) or TimeKind.TIMESTAMP


def _with_ends(
    join: Join, band: Band, left: BandValue | RowValue, right: BandValue | RowValue, low: int | None, high: int | None
) -> WholeBand:
    if max(abs(low or 0), abs(high or 0)) > EDGE:
        raise DeclarationError(f"join {join.name!r}: the band from {band.low} to {band.high} reaches beyond all times")
    return WholeBand(left, right, NEVER if low is None else low, FOREVER if high is None else high)


def _attribute(join: Join, stream: Stream, sql: str, type_of: TypeOf) -> TemporalAttribute:
    found = attribute(join.name, stream, sql, tuple(time_columns(stream)))
    return found if found.column == STAMP else replace(found, type=type_of(stream, sql))


def _scale(found: TemporalAttribute) -> TimeKind:
    return TimeKind.TIMESTAMP if found.temporal.micros else TimeKind.SEQUENCE


def _keys(join: Join, streams: tuple[Stream, Stream], type_of: TypeOf) -> tuple[list[Key], list[Key]]:
    """The keys of each side, pairs of one type."""
    keys: tuple[list[Key], list[Key]] = ([], [])
    for place, pair in enumerate(zip(join.left.keys, join.right.keys, strict=True)):
        kinds = [_checked(join, stream, sql, "key", type_of) for stream, sql in zip(streams, pair, strict=True)]
        kind = _common_key(kinds[LEFT], kinds[RIGHT])
        if kind is None:
            way = "cast one to the type of the other" if kinds[LEFT] != kinds[RIGHT] else "compare parts of them"
            raise DeclarationError(
                f"join {join.name!r}: {pair[LEFT]!r} is {kinds[LEFT]} and {pair[RIGHT]!r} is {kinds[RIGHT]}, which do "
                f"not compare: {way}"
            )
        for side, sql in enumerate(pair):
            cast = sql if kinds[side] == kind else f"CAST({sql} AS {kind})"
            keys[side].append(Key(f"key{place}", cast, kind))
    return keys


def _common_key(left: str, right: str) -> str | None:
    if any("MAP<" in kind or kind in ("VARIANT", "VOID") for kind in (left, right)):
        return None
    if left == right:
        return left
    times = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
    return "TIMESTAMP" if left in times and right in times else common([left, right])


def _checked(join: Join, stream: Stream, sql: str, what: str, type_of: TypeOf) -> str:
    """The type of an expression over one side."""
    expression = parsed(sql, f"the {what} of join {join.name!r}")
    check_columns(expression, stream.columns, f"join {join.name!r}, input {stream.name!r}")
    if aggregates_in(expression):
        raise DeclarationError(f"join {join.name!r}: the {what} {sql!r} aggregates rows; a join sees single ones")
    return type_of(stream, sql)


def _side_where(join: Join, side: Side, stream: Stream, type_of: TypeOf) -> str | None:
    if side.where is not None:
        _check_condition(join.name, side.where, _checked(join, stream, side.where, "WHERE", type_of))
    return side.where


def _condition(names: JoinNames, sql: str | None, what: str, both: Stream, type_of: TypeOf) -> exp.Expression | None:
    if sql is None:
        return None
    over_pairs = names.over_pairs(sql, what)
    _check_condition(names.join, sql, type_of(both, text(over_pairs)))
    return over_pairs


def _check_condition(join: str, sql: str, kind: str) -> None:
    if kind not in ("BOOLEAN", "VOID"):
        raise DeclarationError(f"join {join!r}: {sql!r} is {kind}, not a condition")
