"""Numbers in DuckDB as in Spark: casts, division, decimals, rounding.

Law: casts cut, division by zero is an error, decimals have Spark's precision and scale, rounding is half up on the
digits that are shown. What would lose digits in another way than Spark is refused.
"""

from __future__ import annotations

from sqlglot import exp

from eventide.plan.duckdb.generator import Rule, SparkToDuckDB, by_type, call, macro
from eventide.plan.expressions.aggregate_call import decimal_of
from eventide.plan.expressions.columns import spark_type
from eventide.plan.expressions.spark_dialect import SPARK
from eventide.plan.expressions.spark_types import DIGITS, decimal_result, unbounded

WHOLE_CASTS = {"TINYINT": "tinyint", "SMALLINT": "smallint", "INT": "int", "BIGINT": "bigint"}


def _cast(self: SparkToDuckDB, node: exp.Cast) -> str:
    """CAST with ANSI errors, TRY_CAST without."""
    to, value, source = node.args["to"], self.sql(node.this), self.kind(node.this)
    tried = isinstance(node, exp.TryCast) and bool(node.args.get("safe"))
    cast = "TRY_CAST" if tried else "CAST"
    wanted, kind = spark_type(to), self.sql(to)
    decimal = None if source is None else decimal_of(source)
    if isinstance(node.this, exp.Null):
        return f"CAST(NULL AS {kind})"
    if to.is_type(exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ):
        if tried:
            refused = self.refuse("TRY_CAST to TIMESTAMP") if source != "STRING" else ""
            return refused or f"TRY_CAST(spark_try_time_text({value}) AS TIMESTAMPTZ)"
        return by_type("timestamp", source, value)
    if source == "STRING" and (ready := _text_to_cast(to)) is not None:
        text = call(f"spark_{'try_' if tried else ''}{ready}_text", value)
        return f"{cast}({text} AS {kind if to.expressions or ready != 'decimal' else 'DECIMAL(10, 0)'})"
    if wanted in WHOLE_CASTS:
        if decimal is not None:
            return f"{cast}(trunc({value}) AS {kind})"
        known = source in DIGITS or source == "BOOLEAN"
        variant = by_type(f"{'try_' if tried else ''}{WHOLE_CASTS[wanted]}", source, value)
        if source is None and node.this.find(exp.AggFunc) is not None:
            # DuckDB picks a variant of a macro before it knows the types of aggregates.
            return f"{cast}(trunc({value}) AS {kind})"
        # A decimal that the words do not tell is cut as text: as a DOUBLE it could lose digits.
        cut = f"{cast}(split_part(CAST({value} AS TEXT), '.', 1) AS {kind})"
        return f"{cast}({value} AS {kind})" if known else _unless_decimal(value, source, variant, cut)
    if source == "TIMESTAMP" and (wanted in ("FLOAT", "DOUBLE") or decimal_of(wanted) is not None):
        seconds = f"epoch_us({value}) / 1e6"
        return f"CAST({seconds} AS {kind})" if decimal_of(wanted) is None else self.refuse("CAST of a time to DECIMAL")
    if wanted == "STRING" and decimal is None and source != "STRING":
        return call("spark_text", value) if source is None else by_type("string", source, value, fraction="float")
    if decimal_of(wanted) is not None:
        kind = kind if to.expressions else "DECIMAL(10, 0)"
        by_text = f"{cast}(CAST({value} AS TEXT) AS {kind})"
        if source is None:
            return f"CASE WHEN typeof({value}) IN ('DOUBLE', 'FLOAT') THEN {by_text} ELSE {cast}({value} AS {kind}) END"
        return by_text if source in ("FLOAT", "DOUBLE") else f"{cast}({value} AS {kind})"
    return f"{cast}({value} AS {kind})"


def _text_to_cast(to: exp.DataType) -> str | None:
    """The macro that makes a text ready for a cast."""
    if to.is_type(exp.DType.FLOAT, exp.DType.DOUBLE):
        return "fraction"
    if to.is_type(exp.DType.DECIMAL):
        return "decimal"
    return "date" if to.is_type(exp.DType.DATE) else "time" if to.is_type(exp.DType.TIMESTAMPNTZ) else None


