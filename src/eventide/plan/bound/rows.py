"""Bind rows to their inputs, and describe the ports by which rows come into any operator.

Law: what is emitted has the same columns whichever input a row is from. Without a `select` the inputs have the same
columns, in any order; with one, every expression has the same type over every input. The first and the last instant of
a result are no columns of it here: they are the span of the row.

>>> from dataclasses import replace
>>> from eventide.plan.expressions.columns import columns
>>> north = Stream("north", columns("ts BIGINT, speed INT"), time="ts")
>>> south = Stream("south", north.columns, time="ts")
>>> both = bind_rows(Rows("both", ("north", "south")), (north, south), lambda stream, sql: "INT")
>>> [column.name for column in both.outputs], [port.query.name for port in both.ports], both.results.time
(['ts', 'speed'], ['both__north', 'both__south'], 'window_end')
>>> list(both.carried), both.carried["ts"]["both__south"].value(9)
(['ts'], 9)

*Ports.* A port says which rows of an input an operator takes, and what it keeps of each. A port is a query that keeps
its rows (`BoundQuery.keeps_rows`), cut by their times one by one. So rows come into an operator by the same reduce as
into a window: malformed and broken ones are rejected, late ones reported, in the same way, for a stream and for the
results of a query or of another operator.

A chunk of a port has the columns `__pane` and `__t` (both the time), `__k0` (the first instant that the row spans),
`__k1`, ... (the expressions asked for), then the kept columns under their own names.

>>> from eventide.plan.declared.stream import Stream, columns
>>> traffic = Stream("traffic", columns("ts BIGINT, speed INT"), time="ts")
>>> into = port("fast", "left", traffic, traffic.columns, keys=(Key("double", "speed * 2", "INT"),), where="speed > 60")
>>> into.query.name, [key.sql for key in into.keys], [column.name for column in into.kept]
('fast__left', ['CAST(`ts` AS BIGINT)', 'speed * 2'], ['ts', 'speed'])

*Columns.* The columns of a slice stand in one order in every store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from eventide.errors import DeclarationError
from eventide.plan.bound.query import BoundQuery, Key, instant_sql, time_sql
from eventide.plan.declared.query import Named, Query, check_names, named_as
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import WINDOW_END, WINDOW_START, Derived, Least, Stream, TimeKind
from eventide.plan.declared.temporal import Temporal, carries_on, least_of, over_time_column, time_columns
from eventide.plan.declared.window import RowWindow, Window
from eventide.plan.expressions.columns import Column, quoted
from eventide.plan.expressions.parse import aggregates_in, check_columns, columns_in, parsed

SPAN_START = "__k0"
"""The column of a chunk that tells the first instant of a row's span; it is `__t` itself for rows of a stream."""


UNTIL = Column("__until", "BIGINT")
"""In slices of sessions: the end of the stretch, at which a row would still join it."""

IDENTITY = (Column("__seq", "BIGINT"), Column("__id", "BIGINT"))
"""The columns that identify a row among all of its operator, where that is needed."""


def port(
    operator: str,
    side: str,
    stream: Stream,
    kept: tuple[Column, ...],
    keys: tuple[Key, ...] = (),
    where: str | None = None,
    driver_exact: bool = True,
) -> BoundQuery:
    """The port of an operator for one input; `keys` are computed where rows are judged, in the round they come."""
    query = Query(port_name(operator, side), stream.name, RowWindow(1), named_as(n="count(*)"), where=where)
    start = Key("start", _start_sql(stream), "BIGINT")
    # A slice that keeps no column would keep no row.
    kept = kept or stream.columns[:1]
    return BoundQuery(query, stream, (start, *keys), (), kept, (), (), (), driver_exact, operator=operator)


def port_name(operator: str, side: str) -> str:
    """The name of a port among the readers of a stream."""
    return f"{operator}__{side}"


def _start_sql(stream: Stream) -> str:
    if isinstance(stream, Derived):
        return instant_sql(WINDOW_START, stream.column(WINDOW_START).type)
    return time_sql(stream)


TypeIn = Callable[[Stream, str], str]
"""The Spark type of an expression over the columns of a stream."""


