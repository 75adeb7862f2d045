"""Calls of aggregates, the partials that slices keep for them, and the order of values.

*Calls.* One call of an aggregate is taken apart into the partial columns that its form asks for.

>>> from eventide.plan.expressions.parse import parsed
>>> call = call_from(parsed("sum(x + 1) FILTER (WHERE y > 0)", "q"))
>>> call.name, call.over_rows("x + 1")
('sum', 'IF(y > 0, x + 1, NULL)')

*Partials.* What a slice keeps of its rows so that aggregates can be computed later. Law of slices: rows reduce to
partials, partials of the same group merge to partials, in any order and any grouping; the value of an aggregate is a
function of the merged partials. So the answer does not depend on how rows were cut into rounds and panes. All SQL here
is Spark's dialect; a partial column is spoken of by its name.

An aggregate that has no such form (an exact percentile, a user's own) is not here: its slices keep their rows.

*Means of decimals.* They are computed by long division, in words that both engines compute exactly. The mean has four
digits more than its values and is rounded once, half up, as Spark's AVG. Division itself will not do: Spark's rounds
twice on the way, DuckDB's goes through DOUBLE.

*Order of values.* The same in Spark and DuckDB: NaN is above all numbers, NULL inside of a value below all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from eventide.plan.expressions.parse import SPARK, WRAPPERS, name_of


@dataclass(frozen=True)
class Partial:
    """One column of a slice: part of an aggregate.

    `reduce` is an aggregate over the stream's columns (`sum(v)`); `merge` is an aggregate over partial columns
    (`sum(p0)`) that gives the same column for all of them together, of the same type.
    `over`: columns that must stand beside each partial row before merging, as window aggregates over all
    rows that are merged (`p1_mean` = `sum(p0 * p1) OVER merged`); `merge` may use their names.
    """

    name: str
    type: str
    reduce: str
    merge: str
    over: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Split:
    """A selected expression split in two: the partials it needs, and its value over the merged partials.

    `checks`: boolean expressions over merged partials that must hold, each with the reason given when it does not
    (`the sum of v overflows BIGINT`); the value is NULL where one fails, and that is reported, never silent.
    `driver_exact` is False where DuckDB cannot give Spark's answer from these partials: then only Spark merges them.
    """

    partials: tuple[Partial, ...]
    value: str
    type: str
    checks: tuple[tuple[str, str], ...] = ()
    driver_exact: bool = True


SMALL = ("TINYINT", "SMALLINT", "INT")
FRACTIONS = ("FLOAT", "DOUBLE")


@dataclass(frozen=True)
class Call:
    """A call: the function's name, its arguments as SQL, and what stands around it."""

    name: str
    arguments: tuple[str, ...]
    where: str | None = None
    distinct: bool = False
    ignore_nulls: bool = False
    ordered: bool = False

    def over_rows(self, argument: str) -> str:
        """The argument, NULL for rows that FILTER leaves out."""
        return argument if self.where is None else f"IF({self.where}, {argument}, NULL)"


def call_from(aggregate: exp.Expression) -> Call:
    """Take a call apart, as `expressions.aggregates_in` found it."""
    where: str | None = None
    ignore_nulls = ordered = False
    while isinstance(aggregate, WRAPPERS):
        if isinstance(aggregate, exp.Filter):
            where = aggregate.expression.this.sql(SPARK)
        ignore_nulls |= isinstance(aggregate, exp.IgnoreNulls)
        ordered |= isinstance(aggregate, exp.WithinGroup)
        aggregate = aggregate.this
    arguments = _arguments(aggregate)
    distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = tuple(arguments[0].expressions)
    return Call(name_of(aggregate), tuple(a.sql(SPARK) for a in arguments), where, distinct, ignore_nulls, ordered)


def _arguments(call: exp.Expression) -> tuple[exp.Expression, ...]:
    if isinstance(call, exp.Anonymous):
        return tuple(call.expressions)
    known = [call.args.get(key) for key in call.arg_types]
    flat = [item for value in known for item in (value if isinstance(value, list) else [value])]
    return tuple(item for item in flat if isinstance(item, exp.Expression))


ChosenRows = dict[tuple[str, ...], dict[str, tuple[tuple[str, str, str], ...]]]
"""What is kept of each chosen row: by how it is chosen, the values that are asked for, each with the fields (name, SQL,
type) that it is kept in."""


@dataclass
class PartialColumns:
    """The partial columns of one split, named by a prefix and a number; the same column is kept once.

    `chosen` is shared by all splits of a query: a row that is chosen in the same way is the same row for all of them.
    """

    prefix: str
    type_of: Callable[[str], str]
    time: str
    chosen: ChosenRows = field(default_factory=dict)
    kept: dict[tuple[str, str], Partial] = field(default_factory=dict)

    def keep(self, kind: str, reduce: str, merge: str, beside: str = "") -> str:
        """The name of a partial of that type.

        `merge` speaks of the column itself as `{0}` and of the value of `beside`, which is a window aggregate over
        all that is merged, as `{1}`.
        """
        key = (reduce, merge)
        if key not in self.kept:
            name = f"{self.prefix}_{len(self.kept)}"
            over = ((f"{name}_over", beside),) if beside else ()
            self.kept[key] = Partial(name, kind, reduce, merge.format(name, f"{name}_over"), over)
        return self.kept[key].name


