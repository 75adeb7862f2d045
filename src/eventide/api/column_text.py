"""Turn PySpark Columns, and the literals in them, into SQL text.

*Columns.* The tree that Spark keeps of a Column is walked. `df.selectExpr(text)` gives what `df.select(column)` gives.
What a Column prints is no SQL (`+(a, 1)`, and names without quotes), so every node is written here; a node that cannot
be written (a Python function, OVER) is an error that says what to give instead. The same Column always gives the same
text: Spark numbers the variables of lambdas anew each time, so they get names of our own.

*Literals.* Read by Spark, the text has the same value and, but for the width of an interval, the same type.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from functools import cache
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from eventide.errors import DeclarationError
from eventide.plan.expressions.columns import literal
from eventide.plan.expressions.spark_dialect import SPARK


def literal_text(value: Any, shown: str) -> str | None:
    """SQL for a value as Py4J hands it over; `shown` is Spark's own text of it. None when there is no SQL for it.

    >>> literal_text(1.5, "1.5"), literal_text(2**40, "1099511627776L"), literal_text("it's", "'it\\\\'s'")
    ('1.5D', '1099511627776L', "'it\\\\'s'")
    >>> literal_text(None, "NULL"), literal_text(True, "true"), literal_text(b"ab", "[B@1")
    ('NULL', 'TRUE', "X'6162'")
    """
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    if isinstance(value, str):
        return literal(value)
    if isinstance(value, int):
        return f"{value}L" if shown.endswith("L") else str(value)
    if isinstance(value, float):
        return f"{value!r}D" if math.isfinite(value) else f"CAST('{shown}' AS DOUBLE)"
    if isinstance(value, Decimal):
        return f"CAST('{value:f}' AS DECIMAL({_digits(value)}))"
    if isinstance(value, bytes | bytearray):
        return f"X'{bytes(value).hex()}'"
    return _of_java(value)


def _digits(value: Decimal) -> str:
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    return f"{max(len(digits) + max(0, int(exponent)), scale)}, {scale}"


def _of_java(value: Any) -> str | None:
    name = value.getClass().getName()
    if name == "java.sql.Timestamp":
        return f"TIMESTAMP '{value.toInstant().toString()}'"
    if name == "java.time.Instant":
        return f"TIMESTAMP '{value.toString()}'"
    if name == "java.time.LocalDateTime":
        return f"TIMESTAMP_NTZ '{value.toString()}'"
    if name in ("java.sql.Date", "java.time.LocalDate"):
        return f"DATE '{value.toString()}'"
    if name == "java.time.Duration":
        seconds = Decimal(value.getSeconds()) + Decimal(value.getNano()).scaleb(-9)
        return f"INTERVAL '{seconds.normalize():f}' SECOND"
    return None


INFIX = {
    **{sign: sign for sign in ("+", "-", "*", "/", "%", ">", "<", ">=", "<=", "<=>", "&", "|", "^")},
    **{"=": "=", "==": "=", "and": "AND", "or": "OR", "like": "LIKE", "ilike": "ILIKE", "rlike": "RLIKE"},
}
PREFIX = {"not": "NOT ", "!": "NOT ", "negative": "-", "~": "~"}
SUFFIX = {"isnull": " IS NULL", "isnotnull": " IS NOT NULL"}
# Arguments that PySpark fills in although nobody gave them: the text is what one would have written.
FILLED_IN = {
    "first": ("FALSE", 2),
    "first_value": ("FALSE", 2),
    "last": ("FALSE", 2),
    "last_value": ("FALSE", 2),
    "any_value": ("FALSE", 2),
    "mode": ("FALSE", 2),
    "percentile": ("1", 3),
    "percentile_approx": ("10000", 3),
    "approx_percentile": ("10000", 3),
}
# Their numbers are settings, not values to compute with: a plain decimal is what one would have written.
SETTINGS = ("approx_count_distinct", "approx_percentile", "percentile", "percentile_approx")
WAY_OUT = "give SQL text instead"
PLAIN = re.compile(r"[A-Za-z_]\w*")


def column_text(column: Any) -> tuple[str | None, str]:
    """The name after AS, if there is one, and the expression; for a Column of classic PySpark."""
    java = getattr(column, "_jc", None)
    if java is None:
        raise DeclarationError(
            f"{column!r} is a Column of Spark Connect, whose expression cannot be read here: {WAY_OUT}"
        )
    return _Writer(java.node()).named()


def order_text(column: Any) -> str:
    """What to order by: the expression, and ASC or DESC where the Column says so (`F.desc("mean")`)."""
    root = getattr(column, "_jc", None) and column._jc.node()
    if root is None or _kind(root) != "SortOrder":
        return column_text(column)[1]
    direction = re.search(r"(?:ASC|DESC) NULLS (?:FIRST|LAST)$", str(root.sql()))
    return f"{_Writer(root.child()).named()[1]} {direction[0] if direction else ''}".rstrip()


def is_column(given: object) -> bool:
    """Whether this is a Column; PySpark is not imported to find out."""
    return any(base.__name__ == "Column" and base.__module__.startswith("pyspark.") for base in type(given).__mro__)


@cache
def quoted(name: str) -> str:
    """A column name as it has to be written in SQL.

    >>> quoted("speed"), quoted("my speed"), quoted("from"), quoted("current_date")
    ('speed', '`my speed`', '`from`', '`current_date`')
    """
    if PLAIN.fullmatch(name):
        with suppress(SqlglotError):
            if isinstance(sqlglot.parse_one(f"SELECT {name} + 1", read=SPARK).find(exp.Column), exp.Column):
                return name
    return exp.to_identifier(name, quoted=True).sql(SPARK)


class _Writer:
    """Writes one tree."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._columns = {name.lower() for name in _attribute_names(root)}
        self._variables: dict[str, str] = {}

    def named(self) -> tuple[str | None, str]:
        node, name = self._root, None
        if _kind(node) == "Alias":
            names = list(_each(node.name()))
            if len(names) != 1:
                raise self._refused(f"it gives several columns ({', '.join(names)})")
            node, name = node.child(), str(names[0])
        return name, self._text(node)

    def _text(self, node: Any) -> str:
        kind = _kind(node)
        write = getattr(self, f"_{kind.lower()}", None)
        if write is None:
            raise self._refused(f"a {kind} in it has no SQL text")
        return str(write(node))

    def _operand(self, node: Any) -> str:
        """Inside of an operator: in parentheses, unless it cannot be torn apart."""
        text = self._text(node)
        kind = _kind(node)
        name = node.functionName().lower() if kind == "UnresolvedFunction" else ""
        torn = kind == "SqlExpression" or name in (*INFIX, *PREFIX, *SUFFIX, "in")
        return f"({text})" if torn or text.startswith("-") else text

    def _unresolvedattribute(self, node: Any) -> str:
        return ".".join(quoted(str(part)) for part in _each(node.nameParts()))

    def _expressioncolumnnode(self, node: Any) -> str:
        """`df.speed` is bound to its DataFrame already; what is meant is the column of that name."""
        if _kind(node.expression()) != "AttributeReference":
            raise self._refused("an ExpressionColumnNode in it has no SQL text")
        return quoted(str(node.expression().name()))

    def _unresolvedstar(self, node: Any) -> str:
        return "*"

    def _literal(self, node: Any) -> str:
        text = literal_text(node.value(), str(node.sql()))
        if text is None:
            raise self._refused(f"the literal {node.sql()} in it has no SQL text")
        return text

    def _sqlexpression(self, node: Any) -> str:
        return str(node.expression())

    def _alias(self, node: Any) -> str:
        """A name inside of an expression means something in structs only."""
        return f"{self._text(node.child())} AS {quoted(str(next(_each(node.name()))))}"

    def _cast(self, node: Any) -> str:
        mode = node.evalMode()
        word = "TRY_CAST" if mode.isDefined() and "try" in str(mode.get()).lower() else "CAST"
        return f"{word}({self._text(node.child())} AS {node.dataType().sql()})"

    def _casewhenotherwise(self, node: Any) -> str:
        whens = [f"WHEN {self._text(pair._1())} THEN {self._text(pair._2())}" for pair in _each(node.branches())]
        other = node.otherwise()
        last = [f"ELSE {self._text(other.get())}"] if other.isDefined() else []
        return " ".join(["CASE", *whens, *last, "END"])

    def _unresolvedextractvalue(self, node: Any) -> str:
        return f"{self._operand(node.child())}[{self._text(node.extraction())}]"

    def _lambdafunction(self, node: Any) -> str:
        names = [self._unresolvednamedlambdavariable(argument) for argument in _each(node.arguments())]
        head = names[0] if len(names) == 1 else f"({', '.join(names)})"
        return f"{head} -> {self._text(node.function())}"

    def _unresolvednamedlambdavariable(self, node: Any) -> str:
        spark_name = str(node.name())
        if spark_name not in self._variables:
            number = len(self._variables) + 1
            while f"x{number}" in self._columns or f"x{number}" in self._variables.values():
                number += 1
            self._variables[spark_name] = f"x{number}"
        return self._variables[spark_name]

    def _unresolvedfunction(self, node: Any) -> str:
        name = str(node.functionName())
        low = name.lower()
        arguments = list(_each(node.arguments()))
        if node.isInternal():
            raise self._refused(f"{name} in it is a function without a name in SQL")
        if low == "window":
            raise self._refused("it makes windows", "write .window('5 minutes', '1 minute') on the stream instead")
        if low in INFIX and len(arguments) == 2:
            left, right = (self._operand(argument) for argument in arguments)
            return f"{left} {INFIX[low]} {right}"
        if low in PREFIX and len(arguments) == 1:
            return f"{PREFIX[low]}{self._operand(arguments[0])}"
        if low in SUFFIX and len(arguments) == 1:
            return f"{self._operand(arguments[0])}{SUFFIX[low]}"
        if low == "in" and len(arguments) > 1:
            return f"{self._operand(arguments[0])} IN ({', '.join(self._text(each) for each in arguments[1:])})"
        return self._call(name, arguments, bool(node.isDistinct()))

    def _call(self, name: str, arguments: list[Any], distinct: bool) -> str:
        low = name.lower()
        texts = [self._text(argument) for argument in arguments]
        filled, place = FILLED_IN.get(low, ("", 0))
        if len(texts) == place and texts[-1] == filled:
            texts.pop()
        if low in SETTINGS:
            texts = [text[:-1] if re.fullmatch(r"\d+\.\d+D", text) else text for text in texts]
        word = name if PLAIN.fullmatch(name) else quoted(name)
        return f"{word}({'DISTINCT ' if distinct else ''}{', '.join(texts)})"

    def _refused(self, why: str, way_out: str = WAY_OUT) -> DeclarationError:
        spelled = re.sub(r"columnnodeexpression\(.*", "...", str(self._root.sql()), flags=re.DOTALL)
        if "a Window in it" in why:
            why, way_out = "OVER looks at other rows", "aggregate over .window(...) or .rows(...) instead"
        if "InlineUserDefinedFunction" in why or "ExpressionColumnNode" in why:
            why = "a Python function in it has no SQL text"
            way_out = "register it with spark.udf.register and give SQL text that calls it by its name"
        return DeclarationError(f"the Column {spelled} cannot be written as SQL: {why}: {way_out}")


def _each(sequence: Any) -> Iterator[Any]:
    """The members of a Scala sequence."""
    for place in range(sequence.size()):
        yield sequence.apply(place)


def _kind(node: Any) -> str:
    """The name of a node's class; what is no node of an expression (how to sort, how to cast) has none."""
    name = str(node.getClass().getSimpleName())
    return name if not name.endswith("$") else ""


def _attribute_names(node: Any) -> Iterator[str]:
    """The columns that a tree speaks of; SQL text inside of it counts word by word."""
    kind = _kind(node)
    if kind == "UnresolvedAttribute":
        yield from (str(part) for part in _each(node.nameParts()))
    elif kind == "ExpressionColumnNode":
        yield from (str(node.expression().name()),) if _kind(node.expression()) == "AttributeReference" else ()
    elif kind == "SqlExpression":
        yield from re.findall(r"\w+", str(node.expression()))
    elif kind:
        for child in _each(node.children()):
            yield from _attribute_names(child)
