"""Read expressions in Spark SQL: the columns they speak of, the aggregates inside, and the functions that are refused.

Laws. A text is read once, by Spark's grammar, and a text that cannot be read is shown back with the place marked. An
expression of a query gives one value for one row, from that row alone, or it is an aggregate: functions that look
across rows, or make several rows of one, would see the rows of one round or task, and are refused before anything runs.

>>> columns_in(parsed("max(price) - min(price) / Size", "query 'q'"))
('price', 'Size')
>>> [a.sql("spark") for a in aggregates_in(parsed("round(sum(x) FILTER (WHERE y > 1) / count(*), 2)", "q"))]
['SUM(x) FILTER(WHERE y > 1)', 'COUNT(*)']
>>> parsed("lag(speed)", "query 'q'")
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: query 'q': LAG compares a row with others: say which rows: OVER (PARTITION BY .. \
ORDER BY ..)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from eventide.errors import DeclarationError
from eventide.plan.expressions.columns import Column, named
from eventide.plan.expressions.spark_dialect import SPARK as SPARK

OTHER_AGGREGATES = frozenset(
    [
        "any", "any_value", "approx_top_k", "array_agg", "bit_and", "bit_or", "bit_xor", "bitmap_construct_agg",
        "bitmap_or_agg", "bool_and", "bool_or", "collect_list", "collect_set", "corr", "count_if", "count_min_sketch",
        "covar_pop", "covar_samp", "every", "first", "first_value", "grouping", "grouping_id", "histogram_numeric",
        "hll_sketch_agg", "hll_union_agg", "kll_merge_agg_bigint", "kll_merge_agg_double", "kll_merge_agg_float",
        "kll_sketch_agg_bigint", "kll_sketch_agg_double", "kll_sketch_agg_float", "kurtosis", "last", "last_value",
        "listagg", "max_by", "mean", "median", "min_by", "mode", "percentile", "percentile_approx", "percentile_cont",
        "percentile_disc", "regr_avgx", "regr_avgy", "regr_count", "regr_intercept", "regr_r2", "regr_slope",
        "regr_sxx", "regr_sxy", "regr_syy", "skewness", "some", "std", "string_agg", "theta_intersection_agg",
        "theta_sketch_agg", "theta_union_agg", "try_avg", "try_sum", "tuple_sketch_agg_double",
        "tuple_sketch_agg_integer", "tuple_union_agg_double", "tuple_union_agg_integer",
    ]
)  # fmt: skip
"""Names of Spark's aggregate functions that the parser may not know as such."""

TOO_DEEP = "compute parts of it in a query of their own, and read that one"
"""The way out of a text whose reading needs more calls inside each other than Python makes."""

WRAPPERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)
"""What may stand around the call of an aggregate and belongs to it."""


def parsed(sql: str, what: str) -> exp.Expression:
    """Read one expression; `what` names its owner in the error.

    >>> parsed("sum(speed", "query 'q'")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: query 'q': cannot read this SQL: expecting )
        sum(speed
            ^^^^^
    """
    try:
        return _one_expression(sql, what)
    except RecursionError as error:
        raise DeclarationError(f"{what}: this is nested too deeply: {TOO_DEEP}\n    {sql[:200]}") from error
    except ParseError as error:
        first = error.errors[0]
        raise DeclarationError(_shown(sql, what, first)) from error
    except TokenError as error:
        raise DeclarationError(
            f"{what}: cannot read this SQL, perhaps a quote or a comment is not closed\n    {sql}"
        ) from error


def _one_expression(sql: str, what: str) -> exp.Expression:
    statements = _statements(sql)
    select = statements[0] if len(statements) == 1 else None
    if not isinstance(select, exp.Select) or len(select.expressions) != 1 or _more_than_expression(select):
        raise DeclarationError(f"{what}: this must be one expression\n    {sql}")
    found = select.expressions[0]
    if isinstance(found, exp.Alias):
        raise DeclarationError(f"{what}: this must be one expression, without a name after it\n    {sql}")
    assert isinstance(found, exp.Expression)
    if (refused := refused_call(found)) is not None:
        _, wrong, instead = refused
        raise DeclarationError(f"{what}: {wrong}: {instead}")
    return found.copy()


@lru_cache(maxsize=8192)
def _statements(sql: str) -> list[exp.Expr | None]:
    """What was read, to be copied and not changed: every step from a text to a plan looks at the same expression."""
    return list(sqlglot.parse(f"SELECT {sql}", read=SPARK))


def columns_in(expression: exp.Expression) -> tuple[str, ...]:
    """The columns an expression speaks of, each once, in the order they appear; of `a.b` the column is `a`.

    >>> columns_in(parsed("transform(xs, x -> x + y) || s.field", "q"))
    ('xs', 'y', 's')
    """
    found: dict[str, str] = {}
    for column in expression.find_all(exp.Column, bfs=False):
        parts = column.parts
        if not isinstance(column.this, exp.Star) and parts[0].name.lower() not in lambda_names(column):
            found.setdefault(parts[0].name.lower(), parts[0].name)
    return tuple(found.values())


