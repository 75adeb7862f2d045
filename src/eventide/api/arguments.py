"""Read expressions and lengths of time that users give in Python, and refuse what cannot be meant.

*Expressions.* SQL text or a PySpark Column becomes SQL text that was read and checked. What is given as text stays as
it was written. Every column it speaks of is one of the stream's.

*Lengths.* `5 minutes`, `1 hour 30 minutes`, a `timedelta`, or a number of a sequence. Over timestamps a length is a
text or a timedelta and becomes whole microseconds; over a sequence it is a whole number and stays as it is. The one is
never taken for the other.

>>> length("5 minutes", TimeKind.TIMESTAMP), length("1 hour 30 min", TimeKind.TIMESTAMP), length(50, TimeKind.SEQUENCE)
(300000000, 5400000000, 50)
>>> length("INTERVAL 10 SECONDS", TimeKind.TIMESTAMP), length("250ms", TimeKind.DATE)
(10000000, 250000)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from eventide.api.column_text import column_text, is_column, quoted
from eventide.errors import DeclarationError
from eventide.language.grammar.spelling import LENGTHS
from eventide.plan.declared.query import Named
from eventide.plan.declared.stream import TimeKind
from eventide.plan.declared.window import LONGEST_GAP
from eventide.plan.expressions.columns import Column, named
from eventide.plan.expressions.parse import check_columns, parsed
from eventide.plan.expressions.spark_dialect import SPARK

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

Expression: TypeAlias = "str | SparkColumn"
"""SQL text, or a Column of PySpark."""

NAMED = re.compile(r"(?P<sql>.*\S)\s+as\s+(?P<name>`[^`]+`|\w+)\s*", re.IGNORECASE | re.DOTALL)


def condition_text(given: Expression, columns: Iterable[Column] | None, owner: str) -> str:
    """A condition; with `columns`, it may speak of these only.

    >>> from eventide.plan.expressions.columns import columns
    >>> condition_text("speed > 0", columns("ts TIMESTAMP, speed INT"), "stream 'traffic'")
    'speed > 0'
    """
    name, sql = _text(given, owner)
    if name is not None:
        raise DeclarationError(f"{owner}: a condition has no name: leave out AS {name}")
    expression = parsed(sql, owner)
    if columns is not None:
        check_columns(expression, columns, owner)
    return sql


def group_named(given: Expression, columns: tuple[Column, ...], owner: str) -> Named:
    """A group: a text is the name of a column, as in PySpark; anything else needs a Column.

    >>> from eventide.plan.expressions.columns import columns
    >>> group_named("Detector", columns("ts TIMESTAMP, detector STRING"), "stream 'traffic'")
    Named(name='Detector', sql='Detector')
    """
    if isinstance(given, str):
        named(given, columns, owner)
        return Named(given, quoted(given))
    return value_named(given, columns, owner)


def value_named(given: Expression, columns: tuple[Column, ...] | None, owner: str, name: str | None = None) -> Named:
    """An expression with its name: the one given, the one after AS, or, as in PySpark, the expression itself.

    >>> from eventide.plan.expressions.columns import columns
    >>> value_named("avg(speed) AS mean", columns("ts TIMESTAMP, speed INT"), "stream 'traffic'")
    Named(name='mean', sql='avg(speed)')
    >>> value_named("max(sped)", columns("ts TIMESTAMP, speed INT"), "stream 'traffic'")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: stream 'traffic' has no column 'sped': did you mean 'speed'? It has ts, speed
    """
    after_as, sql = _text(given, owner)
    expression = parsed(sql, owner)
    if columns is not None:
        check_columns(expression, columns, owner)
    return Named(name or after_as or sql.replace("`", ""), sql)


def _text(given: Expression, owner: str) -> tuple[str | None, str]:
    if is_column(given):
        name, sql = column_text(given)
        if name is not None:
            return name, sql
        given = sql  # A Column made of SQL text may have its name inside.
    if not isinstance(given, str):
        raise DeclarationError(f"{owner}: {given!r} is no expression: give SQL text or a Column")
    found = NAMED.fullmatch(given)
    if found is not None and _ends_in_name(given):
        return found["name"].strip("`"), found["sql"]
    return None, given


def _ends_in_name(sql: str) -> bool:
    """Whether the expression ends in `AS name`; text that cannot be read is refused later."""
    try:
        select = sqlglot.parse_one(f"SELECT {sql}", read=SPARK)
    except SqlglotError:
        return False
    return isinstance(select, exp.Select) and isinstance(select.expressions[-1], exp.Alias)


Length: TypeAlias = "str | int | timedelta"
"""What a user may give for a length of time, or for a stretch of a sequence."""

PART = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([a-z]+)")


def life(given: Length, kind: TimeKind, what: str) -> int:
    """A length, or "forever".

    >>> life("1 ms", TimeKind.TIMESTAMP, "the TTL"), life("forever", TimeKind.SEQUENCE, "the TTL") == LONGEST_GAP
    (1000, True)
    """
    return LONGEST_GAP if isinstance(given, str) and given.lower() == "forever" else length(given, kind, what)


def length(given: Length, kind: TimeKind, what: str = "the length") -> int:
    """A length in the unit of a stream's time; `what` names it in the error.

    >>> length("five minutes", TimeKind.TIMESTAMP, "the window's range")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: the window's range: 'five minutes' is no length of time: write '5 minutes', \
'250 ms', '1 hour 30 minutes'
    >>> length(300, TimeKind.TIMESTAMP, "the window's range")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: the window's range: 300 has no unit: write '300 seconds' for example
    >>> length("5 minutes", TimeKind.SEQUENCE, "the window's range")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: the window's range: the time of this stream is a whole number, so give a whole \
number, not '5 minutes'
    """
    if kind is TimeKind.SEQUENCE:
        if isinstance(given, int) and not isinstance(given, bool):
            return given
        raise DeclarationError(
            f"{what}: the time of this stream is a whole number, so give a whole number, not {given!r}"
        )
    if isinstance(given, timedelta):
        return given // timedelta(microseconds=1)
    if not isinstance(given, str | int | float):
        raise DeclarationError(f"{what}: {given!r} is no length of time: write '5 minutes'")
    if not isinstance(given, str):
        raise DeclarationError(f"{what}: {given!r} has no unit: write '{given} seconds' for example")
    return _of_text(given, what)


def _of_text(text: str, what: str) -> int:
    rest = re.sub(r"^\s*interval\b", "", text.lower()).strip().replace("'", "")
    total, place = Fraction(0), 0
    for part in PART.finditer(rest):
        unit = LENGTHS.get(part[2])
        if unit is None or rest[place : part.start()].strip(" ,"):
            break
        total += Fraction(part[1]) * unit
        place = part.end()
    if not rest or rest[place:].strip() or total.denominator != 1:
        also = "; months and years differ in length" if re.search(r"month|year|quarter", rest) else ""
        raise DeclarationError(
            f"{what}: {text!r} is no length of time: write '5 minutes', '250 ms', '1 hour 30 minutes'{also}"
        )
    return int(total)