def _unless_decimal(value: str, source: str | None, otherwise: str, decimal: str) -> str:
    """One way for decimals and one for all else, where the words do not tell which it is."""
    if source is not None:
        return otherwise
    return f"CASE WHEN typeof({value}) LIKE 'DECIMAL%' THEN {decimal} ELSE {otherwise} END"


def _divide(self: SparkToDuckDB, node: exp.Expression, tried: bool = False) -> str:
    a, b = self.sql(node.this), self.sql(node.expression)
    zero = "NULL" if tried else "spark_fail('DIVIDE_BY_ZERO: division by zero')"
    left, right = self.types.as_decimal(node.this), self.types.as_decimal(node.expression)
    is_decimal = any(decimal_of(self.kind(part) or "") for part in (node.this, node.expression))
    if not is_decimal or left is None or right is None:
        return f"CASE WHEN {b} = 0 THEN NULL ELSE {a} / {b} END" if tried else call("spark_divide", a, b)
    wanted = unbounded(exp.Div(), left, right)
    assert wanted is not None
    precision, scale = decimal_result(*wanted)
    if left[0] - left[1] + right[1] + scale > 38:
        return self.refuse(f"the division {node.sql(SPARK)}, whose digits do not fit DECIMAL(38),")
    a, b = f"CAST({a} AS DECIMAL({left[0]}, {left[1]}))", f"CAST({b} AS DECIMAL({right[0]}, {right[1]}))"
    shift = 10 ** (scale + right[1] - left[1])
    huge = f"spark_huge_half_up(__of.a * CAST({shift} AS HUGEINT), __of.b)"
    # A macro is a text: what it names several times is written, and bound, so often, for each level of divisions inside
    # each other. The parameter of a lambda is computed once.
    digits = f"list_transform([CAST({huge} AS TEXT)], lambda __digits: spark_scaled(__digits, {scale}))[1]"
    answer = f"CAST({digits} AS DECIMAL({precision}, {scale}))"
    cases = f"CASE WHEN __of.b = 0 AND __of.a IS NOT NULL THEN {zero} WHEN __of.b <> 0 THEN {answer} END"
    return f"list_transform([{{'a': spark_unscaled({a}), 'b': spark_unscaled({b})}}], lambda __of: {cases})[1]"


def _whole_divide(self: SparkToDuckDB, node: exp.IntDiv) -> str:
    a, b = self.sql(node.this), self.sql(node.expression)
    left, right = self.types.as_decimal(node.this), self.types.as_decimal(node.expression)
    if left is None or right is None or (left[1] == 0 and right[1] == 0 and max(left[0], right[0]) <= 20):
        known = all(self.kind(part) in DIGITS for part in (node.this, node.expression))
        return f"(CAST({a} AS BIGINT) // {b})" if known else call("spark_div", a, b)
    scale = max(left[1], right[1])
    if max(left[0] - left[1], right[0] - right[1]) + scale > 38:
        return self.refuse(f"the division {node.sql(SPARK)}, whose digits do not fit DECIMAL(38)")
    wide = f"DECIMAL(38, {scale})"
    return f"CAST(spark_unscaled(CAST({a} AS {wide})) // spark_unscaled(CAST({b} AS {wide})) AS BIGINT)"


def _arithmetic(operator: str) -> Rule:
    def rule(self: SparkToDuckDB, node: exp.Expression) -> str:
        a, b = self.sql(node.this), self.sql(node.expression)
        kind = self.kind(node)
        if self.kind(node.this) == self.kind(node.expression) == "DATE":
            return self.refuse("the difference of two dates, which is an INTERVAL (datediff gives a number),")
        left, right = self.types.as_decimal(node.this), self.types.as_decimal(node.expression)
        if kind is None or decimal_of(kind) is None or left is None or right is None:
            return _remainder(self, node, kind) if operator == "%" else f"{a} {operator} {b}"
        wanted = unbounded(node, left, right)
        if wanted is not None and wanted[0] > 38 and wanted[1] > 0:
            return self.refuse(f"{node.sql(SPARK)}, which loses digits beyond DECIMAL(38),")
        # DuckDB computes in the width of its operands, and overflows where Spark widens.
        scale = left[1] if operator == "*" else max(left[1], right[1])
        return f"CAST(CAST({a} AS DECIMAL(38, {scale})) {operator} {b} AS {kind})"

    return rule


