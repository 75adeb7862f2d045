"""How many arguments Spark's functions take, where the parser does not count them itself.

Law: a call with too few or too many arguments is refused where it is read. Nothing behind the parser counts again.

>>> from sqlglot import exp
>>> wrong_count(exp.func("isnull", exp.column("a"), exp.column("b")))
'isnull takes 1 argument, and here are 2'
>>> wrong_count(exp.func("isnull", exp.column("a"))), wrong_count(exp.func("my_own"))
(None, None)
"""

from __future__ import annotations

from sqlglot import exp

MOST_DIGITS = 400
"""Digits of a number as it is written; a DOUBLE has at most 309 before the point."""

ONE = (1, 1)
TWO = (2, 2)

BY_NAME: dict[str, tuple[int, int]] = {
    **dict.fromkeys(
        (
            "bigint", "cardinality", "every", "hll_sketch_estimate", "isnotnull", "isnull", "mean", "nullifzero",
            "octet_length", "positive", "smallint", "std", "timestamp_micros", "timestamp_millis",
            "timestamp_seconds", "tinyint", "try_avg", "try_sum", "weekday", "zeroifnull", "map_values", "kurtosis",
            "skewness", "bitmap_construct_agg", "bitmap_or_agg",
        ),
        ONE,
    ),
    **dict.fromkeys(
        (
            "date_part", "datepart", "get", "hypot", "pmod", "try_mod", "covar_pop", "covar_samp", "regr_avgx",
            "regr_avgy", "regr_sxx", "regr_sxy", "regr_syy", "histogram_numeric",
        ),
        TWO,
    ),
    "btrim": (1, 2),
    "e": (0, 0),
    "hll_sketch_agg": (1, 2),
    "hll_union": (2, 3),
    "hll_union_agg": (1, 2),
    "kll_merge_agg_double": (1, 2),
    "kll_sketch_agg_double": (1, 2),
    "kll_sketch_get_quantile_double": TWO,
    "make_date": (3, 3),
    "percentile": (2, 3),
}  # fmt: skip
"""The least and the most, of functions that the parser knows by name alone."""

OF_LAMBDAS = ("array", "map", "transform", "reduce", "aggregate", "filter", "exists", "zip", "list", "any", "all")
"""How the names of functions begin that may take a lambda; `array` itself does not."""

KINDS_BY_COUNT: dict[tuple[int, int], tuple[type[exp.Expr], ...]] = {
    (0, 0): (exp.Pi,),
    ONE: (
        exp.Abs, exp.Acos, exp.ArrayAgg, exp.ArrayMax, exp.ArrayMin, exp.ArraySize, exp.ArrayUniqueAgg, exp.Asin,
        exp.Atan, exp.Avg, exp.BitwiseAndAgg, exp.BitwiseCount, exp.BitwiseOrAgg, exp.BitwiseXorAgg, exp.Cbrt, exp.Cos,
        exp.Cosh, exp.CountIf, exp.DateFromUnixDate, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear, exp.Degrees,
        exp.Exp, exp.Hex, exp.Hour, exp.IsNan, exp.LastDay, exp.Length, exp.Ln, exp.LogicalAnd, exp.LogicalOr,
        exp.Lower, exp.MD5, exp.MapKeys, exp.Median, exp.Minute, exp.Month, exp.Negative, exp.Quarter, exp.Radians,
        exp.Reverse, exp.Second, exp.Sign, exp.Sin, exp.Sinh, exp.Sqrt, exp.Stddev, exp.StddevPop, exp.StddevSamp,
        exp.Sum, exp.Tan, exp.Tanh, exp.UnixDate, exp.UnixMicros, exp.UnixMillis, exp.UnixSeconds, exp.Upper,
        exp.Variance, exp.VariancePop, exp.WeekOfYear, exp.Year,
    ),
    (1, 2): (
        exp.AnyValue, exp.ApproxDistinct, exp.ArraySort, exp.Ceil, exp.First, exp.FirstValue, exp.Floor,
        exp.GroupConcat, exp.Last, exp.LastValue, exp.Log, exp.Round, exp.TsOrDsToDate,
    ),
    TWO: (
        exp.AddMonths, exp.ArrayContains, exp.ArrayFilter, exp.Atan2, exp.Contains, exp.Corr, exp.CovarPop,
        exp.CovarSamp, exp.DateTrunc, exp.EndsWith, exp.EqualNull, exp.Left, exp.Nanvl, exp.Nullif, exp.Pow,
        exp.RegexpLike, exp.RegrCount, exp.RegrIntercept, exp.RegrR2, exp.RegrSlope, exp.Repeat, exp.Right, exp.SHA2,
        exp.SafeAdd, exp.SafeDivide, exp.SafeMultiply, exp.SafeSubtract, exp.StartsWith, exp.TimestampTrunc,
        exp.Transform,
    ),
    (2, 3): (
        exp.ApproxQuantile, exp.ArgMax, exp.ArgMin, exp.ArrayToString, exp.DateDiff, exp.Pad, exp.RegexpExtract,
        exp.RegexpSplit, exp.Replace, exp.StrPosition, exp.Substring, exp.TsOrDsAdd,
    ),
    (3, 3): (exp.Nvl2, exp.Translate),
    (3, 4): (exp.RegexpReplace,),
}  # fmt: skip
BY_KIND = {kind: count for count, kinds in KINDS_BY_COUNT.items() for kind in kinds}
"""The same, of functions that the parser knows by more than their names."""


