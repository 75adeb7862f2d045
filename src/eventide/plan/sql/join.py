"""Write the SQL of joins and lookups.

Laws. *Pairs*: rows of `left` and `right` that are a pair, each with all its columns; their names are those of the
chunks behind `l_` and `r_`. *Told*: what the user sees of `output`, pairs and rows alone (the other side NULL), those
that pass WHERE, in the order of time and then of values.

A band is compared bucket by bucket: the values of the right side are cut into stretches as long as the band reaches, so
the partners of a left row lie in two of them at most. Each is looked up like a key, so the work grows with the rows and
their pairs, never with their product, whatever the keys. (Measured with a million rows on each side and a band of 10 in
10 million, without keys: 0.25 s, against 0.56 s with DuckDB's own join over inequalities.) Where all bands are open at
one end none has a length: then the equal keys alone are looked up, or the engine joins over inequalities.

In the fail-safe form a condition that fails for a pair is not true, and a value that fails is NULL, and counted as
lost.

>>> from eventide.plan.bound.join import bind_join
>>> from eventide.plan.declared.join import Band, Join, Side
>>> from eventide.plan.declared.stream import Stream, columns
>>> a, b = (Stream(name, columns("t BIGINT"), time="t") for name in "ab")
>>> same = bind_join(Join("j", Side("a"), Side("b"), (Band("t", "t + 1"),)), a, b, lambda stream, sql: "BIGINT")
>>> pairs_text(same, "l", "r").split(" FROM ")[1]
'l JOIN r ON r___k1 = l___k1'

*Lookups.* Each row with its version, and the versions that can still be asked for.
"""

from __future__ import annotations

from collections.abc import Iterable

from eventide.eventtime.instant import FOREVER, NEVER
from eventide.plan.bound.join import BoundJoin
from eventide.plan.bound.join_inputs import LEFT, PREFIXES, RIGHT, WholeBand
from eventide.plan.bound.lookup import BoundLookup
from eventide.plan.bound.rows import IDENTITY, slice_columns
from eventide.plan.duckdb.transpile import same_answer
from eventide.plan.expressions.aggregate_call import order_key
from eventide.plan.expressions.columns import Column, literal, quoted
from eventide.plan.expressions.parse import SPARK, parsed
from eventide.plan.expressions.spark_types import SparkTypes
from eventide.plan.sql.evaluation_order import in_evaluation_order
from eventide.plan.sql.failing_rows import fails

COUNT = "__rows"
"""How many rows went into what is emitted: one or two."""

BUCKET = ("l___bucket", "r___bucket")


def side_columns(bound: BoundJoin, side: int) -> tuple[Column, ...]:
    """The columns of a row while it is held: its identity, and those of its port but the pane, which is its time."""
    return (*IDENTITY, *slice_columns(bound.ports[side])[1:])


def pair_columns(bound: BoundJoin, side: int) -> tuple[Column, ...]:
    """The columns of a side by the names that they have where rows meet."""
    return tuple(Column(PREFIXES[side] + column.name, column.type) for column in side_columns(bound, side))


def pairs_text(bound: BoundJoin, left: str, right: str, fail_safe: bool = False) -> str:
    """The pairs of two tables; a row with NULL in a band or key has none."""
    conditions = [f"l_{key} = r_{key}" for key in bound.keys]
    closed = next((place for place, reach in enumerate(bound.bands, 1) if reach.is_closed), None)
    if closed is not None and not any(reach.low == reach.high for reach in bound.bands):
        left, right = _bucketed(bound, closed, left, right)
        conditions.append(f"{BUCKET[0]} = {BUCKET[1]}")
    for place, reach in enumerate(bound.bands, 1):
        conditions += _within(reach, f"l___k{place}", f"r___k{place}")
    if bound.condition is not None:
        conditions.append(f"({_fail_safe_condition(bound, bound.condition) if fail_safe else bound.condition})")
    columns = ", ".join(quoted(column.name) for side in (0, 1) for column in pair_columns(bound, side))
    return f"SELECT {columns} FROM {left} JOIN {right} ON {' AND '.join(conditions)}"


def pair_side_text(bound: BoundJoin, side: int, rows: str) -> str:
    """Rows of a side under the names that columns have where rows meet."""
    columns = ", ".join(
        f"{quoted(column.name)} AS {quoted(PREFIXES[side] + column.name)}" for column in side_columns(bound, side)
    )
    return f"(SELECT {columns} FROM {rows})"


def alone_text(bound: BoundJoin, side: int, rows: str) -> str:
    """Rows of a side without a partner, as `output_text` reads them."""
    own = [quoted(column.name) for column in pair_columns(bound, side)]
    others = [f"CAST(NULL AS {column.type}) AS {quoted(column.name)}" for column in pair_columns(bound, 1 - side)]
    both = (own, others) if side == 0 else (others, own)
    columns = ", ".join((*both[0], *both[1]))
    return f"SELECT {columns}, CAST(1 AS BIGINT) AS {COUNT} FROM {pair_side_text(bound, side, rows)}"


