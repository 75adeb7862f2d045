"""Functions of arrays in DuckDB as in Spark.

Laws. NULL for an array gives NULL, also where DuckDB takes it for an empty one. A function of elements is asked of
every element, NULL among them; EXISTS and FORALL know three answers. What is distinct keeps its first place, and NULL
is one value. Places count from 1, from the end where they are negative.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from eventide.plan.duckdb.generator import Rule, SparkToDuckDB, call


def _of(text: str, *keys: str) -> Rule:
    """A text over the texts of arguments; NULL where the first of them is NULL."""

    def rule(self: SparkToDuckDB, node: exp.Expression) -> str:
        given = [self.sql(node, key) for key in ("this", *keys)]
        return f"CASE WHEN {given[0]} IS NOT NULL THEN {text.format(*given)} END"

    return rule


def distinct(array: str) -> str:
    """The elements of an array, each in its first place."""
    return f"list_filter({array}, lambda e, i: list_position({array}, e) = i)"


def _both(text: str) -> Callable[[str, str], str]:
    """A text over two arrays; NULL where one of them is NULL."""
    return lambda one, other: f"CASE WHEN {one} IS NOT NULL AND {other} IS NOT NULL THEN {text.format(one, other)} END"


COMMON = "list_filter({0}, lambda e: list_position({1}, e) IS NOT NULL)"
except_of = _both(distinct("list_filter({0}, lambda e: list_position({1}, e) IS NULL)"))
intersect_of = _both(distinct(COMMON))
union_of = _both(distinct("list_concat({0}, {1})"))
overlap_of = _both(
    f"CASE WHEN len(list_filter({COMMON}, lambda e: e IS NOT NULL)) > 0 THEN TRUE "
    "WHEN len({0}) > 0 AND len({1}) > 0 AND len(list_filter(list_concat({0}, {1}), lambda e: e IS NULL)) > 0 THEN NULL "
    "ELSE FALSE END"
)


def repeated(value: str, times: str) -> str:
    """An array of one value so many times."""
    return f"CASE WHEN {times} IS NOT NULL THEN list_transform(range(CAST({times} AS BIGINT)), lambda _: {value}) END"


def held(self: SparkToDuckDB, array: exp.Expression, condition: exp.Expression, every: bool) -> str:
    """Whether a condition holds for one element, or for every one; NULL where only unknown ones stand against it."""
    if not isinstance(condition, exp.Lambda) or len(condition.expressions) != 1:
        return self.refuse("a function of an element and its place")
    given = self.sql(array)
    found = f"list_transform({given}, {self.sql(condition)})"
    decides, otherwise = ("FALSE", "TRUE") if every else ("TRUE", "FALSE")
    unknown = f"len(list_filter({found}, lambda e: e IS NULL)) > 0"
    return (
        f"CASE WHEN {given} IS NULL THEN NULL WHEN list_contains({found}, {decides}) THEN {decides} "
        f"WHEN {unknown} THEN NULL ELSE {otherwise} END"
    )


def transformed(self: SparkToDuckDB, node: exp.Transform) -> str:
    """TRANSFORM; the place of an element counts from 0."""
    function = node.expression
    if isinstance(function, exp.Lambda) and len(function.expressions) == 2:
        function = function.copy()
        place = function.expressions[1].name.lower()
        for name in list(function.this.find_all(exp.Identifier)):
            if name.name.lower() == place:
                # A name of a function's argument stands alone, or in a column.
                around = name.parent if isinstance(name.parent, exp.Column) else name
                less = exp.Paren(this=exp.Sub(this=around.copy(), expression=exp.Literal.number(1)))
                around.replace(exp.cast(less, "INT", dialect="spark"))
    return call("list_transform", self.sql(node.this), self.sql(function))


def _reduced(self: SparkToDuckDB, node: exp.Reduce) -> str:
    """AGGREGATE: the elements merged one by one into a value that begins as said."""
    merge, finish = node.args["merge"], node.args.get("finish")
    if not isinstance(merge, exp.Lambda) or len(merge.expressions) != 2:
        return self.refuse("AGGREGATE by other than a function of two values")
    array = self.sql(node.this)
    given = f"list_reduce({array}, {self.sql(merge)}, {self.sql(node, 'initial')})"
    if finish is not None:
        given = f"list_transform([{given}], {self.sql(finish)})[1]"
    return f"CASE WHEN {array} IS NOT NULL THEN {given} END"


def _slice(self: SparkToDuckDB, node: exp.ArraySlice) -> str:
    array, start, length = self.sql(node.this), self.sql(node, "start"), self.sql(node, "end")
    since = f"(CASE WHEN {start} < 0 THEN len({array}) + {start} + 1 ELSE {start} END)"
    return (
        f"CASE WHEN {start} = 0 THEN spark_fail('INVALID_PARAMETER_VALUE.START: slice counts from 1') "
        f"WHEN {length} < 0 THEN spark_fail('INVALID_PARAMETER_VALUE.LENGTH: slice of less than nothing') "
        f"WHEN {since} < 1 THEN list_slice({array}, 1, 0) "
        f"ELSE list_slice({array}, {since}, {since} + {length} - 1) END"
    )


def _sequence(self: SparkToDuckDB, node: exp.GenerateSeries) -> str:
    """Whole numbers from one to another, up or down."""
    first, last = node.args["start"], node.args["end"]
    kinds = {self.kind(first), self.kind(last)}
    if node.args.get("step") is not None or len(kinds) != 1 or kinds & {None, "DATE", "TIMESTAMP", "STRING"}:
        return self.refuse("SEQUENCE of other than two whole numbers of one type")
    one, other = self.sql(first), self.sql(last)
    kind = {"BIGINT": "BIGINT", "INT": "INTEGER"}.get(kinds.pop() or "")
    if kind is None:
        return self.refuse("SEQUENCE of other than INT and BIGINT")
    step = f"CASE WHEN {one} <= {other} THEN 1 ELSE -1 END"
    return f"CAST(generate_series(CAST({one} AS BIGINT), CAST({other} AS BIGINT), {step}) AS {kind}[])"


def _position(self: SparkToDuckDB, node: exp.ArrayPosition) -> str:
    array, value = self.sql(node.this), self.sql(node.expression)
    there = f"{array} IS NOT NULL AND {value} IS NOT NULL"
    return f"CASE WHEN {there} THEN CAST(COALESCE(list_position({array}, {value}), 0) AS BIGINT) END"


def _without(self: SparkToDuckDB, node: exp.ArrayRemove) -> str:
    array, value = self.sql(node.this), self.sql(node.expression)
    return f"CASE WHEN {value} IS NOT NULL THEN list_filter({array}, lambda e: e IS DISTINCT FROM {value}) END"


def _intersected(self: SparkToDuckDB, node: exp.ArrayIntersect) -> str:
    one, other = node.expressions
    return intersect_of(self.sql(one), self.sql(other))


ARRAY_RULES: dict[type[exp.Expr], Rule] = {
    exp.ArrayAppend: _of("list_append({0}, {1})", "expression"),
    exp.ArrayCompact: _of("list_filter({0}, lambda e: e IS NOT NULL)"),
    exp.ArrayDistinct: lambda self, n: distinct(self.sql(n.this)),
    exp.ArrayExcept: lambda self, n: except_of(self.sql(n.this), self.sql(n.expression)),
    exp.ArrayIntersect: _intersected,
    exp.ArrayPosition: _position,
    exp.ArrayPrepend: _of("list_prepend({1}, {0})", "expression"),
    exp.ArrayRemove: _without,
    exp.ArraySlice: _slice,
    exp.Exists: lambda self, n: held(self, n.this, n.expression, every=False),
    exp.Flatten: _of("CASE WHEN len(list_filter({0}, lambda e: e IS NULL)) = 0 THEN flatten({0}) END"),
    exp.GenerateSeries: _sequence,
    exp.MapContainsKey: _of("list_contains(map_keys({0}), {1})", "key"),
    exp.Reduce: _reduced,
    exp.Transform: transformed,
}