def check_columns(expression: exp.Expression, columns: Iterable[Column], owner: str) -> None:
    """Every column the expression speaks of must be there.

    >>> from eventide.plan.expressions.columns import columns
    >>> check_columns(parsed("avg(sped)", "q"), columns("ts TIMESTAMP, speed INT"), "stream 'traffic'")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: stream 'traffic' has no column 'sped': did you mean 'speed'? It has ts, speed
    """
    there = tuple(columns)
    for name in columns_in(expression):
        named(name, there, owner)


def aggregates_in(expression: exp.Expression, user: Collection[str] = ()) -> tuple[exp.Expression, ...]:
    """The calls of aggregates, outermost only, each with its FILTER, DISTINCT and IGNORE NULLS.

    `user` names functions of the user that aggregate; any other function that is not Spark's own aggregate is taken
    as one that works row by row. An aggregate with OVER belongs to a window of rows and is not counted.
    """
    names = {name.lower() for name in user}
    found: list[exp.Expression] = []
    _collect(expression, names, found)
    return tuple(found)


def call_of(aggregate: exp.Expression) -> exp.Expression:
    """The call itself, without what stands around it.

    >>> call_of(parsed("first(x) FILTER (WHERE y) IGNORE NULLS", "q")).sql("spark")
    'FIRST(x)'
    """
    while isinstance(aggregate, WRAPPERS):
        aggregate = aggregate.this
    return aggregate


def name_of(call: exp.Expr) -> str:
    """The function's name in Spark, in small letters.

    >>> [name_of(parsed(sql, "q")) for sql in ("STD(x)", "approx_percentile(x, 0.5)", "any(x)")]
    ['std', 'percentile_approx', 'any']
    """
    if isinstance(call, exp.Anonymous):
        return call.name.lower()
    if isinstance(call, exp.Binary | exp.Connector):
        # An operator's text starts with its first operand.
        return call.key
    outline = type(call)(**{key: _outlined(value) for key, value in call.args.items()})
    return outline.sql(SPARK).split("(", 1)[0].strip().lower()


def _outlined(value: object) -> object:
    """An argument, or a place for one: calls within calls are asked for their names one after the other."""
    if isinstance(value, list):
        return [_outlined(one) for one in value]
    if isinstance(value, exp.Array):
        # The keys and values of MAP(..) are arrays in the tree, and it is not written without them.
        return exp.Array(expressions=_outlined(value.expressions))
    if isinstance(value, exp.Func | exp.Binary | exp.Unary):
        return exp.column("x")
    return value.copy() if isinstance(value, exp.Expr) else value


def only_where(aggregate: str, condition: str) -> str:
    """The same aggregate over only the rows where the condition holds; for aggregates that skip NULL.

    >>> only_where("sum(x)", "v > 1"), only_where("count(*)", "ok"), only_where("hll_sketch_agg(x, 12)", "ok")
    ('SUM(IF(v > 1, x, NULL))', 'COUNT(IF(ok, 1, NULL))', 'HLL_SKETCH_AGG(IF(ok, x, NULL), 12)')
    >>> only_where("sum(DISTINCT x)", "v > 1")
    'SUM(DISTINCT IF(v > 1, x, NULL))'
    """
    call = parsed(aggregate, "a partial")
    test = parsed(condition, "a condition")
    return restricted(call, test).sql(SPARK)


def restricted(call: exp.Expression, test: exp.Expression) -> exp.Expression:
    """`only_where` for an expression that is already read."""
    call = call.copy()
    if isinstance(call, exp.Count) and isinstance(call.this, exp.Star):
        call.set("this", exp.Literal.number(1))
        return _guard_first(call, test)
    for argument in _arguments(call):
        if argument.find(exp.Column) is not None or not _is_option(call, argument):
            argument.replace(_when(test, argument.copy()))
    return call


def _guard_first(call: exp.Expression, test: exp.Expression) -> exp.Expression:
    call.set("this", _when(test, call.this.copy()))
    return call


def _when(test: exp.Expression, value: exp.Expression) -> exp.If:
    return exp.If(this=test.copy(), true=value, false=exp.Null())


def _arguments(call: exp.Expression) -> list[exp.Expression]:
    first = [] if isinstance(call, exp.Anonymous) else [call.this]
    rest = [value for key, value in call.args.items() if key != "this" and isinstance(value, exp.Expression)]
    every = [*first, *rest, *call.expressions]
    # DISTINCT stands before its values; the rows are chosen by these.
    return [one for given in every for one in (given.expressions if isinstance(given, exp.Distinct) else (given,))]


def _is_option(call: exp.Expression, argument: exp.Expression) -> bool:
    """Whether an argument without columns is a setting (`12` in `hll_sketch_agg(x, 12)`), not a value per row."""
    return _arguments(call).index(argument) > 0


