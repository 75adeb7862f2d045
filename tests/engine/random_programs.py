"""Random programs of several streams, and what a batch query over the rows that were accepted says of them.

A story is a program (streams with policies of all kinds, windows, merges, joins, lookups, queries over them), what its
rounds bring, and how it is run: schedule, slow flush, restarts, rounds that die half-way. However it is run, at the end
of a bounded run each step has told what a batch query gives over the rows that were not late for whoever reads them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.clock_skew import ClockSkew
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.on_demand import OnDemand
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.eventtime.policies.wrappers.expected_sources import Expected
from eventide.eventtime.policies.wrappers.idleness import Idle
from eventide.eventtime.policies.wrappers.timeout import Timeout
from eventide.eventtime.scheduling.labels import HeartbeatScope
from eventide.eventtime.scheduling.options import IdlePolling, Scheduling
from eventide.plan.binding import through
from eventide.plan.declared.join import Band, Join, JoinKind, Lookup, Side
from eventide.plan.declared.program import Operator, Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import RowWindow, SameWindow, Window
from eventide.testing.oracle import windows_holding

SOURCES = ("a", "b")
SCHEMA = pa.schema([("t", pa.int64()), ("who", pa.string()), ("v", pa.int32()), ("done", pa.bool_())])
POLICIES: tuple[Policy, ...] = (
    OwnProgress(),
    OwnProgress(slack=3),
    OnDemand(max_skew=2),
    FixedDelay(4),
    ClockSkew(3),
    Idle(OwnProgress(), after=4),
    Timeout(FixedDelay(5), after=6),
    Expected(OwnProgress(), sources=(0, 1), wait=7),
)
PROMISING: tuple[Policy, ...] = (Punctuated(), Punctuated(OwnProgress()), Idle(Punctuated(), after=5))
KINDS = ("window", "window", "source", "rows", "merge", "join", "lookup", "same", "count", "results", "ends")
ASKING = (
    IdlePolling.on_demand(),
    IdlePolling.on_demand(),
    IdlePolling.every(1),
    IdlePolling.every(5),
    IdlePolling.never(),
)
AGGREGATES = named_as(n="count(*)", total="sum(v)", squares="sum(cast(v AS BIGINT) * v)")


@dataclass(frozen=True)
class Row:
    """A row on its way: the span of times that went into it, and its values by name."""

    start: int
    end: int
    values: tuple[tuple[str, Any], ...]

    @property
    def time(self) -> int:
        return self.end - 1

    def __getitem__(self, name: str) -> Any:
        return {**dict(self.values), "window_start": self.start, "window_end": self.end}[name]


@dataclass(frozen=True)
class Given:
    """One round: its clock, rows by stream as (time, source, value, is it a promise), and who is over."""

    clock: int
    rows: dict[str, list[tuple[int, str | None, int, bool]]]
    over: dict[str, list[str]]
    tick: bool
    restart: bool
    dies_after: str | None

    def tables(self) -> dict[str, pa.Table]:
        keys = SCHEMA.names
        return {
            name: pa.Table.from_pylist([dict(zip(keys, row, strict=True)) for row in rows], SCHEMA)
            for name, rows in self.rows.items()
        }


@dataclass(frozen=True)
class Story:
    """A program, its rounds, and how it is run."""

    program: Program
    rounds: tuple[Given, ...]
    scheduling: Scheduling
    flush_rows: int | None

    def expected(self, late: Counter[tuple[str, str, int]]) -> dict[str, Counter[tuple[Any, ...]]]:
        """What each step tells in the end, where `late` counts rows by (reader, stream, value)."""
        told: dict[str, list[Row]] = {}
        for step in self.program.steps:
            if isinstance(step, Query):
                inputs = through(self.program, step)
                rows = [row for name in inputs for row in self._accepted(step.name, name, told, late)]
                told[step.name] = windows_of(step, rows)
            elif isinstance(step, Rows):
                rows = [row for name in step.inputs for row in self._accepted(step.name, name, told, late)]
                names = [one.name for one in step.select] or ["t", "who", "v"]
                told[step.name] = [Row(row.start, row.end, tuple((name, row[name]) for name in names)) for row in rows]
            elif isinstance(step, Join):
                sides = (
                    self._accepted(step.name, side.input, told, late, f"{step.name}__{side.alias}")
                    for side in (step.left, step.right)
                )
                told[step.name] = pairs_of(step, *sides)
            else:
                rows = self._accepted(step.name, step.rows.input, told, late)
                told[step.name] = looked_up(step, rows, self._accepted(step.name, step.versions.input, told, late))
        return {name: Counter(shown(row) for row in rows) for name, rows in told.items()}

    def _accepted(
        self,
        reader: str,
        name: str,
        told: dict[str, list[Row]],
        late: Counter[tuple[str, str, int]],
        manager: str | None = None,
    ) -> list[Row]:
        if name in told:
            return told[name]
        rows = [row for one in self.rounds for row in one.rows.get(name, ()) if not row[3]]
        found = [Row(t, t + 1, (("t", t), ("who", who), ("v", v))) for t, who, v, _ in rows]
        return [row for row in found if not late[reader, name, row["v"]] and not late[manager or "", name, row["v"]]]


def names_of(step: Query | Operator) -> list[str]:
    """The columns that are compared."""
    if isinstance(step, Query):
        return [one.name for one in (*step.groups, *step.select)]
    return [one.name for one in step.select] or ["t", "who", "v"]


def shown(row: Row) -> tuple[Any, ...]:
    return (row.start, row.end, *(value for name, value in row.values))


def windows_of(query: Query, rows: Sequence[Row]) -> list[Row]:
    """The results of a query over all its rows."""
    held: dict[tuple[int, int], list[Row]] = {}
    if isinstance(query.window, RowWindow):
        rows = sorted(rows, key=lambda row: (row.time, *(row[group.name] for group in query.groups), row["v"]))
        for start in range(0, len(rows), query.window.slide):
            held[start, start + query.window.range] = list(rows[start : start + query.window.range])
    for row in rows if not isinstance(query.window, RowWindow) else ():
        same = isinstance(query.window, SameWindow)
        for window in [(row.start, row.end)] if same else windows_holding(_time(query), row.time):
            held.setdefault(window, []).append(row)
    found = []
    for (start, end), inside in held.items():
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in inside:
            groups.setdefault(tuple(row[group.name] for group in query.groups), []).append(row)
        for group, of in groups.items():
            values = [value for row in of if (value := row["v"]) is not None]
            total, squares = (sum(values), sum(v * v for v in values)) if values else (None, None)
            named = zip((one.name for one in query.groups), group, strict=True)
            found.append(Row(start, end, (*named, ("n", len(of)), ("v", total), ("squares", squares))))
    return found


def _time(query: Query) -> Window:
    assert isinstance(query.window, Window)
    return query.window


def pairs_of(join: Join, lefts: Sequence[Row], rights: Sequence[Row]) -> list[Row]:
    """All pairs, and the rows that have no partner where the join keeps them."""
    band, paired, found = join.bands[0], set[tuple[int, int]](), list[Row]()

    def tell(left: Row | None, right: Row | None) -> None:
        rows = [row for row in (left, right) if row is not None]
        values = [] if len(join.select) == 2 else [("who", left and left["who"])]
        values += [("v", left and left["v"]), ("w", right and right["v"])]
        found.append(Row(min(row.start for row in rows), max(row.end for row in rows), tuple(values)))

    for i, left in enumerate(lefts):
        for j, right in enumerate(rights):
            near = band.low <= right[band.right] - left[band.left] <= band.high
            if near and (not join.left.keys or left["who"] == right["who"]):
                paired |= {(0, i), (1, j)}
                tell(left, right)
    for i, left in enumerate(lefts):
        if join.kind.keeps_left and (0, i) not in paired:
            tell(left, None)
    for j, right in enumerate(rights):
        if join.kind.keeps_right and (1, j) not in paired:
            tell(None, right)
    return found


def looked_up(lookup: Lookup, rows: Sequence[Row], versions: Sequence[Row]) -> list[Row]:
    """Each row with the latest version of its key at its time."""
    found = []
    for row in rows:
        known = [(one.time, one["v"]) for one in versions if one["who"] == row["who"] and one.time <= row.time]
        if known or lookup.keeps_all:
            value = max(known)[1] if known else None
            found.append(Row(row.start, row.end, (("who", row["who"]), ("v", row["v"]), ("w", value))))
    return found


@st.composite
def streams(draw: st.DrawFn, name: str) -> Stream:
    policy = draw(st.sampled_from(POLICIES))
    punctuated = draw(st.integers(0, 3)) == 0
    if punctuated:
        policy = draw(st.sampled_from(PROMISING))
    return Stream(
        name,
        columns("t BIGINT, who STRING, v INT, done BOOLEAN"),
        time="t",
        source=("who",),
        policy=policy,
        punctuation="done" if punctuated else None,
    )


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Two or three streams, some operators over them, and queries over all that."""
    below = [draw(streams(f"s{number}")) for number in range(draw(st.integers(2, 3)))]
    names = [stream.name for stream in below]
    queries: list[Query] = []
    operators: list[Operator] = []
    plain, keyed = list(names), list(names)  # What has v, and what has v and the time of a single row in t.
    for number in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(KINDS))
        name = f"{kind}{number}"
        if kind == "window":
            groups = draw(st.sampled_from(((), ("who",))))
            read = draw(st.sampled_from(plain if not groups else keyed))
            queries.append(Query(name, read, draw(windows()), _aggregates(read, queries), named_as(*groups)))
            plain.append(name)
        elif kind == "source":
            read = draw(st.sampled_from(names))
            queries.append(Query(name, read, draw(windows()), AGGREGATES, named_as("who"), by_source=True))
            plain.append(name)
        elif kind == "same" and queries:
            read = draw(st.sampled_from([one.name for one in queries]))
            window = next(one.window for one in queries if one.name == read)
            if not isinstance(window, RowWindow):
                queries.append(Query(name, read, SameWindow(), _aggregates(read, queries)))
                plain.append(name)
        elif kind == "count":
            read = draw(st.sampled_from(keyed))
            window = RowWindow(draw(st.integers(1, 4)), draw(st.integers(1, 4)))
            queries.append(Query(name, read, window, _aggregates(read, queries)))
        elif kind in ("rows", "merge"):
            among = st.lists(st.sampled_from(names), min_size=2, max_size=3, unique=True)
            inputs = (draw(st.sampled_from(names)),) if kind == "rows" else tuple(draw(among))
            chosen = draw(st.sampled_from(((), named_as("t", "who", "v"))))
            operators.append(Rows(name, inputs, chosen, ordered=draw(st.booleans())))
            plain.append(name)
            keyed.append(name)
        elif kind in ("results", "ends"):
            timed = [one.name for one in queries if not isinstance(one.window, RowWindow)]
            if len(timed) < 2:
                continue
            left, right = draw(st.lists(st.sampled_from(timed), min_size=2, max_size=2, unique=True))
            if kind == "results":
                operators.append(Rows(name, (left, right), named_as(v="total"), ordered=draw(st.booleans())))
            else:
                bounds = draw(st.sampled_from((("window_end", "window_end"), ("window_start", "window_start"))))
                low = draw(st.integers(-5, 5))
                band = Band(*bounds, low, low + draw(st.integers(0, 6)))
                chosen = named_as(v="l.total", w="r.total")
                kinds = draw(st.sampled_from(tuple(JoinKind)))
                operators.append(Join(name, Side(left, "l"), Side(right, "r"), (band,), kinds, select=chosen))
            plain.append(name)
        elif kind in ("join", "lookup"):
            left, right = draw(st.lists(st.sampled_from(keyed), min_size=2, max_size=2, unique=True))
            chosen = named_as(who="l.who", v="l.v", w="r.v")
            if kind == "join":
                keys = draw(st.sampled_from(((), ("who",))))
                low = draw(st.integers(-5, 5))
                band = Band("t", "t", low, low + draw(st.integers(0, 6)))
                sides = Side(left, "l", keys), Side(right, "r", keys)
                kinds = draw(st.sampled_from(tuple(JoinKind)))
                operators.append(Join(name, *sides, (band,), kinds, select=chosen))
            else:
                sides = Side(left, "l", ("who",)), Side(right, "r", ("who",))
                operators.append(Lookup(name, *sides, draw(st.booleans()), select=chosen))
            plain.append(name)
    return Program(tuple(below), tuple(queries), tuple(operators))


