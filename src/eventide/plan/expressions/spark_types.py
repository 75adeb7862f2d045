"""Infer the Spark type of an expression without Spark; None where its text alone does not determine it.

Law: never a wrong type. Decimals follow Spark's rules for precision and scale, also where these lose digits: DuckDB has
other rules, and the dialect must know where the two part.

>>> from eventide.plan.expressions.parse import parsed
>>> types = SparkTypes({"price": "DECIMAL(10, 2)", "n": "INT"})
>>> [types.of(parsed(sql, "q")) for sql in ("price * n", "price / n", "n / 2", "sum(n)", "avg(price)", "my_own(n)")]
['DECIMAL(21, 2)', 'DECIMAL(21, 13)', 'DOUBLE', 'BIGINT', 'DECIMAL(14, 6)', None]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from eventide.plan.expressions.aggregate_call import decimal_of
from eventide.plan.expressions.columns import spark_type
from eventide.plan.expressions.parse import SPARK

DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
RANKS = (*DIGITS, "FLOAT", "DOUBLE")
"""Numbers without decimals, each holding those before it."""

CONDITIONS = (exp.Predicate, exp.Not, exp.And, exp.Or, exp.Boolean, exp.LogicalAnd, exp.LogicalOr, exp.IsNan)
SAME = (
    exp.Paren, exp.Alias, exp.Filter, exp.Window, exp.IgnoreNulls, exp.RespectNulls, exp.Neg, exp.Abs, exp.Min, exp.Max,
    exp.First, exp.Last, exp.FirstValue, exp.LastValue, exp.ArgMin, exp.ArgMax, exp.AnyValue,
    exp.Mode, exp.ArrayAppend, exp.ArrayCompact, exp.ArrayDistinct, exp.ArrayPrepend, exp.ArrayRemove, exp.ArraySlice,
    exp.ArrayFilter, exp.ArraySort, exp.TimeStrToTime,
)  # fmt: skip
"""What has the type of its first argument."""

DOUBLES = (
    exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Pow, exp.Cbrt, exp.Sin, exp.Cos, exp.Tan, exp.Asin, exp.Acos, exp.Atan,
    exp.Atan2, exp.Degrees, exp.Radians, exp.Sign, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance,
    exp.VariancePop, exp.Corr, exp.CovarPop, exp.CovarSamp, exp.Median,
)  # fmt: skip
FIXED: dict[type[exp.Expression], str] = {
    **dict.fromkeys(DOUBLES, "DOUBLE"),
    **dict.fromkeys((exp.Count, exp.CountIf, exp.ApproxDistinct, exp.UnixMicros, exp.UnixMillis), "BIGINT"),
    **dict.fromkeys((exp.UnixSeconds, exp.RowNumber, exp.IntDiv), "BIGINT"),
    **dict.fromkeys((exp.Length, exp.StrPosition, exp.Year, exp.Month, exp.Day, exp.Hour, exp.Minute), "INT"),
    **dict.fromkeys((exp.Ascii, exp.RegexpCount), "INT"),
    **dict.fromkeys((exp.ArrayPosition, exp.Factorial, exp.TimestampDiff), "BIGINT"),
    **dict.fromkeys((exp.Chr, exp.Dayname, exp.Initcap, exp.Monthname, exp.SHA, exp.Space), "STRING"),
    **dict.fromkeys((exp.SplitPart, exp.SubstringIndex, exp.TimeToStr, exp.UnixToStr), "STRING"),
    **dict.fromkeys((exp.NextDay,), "DATE"),
    **dict.fromkeys((exp.Rint,), "DOUBLE"),
    **dict.fromkeys((exp.Exists,), "BOOLEAN"),
    **dict.fromkeys((exp.Second, exp.Quarter, exp.DayOfWeek, exp.DayOfYear, exp.DayOfMonth, exp.UnixDate), "INT"),
    **dict.fromkeys((exp.Upper, exp.Lower, exp.Trim, exp.Substring, exp.ConcatWs, exp.Replace, exp.Pad), "STRING"),
    **dict.fromkeys((exp.DateFromUnixDate, exp.DateTrunc, exp.TsOrDsToDate, exp.LastDay, exp.AddMonths), "DATE"),
    **dict.fromkeys((exp.TimestampTrunc, exp.StrToTime), "TIMESTAMP"),
}
NAMED = {
    **dict.fromkeys(("any", "every", "isnotnull", "isnull", "some"), "BOOLEAN"),
    **dict.fromkeys(("hll_sketch_agg", "hll_union", "hll_union_agg"), "BINARY"),
    **dict.fromkeys(("kll_sketch_agg_double", "kll_merge_agg_double"), "BINARY"),
    **dict.fromkeys(("timestamp_micros", "timestamp_millis", "timestamp_seconds"), "TIMESTAMP"),
    **dict.fromkeys(("octet_length", "weekday"), "INT"),
    "hll_sketch_estimate": "BIGINT",
    "kll_sketch_get_quantile_double": "DOUBLE",
    "std": "DOUBLE",
}
"""Functions that the parser knows only by name."""

TRIED: dict[type[exp.Expression], type[exp.Expression]] = {
    exp.SafeAdd: exp.Add,
    exp.SafeSubtract: exp.Sub,
    exp.SafeMultiply: exp.Mul,
    exp.SafeDivide: exp.Div,
}
"""Operations that give NULL where the others fail."""

BRANCHES = (exp.Coalesce, exp.Greatest, exp.Least, exp.If, exp.Case, exp.Nullif, exp.Nvl2)


def decimal_result(precision: int, scale: int) -> tuple[int, int]:
    """A decimal type that Spark can have: beyond 38 digits it gives up scale, but keeps 6 digits of it.

    >>> decimal_result(21, 2), decimal_result(40, 20), decimal_result(44, 10)
    ((21, 2), (38, 18), (38, 6))
    """
    if precision <= 38:
        return precision, scale
    return 38, max(38 - (precision - scale), min(scale, 6))


def decimal_type(precision: int, scale: int) -> str:
    """The name of a decimal type.

    >>> decimal_type(10, 2)
    'DECIMAL(10, 2)'
    """
    return f"DECIMAL({precision}, {scale})"


def unbounded(operator: exp.Expression, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int] | None:
    """Precision and scale of an operation on decimals as if there were no largest precision."""
    (p1, s1), (p2, s2) = left, right
    if isinstance(operator, exp.Add | exp.Sub):
        scale = max(s1, s2)
        return max(p1 - s1, p2 - s2) + scale + 1, scale
    if isinstance(operator, exp.Mul):
        return p1 + p2 + 1, s1 + s2
    if isinstance(operator, exp.Div):
        scale = max(6, s1 + p2 + 1)
        return p1 - s1 + s2 + scale, scale
    if isinstance(operator, exp.Mod):
        scale = max(s1, s2)
        return min(p1 - s1, p2 - s2) + scale, scale
    return None


class SparkTypes:
    """The types of expressions over columns whose types are known; names in any capital letters."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self.columns = {name.lower(): kind for name, kind in columns.items()}

    def of(self, node: exp.Expression | None) -> str | None:
        """The Spark type of an expression; None where its text does not tell it."""
        if node is None:
            return None
        if isinstance(node, exp.Cast):
            return _spelled(node.args["to"])
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Literal):
            return "STRING" if node.is_string else _number(node.name)
        if isinstance(node, CONDITIONS):
            return "BOOLEAN"
        if isinstance(node, exp.Null):
            return "VOID"
        if isinstance(node, SAME):
            return self.of(node.this)
        if isinstance(node, exp.Distinct):
            return self.of(node.expressions[0]) if len(node.expressions) == 1 else None
        if isinstance(node, exp.Anonymous):
            return self._named(node)
        if isinstance(node, exp.WithinGroup):
            return self._within_group(node)
        if isinstance(node, exp.Struct):
            return self._struct(node)
        if isinstance(node, exp.Dot):
            return _field(self.of(node.this) or "", node.name)
        if isinstance(node, exp.Concat | exp.DPipe):
            parts = [node.this, node.expression] if isinstance(node, exp.DPipe) else node.expressions
            kinds = [self.of(part) for part in parts]
            as_text = all(kind is not None and not kind.startswith(("ARRAY", "BINARY")) for kind in kinds)
            return "STRING" if as_text else None
        if isinstance(node, exp.Quantile | exp.ApproxQuantile):
            kind = "DOUBLE" if isinstance(node, exp.Quantile) else self.of(node.this)
            return f"ARRAY<{kind}>" if kind is not None and isinstance(node.args.get("quantile"), exp.Array) else kind
        if type(node) in FIXED:
            return FIXED[type(node)]
        if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod):
            return self._arithmetic(node)
        if type(node) in TRIED:
            return self._arithmetic(TRIED[type(node)](this=node.this.copy(), expression=node.expression.copy()))
        if isinstance(node, BRANCHES):
            return common(self.of(branch) for branch in _branches(node))
        if isinstance(node, exp.Sum | exp.Avg):
            return _summed(node, self.of(node.this))
        if isinstance(node, exp.Round | exp.Floor | exp.Ceil):
            return _rounded(node, self.of(node.this))
        return None

    def _named(self, node: exp.Anonymous) -> str | None:
        kind = NAMED.get(node.name.lower())
        many = node.name.lower().startswith("kll_sketch_get_quantile") and isinstance(node.expressions[-1], exp.Array)
        return f"ARRAY<{kind}>" if many else kind

    def _within_group(self, node: exp.WithinGroup) -> str | None:
        """Of a mode, the type of what it is ordered by; of other aggregates, their own."""
        if isinstance(node.this, exp.Mode):
            return self.of(node.expression.expressions[0].this)
        return self.of(node.this)

    def as_decimal(self, node: exp.Expression) -> tuple[int, int] | None:
        """Precision and scale of a decimal, or of a whole number that meets one."""
        return _decimal(node, self.of(node))

    def _column(self, column: exp.Column) -> str | None:
        if column.table and column.table.lower() in self.columns:
            return _field(self.columns[column.table.lower()], column.name)
        return self.columns.get(column.name.lower())

    def _struct(self, struct: exp.Struct) -> str | None:
        fields = []
        for part in struct.expressions:
            if not isinstance(part, exp.PropertyEQ | exp.Column):
                return None
            value = part.expression if isinstance(part, exp.PropertyEQ) else part
            kind = self.of(value)
            if kind is None:
                return None
            name = part.this.name if isinstance(part, exp.PropertyEQ) else part.name
            fields.append(f"{exp.to_identifier(name).sql(SPARK)}: {kind}")
        return f"STRUCT<{', '.join(fields)}>"

    def _arithmetic(self, node: exp.Expression) -> str | None:
        own = [self.of(node.this), self.of(node.expression)]
        kinds = own
        if "STRING" in kinds and kinds != ["STRING", "STRING"]:
            kinds = [common(kinds), common(kinds)]
        if any(kind is None or (kind not in RANKS and decimal_of(kind) is None) for kind in kinds):
            return None
        if any(kind in ("FLOAT", "DOUBLE") for kind in kinds):
            return "FLOAT" if kinds == ["FLOAT", "FLOAT"] and not isinstance(node, exp.Div) else "DOUBLE"
        if any(kind is not None and decimal_of(kind) for kind in kinds):
            # To ask for the types once more would double the work with each level of a nested expression.
            left, right = _decimal(node.this, own[0]), _decimal(node.expression, own[1])
            if left is None or right is None:
                return None
            wanted = unbounded(node, left, right)
            return None if wanted is None else decimal_type(*decimal_result(*wanted))
        return "DOUBLE" if isinstance(node, exp.Div) else common(kinds)