def output_text(bound: BoundJoin, output: str, fail_safe: bool = False) -> str:
    """What is emitted: `window_start`, `window_end`, `rows`, the outputs, `__lost`."""
    start = "CASE WHEN l___k0 IS NULL OR r___k0 < l___k0 THEN r___k0 ELSE l___k0 END AS window_start"
    end = "CASE WHEN l___t IS NULL OR r___t > l___t THEN r___t ELSE l___t END + 1 AS window_end"
    values, lost, where = [value.sql for value in bound.values], "CAST(NULL AS STRING)", bound.where
    if fail_safe:
        values, lost, where = _fail_safe_output(bound)
    outputs = [f"{sql} AS {quoted(value.name)}" for sql, value in zip(values, bound.values, strict=True)]
    chosen = "" if where is None else f" WHERE {where}"
    text = ", ".join([start, end, f"{COUNT} AS `rows`", *outputs, f"{lost} AS __lost"])
    return f"SELECT {text} FROM {output}{chosen}"


def output_order(bound: BoundJoin) -> str:
    """The order of what is emitted: that of time, and then of values."""
    order = ["window_end", "window_start", "`rows`", *_ordered(bound.outputs), "__lost ASC NULLS FIRST"]
    return f" ORDER BY {', '.join(order)}"


def driver_exact(bound: BoundJoin) -> bool:
    """Whether DuckDB gives Spark's answer of both statements."""
    columns = (*pair_columns(bound, 0), *pair_columns(bound, 1), Column(COUNT, "BIGINT"))
    output = f"SELECT * FROM ({output_text(bound, 'c')}){output_order(bound)}"
    return same_answer(pairs_text(bound, "a", "b"), columns) and same_answer(output, columns)


def _within(reach: WholeBand, left: str, right: str) -> list[str]:
    if reach.low == reach.high:
        return [f"{right} = {_plus(left, reach.low)}"]
    if reach.low == NEVER:
        # What a row says itself may be any number: only time is moved.
        return [f"{_plus(right, -reach.high)} <= {left}"]
    if reach.high == FOREVER:
        return [f"{right} >= {_plus(left, reach.low)}"]
    return [f"{right} >= {_plus(left, reach.low)}", f"{right} <= {_plus(left, reach.high)}"]


def _plus(sql: str, distance: int) -> str:
    return sql if distance == 0 else f"{sql} + {distance}" if distance > 0 else f"{sql} - {-distance}"


def _bucketed(bound: BoundJoin, place: int, left: str, right: str) -> tuple[str, str]:
    """The tables with the buckets of a closed band: one of each right row, those of the partners of each left row."""
    reach = bound.bands[place - 1]
    width = reach.high - reach.low
    first = _bucket(_plus(f"l___k{place}", reach.low), width)
    last = _bucket(_plus(f"l___k{place}", reach.high), width)
    of_left = (
        f"(SELECT *, {first} AS {BUCKET[0]} FROM {left} UNION ALL "
        f"SELECT *, {last} AS {BUCKET[0]} FROM {left} WHERE {last} <> {first})"
    )
    return of_left, f"(SELECT *, {_bucket(f'r___k{place}', width)} AS {BUCKET[1]} FROM {right})"


def _bucket(sql: str, width: int) -> str:
    return f"({sql} - pmod({sql}, {width}))" if sql.isidentifier() else f"(({sql}) - pmod({sql}, {width}))"


def _ordered(outputs: Iterable[Column]) -> list[str]:
    """Parts of an ORDER BY that order rows alike in both engines."""
    parts = []
    for column in outputs:
        name = quoted(column.name)
        key = order_key(name, column.type)
        if key is not None:
            parts += [f"({name} IS NULL)"] if key[0] != name else []
            parts.append(f"{key[0]} ASC NULLS FIRST")
    return parts


def _types(bound: BoundJoin) -> SparkTypes:
    every = (*pair_columns(bound, 0), *pair_columns(bound, 1))
    return SparkTypes({column.name: column.type for column in every})


def _fail_safe_condition(bound: BoundJoin, condition: str) -> str:
    sql = in_evaluation_order(parsed(condition, "a condition"), _types(bound)).sql(SPARK)
    # Every row has a time; no optimizer sees that this is true.
    return f"CASE WHEN {fails(sql, 'pmod(l___t, 2) < 2')} THEN FALSE ELSE {sql} END"


def _fail_safe_output(bound: BoundJoin) -> tuple[list[str], str, str | None]:
    """Values that do not fail, the reasons of those that would have, and WHERE, which then lets the row pass."""
    types, values, reasons = _types(bound), [], []
    for value, spelled in zip(bound.values, bound.spelled, strict=True):
        sql = in_evaluation_order(parsed(value.sql, "a value"), types).sql(SPARK)
        failing = fails(sql, f"{COUNT} >= 0")
        values.append(f"CASE WHEN {failing} THEN NULL ELSE {sql} END")
        reasons.append((failing, spelled))
    where = None
    if bound.where is not None:
        sql = in_evaluation_order(parsed(bound.where, "a condition"), types).sql(SPARK)
        failing = fails(sql, f"{COUNT} >= 0")
        where = f"CASE WHEN {failing} THEN TRUE ELSE {sql} END"
        reasons.append((failing, bound.join.where or ""))
    reasons_of = (f"CASE WHEN {failing} THEN {literal(f'{spelled} fails')} END" for failing, spelled in reasons)
    return values, f"NULLIF(concat_ws('; ', {', '.join(reasons_of)}), '')", where


