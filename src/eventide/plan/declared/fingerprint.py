"""Fingerprint of a program, kept in its checkpoint, and what has changed since.

Law: state is continued only under the declarations it was computed with. Everything that decides which rows count,
when a window is over and what it says matters: of a stream its columns, time, sources, arrival, timestamps, its policy
and what it does with rows of the future; of a query every field but when it is prodded, and how its rows wait in a
queue. Where rows come from may change without harm, since a folder may move: of an input only its format matters (how
far it was read is noted in its words), not its path, options and limits. SQL is the same if only spaces, or capital
letters of its keywords and functions, differ.

>>> from eventide.plan.declared.program import Program
>>> from eventide.plan.declared.query import Query, named_as
>>> from eventide.plan.declared.stream import Stream, columns
>>> from eventide.plan.declared.window import Window
>>> traffic = Stream("traffic", columns("ts TIMESTAMP, speed INT"), time="ts")
>>> def program(length, mean):
...     return Program((traffic,), (Query("speeds", "traffic", Window(length), named_as(mean=mean)),))
>>> old = described(program(300, "avg(speed)"))
>>> differences(old, described(program(300, "AVG( speed )")))
[]
>>> refuse_changes(old, described(program(600, "avg(speed)")))
Traceback (most recent call last):
    ...
eventide.errors.CheckpointError: this checkpoint was made by another program:
  query 'speeds': RANGE was 300, is now 600
  query 'speeds': SLIDE was 300, is now 600
Declare it as it was to continue, or give the changed program another checkpoint: it then starts anew from its inputs
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import sqlglot

from eventide.errors import CheckpointError
from eventide.plan.declared.program import Program, Step
from eventide.plan.declared.query import OrderBy
from eventide.plan.declared.stream import Stream
from eventide.plan.declared.window import GrowingWindow, LifeWindow, RowWindow, SameWindow, SessionWindow, Window

Json = dict[str, Any]

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
WINDOWS = {
    Window: "a span of time",
    GrowingWindow: "a span of time that grows",
    RowWindow: "a count of rows",
    SessionWindow: "the sessions of a group",
    LifeWindow: "the life of its state",
    SameWindow: "that of the query it reads",
}
SQL_FIELDS = ("where", "having")
WORDS = {
    "time": "its time column",
    "source": "its source",
    "arrival": "its arrival column",
    "timestamps": "the kind of its timestamps",
    "policy": "its policy",
    "input": "the format of its input",
    "punctuation": "the column of its promises",
    "promised": "the columns with ranges of its promises",
    "prods": "the column of its prods",
    "table": "how it is a table",
    "twin_of": "whose rows it has",
    "table.refresh": "REFRESH EVERY",
    "computed": "what its columns are computed by",
    "future": "what happens to rows of the future",
    "future.ahead": "how far rows may be ahead",
    "future.reject": "whether rows of the future are rejected",
    "stream": "what it reads",
    "inputs": "what it merges",
    "ordered": "whether it keeps the order of time",
    "simultaneous": "whether simultaneous rows wait for each other",
    "left": "its left input",
    "right": "its right input",
    "kind": "the kind of the join",
    "condition": "the condition of the join",
    "bands": "how it relates times",
    "window.over": "its window",
    "window.range": "RANGE",
    "window.slide": "SLIDE",
    "window.gap": "the gap of its sessions, or STATE TTL",
    "window.by": "the gap of its sessions",
    "window.offset": "the offset of its windows",
    "window.empty": "whether it shows empty windows",
    "where": "WHERE",
    "having": "HAVING",
    "retain": "how long windows are retained",
    "order": "ORDER BY",
    "limit": "LIMIT",
    "sample": "the share of rows that it takes",
    "by_source": "whether it closes by source",
}
"""How a field is called in a sentence; one that is not here goes by its own name."""


def described(program: Program) -> Json:
    """The declarations of a program as plain data, fit for JSON."""
    return {
        "streams": {stream.name: _stream(stream) for stream in program.streams},
        "queries": {step.name: _step(step) for step in (*program.queries, *program.operators)},
    }


def differences(old: Json, new: Json) -> list[str]:
    """One sentence for each thing that changed, streams first.

    >>> differences({"streams": {"s": {"columns": [["v", "INT"]]}}}, {"streams": {"s": {"columns": [["v", "BIGINT"]]}}})
    ["stream 's': column 'v' was INT, is now BIGINT"]
    """
    found: list[str] = []
    for kind, many in (("stream", "streams"), ("query", "queries")):
        before, after = old.get(many, {}), new.get(many, {})
        for name in [*before, *(name for name in after if name not in before)]:
            owner = f"{kind} {name!r}"
            if name not in after:
                found.append(f"{owner} is gone")
            elif name not in before:
                found.append(f"{owner} is new")
            else:
                found += (f"{owner}: {sentence}" for sentence in changes(before[name], after[name]))
    return found


def refuse_changes(old: Json, new: Json) -> None:
    """Raise an error that names every difference and the way out, if there is any."""
    if found := differences(old, new):
        raise CheckpointError(
            "this checkpoint was made by another program:\n  "
            + "\n  ".join(found)
            + "\nDeclare it as it was to continue, or give the changed program another checkpoint: it then starts anew "
            "from its inputs"
        )


def _stream(stream: Stream) -> Json:
    data = _without(_as_data(stream), "name")
    # Users write their own: the text of a policy says what was declared; where it lay in memory is no part of that.
    data["policy"] = ADDRESS.sub("", repr(stream.policy))
    data["input"] = stream.input.format if stream.input else None
    for later in ("known", "promised", "table", "computed", "removed", "twin_of"):
        data = data if getattr(stream, later) else _without(data, later)
    return data


def _step(step: Step) -> Json:
    # Prods and EMIT CHANGES change no state, and queues no answer: whoever wants other answers may go on with the same.
    data: Json = _as_data(step)
    for free in ("name", "prods", "changes", "room", "sideline"):
        data = _without(data, free)
    # Records of before this could be said do not have it.
    return data if data.get("simultaneous") else _without(data, "simultaneous")


def _as_data(value: Any) -> Any:
    if isinstance(value, OrderBy):
        return f"{value.sql} {value.direction}"
    if is_dataclass(value):
        named = {field.name: getattr(value, field.name) for field in fields(value)}
        if set(named) in ({"name", "type"}, {"name", "sql"}):
            return list(named.values())
        data = {name: _as_data(part) for name, part in named.items()}
        return {"over": WINDOWS[type(value)], **data} if type(value) in WINDOWS else data
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple | list):
        return [_as_data(part) for part in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return ADDRESS.sub("", repr(value))


def _without(data: Json, key: str) -> Json:
    return {name: value for name, value in data.items() if name != key}


def changes(old: Json, new: Json) -> Iterator[str]:
    """A sentence for each part of a stream or query that changed.

    >>> list(changes({"where": "v > 0"}, {"where": "v > 1"}))
    ['WHERE was v > 0, is now v > 1']
    """
    for key in dict.fromkeys((*old, *new)):
        if key not in old or key not in new:
            # A field that one version does not know yet is as good as one that declares nothing.
            if declared := old.get(key) or new.get(key):
                yield from _change(key, *((declared, None) if key in old else (None, declared)))
        else:
            yield from _change(key, old[key], new[key])


def _change(key: str, old: Any, new: Any) -> Iterator[str]:
    if old == new or (key in SQL_FIELDS and _same_sql(old, new)) or (key == "order" and _same_order(old, new)):
        return
    if _is_pairs(old or new):
        yield from _pair_changes(key, old or [], new or [])
    elif isinstance(old, dict) and isinstance(new, dict):
        yield from changes(_prefixed(key, old), _prefixed(key, new))
    else:
        yield f"{WORDS.get(key, key)} was {_in_words(old)}, is now {_in_words(new)}"


def _prefixed(key: str, parts: Json) -> Json:
    return {f"{key}.{part}": value for part, value in parts.items()}


def _is_pairs(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, list) and len(part) == 2 for part in value)


def _pair_changes(key: str, old: list[list[str]], new: list[list[str]]) -> Iterator[str]:
    """Columns with their types, or names with their SQL."""
    one = {"columns": "column", "groups": "group", "select": "value"}.get(key, key)
    before, after = dict(old), dict(new)
    for name in dict.fromkeys((*before, *after)):
        if name not in after:
            yield f"{one} {name!r} is gone"
        elif name not in before:
            yield f"{one} {name!r} is new"
        elif before[name] != after[name] and not (key != "columns" and _same_sql(before[name], after[name])):
            yield f"{one} {name!r} was {before[name]}, is now {after[name]}"
    if set(before) == set(after) and list(before) != list(after):
        yield f"the order of the {one}s was {', '.join(before)}, is now {', '.join(after)}"


def _same_sql(old: str | None, new: str | None) -> bool:
    if old is None or new is None:
        return False
    try:
        return sqlglot.parse_one(old, read="spark").sql("spark") == sqlglot.parse_one(new, read="spark").sql("spark")
    except sqlglot.errors.SqlglotError:
        return False


def _same_order(old: list[str] | None, new: list[str] | None) -> bool:
    one, other = (f"SELECT 1 ORDER BY {', '.join(order)}" if order else None for order in (old, new))
    return _same_sql(one, other)


def _in_words(value: Any) -> str:
    if value is None or value == []:
        return "not declared"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_in_words(part)}" for name, part in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
