"""Random programs: streams with policies of all kinds and twins, windows, merges, joins, lookups, queues, queries."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.clock_skew import ClockSkew
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.on_demand import OnDemand
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.eventtime.policies.wrappers.expected_sources import Expected
from eventide.eventtime.policies.wrappers.idleness import Idle
from eventide.eventtime.policies.wrappers.timeout import Timeout
from eventide.eventtime.scheduling.labels import HeartbeatScope
from eventide.eventtime.scheduling.options import IdlePolling, Scheduling
from eventide.plan.declared.join import Band, Join, JoinKind, Lookup, Side
from eventide.plan.declared.program import Operator, Program
from eventide.plan.declared.query import Named, Query, named_as
from eventide.plan.declared.rows import Queue, Rows
from eventide.plan.declared.stream import Input, Stream, columns
from eventide.plan.declared.window import RowWindow, SameWindow, Window

POLICIES: tuple[Policy, ...] = (
    OwnProgress(),
    OwnProgress(slack=3),
    OnDemand(max_skew=2),
    FixedDelay(4),
    ClockSkew(3),
    DropRatio(0.1),
    Idle(OwnProgress(), after=4),
    Timeout(FixedDelay(5), after=6),
    Expected(OwnProgress(), sources=(0, 1), wait=7),
)
PROMISING: tuple[Policy, ...] = (Punctuated(), Punctuated(OwnProgress()), Idle(Punctuated(), after=5))
KINDS = (
    *("window", "window", "source", "rows", "merge", "join", "lookup", "same", "count", "results", "ends"),
    *("queue", "retain"),
)  # fmt: skip
SCHEDULES = (
    *(Scheduling(),) * 4,
    *(Scheduling(asking) for asking in (IdlePolling.every(1), IdlePolling.every(5), IdlePolling.never())),
    *(Scheduling(heartbeats=scope) for scope in (HeartbeatScope.QUERY, HeartbeatScope.MEMORY)),
)
AGGREGATES = named_as(n="count(*)", total="sum(v)", squares="sum(cast(v AS BIGINT) * v)")
OVER_RESULTS = tuple(replace(one, sql=one.sql.replace("v", "total")) for one in AGGREGATES)
INPUTS = (*("topic",) * 12, "json", "csv", "follow")


def random_stream(chance: Random, name: str) -> Stream:
    """A stream with a policy; where it takes promises, a column has them."""
    punctuated = chance.randrange(4) == 0
    return Stream(
        name,
        columns("t BIGINT, who STRING, v INT, done BOOLEAN"),
        time="t",
        source=("who",),
        policy=chance.choice(PROMISING if punctuated else POLICIES),
        punctuation="done" if punctuated else None,
        input=Input(chance.choice(INPUTS), max_rows=chance.choice((None, None, None, 2, 5))),
    )


def random_twin(chance: Random, stream: Stream) -> Stream:
    """The rows of a stream under another policy."""
    policy = chance.choice(PROMISING if stream.punctuation is not None else POLICIES)
    return stream.twin(f"{stream.name}_twin", policy)


def random_program(chance: Random) -> Program:
    """One to three streams, some operators over them, and queries over all that."""
    return _Builder(chance).program()


class _Builder:
    """A program that grows, step after step."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        read = tuple(random_stream(chance, f"s{number}") for number in range(chance.choice((1, 2, 2, 3))))
        # Of its own chance, so that a story without twins is the one that it always was.
        twins = Random(repr(read))
        self.streams = (*read, *(random_twin(twins, stream) for stream in read if twins.randrange(4) == 0))
        self.names = [stream.name for stream in self.streams]
        self.plain = list(self.names)
        """What has v."""
        self.keyed = list(self.names)
        """What has v, and the time of a single row in t."""
        self.queries: list[Query] = []
        self.operators: list[Operator] = []

    def program(self) -> Program:
        for number in range(self.chance.choice((1, 1, 2, 2, 3, 4))):
            kind = self.chance.choice(KINDS)
            getattr(self, f"_{kind}")(f"{kind}{number}")
        if not self.queries and not self.operators:
            self._window("window9")
        return Program(self.streams, tuple(self.queries), tuple(self.operators))

    def _window(self, name: str) -> None:
        groups = self.chance.choice(((), ("who",)))
        read = self.chance.choice(self.keyed if groups else self.plain)
        self._query(Query(name, read, self._length(), self._aggregates(read), named_as(*groups)))

    def _source(self, name: str) -> None:
        read = self.chance.choice(self.names)
        self._query(Query(name, read, self._length(), AGGREGATES, named_as("who"), by_source=True))

    def _retain(self, name: str) -> None:
        # Who reads it would take its first results: nobody does.
        window, groups = Window(self.chance.choice((3, 5, 8))), self.chance.choice(((), ("who",)))
        read, retain = self.chance.choice(self.names), self.chance.choice((8, 20))
        self.queries.append(Query(name, read, window, AGGREGATES, named_as(*groups), retain=retain))

    def _queue(self, name: str) -> None:
        queue = Queue(f"{name}_queue", (self.chance.choice(self.names),), room=self.chance.choice((1, 2, 5)))
        self.operators.append(queue)
        self._query(Query(name, queue.name, self._length(), AGGREGATES))

    def _same(self, name: str) -> None:
        timed = self._timed()
        if timed:
            read = self.chance.choice(timed)
            self._query(Query(name, read, SameWindow(), self._aggregates(read)))

    def _count(self, name: str) -> None:
        read = self.chance.choice(self.keyed)
        window = RowWindow(self.chance.randint(1, 4), self.chance.randint(1, 4))
        self.queries.append(Query(name, read, window, self._aggregates(read)))

    def _rows(self, name: str) -> None:
        self._merged(name, (self.chance.choice(self.names),))

    def _merge(self, name: str) -> None:
        if len(self.names) > 1:
            self._merged(name, tuple(self.chance.sample(self.names, self.chance.randint(2, len(self.names)))))

    def _merged(self, name: str, inputs: tuple[str, ...]) -> None:
        chosen = self.chance.choice(((), named_as("t", "who", "v")))
        self.operators.append(Rows(name, inputs, chosen, ordered=self.chance.random() < 0.5))
        self.plain.append(name)
        self.keyed.append(name)

    def _results(self, name: str) -> None:
        timed = self._timed()
        if len(timed) > 1:
            ordered = self.chance.random() < 0.5
            inputs = tuple(self.chance.sample(timed, 2))
            self.operators.append(Rows(name, inputs, named_as(v="total"), ordered=ordered))
            self.plain.append(name)

    def _ends(self, name: str) -> None:
        timed = self._timed()
        if len(timed) > 1:
            left, right = self.chance.sample(timed, 2)
            edge = self.chance.choice(("window_end", "window_start"))
            self._joined(name, Side(left, "l"), Side(right, "r"), edge, named_as(v="l.total", w="r.total"))

    def _join(self, name: str) -> None:
        keys = self.chance.choice(((), ("who",)))
        self._joined(name, *self._sides(keys), "t", named_as(who="l.who", v="l.v", w="r.v"))

    def _joined(self, name: str, left: Side, right: Side, edge: str, chosen: tuple[Named, ...]) -> None:
        low = self.chance.choice((-5, -2, 0, 1))
        band = Band(edge, edge, low, low + self.chance.choice((0, 2, 6)))
        kind = self.chance.choice(tuple(JoinKind))
        self.operators.append(Join(name, left, right, (band,), kind, select=chosen))
        self.plain.append(name)

    def _lookup(self, name: str) -> None:
        chosen = named_as(who="l.who", v="l.v", w="r.v")
        keeps_all = self.chance.random() < 0.5
        self.operators.append(Lookup(name, *self._sides(("who",)), keeps_all, select=chosen))
        self.plain.append(name)

    def _sides(self, keys: tuple[str, ...]) -> tuple[Side, Side]:
        left, right = self.chance.sample(self.keyed, 2) if len(self.keyed) > 1 else self.keyed * 2
        return Side(left, "l", keys), Side(right, "r", keys)

    def _query(self, query: Query) -> None:
        self.queries.append(query)
        self.plain.append(query.name)

    def _timed(self) -> list[str]:
        return [one.name for one in self.queries if not isinstance(one.window, RowWindow) and not one.retain]

    def _aggregates(self, read: str) -> tuple[Named, ...]:
        """What a query tells has its sum under another name."""
        return OVER_RESULTS if any(query.name == read for query in self.queries) else AGGREGATES

    def _length(self) -> Window:
        return self.chance.choice(
            (Window(1), Window(5), Window(8), Window(6, 2), Window(7, 3), Window(3, 5), Window(4, 4, 1))
        )
