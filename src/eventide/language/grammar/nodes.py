"""What our grammar adds to Spark's trees, and how it is written again.

>>> Clause(this="SLACK", expressions=[Amount(this="10", unit="minutes")]).sql()
'SLACK 10 minutes'
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from sqlglot import exp


class EventideNode(exp.Expression, ABC):
    """A node of ours; it is written as its `words` say."""

    @abstractmethod
    def words(self, write: Callable[[Any], str]) -> str:
        """The node as text; `write` gives the text of its parts."""

    def sql(self, dialect: Any = None, copy: bool = True, **options: Any) -> str:
        """The node as text."""
        return self.words(lambda part: part if isinstance(part, str) else str(part.sql(dialect, copy, **options)))


class Amount(EventideNode):
    """A number with or without a unit: `60s`, `5 minutes`, `10 ROWS`, `5%`."""

    arg_types = {"this": True, "unit": False}  # noqa: RUF012 - as sqlglot declares it

    def words(self, write: Callable[[Any], str]) -> str:
        """The number and its unit."""
        unit = self.args.get("unit") or ""
        return f"{self.this}{unit}" if unit in ("", "%") else f"{self.this} {unit}"


class Secret(EventideNode):
    """`secret('env:NAME')` or `secret('file:PATH')`: where the value of an option is."""

    arg_types = {"this": True}  # noqa: RUF012

    def words(self, write: Callable[[Any], str]) -> str:
        """The place in parentheses."""
        return f"secret({write(self.this)})"


class Clause(EventideNode):
    """Words that open a clause, and what follows them."""

    arg_types = {"this": True, "expressions": False, "wrapped": False}  # noqa: RUF012

    def words(self, write: Callable[[Any], str]) -> str:
        """The words, then the rest; names with commas between them, or in parentheses."""
        rest = [write(part) for part in self.expressions]
        if self.args.get("wrapped"):
            return f"{self.this} ({', '.join(rest)})"
        kinds = {type(part) for part in self.expressions}
        listed = kinds in ({exp.Identifier}, {Amount}, {Clause})
        return " ".join((self.this, (", " if listed else " ").join(rest))).strip()


class StreamWindow(EventideNode):
    """`[RANGE .. SLIDE ..]` behind a stream."""

    arg_types = {"expressions": True}  # noqa: RUF012

    def words(self, write: Callable[[Any], str]) -> str:
        """The clauses in brackets."""
        return f"[{' '.join(write(clause) for clause in self.expressions)}]"


class CreateStream(EventideNode):
    """`CREATE STREAM name (columns) clauses`."""

    arg_types = {"this": True, "columns": True, "clauses": False}  # noqa: RUF012

    def words(self, write: Callable[[Any], str]) -> str:
        """The statement as text."""
        columns = ", ".join(write(column) for column in self.args["columns"])
        clauses = "".join(f" {write(clause)}" for clause in self.args.get("clauses") or ())
        return f"CREATE STREAM {write(self.this)} ({columns}){clauses}"


class CreateQuery(EventideNode):
    """A SELECT with or without a name, and where it goes."""

    arg_types = {"this": False, "expression": True, "into": False}  # noqa: RUF012

    def words(self, write: Callable[[Any], str]) -> str:
        """The statement as text."""
        head = f"CREATE QUERY {write(self.this)} AS " if self.this else ""
        return head + write(self.expression) + "".join(f" {write(clause)}" for clause in self.args.get("into") or ())


class CreateInterfaces(EventideNode):
    """`CREATE INTERFACE SET name AS a, b`."""

    arg_types = {"this": True, "expressions": True}  # noqa: RUF012

    def words(self, write: Callable[[Any], str]) -> str:
        """The statement as text."""
        return f"CREATE INTERFACE SET {write(self.this)} AS {', '.join(write(one) for one in self.expressions)}"


class CreateFunction(EventideNode):
    """`CREATE FUNCTION name FROM 'file.py' clauses`."""

    arg_types = {"this": True, "clauses": True}  # noqa: RUF012

    def words(self, write: Callable[[Any], str]) -> str:
        """The statement as text."""
        return " ".join((f"CREATE FUNCTION {write(self.this)}", *map(write, self.args["clauses"])))


class Order(EventideNode):
    """`DROP QUERY q`, `SHOW STREAMS`, `EXPLAIN q`, `SET k = v`: a verb, perhaps a kind, and what it is about."""

    arg_types = {"this": True, "kind": False, "expression": False, "value": False}  # noqa: RUF012

    def words(self, write: Callable[[Any], str]) -> str:
        """The statement as text."""
        parts = [self.this, self.args.get("kind") or "", write(self.expression) if self.expression else ""]
        value = self.args.get("value")
        return " ".join(filter(None, parts)) + (f" = {value}" if value is not None else "")
