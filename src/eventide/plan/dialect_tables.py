"""Which of Spark's functions DuckDB can say, by the parser's names for them.

Law: what stands in `SAME` has been compared with Spark, value by value, in the tests; what stands in `NEAR` gives an
answer Spark could have given too (ties, order, approximations). Everything else that Spark has is refused.
"""

from __future__ import annotations

from sqlglot import exp

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
