"""What a request asks for: JSON from outside becomes a name, a prod, or a clear refusal.

Law: everything in it is data. A name that the engine does not have, a key that means nothing here, a key that stands
there twice, a value that is none of its type: each is refused, with what was probably meant.

>>> asked_of(b'{"query": "speeds", "groups": {"detector": "1045"}}', ("query", "groups"))
{'query': 'speeds', 'groups': {'detector': '1045'}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl

from eventide.endpoint.auth import HttpError
from eventide.engine.early.group_values import SHOWN, microseconds, patterns_in
from eventide.engine.round.engine import Engine
from eventide.errors import DeclarationError
from eventide.eventtime.early.prod import Prod
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.language.grammar.spelling import meant
from eventide.plan.declared.stream import TimeKind

PROD_KEYS = ("query", "groups", "up_to", "after")
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
        typed = patterns_in(name, engine.plan.queries.get(name), groups or {})
        return name, Prod(FOREVER if up_to is None else up_to, NEVER if after is None else after, typed)
    except DeclarationError as error:
        raise HttpError(400, str(error)) from None


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
