"""Values, instants and lengths of time as a transcript writes them.

Law: a value is written as YAML has it and means what its column's type says. A TIMESTAMP is a number of seconds, ISO
text or a YAML timestamp (UTC where no zone is named); a DATE is ISO text or a YAML date; a DECIMAL may be text.
An instant or a length of a stream is the number itself for a sequence, otherwise seconds (or ISO text, or `10 s`).

>>> converted(1.5, pa.timestamp("us", "UTC")), converted("2.50", pa.decimal128(5, 2))
(datetime.datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=datetime.timezone.utc), Decimal('2.50'))
>>> instant(7, TimeKind.SEQUENCE), instant(7, TimeKind.TIMESTAMP), length("2 min", TimeKind.TIMESTAMP)
(7, 7000000, 120000000)
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from eventide.errors import DeclarationError
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.plan.declared.stream import TimeKind
from eventide.profile.amounts import duration

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000


def converted(written: Any, kind: pa.DataType) -> Any:
    """The Python value that a column of this type gives for what is written.

    >>> converted(True, pa.int32())
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: True is no value of a column of type int32
    """
    if written is None:
        return None
    for applies, convert in _CONVERSIONS:
        if applies(kind):
            value = convert(written, kind)
            if value is not None:
                return value
    raise DeclarationError(f"{written!r} is no value of a column of type {kind}")


def instant(written: Any, kind: TimeKind) -> int:
    """A point of a stream's time, as the engine counts it.

    >>> instant("1970-01-02", TimeKind.DATE)
    86400000000
    """
    if written in ("never", "forever"):
        return NEVER if written == "never" else FOREVER
    if kind is TimeKind.SEQUENCE:
        return _whole(written, "an instant of a sequence")
    moment = _moment(written)
    if moment is None:
        raise DeclarationError(f"{written!r} is no instant: write seconds, or a time such as 2024-05-01 12:00:00")
    return _microseconds(moment)


def length(written: Any, kind: TimeKind) -> int:
    """A length of a stream's time, as the engine counts it.

    >>> length("10 s", TimeKind.SEQUENCE)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: '10 s' is no length of a sequence: write a whole number
    """
    if kind is TimeKind.SEQUENCE:
        return _whole(written, "a length of a sequence")
    return round(float(written) * SECOND) if _number(written) else duration(str(written))


def same(expected: Any, found: Any, kind: pa.DataType) -> bool:
    """Is a found value the written one? Fractions may differ in their last few digits, nothing else may.

    >>> same(0.1, 0.1 + 1e-17, pa.float64()), same("1.5", Decimal("1.50"), pa.decimal128(4, 2)), same(1, 2, pa.int8())
    (True, True, False)
    """
    try:
        wanted = converted(expected, kind)
    except DeclarationError:
        return False
    return _alike(wanted, found)


def _alike(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, float) and isinstance(found, float):
        return (math.isnan(wanted) and math.isnan(found)) or math.isclose(wanted, found, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(_alike, wanted, found))
    if isinstance(wanted, dict) and isinstance(found, dict):
        return wanted.keys() == found.keys() and all(_alike(wanted[key], found[key]) for key in wanted)
    return (wanted is None) == (found is None) and bool(wanted == found)


def _number(written: Any) -> bool:
    return isinstance(written, int | float) and not isinstance(written, bool)


def _whole(written: Any, what: str) -> int:
    if isinstance(written, int) and not isinstance(written, bool):
        return written
    raise DeclarationError(f"{written!r} is no {what.removeprefix('an ').removeprefix('a ')}: write a whole number")


def _moment(written: Any) -> datetime | None:
    if _number(written):
        return EPOCH + timedelta(microseconds=round(written * SECOND))
    if isinstance(written, str):
        try:
            written = datetime.fromisoformat(written)
        except ValueError:
            return None
    if isinstance(written, datetime):
        return written if written.tzinfo else written.replace(tzinfo=UTC)
    if isinstance(written, date):
        return datetime(written.year, written.month, written.day, tzinfo=UTC)
    return None


def _microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def _timestamp(written: Any, kind: pa.DataType) -> datetime | None:
    moment = _moment(written)
    if moment is None:
        return None
    in_utc = moment.astimezone(UTC)
    return in_utc if kind.tz else in_utc.replace(tzinfo=None)


def _date(written: Any, kind: pa.DataType) -> date | None:
    moment = None if _number(written) else _moment(written)
    return moment.date() if moment else None


def _decimal(written: Any, kind: pa.DataType) -> Decimal | None:
    if isinstance(written, bool) or not isinstance(written, int | float | str):
        return None
    try:
        return Decimal(str(written))
    except InvalidOperation:
        return None


def _struct(written: Any, kind: pa.DataType) -> dict[str, Any] | None:
    if not isinstance(written, dict):
        return None
    return {field.name: converted(written.get(field.name), field.type) for field in kind}


def _map(written: Any, kind: pa.DataType) -> list[tuple[Any, Any]] | None:
    if not isinstance(written, dict):
        return None
    return [(converted(key, kind.key_type), converted(value, kind.item_type)) for key, value in written.items()]


_CONVERSIONS: tuple[tuple[Any, Any], ...] = (
    (kinds.is_boolean, lambda w, _: w if isinstance(w, bool) else None),
    (kinds.is_integer, lambda w, _: w if isinstance(w, int) and not isinstance(w, bool) else None),
    (kinds.is_floating, lambda w, _: float(w) if _number(w) else None),
    (kinds.is_decimal, _decimal),
    (kinds.is_timestamp, _timestamp),
    (kinds.is_date, _date),
    (lambda t: kinds.is_string(t) or kinds.is_large_string(t), lambda w, _: w if isinstance(w, str) else None),
    (lambda t: kinds.is_binary(t) or kinds.is_large_binary(t), lambda w, _: w.encode() if isinstance(w, str) else w),
    (
        lambda t: kinds.is_list(t) or kinds.is_large_list(t),
        lambda w, t: [converted(item, t.value_type) for item in w] if isinstance(w, list) else None,
    ),
    (kinds.is_struct, _struct),
    (kinds.is_map, _map),
)
"""For each kind of type, what its columns take; None where they do not take what is written."""
