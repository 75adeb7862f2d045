"""Generator of DuckDB's SQL from trees in Spark's dialect; the rules of the other modules plug into it.

Law: a rule sees one kind of word as Spark's grammar read it, and writes what has the same answer in DuckDB, or refuses.
A type that the words tell (by CAST, or a declared column) decides between ways to say it; otherwise a macro leaves that
to DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.errors import UnsupportedError
from sqlglot.generators.duckdb import DuckDBGenerator

from eventide.plan.expressions.spark_types import SparkTypes


class SparkToDuckDB(DuckDBGenerator):
    """Writes a tree that was read in Spark's dialect."""

    types = SparkTypes({})

    def kind(self, node: exp.Expression | None) -> str | None:
        """The Spark type of a part, where the words tell it."""
        return self.types.of(node)

    def refuse(self, what: str) -> str:
        """Give up: this cannot be said with the same answer."""
        raise UnsupportedError(what)


Rule = Callable[[SparkToDuckDB, Any], str]
"""How one kind of word is written."""


def call(name: str, *arguments: str) -> str:
    """The text of a function call in DuckDB.

    >>> call("ln", "x")
    'ln(x)'
    """
    return f"{name}({', '.join(arguments)})"


def macro(name: str, *keys: str) -> Rule:
    """The arguments of a call, given to a macro of `macros`."""

    def rule(self: SparkToDuckDB, node: exp.Expression) -> str:
        given = [node.args.get(key) for key in keys or ("this",)]
        return call(f"spark_{name}", *(self.sql(argument) for argument in given if argument is not None))

    return rule


VARIANTS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), "bigint"),
    "DOUBLE": "double",
    "STRING": "varchar",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamptz",
    "TIMESTAMP_NTZ": "timestamp",
    "BINARY": "blob",
}


def by_type(name: str, kind: str | None, *arguments: str, fraction: str = "double") -> str:
    """A call of a macro that has variants by the type of its last argument; DuckDB picks one where it is not known."""
    variant = fraction if kind == "FLOAT" else VARIANTS.get(kind or "")
    return call(f"spark_{name}" if variant is None else f"spark_{name}_{variant}", *arguments)


def as_int(name: str) -> Rule:
    """A function of one argument that counts in INT in Spark, in BIGINT in DuckDB."""
    return lambda self, node: f"CAST({call(name, self.sql(node.this))} AS INTEGER)"