def _remainder(self: SparkToDuckDB, node: exp.Expression, kind: str | None) -> str:
    """By -1 nothing is left; DuckDB fails there for the least number."""
    a, b = self.sql(node.this), self.sql(node.expression)
    if kind not in DIGITS:
        return call("spark_mod", a, b)
    other = isinstance(node.expression, exp.Literal)
    return f"{a} % {b}" if other else f"{a} % CASE WHEN {b} = -1 THEN 1 ELSE {b} END"


def _tried(operation: type[exp.Expression]) -> Rule:
    """The operation itself, with NULL where it fails."""

    def rule(self: SparkToDuckDB, node: exp.Expression) -> str:
        return f"TRY({self.sql(operation(this=node.this.copy(), expression=node.expression.copy()))})"

    return rule


def _rounded(self: SparkToDuckDB, node: exp.Round) -> str:
    """Half up on the digits that are shown; DuckDB rounds what lies behind them."""
    value, kind = self.sql(node.this), self.kind(node.this)
    digits = node.args.get("decimals")
    text = "0" if digits is None else self.sql(digits)
    if decimal_of(kind or "") is not None:
        return f"CAST({call('ROUND', value, text)} AS {self.kind(node)})"
    if kind in DIGITS:
        return call("ROUND", value, text)
    if not text.isdigit():
        return self.refuse(f"ROUND to {text} digits")
    if int(text) > 20:
        return value
    fraction = "FLOAT" if kind == "FLOAT" else "DOUBLE"
    short = f"CAST(CAST(CAST({value} AS TEXT) AS DECIMAL(38, {text})) AS {fraction})"
    return f"CASE WHEN {value} BETWEEN -9e15 AND 9e15 THEN {short} ELSE CAST({value} AS {fraction}) END"


def _floor(name: str) -> Rule:
    def rule(self: SparkToDuckDB, node: exp.Expression) -> str:
        if node.args.get("decimals") is not None:
            return self.refuse(f"{name.upper()} to a number of digits")
        if decimal_of(self.kind(node.this) or "") is not None:
            return f"CAST({call(name.upper(), self.sql(node.this))} AS {self.kind(node)})"
        return by_type(name, self.kind(node.this), self.sql(node.this))

    return rule


def _log(self: SparkToDuckDB, node: exp.Log) -> str:
    base, value = self.sql(node.this), self.sql(node.expression)
    return call("spark_log10", value) if base == "10" else call("spark_log", base, value)


NUMBER_RULES: dict[type[exp.Expr], Rule] = {
    exp.Acos: macro("acos"),
    exp.Add: _arithmetic("+"),
    exp.Asin: macro("asin"),
    exp.BitwiseCount: lambda self, n: f"CAST(bit_count(CAST({self.sql(n.this)} AS BIGINT)) AS INTEGER)",
    exp.BitwiseLeftShift: lambda self, n: self.refuse("a shift to the left"),
    exp.Cast: _cast,
    exp.Ceil: _floor("ceil"),
    exp.Div: _divide,
    exp.Factorial: lambda self, n: (
        f"CASE WHEN {self.sql(n.this)} BETWEEN 0 AND 20 "
        f"THEN CAST(factorial(CAST({self.sql(n.this)} AS INTEGER)) AS BIGINT) END"
    ),
    exp.Floor: _floor("floor"),
    exp.IntDiv: _whole_divide,
    exp.IsNan: macro("isnan"),
    exp.Rint: lambda self, n: f"round_even(CAST({self.sql(n.this)} AS DOUBLE), 0)",
    exp.Ln: macro("ln"),
    exp.Log: _log,
    exp.Mod: _arithmetic("%"),
    exp.Mul: _arithmetic("*"),
    exp.Nanvl: macro("nanvl", "this", "expression"),
    exp.Negative: lambda self, n: f"(-({self.sql(n.this)}))",
    exp.Round: _rounded,
    exp.SafeAdd: _tried(exp.Add),
    exp.SafeDivide: lambda self, n: _divide(self, n, tried=True),
    exp.SafeMultiply: _tried(exp.Mul),
    exp.SafeSubtract: _tried(exp.Sub),
    exp.Sign: macro("sign"),
    exp.Sqrt: macro("sqrt"),
    exp.Sub: _arithmetic("-"),
    exp.TryCast: _cast,
}