def _decimal(node: exp.Expression, kind: str | None) -> tuple[int, int] | None:
    """The digits of a part of that type beside a decimal; a whole number that is written out has those it shows."""
    bare = node.unnest()
    if isinstance(bare, exp.Literal) and not bare.is_string and bare.name.isdigit():
        return max(1, len(bare.name.lstrip("0"))), 0
    if kind is None:
        return None
    return (DIGITS[kind], 0) if kind in DIGITS else decimal_of(kind)


def common(kinds: Iterable[str | None]) -> str | None:
    """The type that holds values of all these types, where Spark would widen them.

    >>> common(["INT", "VOID", "DOUBLE"]), common(["INT", "DECIMAL(5, 2)"]), common(["INT", None])
    ('DOUBLE', 'DECIMAL(12, 2)', None)
    >>> common(["INT", "FLOAT"]), common(["STRING", "INT"]), common(["STRING", "FLOAT"]), common(["DATE", "STRING"])
    ('DOUBLE', 'BIGINT', 'DOUBLE', 'DATE')
    """
    found = [kind for kind in dict.fromkeys(kinds) if kind != "VOID"]
    if None in found:
        return None
    known = [kind for kind in found if kind is not None]
    if len(known) <= 1:
        return known[0] if known else "VOID"
    if "STRING" in known:
        return _with_text([kind for kind in known if kind != "STRING"])
    if all(kind in RANKS for kind in known):
        return "DOUBLE" if "FLOAT" in known else max(known, key=RANKS.index)
    if all(kind in RANKS or decimal_of(kind) for kind in known) and {"FLOAT", "DOUBLE"} & set(known):
        return "DOUBLE"
    decimals = [(DIGITS[kind], 0) if kind in DIGITS else decimal_of(kind) for kind in known]
    if any(decimal is None for decimal in decimals):
        return None
    pairs = [decimal for decimal in decimals if decimal is not None]
    scale = max(s for _, s in pairs)
    precision = max(p - s for p, s in pairs) + scale
    return decimal_type(precision, scale) if precision <= 38 else None


