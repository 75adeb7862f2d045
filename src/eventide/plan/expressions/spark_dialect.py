"""Spark 4's SQL dialect for sqlglot, and how many arguments its functions take.

*Grammar.* A small difference on sqlglot's Spark, so that reading and writing changes no meaning.

>>> import sqlglot
>>> sqlglot.parse_one("ANY(x) AND s = 'it''s'", read=SPARK).sql(SPARK)
"ANY(x) AND s = 'it\\\\'s'"
>>> sqlglot.parse_one("percentile_cont(0.5) WITHIN GROUP (ORDER BY x)", read=SPARK).sql(SPARK)
'PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)'
>>> sqlglot.parse_one("listagg(x)", read=SPARK).sql(SPARK)
"LISTAGG(x, '')"

*Arguments.* They are counted here where the parser does not count them itself. A call with too few or too many
arguments is refused where it is read. Nothing behind the parser counts again.

>>> from sqlglot import exp
>>> wrong_count(exp.func("isnull", exp.column("a"), exp.column("b")))
'isnull takes 1 argument, and here are 2'
>>> wrong_count(exp.func("isnull", exp.column("a"))), wrong_count(exp.func("my_own"))
(None, None)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import sqlglot.parser
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import UnsupportedError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser

from eventide.errors import EngineError

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
        is_number = isinstance(part, exp.DataTypeParam) and part.args.get("expression") is None
        if not is_number or not (isinstance(part.this, exp.Literal) and part.this.name.isdecimal()):
            return "the digits of a type are whole numbers: write DECIMAL(10, 2)"
        if len(part.this.name) > 9:
            return f"a type cannot have {part.this.name[:9]}.. digits: DECIMAL has at most 38"
    return None


Node = TypeVar("Node", bound=exp.Expr)


def _without(word: str, words: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in words.items() if key != word}


def _by(name: str) -> Callable[..., str]:
    """MAX_BY and MIN_BY with all their arguments."""
    return lambda self, e: str(self.func(name, e.this, e.expression, e.args.get("count")))


def _log(self: SparkGenerator, e: exp.Log) -> str:
    """LOG10 and LOG2 are rounded in other ways than LOG."""
    if e.expression is not None and e.this.name in ("10", "2"):
        return str(self.func(f"LOG{e.this.name}", e.expression))
    return str(self.func("LOG", e.this, e.expression))


def _parse_json(self: SparkGenerator, e: exp.ParseJSON) -> str:
    """Not dropped: it fails for what is no JSON."""
    return str(self.func("TRY_PARSE_JSON" if e.args.get("safe") else "PARSE_JSON", e.this))


def _within_group(self: SparkGenerator, e: exp.WithinGroup) -> str:
    return f"{self.sql(e, 'this')} WITHIN GROUP ({self.sql(e, 'expression').strip()})"


def _listed(self: SparkGenerator, e: exp.GroupConcat) -> str:
    """Without a separator nothing stands between the texts; sqlglot would write a comma."""
    whole = e.copy()
    if whole.args.get("separator") is None:
        whole.set("separator", exp.Literal.string(""))
    return str(SparkGenerator.TRANSFORMS[exp.GroupConcat](self, whole))


def _percentile(arguments: list[Any]) -> exp.Expr:
    """A percentile of values that stand for several rows each has a third argument, which sqlglot would drop."""
    if len(arguments) == 2:
        return exp.Quantile(this=arguments[0], quantile=arguments[1])
    return exp.Anonymous(this="percentile", expressions=arguments)


def refuse_compiled(file: str | None) -> None:
    """The compiled form of sqlglot cannot be extended, and says so only when it is used, in its own words.

    >>> refuse_compiled("site-packages/sqlglot/parser.cpython-311-x86_64-linux-gnu.so")
    Traceback (most recent call last):
        ...
    eventide.errors.EngineError: sqlglot is installed in its compiled form here, which no language can be built on: \
