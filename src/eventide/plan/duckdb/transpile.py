"""Transpile Spark's SQL to DuckDB's, with the same answers.

Law: what is said here has Spark's answer, or it is refused; functions that only a name connects are never passed on as
the same. `columns` tell types that the words do not: without them, decimals that are divided or averaged become DOUBLE.

>>> to_duckdb("SELECT v div 2, unix_micros(ts), IF(a <=> b, 1, 0) FROM s")
'SELECT spark_div(v, 2), epoch_us(ts), CASE WHEN a IS NOT DISTINCT FROM b THEN 1 ELSE 0 END FROM s'
>>> to_duckdb("date_format(ts, 'yyyy')")
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: DATE_FORMAT exists only on Spark: use the Spark engine

Which of Spark's functions DuckDB can say, by the parser's names for them.

Law: what stands in `SAME` has been compared with Spark, value by value, in the tests; what stands in `NEAR` gives an
answer Spark could have given too (ties, order, approximations). Everything else that Spark has is refused.
"""

from __future__ import annotations

from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError, UnsupportedError
from sqlglot.generators.duckdb import DuckDBGenerator

from eventide.errors import DeclarationError
from eventide.plan.duckdb.aggregates import AGGREGATE_RULES, ORDER_RULES
from eventide.plan.duckdb.functions import NAME_RULES, TEXT_RULES, TIME_RULES
from eventide.plan.duckdb.generator import SparkToDuckDB
from eventide.plan.duckdb.implicit_casts import written_out
from eventide.plan.duckdb.numbers import NUMBER_RULES
from eventide.plan.duckdb.regex import PATTERN_RULES
from eventide.plan.expressions.columns import Column
from eventide.plan.expressions.parse import SPARK, name_of
from eventide.plan.expressions.spark_types import SparkTypes

OPERATORS = (
    exp.And, exp.Or, exp.Case, exp.If, exp.Cast, exp.TryCast, exp.Coalesce, exp.Nullif, exp.Nvl2, exp.EqualNull,
    exp.Greatest, exp.Least, exp.IsNan, exp.Nanvl, exp.Grouping, exp.GroupingId, exp.Extract, exp.Array, exp.Struct,
    exp.Negative, exp.Null, exp.VarMap, exp.Map,
)  # fmt: skip

NUMBERS = (
    exp.Abs, exp.Sign, exp.Floor, exp.Ceil, exp.Round, exp.Sqrt, exp.Cbrt, exp.Exp, exp.Ln, exp.Log, exp.Pow, exp.Sin,
    exp.Cos, exp.Tan, exp.Asin, exp.Acos, exp.Atan, exp.Atan2, exp.Sinh, exp.Cosh, exp.Tanh, exp.Degrees, exp.Radians,
    exp.Pi, exp.SafeAdd, exp.SafeSubtract, exp.SafeMultiply, exp.SafeDivide, exp.BitwiseCount,
)  # fmt: skip

TIMES = (
    exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear, exp.WeekOfYear, exp.Hour,
    exp.Minute, exp.Second, exp.TimestampTrunc, exp.DateTrunc, exp.TsOrDsAdd, exp.DateDiff, exp.AddMonths, exp.LastDay,
    exp.StrToUnix, exp.UnixSeconds, exp.UnixMillis, exp.UnixMicros, exp.UnixDate, exp.TsOrDsToDate,
    exp.DateFromUnixDate,
)  # fmt: skip

TEXTS = (
    exp.Length, exp.Upper, exp.Lower, exp.Trim, exp.Substring, exp.Left, exp.Right, exp.Concat, exp.ConcatWs,
    exp.StrPosition, exp.Replace, exp.Pad, exp.Repeat, exp.Reverse, exp.RegexpLike, exp.RegexpReplace,
    exp.RegexpExtract, exp.RegexpSplit, exp.StartsWith, exp.EndsWith, exp.Contains, exp.MD5, exp.SHA2, exp.Hex,
    exp.Translate, exp.DPipe, exp.Like,
)  # fmt: skip

LISTS = (
    exp.ArraySize, exp.ArrayContains, exp.ArraySort, exp.ArrayMin, exp.ArrayMax, exp.Transform, exp.ArrayFilter,
    exp.ArrayToString, exp.MapKeys,
)  # fmt: skip

AGGREGATES = (
    exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance,
    exp.VariancePop, exp.LogicalAnd, exp.LogicalOr, exp.BitwiseAndAgg, exp.BitwiseOrAgg, exp.BitwiseXorAgg,
    exp.CovarPop, exp.CovarSamp, exp.Median, exp.Quantile, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Lag, exp.Lead,
)  # fmt: skip

SAME: frozenset[type[exp.Expr]] = frozenset((*OPERATORS, *NUMBERS, *TIMES, *TEXTS, *LISTS, *AGGREGATES))