PASSED = "__passed"
"""Of a version: whether it holds before any row that can still come, unless a later one does."""


def versions_text(bound: BoundLookup, rows: str, versions: str) -> str:
    """Each row with its version, both with all their columns; rows without a version are left out.

    Versions and rows of a key are put in the order of time; a row takes the latest time before it. So the work grows
    with the rows and the versions of their keys, not with their product.
    """
    equal = " AND ".join(f"l_{key} = r_{key}" for key in bound.keys)
    keys = ", ".join(f"l_{key} AS {key}" for key in bound.keys)
    of_versions = ", ".join(f"r_{key} AS {key}" for key in bound.keys)
    wanted = f"SELECT * FROM {versions} LEFT SEMI JOIN {rows} ON {equal}"
    both = (
        f"SELECT {_identity('l_', '__row')}, l___t AS __at, CAST(NULL AS BIGINT) AS __since, {keys} FROM {rows} "
        f"UNION ALL SELECT {_nobody('__row')}, r___t AS __at, r___t AS __since, {of_versions} FROM ({wanted})"
    )
    # Peers in the order of a window count too, so a version that begins at the time of the row does.
    over = f"OVER (PARTITION BY {', '.join(bound.keys)} ORDER BY __at)"
    numbers = ", ".join(f"__row{column.name}" for column in IDENTITY)
    last = f"SELECT {numbers}, max(__since) {over} AS __last FROM ({both})"
    dated = f"SELECT {numbers}, __last FROM ({last}) WHERE __row{IDENTITY[0].name} IS NOT NULL"
    columns = ", ".join(quoted(c.name) for side in (LEFT, RIGHT) for c in pair_columns(bound.joined, side))
    own = ", ".join(f"l_{column.name}" for column in IDENTITY)
    same = " AND ".join(f"l_{column.name} = __row{column.name}" for column in IDENTITY)
    ranked = f"row_number() OVER (PARTITION BY {own} ORDER BY {', '.join(_greatest(bound))}) AS __place"
    found = (
        f"SELECT {columns}, {ranked} FROM {rows} JOIN ({dated}) ON {same} JOIN {versions} ON {equal} AND r___t = __last"
    )
    ended = "" if bound.removed is None else f" AND NOT r_{bound.removed}"
    return f"SELECT {columns} FROM ({found}) WHERE __place = 1{ended}"


def matches_text(bound: BoundLookup, rows: str, table: str) -> str:
    """Each row with every row of the table that has its keys, both with all their columns."""
    equal = " AND ".join(f"l_{key} = r_{key}" for key in bound.keys)
    columns = ", ".join(quoted(c.name) for side in (LEFT, RIGHT) for c in pair_columns(bound.joined, side))
    return f"SELECT {columns} FROM {rows} JOIN {table} ON {equal}"


def needed_text(bound: BoundLookup, versions: str) -> str:
    """The versions that can still be asked for: those not passed, and of those passed the latest of each key."""
    latest = f"max(CASE WHEN {PASSED} THEN __t END) OVER (PARTITION BY {', '.join(bound.keys)}) AS __last"
    ended = "" if bound.removed is None else f" AND NOT ({PASSED} AND {bound.removed})"
    return f"SELECT * FROM (SELECT *, {latest} FROM {versions}) WHERE (__last IS NULL OR __t >= __last){ended}"


def lookup_exact(bound: BoundLookup) -> bool:
    """Whether DuckDB gives Spark's answer of what a lookup tells."""
    known = (*pair_columns(bound.joined, LEFT), *pair_columns(bound.joined, RIGHT), Column("__rows", "BIGINT"))
    return same_answer(f"SELECT * FROM ({output_text(bound.joined, 'emitted')}){output_order(bound.joined)}", known)


def _greatest(bound: BoundLookup) -> list[str]:
    """What orders versions of one time, the one that counts first; those that end a row come last."""
    parts = [] if bound.removed is None else [f"r_{bound.removed}"]
    for column in bound.ports[RIGHT].kept:
        name = quoted(f"r_{column.name}")
        key = order_key(name, column.type)
        if key is not None:
            parts += [f"({name} IS NULL)"] if key[0] != name else []
            parts.append(f"{key[0]} DESC NULLS LAST")
    return [*parts, *(f"r_{column.name}" for column in IDENTITY)]


def _identity(prefix: str, name: str) -> str:
    return ", ".join(f"{prefix}{column.name} AS {name}{column.name}" for column in IDENTITY)


def _nobody(name: str) -> str:
    return ", ".join(f"CAST(NULL AS {column.type}) AS {name}{column.name}" for column in IDENTITY)
