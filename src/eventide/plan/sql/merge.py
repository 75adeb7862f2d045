"""Close windows by one SQL statement over slices, the same text in Spark and in DuckDB.

Laws. The result of a window is the merge of the slices of its panes. `slices` holds them; `windows` says which pane
belongs to which window (columns as in `LISTED`), and lists the windows that are wanted now. So closing windows,
revising them and answering before they close are the same statement over other lists. Where a query has an order or a
limit, the results of a window are numbered in that order, ties by the groups: after the condition on groups, and in the
same way by both engines. Where the value of a window fails (a division of sums by zero, a sum that leaves its type),
that value is NULL and reported as lost with the reason; where the condition on groups fails, the window is shown. The
fail-safe form of a query has, for all other windows, the values of the query itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from eventide.plan.bound.exact_aggregates import BIGINT_RANGE
from eventide.plan.bound.query import HAVING, ORDER, ROWS, BoundQuery, shown
from eventide.plan.bound.rows import slice_columns
from eventide.plan.declared.query import Named, OrderBy
from eventide.plan.expressions.aggregate_call import FRACTIONS, Partial, decimal_of, order_key
from eventide.plan.expressions.columns import literal, quoted
from eventide.plan.expressions.parse import SPARK, aggregates_in, call_of, parsed
from eventide.plan.expressions.spark_types import DIGITS, SparkTypes, decimal_type
from eventide.plan.sql.evaluation_order import in_evaluation_order
from eventide.plan.sql.failing_rows import fails

LISTED = ("__of", "__start", "__end")
"""A pane, and the start and end of a window that holds it: names that no column of a stream has."""

BLOCK = "__block"
"""In lists of blocks, beside `__of`: the number of the block that a pane lies in."""

BY = "__by"
"""The number of a source, in slices and in lists of windows that are closed source by source."""

BEAT = "__beat"
"""In such lists: the heartbeat that closed a window for a source."""

RANK = "__rank"
"""The place of a result within its window, from 1."""


def merge_text(
    query: BoundQuery, slices: str, windows: str, changed: str | None = None, by_source: bool = False
) -> str:
    """Results: `window_start`, `window_end`, `rows`, groups and values under their names, `__lost` (failed checks).

    `changed` names slices, some of the others: only groups that one of these has changed in a window are emitted. With
    a limit the whole window is: one group that comes in pushes another out. `by_source`: slices and windows have the
    column `__by`, and a slice counts for the windows of its own source alone; results tell the `heartbeat` too.
    """
    keys = [f"__k{j}" for j in range(len(query.keys))]
    # A group belongs to one source, so it does not matter what closed it.
    together = ["__start", "__end", *keys, *([BEAT] if by_source else [])]
    beside = ["s.*", "w.__start", "w.__end", *([f"w.{BEAT}"] if by_source else [])]
    own = f" AND s.{BY} = w.{BY}" if by_source else ""
    joined = f"SELECT {', '.join(beside)} FROM {slices} s JOIN {windows} w ON s.__pane = w.__of{own}"
    only = ""
    if changed is not None and keys and query.query.limit is None:
        touched = ", ".join(["w.__start", "w.__end", *(f"c.{key}" for key in keys)])
        same = " AND ".join(["t.__start = m.__start", "t.__end = m.__end", *(f"t.{key} <=> m.{key}" for key in keys)])
        touching = f"SELECT {touched} FROM {changed} c JOIN {windows} w ON c.__pane = w.__of"
        only = f" m LEFT SEMI JOIN ({touching}) t ON {same}"
    return result_text(query, joined, together, only)


def result_text(query: BoundQuery, joined: str, together: Sequence[str], only: str = "") -> str:
    """Results of slices that are `joined` with their windows; `only` leaves out some of the groups of a window.

    What is one result stands `together`: the start and end of its window, its groups, the heartbeat of its source.
    """
    over = [(name, sql) for partial in query.partials for name, sql in partial.over]
    if over:
        partition = f"OVER (PARTITION BY {', '.join(together)})"
        spelled = [f"{sql.replace('OVER merged', partition)} AS {name}" for name, sql in over]
        joined = f"SELECT *, {', '.join(spelled)} FROM ({joined})"
    if query.keeps_rows and not query.partials:
        values = [f"{value.sql} AS {_output(value.name)}" for value in query.values]
        inner = [*together, f"CAST(count(*) AS BIGINT) AS {ROWS}", *values, f"{_lost(query)} AS __lost"]
        valued = f"SELECT {', '.join(inner)} FROM ({joined}) GROUP BY {', '.join(together)}"
    else:
        inner = [*together, *_merged(query)]
        merged = f"SELECT {', '.join(inner)} FROM ({joined}) GROUP BY {', '.join(together)}"
        values = [f"{value.sql} AS {_output(value.name)}" for value in query.values]
        valued = f"SELECT {', '.join([*together, ROWS, *values, f'{_lost(query)} AS __lost'])} FROM ({merged})"
    if only:
        valued = f"SELECT * FROM ({valued}){only}"
    having = f" WHERE {_output(HAVING)}" if any(value.name == HAVING for value in query.values) else ""
    valued, first = f"({valued}){having}", ""
    if _is_ranked(query):
        valued = f"(SELECT *, {_rank(query)} FROM {valued})"
        first = "" if query.query.limit is None else f" WHERE {RANK} <= {query.query.limit}"
    selected = ["__start AS window_start", "__end AS window_end", f"{ROWS} AS rows"]
    selected += [f"{group_text(f'__k{j}', key.type)} AS {quoted(key.name)}" for j, key in enumerate(query.keys)]
    selected += [f"{_output(value.name)} AS {quoted(value.name)}" for value in query.values if shown(value)]
    selected += ["__lost", *([f"{BEAT} AS heartbeat"] if BEAT in together else [])]
    return f"SELECT {', '.join(selected)} FROM {valued}{first}"


def with_blocks(query: BoundQuery, slices: str, blocks: str) -> str:
    """The slices, and beside them blocks of panes merged beforehand, for windows that share many panes.

    A block is a pane of its own to `windows`: what lies in many windows is merged once, not for each of them.
    """
    own = ["__n", *(f"__k{j}" for j in range(len(query.keys))), *(partial.name for partial in query.partials)]
    inside = f"SELECT b.{BLOCK} AS __pane, {', '.join(f's.{name}' for name in own)} FROM {slices} s JOIN {blocks} b"
    columns = ", ".join(["__pane", *own])
    merged = compact_text(query, f"({inside} ON s.__pane = b.__of)")
    return f"(SELECT {columns} FROM {slices} UNION ALL SELECT {columns} FROM ({merged}))"


def in_order(query: BoundQuery) -> str:
    """What to write after `merge_text` so that results come in order: windows, and results within each."""
    return f" ORDER BY __start, __end{f', {RANK}' if _is_ranked(query) else ''}"


def group_text(key: str, kind: str) -> str:
    """A group as it is shown. Both zeros are one, which Spark shows without a sign, DuckDB as the first row has it."""
    return f"CASE WHEN {key} = 0 THEN CAST(0 AS {kind}) ELSE {key} END" if kind in FRACTIONS else key


def _is_ranked(query: BoundQuery) -> bool:
    return bool(query.query.order) or query.query.limit is not None


def _rank(query: BoundQuery) -> str:
    """The place of a result within its window."""
    both = zip(query.orders, query.query.order, strict=True)
    order = [part for value, one in both for part in ordered_words(_output(value.name), value.type, one)]
    # The groups of a window differ, so nothing is left to chance.
    order += [
        part for j, key in enumerate(query.keys) for part in ordered_words(f"__k{j}", key.type, OrderBy(key.name))
    ]
    return f"row_number() OVER (PARTITION BY __start, __end ORDER BY {', '.join(order) or ROWS}) AS {RANK}"


def ordered_words(sql: str, kind: str, one: OrderBy) -> list[str]:
    """The parts of an ORDER BY that order values of a type alike in both engines; none where all are NULL."""
    key = order_key(sql, kind)
    if key is None or key[0] == sql:
        return [] if key is None else [f"{sql} {one.direction}"]
    # The key of a value that is NULL as a whole need not be NULL.
    return [f"({sql} IS NULL) {'DESC' if one.nulls_first else 'ASC'}", f"{key[0]} {one.direction}"]


def compact_text(query: BoundQuery, slices: str, *beside: str) -> str:
    """SQL that merges slices to one row for each pane and group; `beside`: columns that a group determines."""
    keys = ["__pane", *(f"__k{j}" for j in range(len(query.keys))), *beside]
    over = [(name, sql) for partial in query.partials for name, sql in partial.over]
    source = slices
    if over:
        partition = f"OVER (PARTITION BY {', '.join(keys)})"
        spelled = [f"{sql.replace('OVER merged', partition)} AS {name}" for name, sql in over]
        source = f"(SELECT *, {', '.join(spelled)} FROM {slices})"
    merged = [*keys, "CAST(sum(__n) AS BIGINT) AS __n", *(f"{p.merge} AS {p.name}" for p in query.partials)]
    return f"SELECT {', '.join(merged)} FROM {source} GROUP BY {', '.join(keys)}"


def empty_text(query: BoundQuery, rows: str) -> str:
    """The values of a window that holds no row: what the aggregates say of `rows`, an empty table of the stream.

    No row at all where such a window does not pass the condition on groups.
    """
    values = ", ".join(f"{value.sql} AS {quoted(value.name)}" for value in query.values if shown(value))
    having = "".join(value.sql for value in query.values if value.name == HAVING)
    if query.keeps_rows and not query.partials:
        return f"SELECT {values} FROM {rows} WHERE FALSE" + (f" HAVING {having}" if having else "")
    beside = f"SELECT * FROM {rows} WHERE FALSE"
    if not query.keeps_rows:
        partials = ["count(*) AS __n", *(f"{p.reduce} AS {p.name}" for p in query.partials)]
        over = [f"{sql.replace('OVER merged', 'OVER ()')} AS {name}" for p in query.partials for name, sql in p.over]
        beside = f"SELECT {', '.join(['*', *over])} FROM (SELECT {', '.join(partials)} FROM {rows} WHERE FALSE)"
    merged = f"SELECT {', '.join(_merged(query))} FROM ({beside})"
    return f"SELECT {values} FROM ({merged})" + (f" WHERE {having}" if having else "")


def _merged(query: BoundQuery) -> list[str]:
    """The number of rows and the merged partials."""
    rows = "count(*)" if query.keeps_rows else "sum(__n)"
    return [f"CAST({rows} AS BIGINT) AS {ROWS}", *(f"{p.merge} AS {p.name}" for p in query.partials)]


def _output(name: str) -> str:
    return quoted(f"__out_{name}")


def _lost(query: BoundQuery) -> str:
    """The reasons of the checks that fail, or NULL."""
    if not query.checks:
        return "CAST(NULL AS STRING)"
    listed = (f"CASE WHEN NOT ({condition}) THEN {literal(reason)} END" for condition, reason in query.checks)
    return f"NULLIF(concat_ws('; ', {', '.join(listed)}), '')"


HAS_ROWS = f"{ROWS} >= 0"
"""True for every window; no optimizer sees that (see `broken.HAS_TIME`)."""


def fail_safe_values(query: BoundQuery) -> BoundQuery:
    """The query with values that do not fail."""
    apart = _with_aggregates_apart(query) if query.keeps_rows else query
    partials = {partial.name: partial.type for partial in apart.partials}
    types = SparkTypes({column.name: column.type for column in slice_columns(query)} | partials | {ROWS: "BIGINT"})
    asked = query.query
    spelled = {item.name: item.sql for item in asked.select} | {HAVING: asked.having or ""}
    spelled |= {f"{ORDER}{place}": one.sql for place, one in enumerate(asked.order)}
    values, checks = [], list(apart.checks)
    for value in apart.values:
        sql = in_evaluation_order(parsed(value.sql, "a value"), types).sql(SPARK)
        failing = fails(sql, HAS_ROWS)
        instead = "TRUE" if value.name == HAVING else "NULL"
        values.append(Named(value.name, f"CASE WHEN {failing} THEN {instead} ELSE {sql} END"))
        checks.append((f"NOT {failing}", f"{spelled[value.name]} fails"))
    return replace(apart, values=tuple(values), checks=tuple(checks), fail_safe=True)


def _with_aggregates_apart(query: BoundQuery) -> BoundQuery:
    """Aggregates over kept rows as columns of their own, and values over these columns."""
    types = SparkTypes({column.name: column.type for column in query.stream.columns})
    columns: dict[str, Partial] = {}
    values, checks = [], []
    for value in query.values:
        tree = exp.Paren(this=parsed(value.sql, "a value"))
        for aggregate in aggregates_in(tree):
            if (decimal := _decimal_sum(aggregate, types)) is not None:
                column_of, check = decimal.kept_in(columns, types)
                checks.append(check)
                aggregate.replace(exp.column(column_of))
                continue
            wide, kind, summed = _without_overflow(aggregate, types)
            sql = in_evaluation_order(wide, types).sql(SPARK)
            name = columns.setdefault(sql, Partial(f"__a{len(columns)}", kind or "", sql, sql)).name
            value_of: exp.Expression = exp.column(name)
            if summed is not None:
                value_of = parsed(f"CASE WHEN {name} {BIGINT_RANGE} THEN CAST({name} AS BIGINT) END", "a sum")
                checks.append((f"{name} IS NULL OR {name} {BIGINT_RANGE}", f"the sum of {summed} overflows BIGINT"))
            aggregate.replace(value_of)
        values.append(Named(value.name, tree.this.sql(SPARK)))
    return replace(query, partials=tuple(columns.values()), values=tuple(values), checks=tuple(dict.fromkeys(checks)))


@dataclass(frozen=True)
class DecimalSum:
    """A sum of decimals with so many digits that their sum may have more than a decimal can hold.

    `tried` is NULL where it does, and where `counted` finds nothing to sum.
    """

    tried: exp.Expression
    counted: exp.Expression
    kind: str
    summed: str

    def kept_in(self, columns: dict[str, Partial], types: SparkTypes) -> tuple[str, tuple[str, str]]:
        """The name of the column that holds the sum, and the check that it is there."""
        names = []
        for one, kind in ((self.tried, self.kind), (self.counted, "BIGINT")):
            sql = in_evaluation_order(one, types).sql(SPARK)
            names.append(columns.setdefault(sql, Partial(f"__a{len(columns)}", kind, sql, sql)).name)
        total, count = names
        return total, (f"{total} IS NOT NULL OR {count} = 0", f"the sum of {self.summed} overflows {self.kind}")


def _decimal_sum(aggregate: exp.Expression, types: SparkTypes) -> DecimalSum | None:
    call = call_of(aggregate)
    decimal = decimal_of(types.of(call.this) or "") if isinstance(call, exp.Sum) else None
    # Fewer digits leave room for the sum of ten thousand million rows.
    if decimal is None or decimal[0] <= 28 or isinstance(call.this, exp.Distinct):
        return None
    tried, counted = (
        _with_call(aggregate, other)
        for other in (
            exp.Anonymous(this="try_sum", expressions=[call.this.copy()]),
            exp.Count(this=call.this.copy()),
        )
    )
    return DecimalSum(tried, counted, decimal_type(38, decimal[1]), call.this.sql(SPARK))


def _with_call(aggregate: exp.Expression, call: exp.Expression) -> exp.Expression:
    """The same FILTER around another call."""
    around = exp.Paren(this=aggregate.copy())
    call_of(around.this).replace(call)
    inside = around.this
    assert isinstance(inside, exp.Expression)
    return inside


def _without_overflow(aggregate: exp.Expression, types: SparkTypes) -> tuple[exp.Expression, str | None, str | None]:
    """The aggregate, its type, and, for a sum of whole numbers, what is summed: that is summed as a decimal."""
    call = call_of(aggregate)
    if not isinstance(call, exp.Sum) or types.of(call.this) not in DIGITS:
        return aggregate.copy(), types.of(aggregate), None
    wide = aggregate.copy()
    summed = call_of(wide).this
    summed = summed.expressions[0] if isinstance(summed, exp.Distinct) else summed
    text = summed.sql(SPARK)
    summed.replace(exp.cast(summed.copy(), "DECIMAL(20, 0)", dialect=SPARK))
    return wide, types.of(wide), text
