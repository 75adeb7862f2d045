"""Read window functions: the columns that each needs of a row, and what it says over its frame.

Law: a function that SQL has for the place of a row, or for its neighbours, is taken as it is. Any other is an
aggregate of partials: a row is a slice of its own, and a frame merges some of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.plan.bound.aggregates import split_together
from eventide.plan.bound.query import Key, time_sql
from eventide.plan.bound.rows import TypeIn
from eventide.plan.declared.over import NEIGHBOURS, PICKS, PLACES, Frame, Over, WindowCall
from eventide.plan.declared.query import Named, OrderBy
from eventide.plan.declared.stream import WINDOW_END, Stream, TimeKind
from eventide.plan.declared.temporal import Bucket, Temporal, over_time_column
from eventide.plan.expressions.aggregate_call import Split, order_key
from eventide.plan.expressions.columns import Column
from eventide.plan.expressions.parse import aggregates_in, call_of, check_columns, parsed
from eventide.plan.expressions.spark_dialect import SPARK

NO, LAST = "__no", "__newest"
"""The number of a row in its group, in the order of time, and the largest one so far."""

COUNTED = {"row_number": "BIGINT", "rank": "BIGINT", "dense_rank": "BIGINT", "ntile": "INT"}
MERGED = (exp.Sum, exp.Min, exp.Max, exp.LogicalAnd, exp.LogicalOr)
"""Merges of partials that both engines compute over frames."""


@dataclass(frozen=True)
class Reach:
    """How much is kept: rows of each group before the next one, and a length of time; and how far rows are awaited."""

    rows: int = 0
    time: int = 0
    ahead_rows: int = 0
    ahead_time: int = 0

    @property
    def keeps(self) -> bool:
        """Whether rows that were emitted are kept for later ones."""
        return bool(self.rows or self.time)

    @property
    def waits(self) -> bool:
        """Whether rows wait for later ones, beside their heartbeat."""
        return bool(self.ahead_rows or self.ahead_time)


NOTHING = Reach()
"""Nothing is kept, and nobody waits."""

Order = tuple[tuple[Column, OrderBy], ...]
"""Inner columns, and how rows are ordered by each."""


@dataclass(frozen=True)
class FrameColumn:
    """A column that a window function gives: `call` with `{over}` for its OVER (..).

    Rows are ordered `along` a column or by `order`; `total`: then by all their values, so that no two are equal.
    `simultaneous`: only rows of the same time belong together. `source` is the inner column that a merge is of;
    `carried` says that the frame begins at the first row.
    """

    column: Column
    call: str
    frame: Frame | None = None
    along: str | None = None
    order: Order = ()
    total: bool = False
    simultaneous: bool = False
    source: str = ""
    carried: bool = False


@dataclass
class Inner:
    """The inner columns, each expression once."""

    over: Over
    stream: Stream
    type_in: TypeIn
    keys: dict[str, Key] = field(default_factory=dict)

    def keep(self, sql: str, kind: str | None = None) -> Column:
        """The column of an expression over the row."""
        if sql not in self.keys:
            expression = parsed(sql, f"{self.over.name!r}")
            check_columns(expression, self.stream.columns, f"{self.over.name!r}, {self.stream.name!r}")
            if aggregates_in(expression):
                raise DeclarationError(
                    f"{self.over.name!r}: {sql!r} is an aggregate, and OVER looks at rows: aggregate in a sub-query"
                )
            self.keys[sql] = Key(f"__i{len(self.keys)}", sql, kind or self.type_in(self.stream, sql))
        key = self.keys[sql]
        return Column(key.name, key.type)

    def ordered(self, one: OrderBy) -> tuple[Column, OrderBy]:
        """What rows are ordered by."""
        column = self.keep(one.sql)
        if order_key(column.name, column.type) is None:
            raise DeclarationError(
                f"{self.over.name!r} cannot order by {one.sql!r}: values of {column.type} do not compare"
            )
        return column, one


def time_of(sql: str, stream: Stream) -> Temporal | None:
    """What an expression says about the very time of a row; None where it is made of anything else."""
    found = over_time_column(sql, stream)
    return found[1] if found is not None and found[0] == stream.time else None


@dataclass
class Frames:
    """Reads the values of window functions."""

    over: Over
    stream: Stream
    inner: Inner
    groups: tuple[str, ...]
    whole: Bucket | None
    order: Order = ()
    frames: list[FrameColumn] = field(default_factory=list)
    values: list[Named] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    checks: list[tuple[str, str]] = field(default_factory=list)
    reach: Reach = NOTHING
    portable: bool = True

    def read(self) -> Frames:
        """All of them."""
        calls = dict(zip((value.name for value in self.over.values), self.over.calls, strict=True))
        if self.whole is None:
            self._check_order(list(calls.values()))
        aggregates = {name: call for name, call in calls.items() if self._is_aggregate(call)}
        splits = split_together(
            "__p", [call.call for call in aggregates.values()], self._type_of, time_sql(self.stream)
        )
        for name, call in calls.items():
            if name in aggregates:
                self._take(name, call, splits[list(aggregates).index(name)])
            else:
                self._native(name, call)
        return self

    def _type_of(self, sql: str) -> str:
        return self.inner.type_in(self.stream, sql)

    def _is_aggregate(self, call: WindowCall) -> bool:
        if call.function in (*PLACES, *NEIGHBOURS, "nth_value"):
            return False
        return self.whole is None or call.function not in PICKS

    def _check_order(self, calls: list[WindowCall]) -> None:
        """In the order of time: ORDER BY is that, and no frame waits for ever."""
        time = self.stream.time or WINDOW_END
        for call in calls:
            first = call.order[0] if call.order else None
            carried = time_of(first.sql, self.stream) if first is not None else None
            # Whatever grows with the time of rows is as good.
            same = first is not None and carried is not None and carried.shifted is not None
            named = replace(call, order=(replace(call.order[0], sql=time), *call.order[1:])) if same else call
            if (wrong := named.wrong_in_time(time)) is not None:
                raise DeclarationError(f"{self.over.name!r}: {wrong}")
        if len({call.order[1:] for call in calls}) > 1:
            raise DeclarationError(f"{self.over.name!r}: its values are in different orders: compute each by itself")
        self.order = tuple(self.inner.ordered(one) for one in calls[0].order[1:])

    def _frame(self, call: WindowCall, column: Column, written: str, framed: bool, total: bool = False) -> FrameColumn:
        """What stands in OVER (..)."""
        frame = call.frame if framed else None
        if self.whole is None:
            along = "__t" if framed and not call.frame.rows else NO
            return FrameColumn(column, written, frame, along)
        order = tuple(self.inner.ordered(one) for one in call.order)
        return FrameColumn(column, written, frame, order=order, total=total and bool(order))

    # Values

    def _native(self, name: str, call: WindowCall) -> None:
        """What SQL has a function for that no partial stands for."""
        if call.function == "row_number" and self.whole is None:
            self._numbered(name, call)
            return
        arguments = list(call.arguments)
        kind = COUNTED.get(call.function, "DOUBLE")
        if call.function in (*NEIGHBOURS, *PICKS, "nth_value"):
            if not arguments:
                raise DeclarationError(f"{self.over.name!r}: {call.function} needs a column")
            column = self.inner.keep(arguments[0])
            kind, arguments[0] = column.type, column.name
        if call.function in NEIGHBOURS and len(arguments) > 2:
            if parsed(arguments[2], "a default").find(exp.Column) is not None:
                raise DeclarationError(f"{self.over.name!r}: the default of {call.function} is a value, not a column")
            arguments[2] = f"CAST({arguments[2]} AS {kind})"
        function = PICKS.get(call.function, call.function)
        written = f"{function}({', '.join(arguments[: 1 if call.function in PICKS else 3])})"
        if call.function in PICKS and ("IGNORE NULLS" in call.call.upper() or len(arguments) > 1):
            written += " IGNORE NULLS"
        self._check_range(call)
        framed = call.function in (*PICKS, "nth_value")
        if framed:
            # Rows that are equal in the order stand in that of their values: none has a peer.
            call = replace(call, frame=replace(call.frame, rows=True))
        total = call.function not in ("rank", "dense_rank", "percent_rank", "cume_dist")
        column = Column(f"__f{len(self.frames)}", kind)
        self.frames.append(self._frame(call, column, f"{written} {{over}}", framed, total))
        self._give(name, f"CAST({column.name} AS {kind})", kind)
        self._reached(call)

    def _give(self, name: str, sql: str, kind: str) -> None:
        self.values.append(Named(name, sql))
        self.types[name] = kind

    def _numbered(self, name: str, call: WindowCall) -> None:
        """The number of a row among those of its frame, in the order of time."""
        if call.frame.back is None:
            self._give(name, NO, "BIGINT")
        else:
            within, alike, place = (Column(f"__f{len(self.frames) + number}", "BIGINT") for number in range(3))
            self.frames += [
                self._frame(call, within, "count(*) {over}", framed=True),
                FrameColumn(alike, "count(*) {over}", simultaneous=True),
                FrameColumn(place, "row_number() {over}", along=NO, simultaneous=True),
            ]
            self._give(name, f"CAST({within.name} - {alike.name} + {place.name} AS BIGINT)", "BIGINT")
        self._reached(call)

    def _take(self, name: str, call: WindowCall, found: Split | None) -> None:
        """The merge of a frame's partials."""
        if found is None or any(partial.over for partial in found.partials):
            raise self._no_frames(call)
        self._check_range(call)
        for partial in found.partials:
            merge = parsed(partial.merge, "a partial")
            calls = aggregates_in(exp.Paren(this=merge))
            if len(calls) != 1 or not isinstance(calls[0], MERGED):
                raise self._no_frames(call)
            one = _of_one_row(partial.reduce, partial.type)
            if one is None:
                raise self._no_frames(call)
            column, text = Column(partial.name, partial.type), _with_over(merge, partial.name)
            made = self._frame(call, column, text, framed=True, total=call.frame.rows)
            carried = self.whole is None and call.frame.back is None
            self.frames.append(replace(made, source=self.inner.keep(one, partial.type).name, carried=carried))
        self._give(name, found.value, found.type)
        self.checks += found.checks
        self.portable = self.portable and found.driver_exact
        self._reached(call)

    def _no_frames(self, call: WindowCall) -> DeclarationError:
        return DeclarationError(
            f"{self.over.name!r}: {call.call} cannot be computed over a frame of rows yet: use count, sum, avg, min, "
            "max, first_value, last_value, min_by, max_by, bool_and or bool_or, or aggregate in a window"
        )

    def _check_range(self, call: WindowCall) -> None:
        if (wrong := call.wrong_range(self.whole is not None, self.stream.time_kind is TimeKind.SEQUENCE)) is not None:
            raise DeclarationError(f"{self.over.name!r}: {wrong}")

    def _reached(self, call: WindowCall) -> None:
        """How far a frame reaches."""
        if self.whole is not None:
            return
        frame, reach = call.frame, self.reach
        ahead = max(frame.ahead or 0, 0)
        if frame.rows or frame.back is None:
            rows = 1 if frame.back is None else max(frame.back, 0)
            reach = replace(reach, rows=max(reach.rows, rows))
        else:
            reach = replace(reach, time=max(reach.time, frame.back, 0))
        if frame.rows:
            self.reach = replace(reach, ahead_rows=max(reach.ahead_rows, ahead))
        else:
            self.reach = replace(reach, ahead_time=max(reach.ahead_time, ahead))