def _aggregates(read: str, queries: Sequence[Query]) -> Any:
    """What a query tells has its sum under another name."""
    if any(query.name == read for query in queries):
        return tuple(replace(one, sql=one.sql.replace("v", "total")) for one in AGGREGATES)
    return AGGREGATES


@st.composite
def windows(draw: st.DrawFn) -> Window:
    return Window(draw(st.integers(1, 9)), draw(st.integers(1, 9)), draw(st.integers(0, 5)))


@st.composite
def stories(draw: st.DrawFn) -> Story:
    program = draw(programs())
    number, clock, rounds = 0, 100, []
    at = {(stream.name, source): 100 for stream in program.streams for source in SOURCES}
    for _ in range(draw(st.integers(2, 7))):
        clock += draw(st.integers(0, 6))
        rows: dict[str, list[tuple[int, str | None, int, bool]]] = {}
        for stream in program.streams:
            for source in draw(st.lists(st.sampled_from(SOURCES), max_size=3)):
                at[stream.name, source] = time = at[stream.name, source] + draw(st.integers(0, 4))
                number += 1
                row = (time - draw(st.integers(0, 3)), source, number, False)
                rows.setdefault(stream.name, []).append(row)
            if stream.punctuation and draw(st.booleans()):
                number += 1
                whose = draw(st.sampled_from((*SOURCES, None)))
                base = min(at[stream.name, one] for one in SOURCES if whose in (one, None))
                rows.setdefault(stream.name, []).append((base - draw(st.integers(0, 3)), whose, number, True))
        over = {}
        if draw(st.integers(0, 7)) == 0:
            over = {draw(st.sampled_from(program.streams)).name: [draw(st.sampled_from(SOURCES))]}
        dies = draw(st.sampled_from((None,) * 8 + ("reduce", "heartbeats", "advance", "emit")))
        tick, restart = draw(st.booleans()), draw(st.integers(0, 4)) == 0
        rounds.append(Given(clock, rows, over, tick, restart, dies))
    asking = draw(st.sampled_from(ASKING))
    scheduling = Scheduling(
        asking,
        draw(
            st.sampled_from(
                (HeartbeatScope.OPERATOR, HeartbeatScope.OPERATOR, HeartbeatScope.QUERY, HeartbeatScope.MEMORY)
            )
        ),
    )
    return Story(program, tuple(rounds), scheduling, draw(st.sampled_from((None, None, 1, 3))))
