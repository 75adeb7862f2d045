"""The prods of a step of a transcript, and those that a query declares.

Law: `prod` is one prod or a list of them. A prod has a `query` or operator (every query, if it names none), a `time`
(all windows with their last instant up to it; every open window without one), perhaps an `after` (only those with
their last instant after it), and a `group` with the values that its columns have. Times are those of the stream that
is read in the end.

>>> from eventide.testing.transcript_program import program_of
>>> stream = {"S": {"columns": {"t": "bigint", "k": "string"}, "time": "t"}}
>>> asked = {"select": {"n": "count(*)"}, "group": ["k"], "window": {"range": 10}}
>>> prods_of({"time": 50, "group": {"k": "a"}}, program_of({"streams": stream, "query": asked}))
(('query', Prod(up_to=50, after=-9223372036854775808, groups={'k': 'a'})),)
"""

from __future__ import annotations

from typing import Any

from eventide.eventtime.early.earliness import Earliness
from eventide.eventtime.early.prod import Prod
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.plan.declared.early import Prods
from eventide.plan.declared.program import Program
from eventide.plan.declared.stream import TimeKind
from eventide.testing.transcript_operators import known_keys
from eventide.testing.transcript_values import instant, length

PROD_KEYS = ("query", "time", "after", "group")
DECLARED_KEYS = ("every", "at", "within", "estimate", "by")


def declared_prods(written: Any, kind: TimeKind) -> Prods:
    """The prods that a query declares: `every` so often, `at` points of the slide, `within` an error, `by` a stream.

    >>> declared_prods({"at": [0.75], "estimate": True}, TimeKind.SEQUENCE)
    Prods(every=None, points=(0.75,), within=None, estimate=True, by=None, in_stream=False, compare=())
    """
    known_keys(written, DECLARED_KEYS, "`prods` of a query")
    at, within = written.get("at", ()), written.get("within")
    return Prods(
        every=length(written["every"], kind) if "every" in written else None,
        points=tuple(float(point) for point in (at if isinstance(at, list | tuple) else [at])),
        within=None if within is None else Earliness(**(within if isinstance(within, dict) else {"error": within})),
        estimate=bool(written.get("estimate")),
        by=written.get("by"),
    )


def prods_of(written: Any, program: Program) -> tuple[tuple[str, Prod], ...]:
    """Each prod with the query that it is for; `prod: true` asks every query for every open window."""
    found: list[tuple[str, Prod]] = []
    for one in written if isinstance(written, list) else [written]:
        given = {} if one is True else one
        known_keys(given, PROD_KEYS, "a prod")
        kinds = {stream.time_kind for stream in program.streams}
        kind = TimeKind.SEQUENCE if kinds == {TimeKind.SEQUENCE} else TimeKind.TIMESTAMP
        prod = Prod(
            instant(given["time"], kind) if "time" in given else FOREVER,
            instant(given["after"], kind) if "after" in given else NEVER,
            dict(given.get("group") or {}),
        )
        asked = given.get("query")
        if asked is not None and program.operator(asked) is None:
            program.query(asked)
        names = [query.name for query in program.queries] if asked is None else [asked]
        found += ((name, prod) for name in names)
    return tuple(found)
