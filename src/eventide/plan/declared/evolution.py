"""What a changed program does to a checkpoint: for each stream and query, whether it continues, begins, or goes.

Laws. A checkpoint belongs to streams and queries, each with a fingerprint of its own. What is declared as before, over
inputs that continue, goes on with its state, and gives what it would have given without the change. *Added*: it begins
at the present, with the rows whose time is after every time that has come; or, backfilled, with all rows that its
sources have ever given. *Changed*: its state is of another declaration and is dropped; it begins as an added one does.
A query whose input begins anew is changed, too. *Removed*: its state is dropped, and windows that it has open are never
answered. What drops state has to be accepted; all else needs no word.

*Columns.* A column more in a stream changes nothing but operators that keep whole rows. A column that is gone, or has
another type, changes what speaks of it.

*Policies.* One whose numbers alone are others continues with what it has learned. Another one learns anew; the
heartbeat stays where it is, since a promise is not taken back.

>>> from eventide.plan.declared.fingerprint import described
>>> from eventide.plan.declared.program import Program
>>> from eventide.plan.declared.query import Query, named_as
>>> from eventide.plan.declared.stream import Stream, columns
>>> from eventide.plan.declared.window import Window
>>> traffic = Stream("traffic", columns("ts TIMESTAMP, speed INT"), time="ts")
>>> def program(**values):
...     queries = (Query(name, "traffic", Window(300), named_as(v=sql)) for name, sql in values.items())
...     return described(Program((traffic,), tuple(queries)))
>>> found = Evolution.between(program(mean="avg(speed)", top="max(speed)"), program(top="min(speed)", n="count(*)"))
>>> print(*found.words(), sep="\\n")
stream traffic: unchanged, continues
query top: changed, begins anew after the rows that have come (value 'v' was max(speed), is now min(speed))
query n: added, begins after the rows that have come
query mean: removed, its state is dropped
>>> found.drops_state
True
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from eventide.errors import CheckpointError, DeclarationError
from eventide.plan.declared.fingerprint import changes
from eventide.plan.expressions.columns import nearest_of

Json = dict[str, Any]

STREAM, QUERY = "stream", "query"
KINDS = {STREAM: "streams", QUERY: "queries"}
NUMBER = re.compile(r"-?\d[\d_]*(\.\d+)?(e[+-]?\d+)?")
WORD = re.compile(r"\w+")
SHAPED_BY_NUMBERS = ("Skew", "Slack", "Kim", "Quantile", "Histogram", "Group")
"""Policies whose state is laid out by their numbers: with other ones it means something else."""
NAMED = ("select", "groups")
"""What has names of its own, which are no columns of an input."""
OF_TIME = frozenset({"time", "source", "arrival", "timestamps", "known", "punctuation", "promised", "prods"})
"""What decides how rows of a stream are read as time: with another one its past says nothing of its future."""


class Verdict(Enum):
    """What becomes of a stream or query."""

    UNCHANGED = "unchanged"
    ADJUSTED = "adjusted"
    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


class Begin(Enum):
    """Where a stream or query goes on."""

    STATE = "continues"
    PRESENT = "begins anew after the rows that have come"
    BEGINNING = "begins with all rows that its sources have given"
    LEARNING = "its policy learns anew, its heartbeat stays"
    OTHER_INPUT = "its new input is read from the beginning, its heartbeat stays"
    NOTHING = "its state is dropped"


@dataclass(frozen=True)
class Part:
    """A stream or query, what becomes of it, and why."""

    kind: str
    name: str
    verdict: Verdict
    begin: Begin
    because: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The part in a sentence."""
        begin = self.begin.value
        if self.verdict is Verdict.ADDED:
            read = self.kind == STREAM and self.begin is Begin.BEGINNING
            begin = "is read from its beginning" if read else begin.replace(" anew", "")
        reasons = f" ({'; '.join(self.because)})" if self.because else ""
        return f"{self.kind} {self.name}: {self.verdict.value}, {begin}{reasons}"

    def as_json(self) -> Json:
        """The part as plain data."""
        names = {"kind": self.kind, "name": self.name, "verdict": self.verdict.value}
        return {**names, "begins": self.begin.name.lower(), "because": list(self.because), "words": self.words}


