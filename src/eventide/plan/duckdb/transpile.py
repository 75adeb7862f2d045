"""Transpile Spark's SQL to DuckDB's, with the same answers, or refuse it.

Laws. What is said here has Spark's answer, or it is refused; functions that only a name connects are never passed on as
the same. `columns` tell types that the words do not: without them, decimals that are divided or averaged become DOUBLE.
*Implicit casts*: the casts that Spark makes without being asked are written out where DuckDB would make others or none;
the answer on Spark is the same with and without them. Where text meets a number it becomes BIGINT, or DOUBLE beside
fractions and decimals; where it meets a date, a time or a condition it becomes one. FLOAT beside any other number is
DOUBLE. A function of texts takes the text of whatever it is given. Parts whose type the words do not tell stay as they
are.

>>> to_duckdb("SELECT v div 2, unix_micros(ts), IF(a <=> b, 1, 0) FROM s")
'SELECT spark_div(v, 2), epoch_us(ts), CASE WHEN a IS NOT DISTINCT FROM b THEN 1 ELSE 0 END FROM s'
>>> to_duckdb("levenshtein(a, b)")
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: LEVENSHTEIN exists only on Spark: use the Spark engine

*Functions.* They go by the parser's names for them. What stands in `SAME` has been compared with Spark, value by value,
in the tests; what stands in `NEAR` gives an answer Spark could have given too (ties, order, approximations). Everything
else that Spark has is refused.

>>> import sqlglot
>>> types = SparkTypes({"f": "FLOAT", "s": "STRING", "n": "TINYINT", "d": "DOUBLE"})
>>> for sql in ("f > 0.1", "s = 5", "n + 1", "concat(s, d)", "d > 0.1"):
...     written_out(sqlglot.parse_one(sql, read=SPARK), types).sql(SPARK)
'CAST(f AS DOUBLE) > 0.1'
'CAST(s AS BIGINT) = 5'
'CAST(n AS INT) + 1'
'CONCAT(s, CAST(d AS STRING))'
'd > 0.1'
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError, UnsupportedError
from sqlglot.generators.duckdb import DuckDBGenerator

from eventide.errors import DeclarationError
from eventide.plan.duckdb.aggregates import AGGREGATE_RULES, ORDER_RULES
from eventide.plan.duckdb.arrays import ARRAY_RULES
from eventide.plan.duckdb.formats import FORMAT_RULES
from eventide.plan.duckdb.functions import NAME_RULES, TEXT_RULES, TIME_RULES
from eventide.plan.duckdb.generator import SparkToDuckDB
from eventide.plan.duckdb.numbers import NUMBER_RULES
from eventide.plan.duckdb.regex import PATTERN_RULES
from eventide.plan.duckdb.texts import PIECE_RULES
from eventide.plan.expressions.columns import Column
from eventide.plan.expressions.parse import TOO_DEEP, name_of
from eventide.plan.expressions.spark_dialect import SPARK
from eventide.plan.expressions.spark_types import DOUBLES, SparkTypes, common

OPERATORS = (
    exp.And, exp.Or, exp.Case, exp.If, exp.Cast, exp.TryCast, exp.Coalesce, exp.Nullif, exp.Nvl2, exp.EqualNull,
    exp.Greatest, exp.Least, exp.IsNan, exp.Nanvl, exp.Grouping, exp.GroupingId, exp.Extract, exp.Array, exp.Struct,
    exp.Negative, exp.Null, exp.VarMap, exp.Map,
)  # fmt: skip

NUMBERS = (
    exp.Abs, exp.Sign, exp.Floor, exp.Ceil, exp.Round, exp.Sqrt, exp.Cbrt, exp.Exp, exp.Ln, exp.Log, exp.Pow, exp.Sin,
    exp.Cos, exp.Tan, exp.Asin, exp.Acos, exp.Atan, exp.Atan2, exp.Sinh, exp.Cosh, exp.Tanh, exp.Degrees, exp.Radians,
    exp.Pi, exp.SafeAdd, exp.SafeSubtract, exp.SafeMultiply, exp.SafeDivide, exp.BitwiseCount, exp.Factorial, exp.Rint,
)  # fmt: skip

TIMES = (
    exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear, exp.WeekOfYear, exp.Hour,
    exp.Minute, exp.Second, exp.TimestampTrunc, exp.DateTrunc, exp.TsOrDsAdd, exp.DateDiff, exp.AddMonths, exp.LastDay,
    exp.StrToUnix, exp.UnixSeconds, exp.UnixMillis, exp.UnixMicros, exp.UnixDate, exp.TsOrDsToDate,
    exp.DateFromUnixDate, exp.StrToTime, exp.TimeToStr, exp.TimeStrToTime, exp.UnixToStr, exp.Dayname, exp.Monthname,
    exp.NextDay, exp.TimestampDiff,
)  # fmt: skip

TEXTS = (
    exp.Length, exp.Upper, exp.Lower, exp.Trim, exp.Substring, exp.Left, exp.Right, exp.Concat, exp.ConcatWs,
    exp.StrPosition, exp.Replace, exp.Pad, exp.Repeat, exp.Reverse, exp.RegexpLike, exp.RegexpReplace,
    exp.RegexpExtract, exp.RegexpSplit, exp.StartsWith, exp.EndsWith, exp.Contains, exp.MD5, exp.SHA2, exp.Hex,
    exp.Translate, exp.DPipe, exp.Like, exp.Ascii, exp.Chr, exp.Initcap, exp.RegexpCount, exp.RegexpExtractAll, exp.SHA,
    exp.Space, exp.SplitPart, exp.SubstringIndex,
)  # fmt: skip

LISTS = (
    exp.ArraySize, exp.ArrayContains, exp.ArraySort, exp.ArrayMin, exp.ArrayMax, exp.Transform, exp.ArrayFilter,
    exp.ArrayToString, exp.MapKeys, exp.ArrayAppend, exp.ArrayCompact, exp.ArrayDistinct, exp.ArrayExcept,
    exp.ArrayIntersect, exp.ArrayPosition, exp.ArrayPrepend, exp.ArrayRemove, exp.ArraySlice, exp.Exists, exp.Flatten,
    exp.GenerateSeries, exp.MapContainsKey, exp.Reduce,
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
        "any", "array_repeat", "array_union", "arrays_overlap", "bigint", "bin", "btrim", "cardinality", "e", "every",
        "forall", "get", "hll_sketch_agg", "hll_sketch_estimate",
        "hll_union", "hll_union_agg", "hypot", "isnotnull", "isnull", "kll_merge_agg_double", "kll_sketch_agg_double",
        "kll_sketch_get_quantile_double", "make_date", "map_values", "mean", "octet_length", "pmod", "positive",
        "smallint", "some", "std", "timestamp_micros", "timestamp_millis", "timestamp_seconds", "tinyint", "try_avg",
        "try_mod", "weekday", "zeroifnull", "nullifzero", "date_part", "datepart",
    ]
)  # fmt: skip
"""Functions that the parser knows only by name."""

OTHER_MEANING = frozenset(
    [
        "assert_true", "collations", "hash", "jaro_winkler_similarity", "json_array_length", "make_time",
        "map_concat", "map_entries", "now", "printf", "range", "time_bucket", "url_decode", "url_encode",
        "user", "version", "window",
    ]
)  # fmt: skip
"""Names that both engines have, for different things."""


class RuledGenerator(SparkToDuckDB):
    """The generator with all rules."""

    TRANSFORMS = {  # noqa: RUF012 - as sqlglot declares it
        **DuckDBGenerator.TRANSFORMS,
        **NUMBER_RULES,
        **TIME_RULES,
        **TEXT_RULES,
        **ARRAY_RULES,
        **FORMAT_RULES,
        **PIECE_RULES,
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
    except RecursionError as error:
        raise DeclarationError(f"this is nested too deeply: {TOO_DEEP}\n    {spark_sql[:200]}") from error
    assert isinstance(tree, exp.Expression)
    return tree


def _to_duckdb(tree: exp.Expression, columns: tuple[Column, ...]) -> str:
    generator = RuledGenerator(dialect="duckdb", unsupported_level=ErrorLevel.RAISE)
    generator.types = SparkTypes({column.name: column.type for column in columns})
    try:
        return str(generator.generate(written_out(tree, generator.types), copy=False))
    except RecursionError as error:
        raise DeclarationError(f"the local engine cannot say this, it is nested too deeply: {TOO_DEEP}") from error
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


COMPARED: dict[type[exp.Expr], tuple[str, ...]] = {
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE), ("this", "expression")),
    exp.NullSafeEQ: ("this", "expression"),
    exp.Between: ("this", "low", "high"),
    exp.In: ("this", "expressions"),
}
COMPUTED = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.SafeAdd, exp.SafeSubtract, exp.SafeMultiply,
    exp.SafeDivide,
)  # fmt: skip
CHOSEN: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Coalesce: ("this", "expressions"),
    exp.Greatest: ("this", "expressions"),
    exp.Least: ("this", "expressions"),
    exp.If: ("true", "false"),
    exp.Nvl2: ("true", "false"),
    exp.Array: ("expressions",),
    exp.Nanvl: ("this", "expression"),
}
OF_TEXTS: dict[type[exp.Expr], tuple[str, ...]] = {
    **dict.fromkeys((exp.Upper, exp.Lower, exp.Substring, exp.Left, exp.Right, exp.Repeat, exp.Reverse), ("this",)),
    **dict.fromkeys((exp.Trim, exp.StartsWith, exp.EndsWith, exp.Contains), ("this", "expression")),
    **dict.fromkeys((exp.RegexpLike, exp.RegexpReplace, exp.RegexpExtract, exp.RegexpSplit), ("this",)),
    **dict.fromkeys((exp.Concat, exp.ConcatWs), ("expressions",)),
    exp.Like: ("this",),
    exp.DPipe: ("this", "expression"),
    exp.Length: ("this",),
    exp.Pad: ("this", "fill_pattern"),
    exp.Replace: ("this", "expression", "replacement"),
    exp.StrPosition: ("this", "substr"),
    exp.Translate: ("this", "from_", "to"),
}
"""The arguments that are texts."""

NUMERIC = (*DOUBLES, exp.Neg, exp.Abs, exp.Round, exp.Floor, exp.Ceil)
INSTANTS = (exp.Hour, exp.Minute, exp.Second, exp.TimestampTrunc)
DAYS = (
    exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear, exp.WeekOfYear,
    exp.LastDay, exp.AddMonths, exp.TsOrDsAdd, exp.TsOrDsToDate, exp.DateTrunc, exp.UnixDate,
)  # fmt: skip
NO_TEXT = ("STRING", "BINARY", "VOID")
SMALL = ("TINYINT", "SMALLINT")


def written_out(tree: exp.Expression, types: SparkTypes) -> exp.Expression:
    """The tree itself, with casts put in."""
    whole = exp.Paren(this=tree)
    for node in reversed(list(tree.walk())):
        if isinstance(node, exp.Expression):
            _write_out(node, types)
    inside = whole.this
    inside.pop()
    assert isinstance(inside, exp.Expression)
    return inside


def _write_out(node: exp.Expression, types: SparkTypes) -> None:
    if type(node) in COMPARED:
        _meet(_parts(node, COMPARED[type(node)]), types, small=False)
    elif isinstance(node, COMPUTED):
        _compute(node, types)
    elif type(node) in CHOSEN:
        texts = not isinstance(node, exp.Greatest | exp.Least)
        _meet(_parts(node, CHOSEN[type(node)]), types, texts=texts)
    elif isinstance(node, exp.Case):
        _case(node, types)
    elif isinstance(node, exp.Nullif):
        _nullif(node, types)
    elif type(node) in OF_TEXTS:
        _as_texts(_parts(node, OF_TEXTS[type(node)]), types)
    elif isinstance(node, NUMERIC):
        _from_text(node, "DOUBLE", types)
    elif isinstance(node, INSTANTS):
        _from_text(node, "TIMESTAMP", types)
    elif isinstance(node, DAYS):
        # What is read by a pattern is a text.
        if node.args.get("format") is None:
            _from_text(node, "DATE", types)
    elif isinstance(node, exp.DateDiff):
        for part in (node.this, node.expression):
            if types.of(part) == "STRING":
                _cast(part, "DATE")


def _parts(node: exp.Expression, keys: Iterable[str]) -> list[exp.Expression]:
    found: list[exp.Expression] = []
    for key in keys:
        given = node.args.get(key)
        every = given if isinstance(given, list) else [given]
        found += [part for part in every if isinstance(part, exp.Expression)]
    return found


def _meet(parts: list[exp.Expression], types: SparkTypes, small: bool = True, texts: bool = True) -> None:
    """Values that stand beside each other get the type that holds them all."""
    kinds = [types.of(part) for part in parts]
    target = common(kinds)
    if target is None or ("STRING" in kinds and (target == "STRING" or not texts)):
        return
    text = "STRING" in kinds
    for part, kind in zip(parts, kinds, strict=True):
        if kind in ("VOID", target):
            continue
        if kind == "STRING" or kind == "FLOAT" or (text and target == "DOUBLE") or (small and kind in SMALL):
            _cast(part, target)


def _compute(node: exp.Expression, types: SparkTypes) -> None:
    parts = [node.this, node.expression]
    kinds = [types.of(part) for part in parts]
    if kinds == ["FLOAT", "FLOAT"]:
        if isinstance(node, exp.Div | exp.SafeDivide):
            _cast(node.this, "DOUBLE")
        return
    target = common(kinds)
    if target is None or target in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "BOOLEAN", "STRING"):
        return
    _meet(parts, types)


def _case(node: exp.Case, types: SparkTypes) -> None:
    branches = [branch for branch in node.args["ifs"] if isinstance(branch, exp.If)]
    values = [branch.args["true"] for branch in branches]
    default = node.args.get("default")
    _meet([*values, *([default] if default is not None else [])], types)
    if node.this is not None:
        _meet([node.this, *(branch.this for branch in branches)], types, small=False)


def _nullif(node: exp.Nullif, types: SparkTypes) -> None:
    """NULLIF gives its first argument as it was; only what is compared is cast."""
    kinds = [types.of(node.this), types.of(node.expression)]
    target = common(kinds)
    if target is None or target == "STRING" or not {"STRING", "FLOAT"} & set(kinds) or kinds[0] == kinds[1]:
        return
    same = exp.EQ(this=node.this.copy(), expression=node.expression.copy())
    _meet([same.this, same.expression], types, small=False)
    node.replace(exp.Case().when(same, exp.Null()).else_(node.this.copy()))


def _as_texts(parts: list[exp.Expression], types: SparkTypes) -> None:
    kinds = [types.of(part) for part in parts]
    for part, kind in zip(parts, kinds, strict=True):
        if kind is None:
            # Beside a text it can only be meant as one; alone it might be an array.
            if "STRING" in kinds and len(parts) > 1 and isinstance(part.parent, exp.Concat | exp.DPipe):
                _cast(part, "STRING")
        elif kind not in NO_TEXT and not kind.startswith(("ARRAY", "MAP", "STRUCT")):
            _cast(part, "STRING")


def _from_text(node: exp.Expression, target: str, types: SparkTypes) -> None:
    if isinstance(node.this, exp.Expression) and types.of(node.this) == "STRING":
        _cast(node.this, target)


def _cast(part: exp.Expression, target: str) -> None:
    part.replace(exp.cast(part.copy(), target, dialect=SPARK))