def _with_text(others: list[str]) -> str | None:
    """What text becomes beside other types."""
    if all(kind in DIGITS for kind in others):
        return "BIGINT"
    if all(kind in RANKS or decimal_of(kind) for kind in others):
        return "DOUBLE"
    return others[0] if len(others) == 1 and others[0] in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "BOOLEAN") else None


def _spelled(kind: exp.DataType) -> str:
    text = spark_type(kind)
    decimal = decimal_of(text)
    return text if decimal is None else decimal_type(*decimal)


def _number(text: str) -> str | None:
    """The type of a number as written.

    >>> _number("7"), _number("3000000000"), _number("0.05"), _number("1e3")
    ('INT', 'BIGINT', 'DECIMAL(2, 2)', 'DOUBLE')
    """
    if "e" in text.lower():
        return "DOUBLE"
    if "." in text:
        whole, fraction = text.split(".")
        return decimal_type(max(len(whole.lstrip("0")) + len(fraction), 1), len(fraction))
    value = int(text)
    if value < 2**63:
        return "INT" if value < 2**31 else "BIGINT"
    return decimal_type(len(text), 0)


def _branches(node: exp.Expression) -> list[exp.Expression | None]:
    """The branches of a CASE, IF or COALESCE that may become its value."""
    if isinstance(node, exp.If):
        return [node.args["true"], node.args.get("false") or exp.Null()]
    if isinstance(node, exp.Case):
        return [*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default") or exp.Null()]
    if isinstance(node, exp.Nvl2):
        return [node.args["true"], node.args.get("false")]
    if isinstance(node, exp.Nullif):
        return [node.this]
    return [node.this, *node.expressions]


def _summed(node: exp.Expression, kind: str | None) -> str | None:
    decimal = None if kind is None else decimal_of(kind)
    if decimal is not None:
        more = 10 if isinstance(node, exp.Sum) else 4
        scale = decimal[1] + (0 if isinstance(node, exp.Sum) else 4)
        return decimal_type(min(38, decimal[0] + more), min(38, scale))
    if kind not in RANKS:
        return None
    return "BIGINT" if isinstance(node, exp.Sum) and kind in DIGITS else "DOUBLE"


def _rounded(node: exp.Expression, kind: str | None) -> str | None:
    digits = node.args.get("decimals")
    decimal = None if kind is None else decimal_of(kind)
    if decimal is None or kind is None:
        floors = isinstance(node, exp.Floor | exp.Ceil) and digits is None
        return ("BIGINT" if floors else kind) if kind in RANKS else None
    if digits is not None and not (isinstance(digits, exp.Literal) and digits.name.isdigit()):
        return None
    precision, scale = decimal
    kept = min(scale, int(digits.name) if digits is not None else 0)
    return decimal_type(min(38, precision - scale + 1 + kept), kept)


def _field(kind: str, name: str) -> str | None:
    """The type of a struct's field."""
    if not kind.startswith("STRUCT<"):
        return None
    for field in exp.DataType.build(kind, dialect=SPARK).expressions:
        if field.name.lower() == name.lower():
            return _spelled(field.args["kind"])
    return None
