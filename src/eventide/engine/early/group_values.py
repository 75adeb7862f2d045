"""Values of groups as people and programs write them, in the group's own type.

Law: a value either is one of the type, exactly, or is refused with a sentence that says what to write; none is rounded,
cut or guessed. A text stands for the value that it spells, because a command line has only texts. None stands for NULL,
of any type.

>>> group_value("detector", pa.int32(), "1045"), group_value("detector", pa.int32(), 1045)
(1045, 1045)
>>> group_value("detector", pa.int8(), 1045)
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: group 'detector' is of type int8, which 1045 does not fit: give a whole number from \
-128 to 127
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from functools import partial
from typing import Any

import pyarrow as pa
from pyarrow import types

from eventide.errors import DeclarationError
from eventide.eventtime.pattern import Pattern
from eventide.plan.bound.query import BoundQuery
from eventide.sources.arrow_types import arrow_type

SHOWN = 60
"""So many letters are shown of what is refused."""


def patterns_in(name: str, bound: BoundQuery | None, groups: Mapping[str, Any]) -> dict[str, Pattern]:
    """Patterns for the groups of a query, their values in the types that the query has them in."""
    types = {} if bound is None else {key.name: arrow_type(key.type) for key in bound.keys}
    for group in groups:
        if group not in types:
            known = f"it has {', '.join(types)}" if types else "it has none"
            shown = group if len(group) <= SHOWN else group[:SHOWN] + "..."
            raise DeclarationError(f"query {name!r} has no group {shown!r} to prod: {known}")
    return {group: Pattern.of(data, partial(group_value, group, types[group])) for group, data in groups.items()}


WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
NUMBER = re.compile(r"[+-]?([0-9]{1,400}(\.[0-9]{0,400})?|\.[0-9]{1,400})([eE][+-]?[0-9]{1,4})?")
BOOLEANS = {"true": True, "false": False}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
WIDE = Context(prec=100)
"""Room for every decimal of Spark's."""


class _UnfitError(Exception):
    """A value is not of the type; says what would be."""


def group_value(name: str, type: pa.DataType, value: Any) -> Any:
    """The value of a group of this type that is meant.

    >>> group_value("day", pa.date32(), "2026-01-31"), group_value("open", pa.bool_(), "true")
    (datetime.date(2026, 1, 31), True)
    >>> group_value("price", pa.decimal128(6, 2), "12.5"), group_value("price", pa.decimal128(6, 2), None)
    (Decimal('12.50'), None)
    """
    if value is None:
        return None
    try:
        return _converted(type, value)
    except _UnfitError as unfit:
        text = value if isinstance(value, str) else str(value) if _is_short(value) else f"a value of {_kind(value)}"
        shown = repr(text[:SHOWN] + "..." if len(text) > SHOWN else text) if isinstance(value, str) else text[:SHOWN]
        raise DeclarationError(f"group {name!r} is of type {type}, which {shown} does not fit: {unfit}") from None


def _converted(type: pa.DataType, value: Any) -> Any:
    if types.is_string(type) or types.is_large_string(type):
        return _text(value)
    if types.is_boolean(type):
        return _boolean(value)
    if types.is_integer(type):
        return _whole(type, value)
    if types.is_floating(type):
        return _float(value)
    if types.is_decimal(type):
        return _decimal(type, value)
    if types.is_date(type):
        return _date(value)
    if types.is_timestamp(type):
        return _timestamp(type, value)
    if types.is_binary(type) or types.is_large_binary(type):
        return _bytes(value)
    raise _UnfitError("groups of this type cannot be named, but for NULL; leave it out, and take all of them")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _UnfitError("give a text, in quotes")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _UnfitError("give a text of whole characters") from None
    return value


def _boolean(value: Any) -> bool:
    found = BOOLEANS.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(found, bool):
        raise _UnfitError("give true or false")
    return found


def _whole(type: pa.DataType, value: Any) -> int:
    bits = type.bit_width - (1 if types.is_signed_integer(type) else 0)
    least, most = (-(2**bits) if types.is_signed_integer(type) else 0), 2**bits - 1
    found = int(value) if isinstance(value, str) and WHOLE.fullmatch(value.strip()) else value
    if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
        raise _UnfitError(f"give a whole number from {least} to {most}")
    return found


def _number(value: Any) -> Any:
    if isinstance(value, str) and NUMBER.fullmatch(value.strip()):
        return Decimal(value.strip())
    return value if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else None


def _float(value: Any) -> float:
    found = _number(value)
    try:
        number = math.nan if found is None else float(found)
    except OverflowError:
        number = math.nan
    if math.isnan(number):
        raise _UnfitError("give a number")
    return number


def _decimal(type: pa.DataType, value: Any) -> Decimal:
    found = _number(value)
    wanted = f"give a number of at most {type.precision} digits, {type.scale} of them behind the point"
    try:
        exact = Decimal(repr(found) if isinstance(found, float) else found)
        number = exact.quantize(Decimal(1).scaleb(-type.scale), context=WIDE)
    except (InvalidOperation, TypeError, ValueError):
        raise _UnfitError(wanted) from None
    if number != exact or len(number.as_tuple().digits) > type.precision:
        raise _UnfitError(wanted)
    return number


def _date(value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise _UnfitError("give a day, such as 2026-01-31") from None


def _timestamp(type: pa.DataType, value: Any) -> datetime | int:
    """A moment; a number counts in the type's own unit. Without a zone it is in UTC, or as the wall clock shows it."""
    if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63:
        return value
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        found = None
    if found is None:
        raise _UnfitError("give a time, such as 2026-01-31 12:05:00")
    if type.tz is None and found.tzinfo is not None:
        raise _UnfitError("give a time without a zone, such as 2026-01-31 12:05:00")
    return found if type.tz is None else microseconds(found)


def microseconds(moment: datetime) -> int:
    """Since 1970; a time that names no zone is in UTC.

    >>> microseconds(datetime(1970, 1, 1, 0, 0, 1))
    1000000
    """
    known = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (known - EPOCH) // timedelta(microseconds=1)


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise _UnfitError("give bytes in base64, as results have them") from None


def _is_short(value: Any) -> bool:
    return isinstance(value, bool | int | float | Decimal | date) and len(str(value)) < 1000


def _kind(value: Any) -> str:
    return f"type {type(value).__name__}"