@dataclass(frozen=True)
class TimeOutput:
    """How an output is made of a column with time of one input."""

    column: str
    temporal: Temporal
    ahead: int | None = None
    """By how much the column is ahead of the time of its row; None if it does not tell that time itself."""

    def at(self, time: int) -> int:
        """The output of a row of that time, where the column tells it."""
        assert self.ahead is not None
        return self.value(time + self.ahead)

    def value(self, least: int) -> int:
        """The least value of the output, where the column has at least this."""
        value = self.temporal.value(least)
        assert value == int(value)
        return int(value)


@dataclass(frozen=True)
class BoundRows:
    """A merge or projection whose names are checked; the ports are in the order of the inputs."""

    rows: Rows
    ports: tuple[BoundQuery, ...]
    outputs: tuple[Column, ...]
    kind: TimeKind

    @property
    def name(self) -> str:
        """The name that others read it by."""
        return self.rows.name

    @property
    def names_in_port(self) -> tuple[str, ...]:
        """The columns of a port's chunk that are the outputs, in their order."""
        if self.rows.select:
            return tuple(f"__k{i + 1}" for i in range(len(self.outputs)))
        return tuple(column.name for column in self.outputs)

    @cached_property
    def results(self) -> Derived:
        """Its rows as a stream for whoever reads it."""
        leasts: list[tuple[str, Least | None]] = []
        for name in self.carried:
            leasts.append((name, _least_of_all([least_of(self._sql(name), port.stream) for port in self.ports])))
        leasts.append((WINDOW_START, _least_of_all([_start_of(port.stream) for port in self.ports])))
        return Derived.of(self.name, self.outputs, self.kind, Window(1), tuple(leasts))

    @cached_property
    def carried(self) -> dict[str, dict[str, TimeOutput]]:
        """The outputs that carry time in every input: by port, the column each is made of."""
        found: dict[str, dict[str, TimeOutput]] = {}
        for column in self.outputs:
            over = {into.query.name: over_time_column(self._sql(column.name), into.stream) for into in self.ports}
            made = {
                into.query.name: TimeOutput(*one, ahead=_ahead(into.stream, one[0]))
                for into in self.ports
                if (one := over[into.query.name]) is not None and carries_on(one[1])
            }
            if len(made) == len(self.ports):
                found[column.name] = made
        return found

    @cached_property
    def made_of_time(self) -> frozenset[str]:
        """Those of them that are made of the very time of a row, in every input."""
        made = self.carried.items()
        return frozenset(name for name, ports in made if all(one.ahead is not None for one in ports.values()))

    def _sql(self, output: str) -> str:
        return next((item.sql for item in self.rows.select if item.name == output), quoted(output))


def bind_rows(rows: Rows, inputs: tuple[Stream, ...], type_in: TypeIn) -> BoundRows:
    """Check the names and types of a merge or projection; `inputs` are in the order in which it names them."""
    _check_times(rows.name, inputs)
    for stream in inputs:
        _check_condition(rows, stream, type_in)
    outputs = _selected(rows, inputs, type_in) if rows.select else _all_columns(rows, inputs)
    kept = () if rows.select else outputs
    ports = []
    for stream in inputs:
        keys = tuple(Key(c.name, item.sql, c.type) for c, item in zip(outputs, rows.select, strict=False))
        ports.append(port(rows.name, stream.name, stream, kept, keys, rows.where))
    return BoundRows(rows, tuple(ports), outputs, inputs[0].time_kind)


def output_columns(stream: Stream) -> tuple[Column, ...]:
    """The columns of an input that are emitted of its rows: of results, all but their span."""
    if not isinstance(stream, Derived):
        return stream.columns
    return tuple(column for column in stream.columns if column.name not in (WINDOW_START, WINDOW_END))


def check_mergeable(owner: str, inputs: tuple[Stream, ...]) -> None:
    """Refuse inputs whose times do not compare, or that have not the same columns, in whatever order."""
    _check_times(owner, inputs)
    first = output_columns(inputs[0])
    for stream in inputs[1:]:
        other = {column.name: column.type for column in output_columns(stream)}
        for column in first:
            if column.name not in other:
                raise DeclarationError(
                    f"{owner!r} merges {inputs[0].name!r}, which has a column {column.name!r}, with {stream.name!r}, "
                    "which has none: select the columns that they share"
                )
            if other.pop(column.name) != column.type:
                raise DeclarationError(
                    f"{owner!r}: {column.name!r} is {column.type} in {inputs[0].name!r} and "
                    f"{stream.column(column.name).type} in {stream.name!r}: select it with a CAST"
                )
        if other:
            raise DeclarationError(
                f"{owner!r} merges {stream.name!r}, which has a column {next(iter(other))!r}, with "
                f"{inputs[0].name!r}, which has none: select the columns that they share"
            )


