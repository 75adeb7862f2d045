"""Spark's grammar as version 4 has it: a small difference on sqlglot's, so that reading and writing changes no meaning.

>>> import sqlglot
>>> sqlglot.parse_one("ANY(x) AND s = 'it''s'", read=SPARK).sql(SPARK)
"ANY(x) AND s = 'it\\\\'s'"
>>> sqlglot.parse_one("percentile_cont(0.5) WITHIN GROUP (ORDER BY x)", read=SPARK).sql(SPARK)
'PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)'
>>> sqlglot.parse_one("listagg(x)", read=SPARK).sql(SPARK)
"LISTAGG(x, '')"
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import sqlglot.parser
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import UnsupportedError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser

from eventide.errors import EngineError
from eventide.plan.spark_arity import MOST_DIGITS, misplaced_lambda, wrong_count, wrong_type

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


class Spark4(Spark):
    """A quote that comes twice in a text stands for itself; ANY is a function like others; nothing is rewritten."""

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