@dataclass(frozen=True)
class Consent:
    """What the user agrees to: that state is dropped, and which queries are to read the past of their sources."""

    accept: bool = False
    backfill: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evolution:
    """What becomes of every stream and query of two programs; streams first, the old order before the new."""

    parts: tuple[Part, ...]
    inputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What the queries of the new program read."""

    @classmethod
    def between(cls, old: Json, new: Json, running: Collection[str] = (), backfill: Collection[str] = ()) -> Evolution:
        """Compare two programs as `described`; `running` are the operators of the old one that have state."""
        return _Comparison(old, new, frozenset(running)).evolution(tuple(backfill))

    @property
    def drops_state(self) -> bool:
        """Whether something is lost that only the user can give up."""
        return any(part.verdict in (Verdict.CHANGED, Verdict.REMOVED) for part in self.parts)

    @property
    def is_nothing(self) -> bool:
        """Whether all continues."""
        return all(part.begin is Begin.STATE for part in self.parts)

    def of(self, kind: str, *begins: Begin) -> tuple[str, ...]:
        """The names of the streams or queries that go on in one of these ways."""
        return tuple(part.name for part in self.parts if part.kind == kind and part.begin in begins)

    @property
    def history_of(self) -> tuple[str, ...]:
        """The streams whose past is read again."""
        waiting, found = [*self.of(QUERY, Begin.BEGINNING)], dict[str, None]()
        while waiting:
            name = waiting.pop()
            if name in self.inputs:
                waiting += self.inputs[name]
            else:
                found[name] = None
        added = {part.name for part in self.parts if part.verdict is Verdict.ADDED}
        other = self.of(STREAM, Begin.OTHER_INPUT)
        return tuple(name for name in found if name not in added and name not in other)

    def words(self) -> list[str]:
        """A sentence for each stream and query."""
        return [part.words for part in self.parts]

    def as_json(self) -> Json:
        """The evolution as plain data."""
        return {"drops_state": self.drops_state, "parts": [part.as_json() for part in self.parts]}

    def check(self, consent: Consent) -> None:
        """Refuse to drop state without consent, in the words of the plan."""
        if self.drops_state and not consent.accept:
            parts = [part.words for part in self.parts if part.begin is not Begin.STATE or part.because]
            raise CheckpointError(
                "this checkpoint was made by another program:\n  "
                + "\n  ".join(parts)
                + "\nDeclare it as it was to continue; accept what is said here (--accept, in Python accept=True); or "
                "give the changed program another checkpoint: it then starts anew from its inputs"
            )


class _Comparison:
    """Two programs side by side; every query is looked at after what it reads."""

    def __init__(self, old: Json, new: Json, running: frozenset[str]) -> None:
        self._old, self._new, self._running = old, new, running
        self._found: dict[str, Part] = {}
        self._columns: dict[str, tuple[frozenset[str], bool]] = {}
        """By input: the columns that are gone or of another type, and whether there are more or in another order."""

    def evolution(self, backfill: tuple[str, ...]) -> Evolution:
        queries = self._new["queries"]
        for name in self._new["streams"]:
            self._found[name] = self._stream(name)
        for name in queries:
            self._query(name)
        inputs = {name: _reads(step) for name, step in queries.items()}
        for name in backfill:
            self._backfill(name, inputs)
        gone = [
            Part(kind, name, Verdict.REMOVED, Begin.NOTHING)
            for kind, many in KINDS.items()
            for name in self._old.get(many, {})
            if name not in self._new[many]
        ]
        order = {name: place for place, name in enumerate((*self._new["streams"], *queries))}
        kept = sorted(self._found.values(), key=lambda part: order[part.name])
        # Of a table there is no past: it is read as it is.
        tables = {name for name, stream in self._new["streams"].items() if stream.get("table")}
        # The past of a twin is that of the stream whose rows it has.
        rows_of = {name: stream.get("twin_of") or name for name, stream in self._new["streams"].items()}
        streams = {
            name: tuple(rows_of.get(read, read) for read in reads if read not in tables)
            for name, reads in inputs.items()
        }
        return Evolution((*kept, *gone), streams)

    # Streams

    def _stream(self, name: str) -> Part:
        before, now = self._old["streams"].get(name), self._new["streams"][name]
        self._columns[name] = frozenset(), False
        if before is None:
            begins_there = now.get("twin_of") in self._old["streams"]
            return Part(STREAM, name, Verdict.ADDED, Begin.PRESENT if begins_there else Begin.BEGINNING)
        broken, grown = _columns_changed(before["columns"], now["columns"])
        broken |= _computed_otherwise(before.get("computed") or (), now.get("computed") or ())
        found = tuple(changes(before, now))
        different = {key for key in (*before, *now) if before.get(key) != now.get(key)}
        of_time = bool(different & OF_TIME) or any(role in broken for role in _roles(now))
        self._columns[name] = broken, grown
        if not found:
            return Part(STREAM, name, Verdict.UNCHANGED, Begin.STATE)
        if of_time:
            return Part(STREAM, name, Verdict.CHANGED, Begin.PRESENT, found)
        if "input" in different:
            return Part(STREAM, name, Verdict.CHANGED, Begin.OTHER_INPUT, found)
        if not _same_policy(before, now):
            return Part(STREAM, name, Verdict.CHANGED, Begin.LEARNING, found)
        return Part(STREAM, name, Verdict.ADJUSTED, Begin.STATE, found)

    # Queries

    def _query(self, name: str) -> Part:
        if name in self._found:
            return self._found[name]
        now, before = self._new["queries"][name], self._old.get("queries", {}).get(name)
        for read in _reads(now):
            if read in self._new["queries"]:
                self._query(read)
        part = self._compared(name, before, now)
        self._found[name] = part
        return part

    def _compared(self, name: str, before: Json | None, now: Json) -> Part:
        self._columns[name] = frozenset(), False
        if before is None:
            return Part(QUERY, name, Verdict.ADDED, Begin.PRESENT)
        because = [*changes(before, now), *self._inherited(now), *self._spoken(name, now)]
        if because:
            return Part(QUERY, name, Verdict.CHANGED, Begin.PRESENT, tuple(because))
        return Part(QUERY, name, Verdict.UNCHANGED, Begin.STATE)

    def _inherited(self, now: Json) -> Iterator[str]:
        for read in _reads(now):
            if self._found[read].begin in (Begin.PRESENT, Begin.BEGINNING):
                yield f"it reads {read}, which begins anew"

    def _spoken(self, name: str, now: Json) -> Iterator[str]:
        """What of the columns of its inputs has changed for a query that is declared as before."""
        text = json.dumps({**now, **{key: [sql for _, sql in now.get(key) or ()] for key in NAMED}}).lower()
        spoken = set(WORD.findall(text))
        whole = not now.get("select") or now.get("sample") is not None
        for read in _reads(now):
            broken, grown = self._columns[read]
            if whole and "stream" not in now and name not in self._running and not now.get("where"):
                # A plain merge keeps nothing: who reads it reads its inputs.
                others, more = self._columns[name]
                self._columns[name] = others | broken, more or grown
                continue
            for column in sorted(broken):
                if whole or column in spoken or (not WORD.fullmatch(column) and column in text):
                    yield f"column {column!r} of {read} is gone or of another type"
            if grown and whole:
                yield f"it keeps whole rows of {read}, which has other columns"

    # Backfill

    def _backfill(self, name: str, inputs: Mapping[str, tuple[str, ...]]) -> None:
        if name not in inputs:
            raise DeclarationError(f"there is no query {name!r} to backfill: {nearest_of(name, inputs)}")
        part = self._found[name]
        if part.begin is Begin.STATE:
            raise DeclarationError(f"query {name!r} continues with its state: there is nothing to backfill")
        self._found[name] = Part(QUERY, name, part.verdict, Begin.BEGINNING, part.because)
        for read in inputs[name]:
            if read not in inputs:
                continue
            if self._found[read].begin is Begin.STATE and self._keeps_nothing(read):
                continue
            if self._found[read].begin is Begin.STATE:
                raise DeclarationError(
                    f"query {name!r} cannot be backfilled: it reads {read!r}, whose earlier results are not kept. Let "
                    f"it begin at the present, or declare what {read!r} computes once more under another name"
                )
            self._backfill(read, inputs)

    def _keeps_nothing(self, name: str) -> bool:
        now = self._new["queries"][name]
        plain = "inputs" in now and not now.get("select") and not now.get("where")
        return plain and name not in self._running


def _roles(stream: Json) -> list[str]:
    """The columns that tell time and sources, in small letters.

    >>> _roles({"time": "TS", "source": ["who"], "arrival": None})
    ['ts', 'who']
    """
    named = [stream.get(key) for key in ("time", "arrival", "punctuation", "prods")]
    edges = [edge for one in stream.get("promised", ()) for edge in one]
    return [name.lower() for name in (*named, *edges, *stream.get("source", ())) if name is not None]


def _reads(step: Json) -> tuple[str, ...]:
    """What a query or operator reads, of its plain data.

    >>> _reads({"stream": "s"}), _reads({"rows": {"input": "orders"}, "versions": {"input": "prices"}})
    (('s',), ('orders', 'prices'))
    """
    if "stream" in step:
        return (step["stream"],)
    if "inputs" in step:
        return tuple(step["inputs"])
    sides = (step[side]["input"] for side in ("left", "right", "rows", "versions") if side in step)
    return tuple(dict.fromkeys(sides))


def _columns_changed(before: list[list[str]], now: list[list[str]]) -> tuple[frozenset[str], bool]:
    """The columns that are gone or of another type, and whether the others are more or in another order.

    >>> _columns_changed([["t", "BIGINT"], ["v", "INT"]], [["t", "BIGINT"], ["V", "DOUBLE"], ["w", "INT"]])
    (frozenset({'v'}), True)
    """
    old, new = ({name.lower(): kind for name, kind in columns} for columns in (before, now))
    broken = frozenset(name for name, kind in old.items() if new.get(name) != kind)
    return broken, list(old) != list(new)


def _computed_otherwise(before: Collection[list[str]], now: Collection[list[str]]) -> frozenset[str]:
    """The columns that are computed from others in another way than before.

    >>> sorted(_computed_otherwise([["a", "x + 1"], ["b", "x"]], [["a", "x + 2"], ["b", "x"]]))
    ['a']
    """
    old, new = ({name.lower(): sql for name, sql in columns} for columns in (before, now))
    return frozenset(name for name in {*old, *new} if old.get(name) != new.get(name))


def _same_policy(before: Json, now: Json) -> bool:
    """Whether policies differ in numbers alone, so that one goes on with the state of the other."""
    guards = [one.get("future") is None for one in (before, now)]
    texts = [str(one.get("policy")) for one in (before, now)]
    if texts[0] == texts[1]:
        return guards[0] == guards[1]
    shaped = any(word in texts[0] for word in SHAPED_BY_NUMBERS)
    return guards[0] == guards[1] and not shaped and NUMBER.sub("#", texts[0]) == NUMBER.sub("#", texts[1])