NEAR: frozenset[type[exp.Expr]] = frozenset(
    (
        exp.ArgMax, exp.ArgMin, exp.Corr, exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.AnyValue, exp.Mode,
        exp.ArrayAgg, exp.ArrayUniqueAgg, exp.ApproxDistinct, exp.ApproxQuantile, exp.GroupConcat, exp.Ntile,
        exp.CumeDist, exp.PercentRank, exp.RegrSlope, exp.RegrIntercept, exp.RegrCount, exp.RegrR2,
    )
)  # fmt: skip

SAME_NAMES = frozenset(
    [
        "any", "bigint", "btrim", "cardinality", "e", "every", "get", "hll_sketch_agg", "hll_sketch_estimate",
        "hll_union", "hll_union_agg", "hypot", "isnotnull", "isnull", "kll_merge_agg_double", "kll_sketch_agg_double",
        "kll_sketch_get_quantile_double", "make_date", "map_values", "mean", "octet_length", "pmod", "positive",
        "smallint", "some", "std", "timestamp_micros", "timestamp_millis", "timestamp_seconds", "tinyint", "try_avg",
        "try_mod", "weekday", "zeroifnull", "nullifzero", "date_part", "datepart",
    ]
)  # fmt: skip
"""Functions that the parser knows only by name."""

OTHER_MEANING = frozenset(
    [
        "assert_true", "bin", "collations", "hash", "jaro_winkler_similarity", "json_array_length", "make_time",
        "map_concat", "map_entries", "now", "printf", "range", "time_bucket", "url_decode", "url_encode",
        "user", "version", "window",
    ]
)  # fmt: skip
"""Names that both engines have, for different things."""


SparkToDuckDB.TRANSFORMS = {
    **DuckDBGenerator.TRANSFORMS,
    **NUMBER_RULES,
    **TIME_RULES,
    **TEXT_RULES,
    **PATTERN_RULES,
    **ORDER_RULES,
    **AGGREGATE_RULES,
    **NAME_RULES,
}


@lru_cache(maxsize=4096)
def to_duckdb(spark_sql: str, columns: tuple[Column, ...] = ()) -> str:
    """A statement or an expression in Spark's dialect, in DuckDB's; refused where DuckDB has no such function."""
    tree = _read(spark_sql)
    for call in tree.find_all(exp.Func):
        if not _known(call):
            raise DeclarationError(f"{name_of(call).upper()} exists only on Spark: use the Spark engine")
    return _to_duckdb(tree.copy(), columns)


@lru_cache(maxsize=4096)
def same_answer(spark_sql: str, columns: tuple[Column, ...] = ()) -> bool:
    """Whether DuckDB is known to give Spark's very answer.

    >>> same_answer("round(a / b, 2)"), same_answer("mode(a)"), same_answer("my_own(a)")
    (True, False, False)
    """
    tree = _read(spark_sql)
    if any(type(call) in NEAR or not _exact(call) for call in tree.find_all(exp.Func)):
        return False
    try:
        _to_duckdb(tree.copy(), columns)
    except DeclarationError:
        return False
    return True


@lru_cache(maxsize=4096)
def tables_in(spark_sql: str) -> frozenset[str]:
    """The tables that a statement reads, in small letters.

    >>> sorted(tables_in("WITH w AS (SELECT * FROM A) SELECT * FROM w JOIN `b c` ON w.x = `b c`.x"))
    ['a', 'b c', 'w']
    """
    return frozenset(table.name.lower() for table in _read(spark_sql).find_all(exp.Table))


@lru_cache(maxsize=16)
def _read(spark_sql: str) -> exp.Expression:
    """The tree of a text, not to be changed: one text is asked for its tables first and for its meaning then."""
    try:
        tree = sqlglot.parse_one(spark_sql, read=SPARK)
    except SqlglotError as error:
        raise DeclarationError(f"cannot read this SQL\n    {spark_sql}") from error
    assert isinstance(tree, exp.Expression)
    return tree


def _to_duckdb(tree: exp.Expression, columns: tuple[Column, ...]) -> str:
    saying = SparkToDuckDB(dialect="duckdb", unsupported_level=ErrorLevel.RAISE)
    saying.types = SparkTypes({column.name: column.type for column in columns})
    try:
        return str(saying.generate(written_out(tree, saying.types), copy=False))
    except UnsupportedError as error:
        raise DeclarationError(f"{str(error).rstrip('.')} exists only on Spark: use the Spark engine") from error
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, SqlglotError) as error:
        # sqlglot writes trees that mean something; any parser lets others pass, too.
        raise DeclarationError(
            f"the local engine cannot say {tree.sql(SPARK)[:200]}: look at the arguments of its functions, or use the "
            "Spark engine"
        ) from error


def _exact(call: exp.Func) -> bool:
    return call.name.lower() in SAME_NAMES if isinstance(call, exp.Anonymous) else type(call) in SAME


def _known(call: exp.Func) -> bool:
    if isinstance(call, exp.Anonymous):
        # Any other name may be the user's own function; `missing_functions` tells whether DuckDB has it.
        return call.name.lower() not in OTHER_MEANING
    return type(call) in SAME or type(call) in NEAR
