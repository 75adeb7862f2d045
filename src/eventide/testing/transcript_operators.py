"""Read the operators of a transcript, and its prods.

Law: an operator is a mapping with `merge`, the names of what it merges, with `join`, the names of its two inputs, or
with `lookup`, the names of a stream and of the stream of a table's versions. A merge may have `select`, `where`,
`ordered` and `simultaneous`; a join `kind`, `keys` (pairs of equal expressions, or one name for both), `bands`,
`condition`, `where`, `select`, and `as` and `only`, each a pair: names for the inputs, and conditions on their rows. A
band is `[left, right]`, or `[left, right, low, high]`; its edges are numbers, or lengths like `5 s`. A lookup has what
a join has, but `keeps_all` and `removed` in the place of `kind`, `bands` and `condition`; with `as_it_is` it is a join
with a table, a stream with `table: true`, whose rows of a step are all that it holds from then on.

>>> operator_of("all", {"merge": ["north", "south"], "ordered": False}, {}).ordered
False
>>> flows = operator_of("flows", {"join": ["a", "b"], "bands": [["t", "t", -5, 5]], "keys": ["k"]}, {})
>>> flows.bands, flows.right.keys
((Band(left='t', right='t', low=-5, high=5),), ('k',))

*Prods.* A step may have prods, and a query may declare some. `prod` is one prod or a list of them. A prod has a `query`
or operator (every query, if it names none), a `time` (all windows with their last instant up to it; every open window
without one), perhaps an `after` (only those with their last instant after it), and a `group` with the values, lists or
ranges (`between: [low, high]`) that its columns have. Times are those of the stream that is read in the end.

>>> from eventide.testing.transcript_program import program_of
>>> stream = {"S": {"columns": {"t": "bigint", "k": "string"}, "time": "t"}}
>>> asked = {"select": {"n": "count(*)"}, "group": ["k"], "window": {"range": 10}}
>>> [(name, prod)] = prods_of({"time": 50, "group": {"k": "a"}}, program_of({"streams": stream, "query": asked}))
>>> name, prod == Prod(up_to=50, groups={"k": "a"})
('query', True)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from eventide.errors import DeclarationError
from eventide.eventtime.early.prod import Prod
from eventide.eventtime.early.triggers import Earliness
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.plan.declared.join import Band, Join, JoinKind, Lookup, Side
from eventide.plan.declared.program import Operator, Program
from eventide.plan.declared.query import Named, Prods, named_as
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import TimeKind
from eventide.testing.transcript_values import instant, length

MERGE_KEYS = ("merge", "select", "where", "ordered", "simultaneous")
JOIN_KEYS = ("join", "kind", "keys", "bands", "condition", "where", "select", "as", "only")
LOOKUP_KEYS = ("lookup", "keys", "keeps_all", "removed", "where", "select", "as", "only", "as_it_is")


def operator_of(name: str, written: Any, kinds: Mapping[str, TimeKind]) -> Operator:
    """The operator that is written under a name; `kinds` are the times of what it may read."""
    owner = f"operator {name!r}"
    if isinstance(written, dict) and "join" in written:
        known_keys(written, JOIN_KEYS, owner)
        return _join(name, written, kinds)
    if isinstance(written, dict) and "lookup" in written:
        known_keys(written, LOOKUP_KEYS, owner)
        return _lookup(name, written)
    known_keys(written, MERGE_KEYS, owner)
    if "merge" not in written:
        raise DeclarationError(f"{owner} needs `merge`, `join` or `lookup`: the names of what it reads")
    select = named_of(name, "select", written.get("select", []))
    ordered, simultaneous = bool(written.get("ordered", True)), bool(written.get("simultaneous"))
    return Rows(name, inputs_of(written), select, written.get("where"), ordered, simultaneous=simultaneous)


def inputs_of(written: Any) -> tuple[str, ...]:
    """The names of what an operator reads."""
    known = written if isinstance(written, dict) else {}
    read: Any = known.get("merge") or known.get("join") or known.get("lookup") or ()
    return (read,) if isinstance(read, str) else tuple(map(str, read))


def _sides(name: str, written: dict[str, Any]) -> tuple[Side, Side]:
    inputs = inputs_of(written)
    if len(inputs) != 2:
        raise DeclarationError(f"operator {name!r} joins two inputs, not {len(inputs)}: join the result with a third")
    keys = [(key, key) if isinstance(key, str) else tuple(key) for key in written.get("keys", ())]
    aliases, only = written.get("as", inputs), written.get("only", (None, None))
    left, right = (Side(inputs[i], str(aliases[i]), tuple(str(pair[i]) for pair in keys), only[i]) for i in (0, 1))
    return left, right


def _lookup(name: str, written: dict[str, Any]) -> Lookup:
    select = named_of(name, "select", written.get("select", []))
    keeps_all, removed, where = bool(written.get("keeps_all", False)), written.get("removed"), written.get("where")
    as_it_is = bool(written.get("as_it_is", False))
    return Lookup(name, *_sides(name, written), keeps_all, removed, where, select, as_it_is)


def _join(name: str, written: dict[str, Any], kinds: Mapping[str, TimeKind]) -> Join:
    left, right = _sides(name, written)
    kind = kinds.get(left.input, TimeKind.SEQUENCE)
    return Join(
        name,
        left,
        right,
        tuple(_band(band, kind) for band in written.get("bands", ())),
        JoinKind(written.get("kind", "inner")),
        written.get("condition"),
        written.get("where"),
        named_of(name, "select", written.get("select", [])),
    )


def _band(written: Sequence[Any], kind: TimeKind) -> Band:
    left, right, *edges = written
    low, high = (_edge(edge, kind) for edge in edges) if edges else (0, 0)
    return Band(str(left), str(right), low, high)


def _edge(written: Any, kind: TimeKind) -> int | None:
    """A number, a length of time such as `5 s`, or null; a band may relate numbers although times are no numbers."""
    if written is None or isinstance(written, int):
        return written
    text = str(written)
    return -length(text[1:], kind) if text.startswith("-") else length(text, kind)


def known_keys(written: Any, known: Sequence[str], owner: str) -> None:
    """Refuse a key that means nothing, naming the one that was meant.

    >>> known_keys({"slid": 1}, ("range", "slide"), "a window")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a window has no 'slid': did you mean 'slide'? It may have range, slide
    """
    if not isinstance(written, dict):
        raise DeclarationError(f"{owner} must be a mapping with some of {', '.join(known)}")
    for key in written:
        if key not in known:
            close = get_close_matches(str(key), known, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise DeclarationError(f"{owner} has no {key!r}: {hint}It may have {', '.join(known)}")


def named_of(owner: str, key: str, written: Any) -> tuple[Named, ...]:
    """Columns, or expressions under names, as a transcript writes them."""
    if isinstance(written, str):
        return named_as(written)
    if isinstance(written, list):
        return named_as(*map(str, written))
    if isinstance(written, dict):
        return tuple(Named(str(name), str(sql)) for name, sql in written.items())
    raise DeclarationError(f"query {owner!r}: write `{key}` as a list of columns or a mapping of names to expressions")


PROD_KEYS = ("query", "time", "after", "group")
DECLARED_KEYS = ("every", "rows", "discarding", "at", "within", "estimate", "by", "where")


def declared_prods(written: Any, kind: TimeKind) -> Prods:
    """The prods that a query declares: `every` so often, so many `rows`, `at` points, `within` an error, `by` a stream.

    >>> declared_prods({"at": [0.75], "estimate": True}, TimeKind.SEQUENCE) == Prods(points=(0.75,), estimate=True)
    True
    """
    known_keys(written, DECLARED_KEYS, "`prods` of a query")
    at, within = written.get("at", ()), written.get("within")
    return Prods(
        every=length(written["every"], kind) if "every" in written else None,
        every_rows=written.get("rows"),
        discarding=bool(written.get("discarding")),
        points=tuple(float(point) for point in (at if isinstance(at, list | tuple) else [at])),
        within=None if within is None else Earliness(**(within if isinstance(within, dict) else {"error": within})),
        estimate=bool(written.get("estimate")),
        by=written.get("by"),
        where=written.get("where", {}),
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
