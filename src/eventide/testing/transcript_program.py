"""Read the streams, queries and policies of a transcript.

Law: fields have the names of the plan's own, in the words of a query: `from`, `select`, `group`, `where`, `having`,
`window`, `retain`, `order`, `limit`, `sample`, `by_source`, `prods`, `queue`; operators are written as
`transcript_operators` says. A query over another one (`from`) may have no window: it then has that of the query it
reads. A `queue` has a `room`; with `one_in`, `within` or `sideline: true` bursts are set aside. Lengths and instants
are in the units of the stream (seconds, or numbers of a sequence). A stream without a policy moves only by explicit
heartbeats, and by promises in its rows where it has some.

>>> program = program_of({
...     "streams": {"S": {"columns": {"t": "timestamp", "k": "string"}, "time": "t", "policy": {"FixedDelay": "10 s"}}},
...     "query": {"select": {"n": "count(*)"}, "group": ["k"], "window": {"range": "1 min", "slide": 20}},
... })
>>> program.queries[0].window
Window(range=60000000, slide=20000000, offset=0, empty=False)

*Policies.* They are written in YAML, and built into what they mean. `Name: arguments` calls the class or function of
`eventide.eventtime` that has the name, with arguments that are built the same way, so policies nest (`Timeout: {inner:
{FixedDelay: 10}, after: 60}`). `Name.method` calls a class method (`SkewMatrix.of: ...`). Lists are tuples; `never` and
`forever` are the ends of time; a length of time with its unit (`10 s`, `250 ms`) is so many microseconds. Everything
else means itself.

>>> built({"Timeout": {"inner": {"FixedDelay": "10 s"}, "after": "1 min"}})
Timeout(inner=FixedDelay(delay=10000000), after=60000000)
>>> built(["never", 3]) == (NEVER, 3)
True
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import eventide.eventtime
from eventide.errors import DeclarationError
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.language.script import read_script
from eventide.plan.declared.program import Operator, Program
from eventide.plan.declared.query import Query, order_by
from eventide.plan.declared.rows import Queue, Sideline, queued
from eventide.plan.declared.stream import Future, Stream, Table, TimeKind, Timestamps
from eventide.plan.declared.window import (
    TUMBLING,
    AnyWindow,
    GrowingWindow,
    RowWindow,
    SameWindow,
    SessionWindow,
    Window,
)
from eventide.plan.expressions.columns import Column, columns, spark_type
from eventide.profile.amounts import duration
from eventide.testing.transcript_operators import declared_prods, inputs_of, known_keys, named_of, operator_of
from eventide.testing.transcript_values import instant, length

_LENGTH = re.compile(r"\s*\d+(\.\d+)?\s*(us|ms|s|sec|m|min|h|d)\s*")


@cache
def registry() -> dict[str, Any]:
    """Every public name that a module of `eventide.eventtime` defines.

    >>> "FixedDelay" in registry() and "NEVER" not in registry()
    True
    """
    names: dict[str, Any] = {}
    for module_info in pkgutil.walk_packages(eventide.eventtime.__path__, "eventide.eventtime."):
        module = importlib.import_module(module_info.name)
        defined_here = {k: v for k, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__}
        names.update({name: value for name, value in defined_here.items() if not name.startswith("_")})
    return names


def built(written: Any) -> Any:
    """The value that a piece of a transcript stands for.

    >>> built({"Minimum": [{"FixedDelay": 1}, {"FixedDelay": 2}]})
    Minimum(policies=(FixedDelay(delay=1), FixedDelay(delay=2)))
    """
    known = registry()
    match written:
        case "never":
            return NEVER
        case "forever":
            return FOREVER
        case str() if written in known:
            return known[written]()
        case str() if _LENGTH.fullmatch(written):
            return duration(written)
        case list():
            return tuple(built(item) for item in written)
        case dict() if len(written) == 1 and _head(next(iter(written))) in known:
            [(name, arguments)] = written.items()
            head, *rest = name.split(".")
            factory = known[head]
            for attribute in rest:
                factory = getattr(factory, attribute)
            if isinstance(arguments, dict) and not (len(arguments) == 1 and _head(next(iter(arguments))) in known):
                return factory(**{key: built(value) for key, value in arguments.items()})
            return factory() if arguments is None else factory(built(arguments))
        case dict():
            return {key: built(value) for key, value in written.items()}
        case _:
            return written


def policy(written: Any) -> Policy:
    """The policy that is written; an error names what is no policy.

    >>> policy({"FixedDelai": 10})
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: {'FixedDelai': 10} is no policy: write one as `Name: arguments`, \
such as `FixedDelay: 10 s`
    """
    try:
        found = built(written)
    except TypeError as wrong:
        raise DeclarationError(f"the policy {written!r} cannot be built: {wrong}") from wrong
    if isinstance(found, type) or not isinstance(found, Policy):
        raise DeclarationError(f"{written!r} is no policy: write one as `Name: arguments`, such as `FixedDelay: 10 s`")
    return found


def _head(name: object) -> str:
    return str(name).split(".")[0]


STREAM_KEYS = (
    "columns", "time", "source", "arrival", "timestamps", "policy", "future", "known", "punctuation", "promised",
    "prods",
    "table",
)  # fmt: skip
QUERY_KEYS = (
    "from", "select", "group", "where", "having", "window", "retain", "order", "limit", "sample", "by_source", "prods",
    "queue",
)  # fmt: skip
WINDOW_KEYS = ("range", "slide", "offset", "empty", "rows", "step", "session", "session_by")


def program_of(written: dict[str, Any]) -> Program:
    """The streams and queries of a transcript, or its `script`; `query` alone is one query of the name `query`."""
    if "script" in written:
        beside = [key for key in ("streams", "queries", "query", "operators") if key in written]
        if beside:
            raise DeclarationError(f"`script` declares everything, and {beside[0]!r} is given too: keep one of them")
        return read_script(str(written["script"])).program
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
    merged = {str(name): operator for name, operator in (written.get("operators") or {}).items()}
    steps: dict[str, Query | Operator] = {}
    # What a query reads may be declared after it.
    waiting = {str(name): query for name, query in asked.items()} | merged
    while waiting:
        ready = [name for name, step in waiting.items() if _reads(step, name in merged, streams) <= set(kinds)]
        for name in ready or list(waiting):
            step = waiting.pop(name)
            if name in merged:
                steps[name] = operator_of(name, step, kinds)
                kinds[name] = next((kinds[read] for read in inputs_of(step) if read in kinds), TimeKind.SEQUENCE)
            else:
                steps[name] = query = _query(name, step, streams, kinds, merged)
                kinds[name] = _edges(query, kinds)
    queries = [step for name in asked if isinstance(step := steps[str(name)], Query)]
    operators = [step for name in merged if not isinstance(step := steps[name], Query)]
    for place, query in enumerate(queries):
        if "queue" in asked[query.name]:
            queue, queries[place] = _queue(query, asked[query.name]["queue"], merged)
            operators.append(queue)
    return Program(tuple(streams.values()), tuple(queries), tuple(operators))


def _queue(query: Query, written: Any, operators: Mapping[str, Any]) -> tuple[Queue, Query]:
    """The queue before a query, and the query behind it."""
    known_keys(written, ("room", "sideline", "one_in", "within"), f"`queue` of query {query.name!r}")
    aside = bool(written.get("sideline")) or "one_in" in written or "within" in written
    within = length(written["within"], TimeKind.TIMESTAMP) if "within" in written else None
    sideline = Sideline(written.get("one_in"), within) if aside else None
    inputs = inputs_of(operators[query.stream]) if query.stream in operators else (query.stream,)
    return queued(query, inputs, f"{query.name}_queue", room=written.get("room"), sideline=sideline)


def _in_sql(asked: dict[Any, Any], streams: tuple[Stream, ...]) -> Program:
    """Queries that are written in SQL."""
    fields = [name for name, query in asked.items() if not isinstance(query, str)]
    if fields:
        raise DeclarationError(f"query {fields[0]!r} is written in fields, and others in SQL: write all in one way")
    text = ";\n".join(f"CREATE QUERY {name} AS\n{query}" for name, query in asked.items())
    return read_script(text, streams=streams).program


def _stream(name: str, written: Any) -> Stream:
    known_keys(written, STREAM_KEYS, f"stream {name!r}")
    source = written.get("source", [])
    kinds = {kind.value: kind for kind in Timestamps}
    timestamps = written.get("timestamps", "internal" if written.get("table") else "external")
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
        punctuation=written.get("punctuation"),
        promised=tuple((column, *edges) for column, edges in written.get("promised", {}).items()),
        prods=written.get("prods"),
        table=Table() if written.get("table") else None,
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


def _reads(written: Any, is_operator: bool, streams: dict[str, Stream]) -> set[Any]:
    return set(inputs_of(written)) if is_operator else {_read(written, streams)}


def _read(written: Any, streams: dict[str, Stream]) -> Any:
    """What a query reads: if there is but one stream, it need not be said."""
    only = next(iter(streams)) if len(streams) == 1 else None
    return written.get("from", only) if isinstance(written, dict) else only


def _edges(query: Query, kinds: dict[str, TimeKind]) -> TimeKind:
    """What the windows of a query begin and end with."""
    return TimeKind.SEQUENCE if isinstance(query.window, RowWindow) else kinds.get(query.stream, TimeKind.SEQUENCE)


def _query(
    name: str, written: Any, streams: dict[str, Stream], kinds: dict[str, TimeKind], operators: Mapping[str, Any]
) -> Query:
    known_keys(written, QUERY_KEYS, f"query {name!r}")
    reads = _read(written, streams)
    if reads is None:
        raise DeclarationError(f"query {name!r} reads from nothing; write `from:` and one of {', '.join(streams)}")
    kind = kinds.get(reads, TimeKind.SEQUENCE)
    order = written.get("order", [])
    window = written.get("window")
    return Query(
        name,
        reads,
        SameWindow() if window is None and reads not in (*streams, *operators) else _window(name, window, kind),
        select=named_of(name, "select", written.get("select", {})),
        groups=named_of(name, "group", written.get("group", [])),
        where=written.get("where"),
        having=written.get("having"),
        retain=length(written.get("retain", 0), kind),
        order=order_by(*([order] if isinstance(order, str) else map(str, order))),
        limit=written.get("limit"),
        sample=written.get("sample"),
        by_source=bool(written.get("by_source", False)),
        prods=declared_prods(written["prods"], kind) if "prods" in written else None,
    )


def _window(query: str, written: Any, kind: TimeKind) -> AnyWindow:
    known_keys(written, WINDOW_KEYS, f"the window of query {query!r}")
    if "session" in written:
        return SessionWindow(length(written["session"], kind))
    if "session_by" in written:
        return SessionWindow(by=written["session_by"])
    if "rows" in written:
        return RowWindow(written["rows"], written.get("slide", TUMBLING))
    if "range" not in written:
        raise DeclarationError(f"the window of query {query!r} needs `range`, `session`, or `rows` for a count of rows")
    shape = length(written["range"], kind)
    if "step" in written:
        return GrowingWindow(shape, length(written["step"], kind), instant(written.get("offset", 0), kind))
    slide = length(written["slide"], kind) if "slide" in written else TUMBLING
    return Window(shape, slide, instant(written.get("offset", 0), kind), bool(written.get("empty", False)))
