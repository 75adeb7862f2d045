"""What our grammar adds to Spark's trees, and how it is written again.

>>> Clause(this="SLACK", expressions=[Amount(this="10", unit="minutes")]).sql()
'SLACK 10 minutes'

*Amounts.* They become numbers of the stream that they are about. A plain number is in the stream's own units: the
numbers of a sequence, or seconds. A length of time does not fit a sequence, and an amount that does not fit its clause
is refused where it stands.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from eventide.language.grammar.spelling import COUNTS, LENGTHS, QUOTAS, UNITS, nearest
from eventide.plan.declared.stream import TimeKind

if TYPE_CHECKING:
    from eventide.language.grammar.source_text import SourceText


IN_WINDOWS = ("SLACK", "DRATIO", "ESTIMATOR")
"""Clauses of a window that say how the stream finds its heartbeats (disorder controllers, Kim et al., section 4)."""


IN_ORDER = "IN ORDER"
"""Behind a source: its rows are not reordered on the way."""


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
            return f"{self.this} ({', '.join(rest)})".strip()
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
    """`CREATE STREAM name (columns) clauses`, or `CREATE TABLE`."""

    arg_types = {"this": True, "columns": True, "clauses": False, "kind": False}  # noqa: RUF012

    @property
    def is_table(self) -> bool:
        """Whether it is `CREATE TABLE`."""
        return self.args.get("kind") == "TABLE"

    def words(self, write: Callable[[Any], str]) -> str:
        """The statement as text."""
        columns = ", ".join(write(column) for column in self.args["columns"])
        clauses = "".join(f" {write(clause)}" for clause in self.args.get("clauses") or ())
        return f"CREATE {self.args.get('kind') or 'STREAM'} {write(self.this)} ({columns}){clauses}"


class ComputedColumn(EventideNode):
    """`name AS expression` in CREATE STREAM, perhaps with a type before AS."""

    arg_types = {"this": True, "kind": False, "expression": True}  # noqa: RUF012

    def words(self, write: Callable[[Any], str]) -> str:
        """The declaration as text."""
        kind = f" {write(self.args['kind'])}" if self.args.get("kind") else ""
        return f"{write(self.this)}{kind} AS {write(self.expression)}"


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


class CreateBounds(EventideNode):
    """`CREATE BOUNDS (temp TRAILS pressure BY 5 s, ...) TIMEOUT 10 s`."""

    arg_types = {"expressions": True, "clauses": False}  # noqa: RUF012

    def words(self, write: Callable[[Any], str]) -> str:
        """The statement as text."""
        clauses = "".join(f" {write(clause)}" for clause in self.args.get("clauses") or ())
        return f"CREATE BOUNDS ({', '.join(write(one) for one in self.expressions)}){clauses}"


class CreateFunction(EventideNode):
    """`CREATE FUNCTION name FROM 'file.py' clauses`."""

    arg_types = {"this": True, "clauses": True}  # noqa: RUF012

    def words(self, write: Callable[[Any], str]) -> str:
        """The statement as text."""
        return " ".join((f"CREATE FUNCTION {write(self.this)}", *map(write, self.args["clauses"])))


class CreateAlert(EventideNode):
    """`CREATE ALERT name ON of WHEN condition FOR lasting`."""

    arg_types = {"this": True, "of": True, "expression": True, "lasting": False}  # noqa: RUF012

    def words(self, write: Callable[[Any], str]) -> str:
        """The statement as text."""
        lasting = self.args.get("lasting")
        until = "" if lasting is None else f" FOR {write(lasting)}"
        return f"CREATE ALERT {write(self.this)} ON {write(self.args['of'])} WHEN {write(self.expression)}{until}"


class Order(EventideNode):
    """`DROP QUERY q`, `SHOW STREAMS`, `EXPLAIN q`, `SET k = v`: a verb, perhaps a kind, and what it is about."""

    arg_types = {"this": True, "kind": False, "expression": False, "value": False}  # noqa: RUF012

    def words(self, write: Callable[[Any], str]) -> str:
        """The statement as text."""
        parts = [self.this, self.args.get("kind") or "", write(self.expression) if self.expression else ""]
        value = self.args.get("value")
        return " ".join(filter(None, parts)) + (f" = {value}" if value is not None else "")


LARGEST = 2**62


@dataclass(frozen=True)
class Amounts:
    """Reads amounts for a stream whose times are of one kind."""

    source: SourceText
    kind: TimeKind = TimeKind.TIMESTAMP

    def length(self, amount: Amount, what: str) -> int:
        """A length of the stream's time: microseconds, or numbers of the sequence."""
        number, unit = self._parts(amount)
        if unit is None:
            return self._fitting(number * (1 if self.kind is TimeKind.SEQUENCE else LENGTHS["s"]), amount, what)
        if unit not in LENGTHS:
            raise self.source.error(f"{what} cannot be {amount.sql()}: write a length such as 5 minutes", amount)
        if self.kind is TimeKind.SEQUENCE:
            raise self.source.error(
                f"{what} cannot be {amount.sql()}: the time of this stream is a sequence of numbers",
                amount,
                "write a plain number, without a unit",
            )
        return self._fitting(number * LENGTHS[unit], amount, what)

    def rows(self, amount: Amount, what: str) -> int:
        """Read a number of rows."""
        return self.count(amount, what, COUNTS)

    def count(self, amount: Amount, what: str, units: tuple[str, ...]) -> int:
        """A whole number of something, 0 or more."""
        number, unit = self._parts(amount)
        if unit is not None and unit not in units:
            raise self.source.error(f"{what} cannot be {amount.sql()}: write a number of {units[-1]}", amount)
        if number < 0:
            raise self.source.error(f"{what} cannot be {amount.sql()}: give 0 or more", amount)
        return self._fitting(number, amount, what)

    def share(self, amount: Amount, what: str) -> float:
        """A share: `5%` or `0.05`."""
        number, unit = self._parts(amount)
        if unit not in (None, "%"):
            raise self.source.error(f"{what} cannot be {amount.sql()}: write a share such as 1%", amount)
        share = float(number / 100 if unit == "%" else number)
        if not 0 < share < 1:
            way = f"write {number}%" if unit is None and number >= 1 else "give more than 0% and less than 100%"
            raise self.source.error(f"{what} {amount.sql()} is no share", amount, way)
        return share

    def point(self, amount: Amount, what: str) -> float:
        """A point of the slide: `75 %`, and `120 %` where it lies after the end of the window."""
        number, unit = self._parts(amount)
        if unit != "%":
            raise self.source.error(f"{what} cannot be {amount.sql()}: write a share of the slide such as 75 %", amount)
        return float(number / 100)

    def is_rows(self, amount: Amount) -> bool:
        """Whether a slack of that amount is one of rows: a plain number, or one of rows."""
        _, unit = self._parts(amount)
        return unit is None or unit in COUNTS

    def says_rows(self, amount: Amount) -> bool:
        """Whether the amount names rows itself."""
        return self._parts(amount)[1] in COUNTS

    def _parts(self, amount: Amount) -> tuple[Fraction, str | None]:
        unit = amount.args.get("unit")
        if unit is not None and unit != "%" and unit not in (*UNITS, *QUOTAS):
            close = nearest(unit, UNITS)
            raise self.source.error(
                f"{unit!r} is no unit",
                amount,
                f"did you mean {close!r}?" if close else "such as ms, s, min, hours, rows",
            )
        try:
            number = Fraction(amount.this)
        except (ValueError, ZeroDivisionError):
            raise self.source.error(f"{amount.this!r} is no number", amount) from None
        return number, unit

    def _fitting(self, number: Fraction, amount: Amount, what: str) -> int:
        if number.denominator != 1:
            raise self.source.error(f"{what} cannot be {amount.sql()}: it must be a whole number", amount)
        if abs(number) > LARGEST:
            raise self.source.error(f"{what} {amount.sql()} is too large", amount)
        return int(number)
