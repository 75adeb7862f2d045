"""What a request asks for: JSON from outside becomes a name, a prod, or a clear refusal.

Law: everything in it is data. A name that the engine does not have, a key that means nothing here, a key that stands
there twice, a value that is none of its type: each is refused, with what was probably meant.

>>> asked_of(b'{"query": "speeds", "groups": {"detector": "1045"}}', ("query", "groups"))
{'query': 'speeds', 'groups': {'detector': '1045'}}

*Groups.* Their values, as people and programs write them, become values of the group's own type. A value either is one
of the type, exactly, or is refused with a sentence that says what to write; none is rounded, cut or guessed. A text
stands for the value that it spells, because a command line has only texts. None stands for NULL, of any type.

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
import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import Any
from urllib.parse import parse_qsl

import pyarrow as pa
from pyarrow import types

from eventide.endpoint.auth import HttpError
from eventide.engine.round.engine import Engine
from eventide.errors import DeclarationError
from eventide.eventtime.early.prod import Prod
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.language.grammar.spelling import meant
from eventide.plan.declared.stream import TimeKind
from eventide.sources.arrow_types import arrow_type

PROD_KEYS = ("query", "groups", "up_to", "after")
SHOWN = 60
"""So many letters are shown of what is refused."""
FEWEST, MOST = -(2**63), 2**63 - 1


def asked_of(body: bytes, keys: Iterable[str]) -> dict[str, Any]:
    """The object that a body is; it has these keys and no others.

    >>> asked_of(b'{"query": "a", "query": "b"}', ("query",))
    Traceback (most recent call last):
        ...
    eventide.endpoint.auth.HttpError: 'query' stands in the request twice
    """
    try:
        found = json.loads(body.decode("utf-8"), object_pairs_hook=_once, parse_float=Decimal, parse_constant=_none)
    except (ValueError, RecursionError):
        raise HttpError(400, "the body is no JSON", 'send an object, such as {"query": "speeds"}') from None
    if not isinstance(found, dict):
        raise HttpError(400, "the body is no object of JSON", 'send one, such as {"query": "speeds"}')
    _known_only(found, keys)
    return found


def parameters_of(query: str, keys: Iterable[str]) -> dict[str, str]:
    """The parameters behind the question mark of a target.

    >>> parameters_of("query=speeds", ("query",))
    {'query': 'speeds'}
    """
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=8, errors="strict")
    except ValueError:
        raise HttpError(400, "the parameters cannot be read", "write ?query=NAME") from None
    found = _once(pairs)
    _known_only(found, keys)
    return found


def named(engine: Engine, name: Any) -> str:
    """A query, merge or join that the engine has."""
    if not isinstance(name, str):
        raise HttpError(400, "the request does not say which query is asked", 'give "query": its name')
    known = names(engine)
    if name not in known:
        raise HttpError(404, f"there is no query {_short(name)}", meant(name[:SHOWN], known))
    return name


def names(engine: Engine) -> list[str]:
    """What can be asked, by name."""
    return sorted({*engine.plan.queries, *engine.plan.operators} & {step.name for step in engine.program.steps})


def times_of(engine: Engine, name: str) -> TimeKind:
    """What `up_to` and `after` are: times of what a query reads, also where its windows are over counts of rows."""
    bound = engine.plan.queries.get(name)
    kind = engine.program.times_of(name) if bound is None else bound.stream.time_kind
    return TimeKind.SEQUENCE if kind is TimeKind.SEQUENCE else TimeKind.TIMESTAMP


def prod_of(engine: Engine, asked: Mapping[str, Any]) -> tuple[str, Prod]:
    """The query that is asked, and the prod."""
    name = named(engine, asked.get("query"))
    kind = times_of(engine, name)
    groups = asked.get("groups")
    if groups is not None and not isinstance(groups, dict):
        raise HttpError(400, "the groups are no object", 'give names and values: "groups": {"detector": "1045"}')
    up_to, after = (_instant(asked.get(key), key, kind) for key in ("up_to", "after"))
    try:
        typed = groups_of(engine, name, groups or {})
        return name, Prod(FOREVER if up_to is None else up_to, NEVER if after is None else after, typed)
    except DeclarationError as error:
        raise HttpError(400, str(error)) from None


def groups_of(engine: Engine, name: str, groups: Mapping[str, Any]) -> dict[str, Any]:
    """Values of groups in the types that the query has them in."""
    bound = engine.plan.queries.get(name)
    types = {} if bound is None else {key.name: arrow_type(key.type) for key in bound.keys}
    for group in groups:
        if group not in types:
            known = f"it has {', '.join(types)}" if types else "it has none"
            raise DeclarationError(f"query {name!r} has no group {_short(group)} to prod: {known}")
    return {group: group_value(group, types[group], value) for group, value in groups.items()}


def _instant(value: Any, key: str, kind: TimeKind) -> int | None:
    """A time as the engine counts them: a number, or a text where windows have times."""
    if value is None:
        return None
    plain = kind is TimeKind.SEQUENCE
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,20}\s*", value):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and FEWEST <= value <= MOST:
        return value
    if isinstance(value, str) and not plain:
        try:
            return microseconds(datetime.fromisoformat(value.strip()))
        except (ValueError, OverflowError):
            pass
    wanted = (
        "a number of the sequence" if plain else "a time (UTC) such as 2026-01-31 12:05, or microseconds since 1970"
    )
    raise HttpError(400, f"{key} {_short(value)} is no time of the query", f"give {wanted}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise HttpError(400, f"{_short(name)} stands in the request twice", "give it once")
        found[name] = value
    return found


def _known_only(found: Mapping[str, Any], keys: Iterable[str]) -> None:
    for name in found.keys() - set(keys):
        raise HttpError(400, f"a request has no {_short(name)}", meant(name[:SHOWN], keys) or "it takes nothing")


def _none(constant: str) -> None:
    raise ValueError(constant)


def _short(text: Any) -> str:
    shown = text if isinstance(text, str) else str(text) if isinstance(text, int | bool | Decimal) else "of that kind"
    return repr(shown if len(shown) <= SHOWN else shown[:SHOWN] + "...")


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
