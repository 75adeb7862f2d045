"""Lengths as people write them in PySpark: `5 minutes`, `1 hour 30 minutes`, a `timedelta`, a number of a sequence.

Law: over timestamps a length is a text or a timedelta and becomes whole microseconds; over a sequence it is a whole
number and stays as it is. The one is never taken for the other.

>>> length("5 minutes", TimeKind.TIMESTAMP), length("1 hour 30 min", TimeKind.TIMESTAMP), length(50, TimeKind.SEQUENCE)
(300000000, 5400000000, 50)
>>> length("INTERVAL 10 SECONDS", TimeKind.TIMESTAMP), length("250ms", TimeKind.DATE)
(10000000, 250000)
"""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from typing import TypeAlias

from eventide.errors import DeclarationError
from eventide.language.grammar.spelling import LENGTHS
from eventide.plan.declared.stream import TimeKind

Length: TypeAlias = "str | int | timedelta"
"""What a user may give for a length of time, or for a stretch of a sequence."""

PART = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([a-z]+)")


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