def outside_aggregates(expression: exp.Expression) -> list[exp.Column]:
    """The columns that an expression over aggregates speaks of itself."""
    inside = {id(node) for call in aggregates_in(expression) for node in call.walk()}
    return [column for column in expression.find_all(exp.Column) if id(column) not in inside]


def _collect(node: exp.Expression, user: Collection[str], found: list[exp.Expression]) -> None:
    if isinstance(node, exp.Window):
        return
    if isinstance(node, (*WRAPPERS, exp.Func)) and _aggregates(call_of(node), user):
        found.append(node)
        return
    for child in node.iter_expressions():
        if isinstance(child, exp.Expression):
            _collect(child, user, found)


def _aggregates(call: exp.Expression, user: Collection[str]) -> bool:
    if isinstance(call.parent, exp.Like | exp.ILike):
        # `x LIKE ANY (...)` compares one row.
        return False
    if isinstance(call, exp.AggFunc):
        return True
    return isinstance(call, exp.Func) and (name_of(call) in OTHER_AGGREGATES or name_of(call) in user)


def lambda_names(column: exp.Column) -> set[str]:
    """The parameters of the lambdas around a column, in small letters: such a name is no column of a stream."""
    names: set[str] = set()
    around = column.find_ancestor(exp.Lambda)
    while around is not None:
        names.update(parameter.name.lower() for parameter in around.expressions)
        around = around.find_ancestor(exp.Lambda)
    return names


def _more_than_expression(select: exp.Select) -> bool:
    return any(value for key, value in select.args.items() if key != "expressions")


def _shown(sql: str, what: str, error: dict[str, object]) -> str:
    """The error with the text and a marker below the place."""
    description = str(error["description"])
    if "missing for" in description:
        description = "something is missing here"
    mark = str(error["highlight"] or "")
    before = str(error["start_context"] or "").removeprefix("SELECT ")
    line = before.rsplit("\n", 1)[-1]
    lines = sql.split("\n")
    number = before.count("\n") if len(before) < 90 else int(str(error["line"])) - 1
    shown = [f"    {text}" for text in lines]
    shown.insert(min(number, len(lines) - 1) + 1, "    " + " " * len(line) + "^" * max(1, len(mark.split("\n")[0])))
    return f"{what}: cannot read this SQL: {description[0].lower()}{description[1:]}\n" + "\n".join(shown)


WITH_OVER = "say which rows: OVER (PARTITION BY .. ORDER BY ..)"
IN_ARRAYS = "work within the row, with transform(..), filter(..) or aggregate(..), or let one row come for each element"

COMPARES = "compares a row with others"
MULTIPLIES = "makes several rows of one, and an expression gives one value"
PLACES = "tells where a row happens to lie, which changes when a round is run again"

REFUSED: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        (
            "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "nth_value", "lag", "lead",
        ),
        (COMPARES, WITH_OVER),
    ),
    **dict.fromkeys(
        (
            "explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack",
            "json_tuple", "variant_explode", "variant_explode_outer",
        ),
        (MULTIPLIES, IN_ARRAYS),
    ),
    **dict.fromkeys(
        ("monotonically_increasing_id", "spark_partition_id"), (PLACES, "take a column that names the row")
    ),
    **dict.fromkeys(
        ("window", "window_time", "session_window"),
        ("is a window, and no value", "the window of a query is in every result, as window_start and window_end"),
    ),
}  # fmt: skip
"""What is wrong with each of these functions of Spark, and what to write instead."""

WINDOWS = frozenset(("window", "window_time", "session_window"))
"""Functions that a query may have where it says its window."""


def refused_call(
    tree: exp.Expr, apart_from: frozenset[str] = frozenset(), over: bool = False
) -> tuple[exp.Expr, str, str] | None:
    """The first call of such a function, what is wrong with it, and the way out; None where there is none.

    `over`: functions may have an OVER.
    """

    def is_own(node: exp.Expr) -> bool:
        """Whether a query in FROM is one by itself, which may have windows."""
        return node is not tree and isinstance(node, exp.Select) and node.args.get("group") is not None

    for node in tree.walk(prune=is_own):
        if isinstance(node, exp.Window) and not over:
            return node, "OVER looks at other rows than its own", "let a SELECT of rows have it, or .over(..)"
        if not isinstance(node, exp.Func) or _has_over(node):
            continue
        names = [node.name] if isinstance(node, exp.Anonymous) else type(node).sql_names()
        for name in names:
            if name.lower() in REFUSED and name.lower() not in apart_from:
                what, instead = REFUSED[name.lower()]
                return node, f"{name.upper()} {what}", instead
    return None


def _has_over(call: exp.Expr) -> bool:
    around = call.parent
    while isinstance(around, WRAPPERS):
        around = around.parent
    return isinstance(around, exp.Window)
