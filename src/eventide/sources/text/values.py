"""Text as values, as Spark would read it: one at a time, and many at once in DuckDB; zones of timestamps too.

Laws. *Fail-safe*: each function gives the value that Spark's CSV and JSON readers give for the same text, and raises
`ValueError` where they call the row malformed. One difference is on purpose: a time without a date is malformed here,
where Spark would take today. *Quick*: the texts of `of_csv` and its like are SQL for a value that is NULL unless there
can be no doubt; whenever it gives a value, it is the one the fail-safe way gives. What it is not sure of (unusual
zones, more digits than fit, blanks around numbers, and all that is malformed) is left to the fail-safe way, row by
row.

>>> timestamp("2020-01-01T10:11:12.5+01:00") - timestamp("2020-01-01 09:11:12")
500000
>>> decimal("1,000.255", 8, 2)
Decimal('1000.26')

>>> offset_at("+01:00", 0), offset_at("Z", 0), offset_at("GMT-3", 0), offset_at("Europe/Berlin", 0)
(3600, 0, -10800, 3600)

>>> of_csv("x", "INT")
"CASE WHEN regexp_full_match(x, '[+-]?[0-9]{1,19}') THEN TRY_CAST(x AS INTEGER) END"
"""

from __future__ import annotations

import os
import re
import zoneinfo
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, DecimalException
from functools import cache, lru_cache

import duckdb
import pyarrow as pa

from eventide.sources.arrow_types import readable_type

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


QUICK_DAY = r"[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
CLOCK = r"[ T]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
ZONE = r"(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9])"
QUICK_TIMESTAMP = f"{QUICK_DAY}({CLOCK}{ZONE}?)?"
TIMESTAMP_NTZ = f"{QUICK_DAY}({CLOCK})?"
QUICK_FLOATING = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?"

WHOLE = {"TINYINT": "TINYINT", "SMALLINT": "SMALLINT", "INT": "INTEGER", "BIGINT": "BIGINT"}
DUCKDB = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
}


def connection() -> duckdb.DuckDBPyConnection:
    """A connection of its own, in which text without a zone is UTC and rows keep their order."""
    engine = _database().cursor()
    engine.execute("SET TimeZone = 'UTC'; SET preserve_insertion_order = true")
    return engine


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """That of this process: one takes longer to start than many rows to parse."""
    return duckdb.connect()


os.register_at_fork(after_in_child=_database.cache_clear)


def sure_rows(
    texts: Sequence[str], values: Sequence[str], relation: str, also: str = "true", more: Sequence[str] = ()
) -> str:
    """SQL for all values (named v0, v1, ...) and `sure`: whether every text that is there has become a value."""
    named = ", ".join(f"{value} AS v{number}" for number, value in enumerate(values))
    listed = ", ".join([*(f"v{number}" for number in range(len(values))), *more])
    both = " AND ".join(f"(({text} IS NULL) = (v{number} IS NULL))" for number, text in enumerate(texts))
    return f"SELECT {listed}, {also} AND {both} AS sure FROM (SELECT *, {named} FROM {relation})"


def _when(pattern: str, text: str, value: str) -> str:
    return f"CASE WHEN regexp_full_match({text}, '{pattern}') THEN {value} END"


def of_csv(text: str, spark_type: str) -> str:
    """SQL for the value of a CSV field."""
    if spark_type in WHOLE:
        return _when("[+-]?[0-9]{1,19}", text, f"TRY_CAST({text} AS {WHOLE[spark_type]})")
    if spark_type in ("FLOAT", "DOUBLE"):
        return _when(QUICK_FLOATING, text, f"TRY_CAST({text} AS {spark_type})")
    if spark_type == "BOOLEAN":
        return f"CASE lower({text}) WHEN 'true' THEN true WHEN 'false' THEN false END"
    if spark_type in PATTERNS:
        pattern, target = PATTERNS[spark_type]
        return _when(pattern, text, f"TRY_CAST({text} AS {target})")
    kind = readable_type(spark_type)
    if pa.types.is_decimal(kind):
        pattern = rf"[+-]?[0-9]{{1,38}}(\.[0-9]{{0,{kind.scale}}})?"
        return _when(pattern, text, f"TRY_CAST({text} AS DECIMAL({kind.precision}, {kind.scale}))")
    return text


PATTERNS = {
    "TIMESTAMP": (QUICK_TIMESTAMP, "TIMESTAMPTZ"),
    "TIMESTAMP_NTZ": (TIMESTAMP_NTZ, "TIMESTAMP"),
    "DATE": (QUICK_DAY, "DATE"),
}


