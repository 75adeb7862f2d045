"""Amounts in a tree, turned into numbers of the stream they are about.

Law: a plain number is in the stream's own units: the numbers of a sequence, or seconds. A length of time does not
fit a sequence, and an amount that does not fit its clause is refused where it stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from eventide.language.grammar.nodes import Amount
from eventide.language.grammar.source_text import SourceText
from eventide.language.grammar.spelling import COUNTS, LENGTHS, QUOTAS, UNITS, nearest
from eventide.plan.declared.stream import TimeKind

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