def wrong_count(call: exp.Expr, given: int | None = None) -> str | None:
    """What is wrong with the number of a call's arguments; None where nothing is, or nobody knows.

    `given` counts what was written, where the tree may have left something out.
    """
    if isinstance(call, exp.WithinGroup) and isinstance(call.this, exp.Mode) and call.this.this is not None:
        return "mode() takes no argument where WITHIN GROUP tells its values"
    if isinstance(call, exp.Anonymous):
        name, limits, given = call.name, BY_NAME.get(call.name.lower()), len(call.expressions)
    else:
        name, limits = call.sql_name() if isinstance(call, exp.Func) else call.key, BY_KIND.get(type(call))
    if limits is None or given is None or limits[0] <= given <= limits[1]:
        return None
    least, most = limits
    takes = str(least) if least == most else f"{least} or {most}" if most == least + 1 else f"{least} to {most}"
    are = f"here {'is' if given == 1 else 'are'} {given or 'none'}"
    return f"{name.lower()} takes {takes} argument{'' if most == 1 else 's'}, and {are}"


def misplaced_lambda(call: exp.Expr) -> str | None:
    """What is wrong with a call that is given a lambda and takes none; None where nothing is.

    >>> misplaced_lambda(exp.func("abs", exp.Lambda(this=exp.column("x"), expressions=[exp.column("x")])))
    'abs takes no lambda (x -> ..): those of arrays and maps do, such as transform(xs, x -> x + 1)'
    """
    if not isinstance(call, exp.Func) or isinstance(call, exp.Anonymous):
        return None
    if call.key.startswith(OF_LAMBDAS) and not isinstance(call, exp.Array | exp.AggFunc):
        return None
    if not any(isinstance(part, exp.Lambda) for part in call.iter_expressions()):
        return None
    name = call.sql_name().lower()
    return f"{name} takes no lambda (x -> ..): those of arrays and maps do, such as transform(xs, x -> x + 1)"


def wrong_type(kind: exp.DataType) -> str | None:
    """What is wrong with the numbers behind a type; None where nothing is.

    >>> wrong_type(exp.DataType.build("DECIMAL(38, 10)"))
    """
    if kind.this not in (exp.DType.DECIMAL, exp.DType.VARCHAR, exp.DType.CHAR):
        return None
    for part in kind.expressions:
        plain = isinstance(part, exp.DataTypeParam) and part.args.get("expression") is None
        if not plain or not (isinstance(part.this, exp.Literal) and part.this.name.isdecimal()):
            return "the digits of a type are whole numbers: write DECIMAL(10, 2)"
        if len(part.this.name) > 9:
            return f"a type cannot have {part.this.name[:9]}.. digits: DECIMAL has at most 38"
    return None