def _of_one_row(reduce: str, kind: str) -> str | None:
    """The partial of a slice that holds a single row; None where that is not plain.

    >>> _of_one_row("count(v)", "BIGINT"), _of_one_row("sum(v)", "BIGINT"), _of_one_row("var_pop(v)", "DOUBLE")
    ('CAST(IF(v IS NULL, 0, 1) AS BIGINT)', 'CAST(v AS BIGINT)', None)
    """
    call = call_of(parsed(reduce, "a partial"))
    if isinstance(call, exp.Count):
        if isinstance(call.this, exp.Star):
            return "CAST(1 AS BIGINT)"
        return f"CAST(IF({call.this.sql(SPARK)} IS NULL, 0, 1) AS BIGINT)"
    if not isinstance(call, MERGED) or isinstance(call.this, exp.Distinct):
        return None
    value = call.this.sql(SPARK)
    return f"CAST({value} AS {kind})" if isinstance(call, exp.Sum) else str(value)


SOURCE = "eventide_source"
FRAME = "eventide_frame"


def _with_over(merge: exp.Expression, name: str) -> str:
    """A merge with `{source}` in the place of its column, and `{over}` behind its aggregate.

    >>> _with_over(parsed("CAST(sum(p0) AS BIGINT)", "a merge"), "p0")
    'CAST(SUM({source}) {over} AS BIGINT)'
    """
    whole = exp.Paren(this=merge.copy())
    [call] = aggregates_in(whole)
    for column in list(call.find_all(exp.Column)):
        if column.parts[0].name == name:
            column.replace(exp.column(SOURCE))
    call.replace(exp.Window(this=call.copy(), alias=exp.to_identifier(FRAME)))
    return str(whole.this.sql(SPARK)).replace(SOURCE, "{source}").replace(f"OVER {FRAME}", "{over}")
