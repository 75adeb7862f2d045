"""The declarations of a transcript: its streams and queries, read into a program.

Law: fields have the names of the plan's own, in the words of a query: `from`, `select`, `group`, `where`, `having`,
`window`, `retain`, `order`, `limit`, `sample`. A query over another one (`from`) may have no window: it then has that
of the query it reads. Lengths and instants are in the units of the stream (seconds, or numbers of a sequence). A stream
without a policy moves only by explicit heartbeats.

>>> program = program_of({
...     "streams": {"S": {"columns": {"t": "timestamp", "k": "string"}, "time": "t", "policy": {"FixedDelay": "10 s"}}},
...     "query": {"select": {"n": "count(*)"}, "group": ["k"], "window": {"range": "1 min", "slide": 20}},
... })
>>> program.queries[0].window
Window(range=60000000, slide=20000000, offset=0, empty=False)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from eventide.errors import DeclarationError
from eventide.eventtime.punctuated import Punctuated
from eventide.language.script import read_script
from eventide.plan.columns import Column, columns, spark_type
from eventide.plan.order import order_by
from eventide.plan.program import Program
from eventide.plan.query import Named, Query, named_as
from eventide.plan.stream import Future, Stream, TimeKind, Timestamps
from eventide.plan.window import TUMBLING, RowWindow, SameWindow, Window
from eventide.testing.transcript_values import instant, length
from eventide.testing.written import policy

STREAM_KEYS = ("columns", "time", "source", "arrival", "timestamps", "policy", "future", "known")
QUERY_KEYS = ("from", "select", "group", "where", "having", "window", "retain", "order", "limit", "sample")
WINDOW_KEYS = ("range", "slide", "offset", "empty", "rows")


def program_of(written: dict[str, Any]) -> Program:
    """The streams and queries of a transcript; `query` alone is one query of the name `query`."""
    declared = written.get("streams")
    if not isinstance(declared, dict) or not declared:
        raise DeclarationError("a transcript needs `streams`: a mapping of names to declarations")
    streams = {str(name): _stream(str(name), stream) for name, stream in declared.items()}
    asked = dict(written.get("queries") or {})
    if "query" in written:
        asked["query"] = written["query"]
    if any(isinstance(query, str) for query in asked.values()):
        return _in_sql(asked, tuple(streams.values()))
    kinds = {name: stream.time_kind for name, stream in streams.items()}
    queries: list[Query] = []
    # What a query reads may be declared after it.
    waiting = {str(name): query for name, query in asked.items()}
    while waiting:
        ready = [name for name, query in waiting.items() if _reads(name, query, streams) in kinds] or list(waiting)
        for name in ready:
            queries.append(_query(name, waiting.pop(name), streams, kinds))
            kinds[name] = _edges(queries[-1], kinds)
    declared_order = list(map(str, asked))
    return Program(tuple(streams.values()), tuple(sorted(queries, key=lambda q: declared_order.index(q.name))))


def _in_sql(asked: dict[Any, Any], streams: tuple[Stream, ...]) -> Program:
    """Queries that are written in SQL."""
    fields = [name for name, query in asked.items() if not isinstance(query, str)]
    if fields:
        raise DeclarationError(f"query {fields[0]!r} is written in fields, and others in SQL: write all in one way")
    text = ";\n".join(f"CREATE QUERY {name} AS\n{query}" for name, query in asked.items())
    return read_script(text, streams=streams).program


def known_keys(written: Any, known: Sequence[str], owner: str) -> None:
    """Refuse a key that means nothing, naming the one that was meant.

    >>> known_keys({"slid": 1}, WINDOW_KEYS, "a window")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a window has no 'slid': did you mean 'slide'? It may have range, slide, offset, \