`pip uninstall sqlglotc` leaves the plain one, which Eventide needs
    """
    if file is not None and file.endswith((".so", ".pyd")):
        raise EngineError(
            "sqlglot is installed in its compiled form here, which no language can be built on: "
            "`pip uninstall sqlglotc` leaves the plain one, which Eventide needs"
        )


refuse_compiled(sqlglot.parser.__file__)


READ_BY_PATTERN = (exp.StrToTime, exp.StrToUnix, exp.TsOrDsToDate)
LETTERS = frozenset("GyDMLdQqEFahKkHmsSVzOXxZgv")
"""Letters that a pattern of times may have; the others mean nothing, or count weeks, which Spark does not."""

ONLY_WRITTEN = frozenset("EFqQ")


def wrong_pattern(expression: exp.Expr) -> str | None:
    """What is wrong with a constant pattern of times; Spark would say it of the first row.

    >>> wrong_pattern(exp.TimeToStr(this=exp.column("t"), format=exp.Literal.string("YYYY-MM")))
    "no pattern of times has a 'Y': write yyyy for the year"
    """
    if not isinstance(expression, (exp.TimeToStr, exp.UnixToStr, *READ_BY_PATTERN)):
        return None
    given = expression.args.get("format")
    if not isinstance(given, exp.Literal) or not given.is_string:
        return None
    letters = re.sub("'[^']*'", "", given.name)
    reads = isinstance(expression, READ_BY_PATTERN)
    wrong = next((one for one in letters if one.isascii() and one.isalpha() and _is_wrong(one, reads)), None)
    if wrong is None:
        return "a quote in a pattern of times has no end" if "'" in letters else None
    what = "no pattern that reads times" if wrong in ONLY_WRITTEN else "no pattern of times"
    return f"{what} has a {wrong!r}: {'write yyyy for the year' if wrong in 'Yu' else 'plain letters stand in quotes'}"


def _is_wrong(letter: str, reads: bool) -> bool:
    return letter not in LETTERS or (reads and letter in ONLY_WRITTEN)


class Spark4(Spark):
    """A quote that comes twice in a text stands for itself; ANY is a function like others; nothing is rewritten."""

    # Patterns of times stay as they are written; sqlglot would also change the letters of quoted texts in them.
    TIME_MAPPING: dict[str, str] = {}  # noqa: RUF012 - as sqlglot declares it
    TIME_FORMAT = "'yyyy-MM-dd HH:mm:ss'"
    DATE_FORMAT = "'yyyy-MM-dd'"

    class Tokenizer(Spark.Tokenizer):
        """Cuts a text into words."""

        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012 - as sqlglot declares it
        KEYWORDS = _without("ANY", Spark.Tokenizer.KEYWORDS)

    class Parser(SparkParser):
        """Makes a tree of words."""

        FUNCTIONS = {**SparkParser.FUNCTIONS, "PERCENTILE": _percentile}  # noqa: RUF012
        FUNCTION_PARSERS = _without("PERCENTILE", SparkParser.FUNCTION_PARSERS)
        NO_PAREN_FUNCTION_PARSERS = _without("ANY", SparkParser.NO_PAREN_FUNCTION_PARSERS)

        def validate_expression(self, expression: Node, args: list[Any] | None = None) -> Node:
            """Refuse what sqlglot would let pass, and nothing behind it could say."""
            wrong = wrong_count(expression, None if args is None else len(args)) or misplaced_lambda(expression)
            wrong = wrong or wrong_pattern(expression)
            if wrong is not None:
                self.raise_error(wrong)
            return super().validate_expression(expression, args)

        def expression(self, instance: Node, token: Any = None, comments: list[str] | None = None) -> Node:
            """A node of the tree; sqlglot does not look at the digits of numbers."""
            if isinstance(instance, exp.Literal) and not instance.is_string and len(instance.name) > MOST_DIGITS:
                digits = len(instance.name)
                self.raise_error(f"a number of {digits} digits: a DECIMAL has 38, write a DOUBLE as 1e99", token)
            return super().expression(instance, token, comments)

        def _parse_types(self, *given: Any, **options: Any) -> exp.Expr | None:
            here, after = self._curr, self._next
            if here and after and here.text.upper() == "STRUCT" and after.text == "(":
                # A call: no type of Spark's has parentheses there, and to try each in two ways doubles with the depth.
                return None
            found: exp.Expr | None = super()._parse_types(*given, **options)
            wrong = wrong_type(found) if isinstance(found, exp.DataType) else None
            if wrong is not None:
                self.raise_error(wrong)
            return found

    class Generator(SparkGenerator):
        """Makes words of a tree."""

        TRANSFORMS = {  # noqa: RUF012
            **SparkGenerator.TRANSFORMS,
            exp.ArgMax: _by("MAX_BY"),
            exp.ArgMin: _by("MIN_BY"),
            exp.GroupConcat: _listed,
            exp.Log: _log,
            exp.ParseJSON: _parse_json,
            exp.WithinGroup: _within_group,
        }

        def unsupported(self, message: str) -> None:
            """Refuse: what sqlglot cannot write in Spark's words it would leave out."""
            raise UnsupportedError(message)


SPARK = Spark4
"""The dialect in which all SQL of the project is read and written."""
