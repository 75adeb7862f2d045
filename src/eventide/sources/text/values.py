"""Text as values, one at a time, by the rules of Spark; zones of timestamps too.

Text becomes values as Spark would read it, one value at a time.

Law: each function gives the value that Spark's CSV and JSON readers give for the same text, and raises `ValueError`
where they call the row malformed. This is the safe way: it decides about rows that the quick way (`quick_values`) is
not sure of. One difference is on purpose: a time without a date is malformed here, where Spark would take today.

>>> timestamp("2020-01-01T10:11:12.5+01:00") - timestamp("2020-01-01 09:11:12")
500000
>>> decimal("1,000.255", 8, 2)
Decimal('1000.26')

Zones at the end of a timestamp, as Spark reads them: offsets, and names of regions.

>>> offset_at("+01:00", 0), offset_at("Z", 0), offset_at("GMT-3", 0), offset_at("Europe/Berlin", 0)
(3600, 0, -10800, 3600)
"""

from __future__ import annotations

import re
import zoneinfo
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, DecimalException
from functools import lru_cache

OFFSETS = (
    re.compile(r"([+-])(\d{1,2})(?::(\d{1,2}|\d{2}:(\d{2})))?", re.ASCII),
    re.compile(r"([+-])(\d{2})(\d{2})(\d{2})?", re.ASCII),
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# The short names that Java knows beyond those of the zone database.
SHORT = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
FIXED = {"EST": -5 * 3600, "MST": -7 * 3600, "HST": -10 * 3600, "Z": 0, "UTC": 0, "GMT": 0, "UT": 0}


def offset_at(zone: str, local: int) -> int:
    """Seconds that a zone is ahead of UTC when its clocks show `local` seconds since 1970.

    Of a time that comes twice in a year it means the first, one that is left out is moved on, as in Java.
    """
    if zone in FIXED:
        return FIXED[zone]
    bare = zone.removeprefix("UTC").removeprefix("GMT").removeprefix("UT") if zone[:1] in "UG" else zone
    found = OFFSETS[0].fullmatch(bare) or OFFSETS[1].fullmatch(bare)
    if found:
        sign, hours, minutes, seconds = found.groups()
        minute, second = int((minutes or "0")[:2]), int(seconds or 0)
        ahead = int(hours) * 3600 + minute * 60 + second
        if ahead > 18 * 3600 or minute > 59 or second > 59:
            raise ValueError(zone)
        return -ahead if sign == "-" else ahead
    try:
        moment = (EPOCH + timedelta(seconds=local)).replace(tzinfo=_region(zone))
    except OverflowError as failure:
        raise ValueError(zone) from failure
    ahead_of = moment.utcoffset()
    assert ahead_of is not None
    return int(ahead_of.total_seconds())


@lru_cache(maxsize=512)
def _region(zone: str) -> zoneinfo.ZoneInfo:
    try:
        return zoneinfo.ZoneInfo(SHORT.get(zone, zone))
    except (zoneinfo.ZoneInfoNotFoundError, OSError) as failure:
        raise ValueError(zone) from failure


MICROS = 1_000_000
DAY = 86_400
INTEGER = re.compile(r"[+-]?\d+")
# What Java reads as a floating-point number, hexadecimal ones included; a letter at the end means nothing.
FLOATING = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?")
HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?")
NOT_FINITE = re.compile(r"[+-]?(?:NaN|Infinity)")
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?")
DATE = re.compile(r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
TIMESTAMP = re.compile(
    r"([+-]?)(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?(\D.*)?)?)?)?)?)?",
    re.ASCII | re.DOTALL,
)
BLANKS = "".join(map(chr, range(0x21))) + "\x7f"
EXACT = Context(prec=200, rounding=ROUND_HALF_UP)


def whole_number(text: str, bits: int) -> int:
    """A whole number that fits in so many bits.

    >>> whole_number("+127", 8)
    127
    """
    if not INTEGER.fullmatch(text):
        raise ValueError(text)
    return in_range(int(text), bits)


def in_range(number: int, bits: int) -> int:
    """The number, if it fits in so many bits."""
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise ValueError(number)
    return number


def floating(text: str) -> float:
    """A double, as Java reads it.

    >>> floating(" 1.5d "), floating("0x1p3"), floating("-Infinity")
    (1.5, 8.0, -inf)
    """
    text = text.strip(BLANKS[:-1])
    if FLOATING.fullmatch(text):
        return float(text.rstrip("fFdD"))
    if HEXADECIMAL.fullmatch(text):
        return float.fromhex(text.rstrip("fFdD") if text[-1] in "fFdD" else text)
    if NOT_FINITE.fullmatch(text):
        return float(text)
    raise ValueError(text)


def decimal(text: str, precision: int, scale: int) -> Decimal:
    """A decimal, rounded half up to its scale; commas between digits mean nothing."""
    text = text.replace(",", "")
    if not NUMBER.fullmatch(text):
        raise ValueError(text)
    try:
        rounded = Decimal(text).quantize(Decimal(1).scaleb(-scale), context=EXACT)
    except DecimalException as failure:
        raise ValueError(text) from failure
    if len(rounded.as_tuple().digits) > precision and rounded:
        raise ValueError(text)
    return rounded


def boolean(text: str) -> bool:
    """True or false, in small or capital letters.

    >>> boolean("TRUE")
    True
    """
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def date(text: str) -> int:
    """Days since 1970-01-01; what follows a date after a blank or a T does not matter.

    >>> date("1970-01-02T10:00")
    1
    """
    found = DATE.fullmatch(text.strip(BLANKS))
    if not found:
        raise ValueError(text)
    sign, year, month, day = found.groups()
    return in_range(_days(sign, year, month, day), 32)


def timestamp(text: str) -> int:
    """Microseconds since 1970 in UTC; text without a zone is UTC."""
    return _instant(text, zoned=True)


def timestamp_ntz(text: str) -> int:
    """Microseconds of a clock without a zone; text with a zone is malformed."""
    return _instant(text, zoned=False)


@lru_cache(maxsize=4096)
def _instant(text: str, zoned: bool) -> int:
    found = TIMESTAMP.fullmatch(text.strip(BLANKS))
    if not found:
        raise ValueError(text)
    sign, year, month, day, hour, minute, second, fraction, zone = found.groups()
    clock = [int(part or 0) for part in (hour, minute, second)]
    if clock[0] > 23 or clock[1] > 59 or clock[2] > 59 or (zone and not zoned):
        raise ValueError(text)
    seconds = _days(sign, year, month, day) * DAY + clock[0] * 3600 + clock[1] * 60 + clock[2]
    if zone:
        seconds -= offset_at(zone.strip(BLANKS), seconds)
    return in_range(seconds * MICROS + int(((fraction or "") + "000000")[:6]), 64)


def _days(sign: str, year: str, month: str | None, day: str | None) -> int:
    """Days since 1970 in the Gregorian calendar, drawn out to all years.

    >>> _days("", "1970", None, None), _days("", "2000", "3", "1"), _days("-", "0001", "1", "1")
    (0, 11017, -719893)
    """
    y, m, d = int(sign + year), int(month or 1), int(day or 1)
    leap = y % 4 == 0 and (y % 100 != 0 or y % 400 == 0)
    if not 1 <= m <= 12 or not 1 <= d <= (31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[m - 1]:
        raise ValueError((year, month, day))
    # Counting years from March puts the leap day last, so that months before it need no exception.
    y -= m <= 2
    return y * 365 + y // 4 - y // 100 + y // 400 + (153 * ((m + 9) % 12) + 2) // 5 + d - 1 - 719468
