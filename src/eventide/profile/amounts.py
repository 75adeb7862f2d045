"""Amounts as people write them: `1%`, `250ms`, `1.2 s`, and back again.

>>> ratio("1%"), ratio("0.05"), duration("250ms"), duration("1.5 min")
(0.01, 0.05, 250000, 90000000)
>>> spoken(1_250_000), spoken(81_000_000), spoken(40, unitless=True), percent(0.00987)
('1.25 s', '1 min 21 s', '40', '0.99 %')
"""

from __future__ import annotations

import math
import re

from eventide.errors import DeclarationError

_MICROSECONDS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "sec": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}


def ratio(text: str) -> float:
    """A share between 0 and 1, as a number or in percent.

    >>> ratio("150%")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: drop ratio 1.5 is not between 0 and 1: write 1% or 0.01 for one row in a hundred
    """
    stripped = text.strip()
    try:
        value = float(stripped.removesuffix("%")) / (100 if stripped.endswith("%") else 1)
    except ValueError:
        raise DeclarationError(f"drop ratio {text!r} is no number: write 1% or 0.01") from None
    if not 0 < value < 1:
        raise DeclarationError(
            f"drop ratio {value:g} is not between 0 and 1: write 1% or 0.01 for one row in a hundred"
        )
    return value


def duration(text: str) -> int:
    """A length of time in microseconds.

    >>> duration("soon")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: 'soon' is no length of time: write 1s, 250ms, 5min, ...
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", text.lower())
    if match is None or match[2] not in _MICROSECONDS:
        raise DeclarationError(f"{text!r} is no length of time: write 1s, 250ms, 5min, ...")
    return round(float(match[1]) * _MICROSECONDS[match[2]])


def spoken(amount: float | None, unitless: bool = False) -> str:
    """A length of time for people, with about three digits.

    >>> spoken(420), spoken(0), spoken(None), spoken(9_000_000_000)
    ('420 us', '0 ms', '-', '2 h 30 min')
    """
    if amount is None or not math.isfinite(amount):
        return "-"
    if unitless:
        return f"{amount:,.4g}" if abs(amount) < 1000 else f"{amount:,.0f}"
    if amount < 0:
        return "-" + spoken(-amount)
    if amount == 0:
        return "0 ms"
    for unit, size in (("us", 1), ("ms", 1_000), ("s", 1_000_000)):
        limit = 60_000_000 if unit == "s" else size * 1000
        if amount < limit * 0.9995:
            return f"{amount / size:.3g} {unit}"
    for large, small, size in (("min", "s", 60_000_000), ("h", "min", 3_600_000_000), ("d", "h", 86_400_000_000)):
        part = {"s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000}[small]
        if amount < size * (24 if large == "h" else 60) or large == "d":
            whole, rest = divmod(round(amount / part), size // part)
            return f"{whole:,} {large}" + (f" {rest} {small}" if rest else "")
    raise AssertionError("every amount is below some limit")


def percent(share: float | None) -> str:
    """A share in percent; a share that is not 0 is not shown as 0.

    >>> percent(0.0), percent(0.000004), percent(0.5), percent(None)
    ('0 %', '<0.01 %', '50.00 %', '-')
    """
    if share is None:
        return "-"
    if share == 0:
        return "0 %"
    return f"{share:.2%}".replace("%", " %") if share >= 0.00005 else "<0.01 %"


UNITS = {letter: 1024**power for power, letter in enumerate("bkmgt")}
SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?:(?P<letter>[kmgt])(?P<unit>i?b)?|b)?", re.IGNORECASE)


def memory_bytes(given: int | str) -> int:
    """A size as it was given, in bytes.

    A number of bytes, or a number and a unit: kB, MB, GB and TB by the thousand, KiB, MiB, GiB and TiB by 1024, and k,
    m, g and t by 1024 too, as Spark has them.

    >>> memory_bytes("256 MiB"), memory_bytes("1.5GB"), memory_bytes("2g"), memory_bytes(0)
    (268435456, 1500000000, 2147483648, 0)
    >>> memory_bytes("much")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: driver.memory 'much' is no size: write such as '256 MiB', '2 GB', or 0
    """
    found = SIZE.fullmatch(str(given).strip())
    if found is None:
        raise DeclarationError(f"driver.memory {given!r} is no size: write such as '256 MiB', '2 GB', or 0")
    letter, unit = (found["letter"] or "b").lower(), (found["unit"] or "ib").lower()
    factor = UNITS[letter] if unit == "ib" else 1000 ** "bkmgt".index(letter)
    return int(float(found["number"]) * factor) if "." in found["number"] else int(found["number"]) * factor


def size_words(size: int) -> str:
    """A number of bytes, as people read it.

    >>> size_words(0), size_words(900), size_words(268_435_456), size_words(3_400_000_000)
    ('0 bytes', 'less than 1 KiB', '256 MiB', '3.17 GiB')
    """
    if size < UNITS["k"]:
        return "less than 1 KiB" if size else "0 bytes"
    letter = next(letter for letter in "tgmk" if size >= UNITS[letter])
    return f"{size / UNITS[letter]:.3g} {letter.upper()}iB"