def of_json(value: str, spark_type: str) -> str:
    """SQL for a value given as its JSON text, never `null`, as DuckDB writes JSON: compact, doubles in few digits."""
    if spark_type in WHOLE:
        return _when("-?[0-9]{1,19}", value, f"TRY_CAST({value} AS {WHOLE[spark_type]})")
    if spark_type in ("FLOAT", "DOUBLE"):
        number = _when("-?[0-9][0-9.]*([eE][+-]?[0-9]{1,3})?", value, f"TRY_CAST({value} AS {spark_type})")
        # A float is rounded once, from the text as written, of which a long double is not all.
        return number if spark_type == "DOUBLE" else f"CASE WHEN length({value}) < 16 THEN {number} END"
    if spark_type == "BOOLEAN":
        return f"CASE {value} WHEN 'true' THEN true WHEN 'false' THEN false END"
    bare = f"replace({value}, '\"', '')"
    if spark_type in PATTERNS:
        pattern, target = PATTERNS[spark_type]
        text = _when(f'"{pattern}"', value, f"TRY_CAST({bare} AS {target})")
        if spark_type != "TIMESTAMP":
            return text
        seconds = _when("-?[0-9]{1,11}", value, f"to_timestamp(TRY_CAST({value} AS BIGINT))")
        return f"CASE WHEN starts_with({value}, '\"') THEN {text} ELSE {seconds} END"
    kind = readable_type(spark_type)
    if kind == pa.string():
        # Text without a backslash has no quotes but those around it. Doubles and objects: as they were written.
        return (
            f"CASE WHEN starts_with({value}, '\"') THEN CASE WHEN contains({value}, '\\') "
            f"THEN json_extract_string({value}, '$') ELSE {bare} END "
            f"WHEN regexp_full_match({value}, '-?[1-9][0-9]*|true|false') THEN {value} END"
        )
    if pa.types.is_decimal(kind):
        return _decimal(value, bare, kind)
    return _nested(value, kind)


def _decimal(value: str, bare: str, kind: pa.DataType) -> str:
    """A decimal of so few digits that having been a double has not changed it; or in quotes, of any number."""
    target = f"DECIMAL({kind.precision}, {kind.scale})"
    fraction = rf"(\.[0-9]{{0,{kind.scale}}}0?)?" if kind.scale else r"(\.0)?"
    written = rf"\"[+-]?[0-9]{{1,38}}(\.[0-9]{{0,{kind.scale}}})?\"".replace('\\"', '"')
    return (
        f"CASE WHEN length({value}) < 16 AND regexp_full_match({value}, '-?[0-9]+{fraction}') "
        f"THEN TRY_CAST({value} AS {target}) "
        f"WHEN regexp_full_match({value}, '{written}') THEN TRY_CAST({bare} AS {target}) END"
    )


def _nested(value: str, kind: pa.DataType) -> str:
    """Arrays, maps and structs that DuckDB writes back exactly as they were: then nothing was lost or bent."""
    target = duckdb_type(kind)
    if target is None:
        return f"TRY_CAST(NULL AS {duckdb_type(kind, anything=True)})"
    cast = f"TRY_CAST(CAST({value} AS JSON) AS {target})"
    return f"CASE WHEN CAST(to_json({cast}) AS VARCHAR) = {value} THEN {cast} END"


def duckdb_type(kind: pa.DataType, anything: bool = False) -> str | None:
    """The DuckDB type of an Arrow type; None if the quick way cannot be sure of such values inside of others.

    >>> duckdb_type(pa.list_(pa.int32())), duckdb_type(pa.list_(pa.date32()))
    ('INTEGER[]', None)
    """
    if kind in DUCKDB:
        return DUCKDB[kind]
    if pa.types.is_list(kind):
        inner = duckdb_type(kind.value_type, anything)
        return f"{inner}[]" if inner else None
    if pa.types.is_map(kind):
        key, item = duckdb_type(kind.key_type, anything), duckdb_type(kind.item_type, anything)
        return f"MAP({key}, {item})" if key and item else None
    if pa.types.is_struct(kind):
        fields = [(field.name.replace('"', '""'), duckdb_type(field.type, anything)) for field in kind]
        return (
            f"STRUCT({', '.join(f'{chr(34)}{n}{chr(34)} {t}' for n, t in fields)})"
            if all(t for _, t in fields)
            else None
        )
    return _also(kind) if anything else None


def _also(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMPTZ" if kind.tz else "TIMESTAMP"
    return {pa.float32(): "FLOAT", pa.date32(): "DATE", pa.binary(): "BLOB"}[kind]