def _check_times(owner: str, inputs: tuple[Stream, ...]) -> None:
    if len({stream.time_kind is TimeKind.SEQUENCE for stream in inputs}) > 1:
        listed = " and ".join(f"{stream.time_kind.value}s in {stream.name!r}" for stream in inputs)
        raise DeclarationError(f"{owner!r} merges times that do not compare: {listed}")


def _all_columns(rows: Rows, inputs: tuple[Stream, ...]) -> tuple[Column, ...]:
    check_mergeable(rows.name, inputs)
    check_names(rows.name, (Named(column.name, "") for column in output_columns(inputs[0])))
    return output_columns(inputs[0])


def _selected(rows: Rows, inputs: tuple[Stream, ...], type_in: TypeIn) -> tuple[Column, ...]:
    outputs = []
    for item in rows.select:
        types = []
        for stream in inputs:
            expression = parsed(item.sql, f"{item.name!r} of {rows.name!r}")
            check_columns(expression, stream.columns, f"{rows.name!r}, {stream.name!r}")
            if aggregates_in(expression):
                raise DeclarationError(f"{rows.name!r}: {item.sql!r} is an aggregate, and needs a window: add one")
            types.append(type_in(stream, item.sql))
        if len(set(types)) > 1:
            listed = ", ".join(f"{kind} in {stream.name!r}" for kind, stream in zip(types, inputs, strict=True))
            raise DeclarationError(f"{rows.name!r}: {item.name!r} is {listed}: make them one by a CAST")
        outputs.append(Column(item.name, types[0]))
    return tuple(outputs)


def _check_condition(rows: Rows, stream: Stream, type_in: TypeIn) -> None:
    if rows.where is None:
        return
    condition = parsed(rows.where, f"the WHERE of {rows.name!r}")
    check_columns(condition, stream.columns, f"{rows.name!r}, {stream.name!r}")
    if aggregates_in(condition):
        raise DeclarationError(f"{rows.name!r}: WHERE sees single rows, and {rows.where!r} has an aggregate")
    if (found := type_in(stream, rows.where)) not in ("BOOLEAN", "VOID"):
        raise DeclarationError(f"{rows.name!r}: WHERE {rows.where!r} is {found}, not a condition")


def _start_of(stream: Stream) -> Least | None:
    """The least start of a row's span, for the time of the row."""
    return time_columns(stream).get(WINDOW_START) if isinstance(stream, Derived) else lambda t: t


def _ahead(stream: Stream, column: str) -> int | None:
    if column != stream.time:
        return None
    return 1 if isinstance(stream, Derived) else 0


def _least_of_all(leasts: list[Least | None]) -> Least | None:
    known = [least for least in leasts if least is not None]
    return (lambda t: min(least(t) for least in known)) if len(known) == len(leasts) else None


def slice_columns(query: BoundQuery) -> tuple[Column, ...]:
    """Pane, groups, and partials with the number of rows; or pane, time, groups and the rows themselves.

    A slice of sessions is a stretch of one: its pane is its first time, and it knows until when it goes on.
    """
    keys = tuple(Column(f"__k{j}", key.type) for j, key in enumerate(query.keys))
    pane = Column("__pane", "BIGINT")
    until = (UNTIL,) if query.of_sessions else ()
    if query.keeps_rows:
        return (pane, *until, Column("__t", "BIGINT"), *keys, *query.kept)
    return (pane, *until, *keys, Column("__n", "BIGINT"), *(Column(p.name, p.type) for p in query.partials))


def slice_ddl(query: BoundQuery) -> str:
    """The columns of a slice, as Spark writes a schema."""
    return ", ".join(f"{quoted(column.name)} {column.type}" for column in slice_columns(query))


def partial_inputs(query: BoundQuery) -> tuple[str, ...]:
    """The columns of the stream that the partials of a query are made of."""
    spoken = {name.lower() for p in query.partials for name in columns_in(parsed(p.reduce, "a partial"))}
    return tuple(column.name for column in query.stream.columns if column.name.lower() in spoken)