@dataclass(frozen=True)
class AggregateValue:
    """The value of one aggregate over merged partials, its type, and what must hold for it."""

    value: str
    type: str
    checks: tuple[tuple[str, str], ...] = ()


Form = Callable[[Call, PartialColumns], AggregateValue | None]
"""How an aggregate is computed from partials; None where it cannot be, for these arguments."""


def decimal_of(kind: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal type.

    >>> decimal_of("DECIMAL(10, 2)"), decimal_of("INT")
    ((10, 2), None)
    """
    if not kind.startswith("DECIMAL"):
        return None
    parts = kind.removeprefix("DECIMAL").strip("()").split(",")
    return (int(parts[0] or 10), int(parts[1]) if len(parts) > 1 else 0)


def decimal_mean(total: str, rows: str, precision: int, scale: int) -> str | None:
    """The mean of `rows` values of DECIMAL(precision, scale) that add up to `total`; None where digits do not fit.

    >>> decimal_mean("t", "n", 38, 18) is None
    True
    """
    if precision > 28 or scale > 8 or precision - scale > 18:
        return None
    shift, step = 10 ** (scale + 4), f"0.{'0' * (scale + 3)}1"
    n = f"CAST(nullif({rows}, 0) AS DECIMAL(13, 0))"
    sum_ = f"CAST({total} AS DECIMAL({precision + 10}, {scale}))"
    whole = f"CAST({sum_} DIV {n} AS DECIMAL(19, 0))"
    rest = (
        f"CAST(CAST({sum_} % {n} AS DECIMAL({13 + scale}, {scale})) * CAST({shift} AS DECIMAL({scale + 5}, 0)) "
        f"AS DECIMAL({17 + scale}, 0))"
    )
    two = "CAST(2 AS DECIMAL(1, 0))"
    digits = (
        f"CAST(CAST(sign({rest}) AS INT) * ((abs({rest}) * {two} + {n}) DIV ({n} * {two})) AS DECIMAL({scale + 5}, 0))"
    )
    kind = f"DECIMAL({precision + 4}, {scale + 4})"
    return f"CAST({whole} + {digits} * CAST({step} AS DECIMAL({scale + 4}, {scale + 4})) AS {kind})"


PLAIN = (*SMALL, "BIGINT", *FRACTIONS, "STRING", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "BINARY")
"""Types whose order is the same in Spark and DuckDB."""


def order_key(sql: str, kind: str, depth: int = 0) -> tuple[str, str] | None:
    """What orders values of a type alike in both engines, and its type; None where Spark has no order.

    >>> order_key("x", "ARRAY<INT>")
    ("transform(x, e0 -> named_struct('h', nullif(e0 IS NOT NULL, CAST(NULL AS BOOLEAN)), \
'k', nullif(e0, CAST(NULL AS INT))))", 'ARRAY<STRUCT<h: BOOLEAN, k: INT>>')
    """
    if kind in PLAIN or decimal_of(kind) is not None:
        return sql, kind
    if kind == "VOID":
        return None
    read = exp.DataType.build(kind, dialect=SPARK)
    if read.is_type("array"):
        name = f"e{depth}"
        inner = order_key(name, read.expressions[0].sql(SPARK), depth + 1)
        if inner is None:
            return None
        there = f"named_struct('h', {nullable(f'{name} IS NOT NULL', 'BOOLEAN')}, 'k', {nullable(*inner)})"
        return f"transform({sql}, {name} -> {there})", f"ARRAY<STRUCT<h: BOOLEAN, k: {inner[1]}>>"
    if read.is_type("struct"):
        fields = [(f"{sql}.{f.this.sql(SPARK)}", f.args["kind"].sql(SPARK)) for f in read.expressions]
        keys = [(field, order_key(field, kind_, depth)) for field, kind_ in fields]
        if any(key is None for _, key in keys):
            return None
        parts, types = [], []
        for i, (field, key) in enumerate(keys):
            assert key is not None
            parts.append(f"'h{i}', {nullable(f'{field} IS NOT NULL', 'BOOLEAN')}, 'k{i}', {nullable(*key)}")
            types.append(f"h{i}: BOOLEAN, k{i}: {key[1]}")
        return f"named_struct({', '.join(parts)})", f"STRUCT<{', '.join(types)}>"
    return None


def nullable(sql: str, kind: str) -> str:
    """The same value, of a type that may be NULL: a struct that is NULL cannot go to Arrow if its fields may not be."""
    return f"nullif({sql}, CAST(NULL AS {kind}))"
