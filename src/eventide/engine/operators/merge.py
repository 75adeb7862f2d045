"""Rows merged or projected: they wait for their place in the order, or are emitted as they come.

Laws. *Ordered*: a row is emitted when the least heartbeat of the inputs has passed its time, in the order of time and
then of values, so the order does not depend on rounds. *Late*: a row is late when that heartbeat has passed its time in
a round before: its place in the order is gone. Behind the heartbeat of its own input alone it still counts. *As they
come*: without order a row is emitted in its own round; it is late in the same case, because who reads the rows was
promised that none of such a time comes any more. (Gigascope paper, section 5.3; Stream Mill paper, section 2.) *Slow
flush* (`slow_flush`): rows in order that are too many for a round wait for the next ones.

*Simultaneous* (Stream Mill paper, section 4.1 and figures 5 and 6). Where only the order of time is asked for, a row is
emitted as soon as no earlier one can come: when the heartbeat has reached the instant before it. The registers of the
paper hold the time that each input has come to, and a row of the least of them goes; here an input that has come to 5
and may have more rows at 5 has the heartbeat 4, so a row at 5 goes when every input has the heartbeat 4. The promise
stays what it is: later rows are after 4. So one more row at 5 is not late, and goes at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Self

import pyarrow as pa

from eventide.engine.operators.frontier import UNKNOWN, OperatorFrontier, after, before, least_time
from eventide.engine.operators.operator import Ingested, InputProgress, Late, Operator, Output, output_layout
from eventide.engine.operators.slow_flush import nth_value
from eventide.engine.operators.time_range import from_time, known_times, least_live, least_since
from eventide.engine.relations.executor import Executor, Inputs, Statement, one_row
from eventide.engine.relations.relation import Layout, Relation
from eventide.engine.relations.segments import Segments
from eventide.eventtime.instant import FOREVER, NEVER, Instants
from eventide.plan.bound.rows import SPAN_START, BoundRows
from eventide.plan.expressions.columns import Column, quoted

START = "__start"


@dataclass(frozen=True)
class RowsOperator(Operator):
    """What emits the rows that come in; `arrived` have come since it last advanced."""

    bound: BoundRows
    executor: Executor
    arrived: tuple[Relation, ...] = field(default=(), kw_only=True)
    frontier: OperatorFrontier = field(default=UNKNOWN, kw_only=True)
    begins: int = field(default=NEVER, kw_only=True)

    def own(self, rows: Relation) -> Relation:
        """The rows whose time is not before it began."""
        return from_time(self.executor, rows, self.begins)

    @property
    def name(self) -> str:
        """The name that others read it by."""
        return self.bound.name

    def renames(self, port: str) -> Mapping[str, str]:
        """What the outputs are called in the rows of a port."""
        names = zip(self.bound.outputs, self.bound.names_in_port, strict=True)
        return {START: SPAN_START, **{output.name: name for output, name in names}}

    def stamps(self, port: str, clock: int) -> Mapping[str, int]:
        """The clock, for rows without a time of their own."""
        return {"__pane": clock, "__t": clock, SPAN_START: clock}


@dataclass(frozen=True)
class Merge(RowsOperator):
    """Rows that wait for their place in the order."""

    waiting: Segments

    @classmethod
    def start(cls, bound: BoundRows, executor: Executor, begins: int = NEVER) -> Self:
        """A merge that has seen nothing; rows before `begins` are not for it."""
        return cls(bound, executor, Segments(rows_layout(bound)), begins=begins)

    @property
    def holds(self) -> Instants:
        """The times of rows that wait."""
        return known_times(self.waiting)

    @property
    def state(self) -> Mapping[str, Segments]:
        """The rows that wait for their place in the order."""
        return {"waiting": self.waiting}

    def with_state(self, state: Mapping[str, Segments]) -> Self:
        """A copy whose rows are elsewhere or in other files."""
        return replace(self, waiting=state["waiting"])

    def layout(self, port: str) -> Layout:
        """The columns that the rows of all ports share."""
        return self.waiting.layout

    def ingest(self, port: str, rows: Relation, sources: pa.Table | None = None) -> tuple[Self, Ingested]:
        """Add rows that came into a port; those that the frontier has passed are late."""
        accepted = from_time(self.executor, rows, after(self.frontier.time))
        late = None
        if accepted.rows < rows.rows:
            late = Late.before(rows.rows - accepted.rows, "__t", after(self.frontier.time))
        return replace(self, arrived=(*self.arrived, accepted)), Ingested(rows.rows, late)

    def would_emit(self, inputs: Sequence[InputProgress]) -> bool:
        """Whether inputs that have come so far would let a row go."""
        first = least_since(self.waiting, "__t", after(self._emitted_to(self.frontier.time)))
        return first is not None and first <= self._emitted_to(least_time(one.frontier for one in inputs))

    def _emitted_to(self, heartbeat: int) -> int:
        """Up to which time rows have gone at a heartbeat; further ones of that time may still come."""
        return after(heartbeat) if self.bound.rows.simultaneous else heartbeat

    def advance(self, inputs: Sequence[InputProgress], limit: int | None = None) -> tuple[Self, Output]:
        """Emit the rows that time has passed, or, without order, all that have come."""
        time = max(self.frontier.time, least_time(one.frontier for one in inputs))
        arrived = Segments(self.waiting.layout).add(*self.arrived)
        if not self.bound.rows.ordered:
            run = replace(self, frontier=self._frontier(time, inputs, self.waiting), arrived=())
            return run, self._output(arrived, NEVER, FOREVER)
        every = self.waiting.add(*arrived.parts)
        time = time if limit is None else self._slowly(every, time, limit)
        gone, going = self._emitted_to(self.frontier.time), self._emitted_to(time)
        output = self._output(every, after(gone), going)
        if self.bound.rows.simultaneous:
            # Rows of an instant that went before are in what waits, where it is on the cluster; these are the new ones.
            output = self._output(arrived, gone, gone).with_more(output)
        waiting = every.trimmed("__t", after(going)).merged(self.executor.merged)
        run = replace(self, frontier=self._frontier(time, inputs, waiting), waiting=waiting, arrived=())
        return run, output

    def _slowly(self, every: Segments, time: int, limit: int) -> int:
        """Up to which time about so many rows go; the end lets all of them go."""
        first, last = after(self._emitted_to(self.frontier.time)), self._emitted_to(time)
        at = None if time == FOREVER else nth_value(self.executor, every, "__t", first, last, max(1, limit))
        if at is None:
            return time
        return before(at) if self.bound.rows.simultaneous else at

    def frontier_at(self, inputs: Sequence[InputProgress]) -> OperatorFrontier:
        """Its frontier once its inputs have come so far, which lets no row go."""
        time = max(self.frontier.time, least_time(one.frontier for one in inputs))
        return self._frontier(time, inputs, self.waiting)

    def _frontier(self, time: int, inputs: Sequence[InputProgress], waiting: Segments) -> OperatorFrontier:
        """Later rows are later than this; the outputs that carry time have at least what is to come or waits."""
        if time in (NEVER, FOREVER):
            return OperatorFrontier(time)
        frontiers = {one.port: one.frontier for one in inputs}
        found: dict[str, list[int]] = {}
        least: dict[str, int | Fraction] = {}
        for name, ports in self.bound.carried.items():
            if name in self.bound.made_of_time:
                # Whether it waits or is to come: its time is later.
                least[name] = min(carried.at(time + 1) for carried in ports.values())
                continue
            still = {port: carried for port, carried in ports.items() if not frontiers[port].is_over}
            known = [
                carried.value(int(bound))
                for port, carried in still.items()
                if (bound := frontiers[port].least.get(carried.column)) is not None
            ]
            if len(known) == len(still):
                found[name] = known
        held = least_live(self.executor, waiting, tuple(found), after(self._emitted_to(time)))
        for name, known in found.items():
            known = [*known, held[name]] if name in held else known
            least |= {name: min(known)} if known else {}
        return OperatorFrontier(time, least)

    def _output(self, rows: Segments, first: int, last: int) -> Output:
        """Rows of a stretch of time, in the order of time and values where that is asked for."""
        layout = output_layout(self.bound.outputs)
        ready = rows if first == NEVER and last == FOREVER else rows.within("__t", first, last)
        if not ready.parts or first > last:
            return Output.of(layout)
        inputs: Inputs = {"ready": ready, "span": one_row(first=first, last=last)}
        return Output.of(layout, self.executor.relation(emitted_rows(self.bound), inputs, layout))

    def snapshot(self) -> dict[str, Any]:
        """What is saved besides the rows that wait, as plain data."""
        return {"frontier": self.frontier.saved(), "begins": self.begins}

    def restored(self, saved: Mapping[str, Any], state: Mapping[str, Segments]) -> Self:
        """The operator as it was saved; its files may still hold rows that were emitted."""
        frontier = OperatorFrontier.restored(saved["frontier"])
        waiting = state["waiting"].trimmed("__t", after(self._emitted_to(frontier.time)))
        return replace(self, frontier=frontier, waiting=waiting, begins=saved.get("begins", NEVER))


def rows_layout(bound: BoundRows, *more: Column) -> Layout:
    """The columns of rows that wait: their time, the start of their span, and the outputs."""
    carried = tuple(name for name in bound.carried if name not in bound.made_of_time)
    columns = (Column("__t", "BIGINT"), Column(START, "BIGINT"), *bound.outputs)
    return Layout((*more, *columns), ("__t", *carried))


STRETCH = "ready CROSS JOIN span WHERE ready.__t >= span.__first AND ready.__t <= span.__last"


def emitted_rows(bound: BoundRows, rows: str = STRETCH) -> Statement:
    """Rows as output: those that are `ready`, of a stretch of time."""
    outputs = [quoted(column.name) for column in bound.outputs]
    shown = [f"{START} AS window_start", "__t + 1 AS window_end", "CAST(1 AS BIGINT) AS `rows`"]
    text = f"SELECT {', '.join([*shown, *outputs, 'CAST(NULL AS STRING) AS __lost'])} FROM {rows}"
    portable = all(port.driver_exact for port in bound.ports)
    if not bound.rows.ordered:
        return Statement(text, portable)
    order = ", ".join(["window_end", *outputs, "window_start"])
    return Statement(text, portable, f" ORDER BY {order}", ordered=True)
