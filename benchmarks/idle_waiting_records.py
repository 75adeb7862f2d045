"""Figures 7 and 8 of the Stream Mill paper, row by row: the scheduler of the time core over operators of a few lines.

The paper's system takes a row at a time, and so does this one: `depth_first` decides, and two selections and a union
keep deques. A row that comes while another is worked on waits for its turn: work takes the processor time that it took
here, and the clock of arrivals is virtual. So twenty minutes of rows need some seconds, and the latency of a row, from
its arrival until the union gives it, is measured down to microseconds.

Queue size counts rows that wait for their turn, rows that the union holds, and timestamps that were injected and not
taken yet (figure 8: many of them fill the queues themselves).
"""

from __future__ import annotations

import gc
import heapq
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from eventide.eventtime.instant import FOREVER, NEVER
from eventide.eventtime.scheduling.depth_first import depth_first
from eventide.eventtime.scheduling.labels import Node, Shape

SECOND = 1_000_000
PASSING = 95
SHAPE = Shape(
    ("fast", "slow"),
    (Node("fast_chosen", ("fast",)), Node("slow_chosen", ("slow",)), Node("all_rows", ("fast_chosen", "slow_chosen"))),
)
SELECTIONS = {"fast": "fast_chosen", "slow": "slow_chosen"}
UNION = "all_rows"

Row = tuple[int, str, int]
"""Clock of arrival, which is its time, stream and percent."""


@dataclass
class Arc:
    """What one has given and the reader has not taken: rows, and up to where time has come."""

    rows: deque[Row] = field(default_factory=deque)
    heartbeat: int = NEVER
    taken: int = NEVER


class Operators:
    """Two selections and a union (figure 4), for the scheduler; `ordered` says whether the union waits for time."""

    def __init__(self, ordered: bool) -> None:
        self._ordered = ordered
        self._arcs = {(read, node.name): Arc() for node in SHAPE.operators for read in node.inputs}
        self._held: list[Row] = []
        self.given: list[Row] = []
        self.clock = 0

    def bring(self, source: str, row: Row) -> None:
        """A row from outside, whose time is the clock's."""
        arc = self._arcs[source, SELECTIONS[source]]
        arc.rows.append(row)
        arc.heartbeat = row[0]

    @property
    def held(self) -> int:
        """How many rows the union holds."""
        return len(self._held)

    def gives(self, operator: str, reader: str) -> bool:
        """Whether there is a row or a later time on the way."""
        arc = self._arcs[operator, reader]
        return bool(arc.rows) or arc.heartbeat > arc.taken

    def run(self, operator: str) -> None:
        """Take what there is, and give what can be given."""
        if operator == UNION:
            self._unite()
            return
        source = operator.removesuffix("_chosen")
        came, goes = self._arcs[source, operator], self._arcs[operator, UNION]
        goes.rows.extend(row for row in came.rows if row[2] < PASSING)
        came.rows.clear()
        goes.heartbeat = came.taken = came.heartbeat

    def _unite(self) -> None:
        arcs = [self._arcs[name, UNION] for name in SELECTIONS.values()]
        for arc in arcs:
            for row in arc.rows:
                heapq.heappush(self._held, row)
            arc.rows.clear()
            arc.taken = arc.heartbeat
        bound = min(arc.taken for arc in arcs) if self._ordered else FOREVER
        while self._held and self._held[0][0] <= bound:
            self.given.append(heapq.heappop(self._held))

    def waits_for(self, operator: str, idle: tuple[str, ...]) -> str | None:
        """The input that holds up a row of the union, if it may be asked."""
        if operator != UNION or not self._held or not idle:
            return None
        others = [self._arcs[name, UNION].taken for name in SELECTIONS.values() if name not in idle]
        return None if min(others, default=FOREVER) < self._held[0][0] else self.slowest(operator, idle)

    def slowest(self, operator: str, idle: tuple[str, ...]) -> str:
        """The input whose time is least."""
        return min(idle, key=lambda read: self._arcs[read, operator].taken)

    def ask(self, source: str) -> bool:
        """Stamp a time on demand: no row can come with an earlier one."""
        arc = self._arcs[source, SELECTIONS[source]]
        moved = self.clock > arc.heartbeat
        arc.heartbeat = max(arc.heartbeat, self.clock)
        return moved


@dataclass(frozen=True)
class Line:
    """A line of the figures: what is known of the silent stream's time, and when."""

    name: str
    rate: float | None = None
    """Timestamps that are injected, per second."""
    on_demand: bool = False
    ordered: bool = True


def lines(rates: Sequence[float]) -> list[Line]:
    """A, B at these rates, C and D."""
    periodic = [Line(f"B {rate:g}/s", rate) for rate in rates]
    return [Line("A"), *periodic, Line("C", on_demand=True), Line("D", ordered=False)]


@dataclass(frozen=True)
class Measured:
    """What a line came to."""

    latency_ms: float
    waiting_share: float
    peak_rows: int
    rows: int


def _events(rows: Sequence[Row], rate: float | None) -> Iterator[tuple[int, Row | None]]:
    """Rows, and None for an injected timestamp, in the order of their clocks."""
    if rate is None:
        yield from ((row[0], row) for row in rows)
        return
    step, after = SECOND / rate, 1
    for row in rows:
        while after * step < row[0]:
            yield round(after * step), None
            after += 1
        yield row[0], row


def play(line: Line, rows: Sequence[Row]) -> Measured:
    """Every row through the plan; work takes the time that it took."""
    operators, idle = Operators(line.ordered), ("slow",) if line.on_demand else ()
    waits = np.zeros(len(rows))
    busy, done, waited, waits_since, peak = 0.0, 0, 0.0, 0.0, 0
    coming: deque[float] = deque()
    gc.collect()
    gc.disable()
    try:
        for clock, row in _events(rows, line.rate):
            while coming and coming[0] <= clock:
                coming.popleft()
            operators.clock = clock
            held = operators.held
            began = time.perf_counter()
            if row is None:
                operators.ask("slow")
            else:
                operators.bring(row[1], row)
            for _ in depth_first(SHAPE, operators, idle):
                pass
            took = SECOND * (time.perf_counter() - began)
            busy = max(busy, float(clock)) + took
            coming.append(busy)
            peak = max(peak, operators.held + len(coming))
            for given in operators.given:
                waits[done] = busy - given[0]
                done += 1
            operators.given.clear()
            if held == 0 and operators.held:
                waits_since = busy
            elif held and not operators.held:
                waited += busy - waits_since
    finally:
        gc.enable()
    span = max(busy, float(rows[-1][0]))
    if operators.held:
        waited += span - waits_since
    return Measured(float(np.mean(waits[:done])) / 1000, waited / span, peak, done)