empty, rows
    """
    if not isinstance(written, dict):
        raise DeclarationError(f"{owner} must be a mapping with some of {', '.join(known)}, not {written!r}")
    for key in written:
        if key not in known:
            close = get_close_matches(str(key), known, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise DeclarationError(f"{owner} has no {key!r}: {hint}It may have {', '.join(known)}")


def _stream(name: str, written: Any) -> Stream:
    known_keys(written, STREAM_KEYS, f"stream {name!r}")
    source = written.get("source", [])
    kinds = {kind.value: kind for kind in Timestamps}
    timestamps = written.get("timestamps", "external")
    if timestamps not in kinds:
        raise DeclarationError(f"stream {name!r}: timestamps are {', '.join(kinds)}, not {timestamps!r}")
    stream = Stream(
        name,
        _columns(name, written.get("columns")),
        time=written.get("time"),
        source=(source,) if isinstance(source, str) else tuple(source),
        arrival=written.get("arrival"),
        timestamps=kinds[timestamps],
        policy=policy(written["policy"]) if "policy" in written else Punctuated(),
        known=tuple(map(str, written.get("known", ()))),
    )
    return stream if "future" not in written else _guarded(stream, written["future"])


def _guarded(stream: Stream, written: Any) -> Stream:
    known_keys(written, ("ahead", "reject"), f"`future` of stream {stream.name!r}")
    ahead = length(written.get("ahead", 0), stream.time_kind)
    return replace(stream, future=Future(ahead, bool(written.get("reject", False))))


def _columns(stream: str, written: Any) -> tuple[Column, ...]:
    if isinstance(written, str):
        return columns(written)
    if not isinstance(written, dict) or not written:
        raise DeclarationError(f"stream {stream!r} needs `columns`: a mapping of names to types")
    return tuple(Column(str(name), spark_type(str(kind))) for name, kind in written.items())


def _reads(name: str, written: Any, streams: dict[str, Stream]) -> Any:
    """What a query reads: if there is but one stream, it need not be said."""
    only = next(iter(streams)) if len(streams) == 1 else None
    return written.get("from", only) if isinstance(written, dict) else only


def _edges(query: Query, kinds: dict[str, TimeKind]) -> TimeKind:
    """What the windows of a query begin and end with."""
    return TimeKind.SEQUENCE if isinstance(query.window, RowWindow) else kinds.get(query.stream, TimeKind.SEQUENCE)


def _query(name: str, written: Any, streams: dict[str, Stream], kinds: dict[str, TimeKind]) -> Query:
    known_keys(written, QUERY_KEYS, f"query {name!r}")
    reads = _reads(name, written, streams)
    if reads is None:
        raise DeclarationError(f"query {name!r} reads from nothing; write `from:` and one of {', '.join(streams)}")
    kind = kinds.get(reads, TimeKind.SEQUENCE)
    order = written.get("order", [])
    window = written.get("window")
    return Query(
        name,
        reads,
        SameWindow() if window is None and reads not in streams else _window(name, window, kind),
        select=_named(name, "select", written.get("select", {})),
        groups=_named(name, "group", written.get("group", [])),
        where=written.get("where"),
        having=written.get("having"),
        retain=length(written.get("retain", 0), kind),
        order=order_by(*([order] if isinstance(order, str) else map(str, order))),
        limit=written.get("limit"),
        sample=written.get("sample"),
    )


def _named(query: str, key: str, written: Any) -> tuple[Named, ...]:
    if isinstance(written, str):
        return named_as(written)
    if isinstance(written, list):
        return named_as(*map(str, written))
    if isinstance(written, dict):
        return tuple(Named(str(name), str(sql)) for name, sql in written.items())
    raise DeclarationError(f"query {query!r}: write `{key}` as a list of columns or a mapping of names to expressions")


def _window(query: str, written: Any, kind: TimeKind) -> Window | RowWindow:
    known_keys(written, WINDOW_KEYS, f"the window of query {query!r}")
    if "rows" in written:
        return RowWindow(written["rows"], written.get("slide", TUMBLING))
    if "range" not in written:
        raise DeclarationError(f"the window of query {query!r} needs `range`, or `rows` for a count of rows")
    shape = length(written["range"], kind)
    slide = length(written["slide"], kind) if "slide" in written else TUMBLING
    return Window(shape, slide, instant(written.get("offset", 0), kind), bool(written.get("empty", False)))
