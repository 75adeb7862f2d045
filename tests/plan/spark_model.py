"""A few expressions of Spark SQL, and what Spark 4 makes of them for one row: a value, NULL, or an error.

Written from Spark's rules alone: which side is computed first, what is skipped, what does not fit. It is slow, and it
knows nothing of how the engine finds broken rows.
"""

from __future__ import annotations

import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from hypothesis import strategies as st

Row = Mapping[str, object]

COLUMNS = "a INT, b INT, s STRING, xs ARRAY<INT>"
WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")
OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
COMPARISONS = {"<": operator.lt, "=": operator.eq, ">=": operator.ge, "<>": operator.ne}


class FailsError(Exception):
    """Spark raises an error for this row."""


def fitting(value: int) -> int:
    """An INT, or an error."""
    if not -(2**31) <= value < 2**31:
        raise FailsError
    return value


@dataclass(frozen=True)
class Word(ABC):
    """A piece of SQL: its text, and its value for a row."""

    @abstractmethod
    def sql(self) -> str: ...

    @abstractmethod
    def of(self, row: Row) -> object: ...


@dataclass(frozen=True)
class Column(Word):
    name: str

    def sql(self) -> str:
        return self.name

    def of(self, row: Row) -> object:
        return row[self.name]


@dataclass(frozen=True)
class CastText(Word):
    name: str

    def sql(self) -> str:
        return f"CAST({self.name} AS INT)"

    def of(self, row: Row) -> object:
        text = row[self.name]
        if text is None:
            return None
        if not isinstance(text, str) or WHOLE.fullmatch(text) is None:
            raise FailsError
        return fitting(int(text))


@dataclass(frozen=True)
class Binary(Word):
    """Two numbers and a sign between them: the left side first; NULL there, and the right side is not looked at."""

    left: Word
    sign: str
    right: Word

    def sql(self) -> str:
        return f"({self.left.sql()} {self.sign} {self.right.sql()})"

    def of(self, row: Row) -> object:
        left = self.left.of(row)
        if left is None:
            return None
        right = self.right.of(row)
        if right is None:
            return None
        assert isinstance(left, int)
        assert isinstance(right, int)
        return self.made_of(left, right)

    @abstractmethod
    def made_of(self, left: int, right: int) -> object: ...


class Operation(Binary):
    """Addition and its like."""

    def made_of(self, left: int, right: int) -> object:
        return fitting(OPERATORS[self.sign](left, right))


class Comparison(Binary):
    def made_of(self, left: int, right: int) -> object:
        return bool(COMPARISONS[self.sign](left, right))


@dataclass(frozen=True)
class Division(Word):
    """DIV or %: the right side first; NULL there, and the left side is not looked at; NULL by zero is NULL."""

    left: Word
    sign: str
    right: Word

    def sql(self) -> str:
        text = f"{self.left.sql()} {self.sign} {self.right.sql()}"
        return f"({text})" if self.sign == "%" else f"CAST({text} AS INT)"

    def of(self, row: Row) -> object:
        right = self.right.of(row)
        if right is None:
            return None
        left = self.left.of(row)
        if left is None:
            return None
        assert isinstance(left, int)
        assert isinstance(right, int)
        if right == 0:
            raise FailsError
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return fitting(quotient) if self.sign == "div" else left - quotient * right


@dataclass(frozen=True)
class Item(Word):
    """An element of an array, counted from 0."""

    place: Word

    def sql(self) -> str:
        return f"xs[{self.place.sql()}]"

    def of(self, row: Row) -> object:
        items = row["xs"]
        if items is None:
            return None
        place = self.place.of(row)
        if place is None:
            return None
        assert isinstance(items, Sequence)
        assert isinstance(place, int)
        if not 0 <= place < len(items):
            raise FailsError
        return items[place]


@dataclass(frozen=True)
class Coalesce(Word):
    first: Word
    second: Word

    def sql(self) -> str:
        return f"coalesce({self.first.sql()}, {self.second.sql()})"

    def of(self, row: Row) -> object:
        first = self.first.of(row)
        return self.second.of(row) if first is None else first


@dataclass(frozen=True)
class Choice(Word):
    condition: Word
    then: Word
    otherwise: Word

    def sql(self) -> str:
        return f"CASE WHEN {self.condition.sql()} THEN {self.then.sql()} ELSE {self.otherwise.sql()} END"

    def of(self, row: Row) -> object:
        return self.then.of(row) if self.condition.of(row) is True else self.otherwise.of(row)


@dataclass(frozen=True)
class Connective(Word):
    """Two conditions: whichever side is `DECIDING` decides, the left one without a look at the right one."""

    SIGN: ClassVar[str]
    DECIDING: ClassVar[bool]
    left: Word
    right: Word

    def sql(self) -> str:
        return f"({self.left.sql()} {self.SIGN} {self.right.sql()})"

    def of(self, row: Row) -> object:
        left = self.left.of(row)
        if left is self.DECIDING:
            return self.DECIDING
        right = self.right.of(row)
        if right is self.DECIDING:
            return self.DECIDING
        return None if left is None or right is None else not self.DECIDING


class Both(Connective):
    SIGN, DECIDING = "AND", False


class Either(Connective):
    SIGN, DECIDING = "OR", True


def fails_for(word: Word, row: Row) -> bool:
    """Whether Spark raises an error."""
    try:
        word.of(row)
    except FailsError:
        return True
    return False


KINDS = ("column", "cast", "operation", "division", "item", "coalesce", "choice")


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> Word:
    """Expressions that give a number."""
    kind = draw(st.sampled_from(KINDS if depth else KINDS[:2]))
    inner = expressions(depth - 1)
    if kind == "column":
        return Column(draw(st.sampled_from("ab")))
    if kind == "cast":
        return CastText("s")
    if kind == "operation":
        return Operation(draw(inner), draw(st.sampled_from(list(OPERATORS))), draw(inner))
    if kind == "division":
        return Division(draw(inner), draw(st.sampled_from(["div", "%"])), draw(inner))
    if kind == "item":
        return Item(draw(inner))
    if kind == "coalesce":
        return Coalesce(draw(inner), draw(inner))
    return Choice(draw(conditions(depth - 1)), *draw(_two_different(inner)))


@st.composite
def conditions(draw: st.DrawFn, depth: int) -> Word:
    """Expressions that are true or not."""
    joined = draw(st.sampled_from([None, Both, Either])) if depth else None
    if joined is not None:
        return joined(*draw(_two_different(conditions(depth - 1))))
    inner = expressions(max(0, depth - 1))
    left, right = draw(_two_different(inner))
    return Comparison(left, draw(st.sampled_from(list(COMPARISONS))), right)


def _two_different(words: st.SearchStrategy[Word]) -> st.SearchStrategy[tuple[Word, Word]]:
    """Spark leaves out what decides nothing: both branches alike, both sides of AND alike, a value beside itself."""
    return st.tuples(words, words).filter(lambda pair: pair[0] != pair[1])


words = expressions()
numbers = st.sampled_from([None, -(2**31), -3, -1, 0, 1, 2, 7, 2**31 - 1])
texts = st.sampled_from([None, "0", "-1", " 7 ", "+3", "2147483648", "1.5", "", "abc"])
lists = st.one_of(st.none(), st.lists(numbers, max_size=3))
rows = st.fixed_dictionaries({"a": numbers, "b": numbers, "s": texts, "xs": lists})
