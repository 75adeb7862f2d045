"""Rows, merged or projected, while they run: they wait for their place in the order, or are told as they come.

Laws. *Ordered*: a row is told when the least heartbeat of the inputs has passed its time, in the order of time and then
of values, so the order does not depend on rounds. *Late*: a row is late when that heartbeat has passed its time in a
round before: its place in the order is gone. Behind the heartbeat of its own input alone it still counts. *As they
come*: without order a row is told in its own round; it is late in the same case, because who reads the rows was
promised that none of such a time comes any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.arrow_types import arrow_type
from eventide.engine.frontiers import least_time
from eventide.engine.operator_run import Frontier, Kept
from eventide.engine.taken import Answer, Taken
from eventide.engine.waiting_rows import WaitingRows
from eventide.engine.workbench import Bench
from eventide.eventtime.instant import FOREVER, NEVER, Instants
from eventide.plan.bound_rows import BoundRows
from eventide.plan.port import SPAN_START
from eventide.plan.stream import Timestamps
from eventide.plan.temporal import DAY

START = "__start"


@dataclass(frozen=True)
class RowsRun:
    """Rows that wait, and those that have come in the round under way."""

    bound: BoundRows
    bench: Bench
    frontier: Frontier = field(default_factory=Frontier)
    waiting: WaitingRows = field(default_factory=WaitingRows)
    come: tuple[pa.Table, ...] = ()
    added: pa.Table | None = None

    @property
    def rows(self) -> int:
        """Rows that are held."""
        return self.waiting.rows

    @property
    def bytes(self) -> int:
        """Memory of the rows that are held."""
        return self.waiting.bytes

    @property
    def holds(self) -> Instants:
        """The times of rows that are held, ascending, each once."""
        return self.waiting.times

    def stamped(self, port: str, chunk: pa.Table, clock: int) -> pa.Table:
        """Rows without a time of their own: theirs is the clock of the round."""
        [into] = (into for into in self.bound.ports if into.query.name == port)
        if into.stream.timestamps is Timestamps.EXTERNAL or chunk.num_rows == 0:
            return chunk
        time = pa.array(np.full(chunk.num_rows, clock, dtype=np.int64))
        for name in ("__pane", "__t", SPAN_START):
            chunk = chunk.set_column(chunk.column_names.index(name), name, time)
        return chunk

    def take(self, port: str, chunk: pa.Table) -> tuple[Self, Taken]:
        """Add the rows of a round that came into a port; those that the frontier has passed are late."""
        late = chunk.slice(0, 0)
        if self.frontier.time != NEVER and chunk.num_rows:
            passed = pc.less_equal(chunk.column("__t"), self.frontier.time)
            late, chunk = chunk.filter(passed), chunk.filter(pc.invert(passed))
        times = tuple(pc.unique(late.column("__t")).to_pylist())
        taken = Taken(chunk.num_rows + late.num_rows, chunk, times, late.num_rows)
        if chunk.num_rows == 0:
            return self, taken
        return replace(self, come=(*self.come, self._rows_of(chunk))), taken

    def would_tell(self, frontiers: Mapping[str, Frontier]) -> bool:
        """Whether these frontiers of the ports' inputs would tell a row."""
        return self.waiting.first <= least_time(frontiers.values())

    def advance(self, frontiers: Mapping[str, Frontier]) -> tuple[Self, Answer]:
        """Tell the rows that time has passed, or, without order, all that have come."""
        time = max(self.frontier.time, least_time(frontiers.values()))
        ready, waiting, added = list(self.come), self.waiting, None
        if self.bound.rows.ordered:
            passed, waiting = self.waiting.parted(time)
            ready, fresh = WaitingRows.of(self.come).parted(time)
            ready, waiting = [*passed, *ready], waiting.added(*fresh.tables)
            added = pa.concat_tables(fresh.tables) if fresh.rows else None
        frontier = Frontier(time, self._least(time, frontiers, waiting))
        run = replace(self, frontier=frontier, waiting=waiting, come=(), added=added)
        return run, Answer.of(self._told(ready))

    def _least(self, time: int, frontiers: Mapping[str, Frontier], waiting: WaitingRows) -> dict[str, int | Fraction]:
        """What the outputs that carry time have at least, in rows that come later and in rows that wait."""
        if time in (NEVER, FOREVER):
            return {}
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
                held = (_minimum(table.column(name)) for table in waiting.tables)
                found = [*known, *(value for value in held if value is not None)]
                least |= {name: min(found)} if found else {}
        return least

    def _rows_of(self, chunk: pa.Table) -> pa.Table:
        """A chunk of a port in the columns that all ports share."""
        columns = [chunk.column("__t"), chunk.column(SPAN_START)]
        columns += [chunk.column(name) for name in self.bound.names_in_port]
        return pa.table(columns, names=self._schema.names).cast(self._schema)

    @property
    def _schema(self) -> pa.Schema:
        fields = [("__t", pa.int64()), (START, pa.int64())]
        return pa.schema([*fields, *((column.name, arrow_type(column.type)) for column in self.bound.outputs)])

    def _told(self, ready: list[pa.Table]) -> pa.Table:
        """Rows as an answer: in the order of time and values, where that is asked for."""
        rows = pa.concat_tables(ready) if ready else self._schema.empty_table()
        if rows.num_rows > 1 and self.bound.rows.ordered:
            names = ["__t", *(column.name for column in self.bound.outputs), START]
            order = ", ".join(f"`{name}`" for name in names)
            rows = self.bench.ask(f"SELECT * FROM ready ORDER BY {order}", {"ready": rows})
        count = rows.num_rows
        columns = {
            "window_start": rows.column(START),
            "window_end": pc.add(rows.column("__t"), pa.scalar(1, pa.int64())),
            "rows": pa.array(np.ones(count, dtype=np.int64)),
            **{column.name: rows.column(column.name) for column in self.bound.outputs},
            "__lost": pa.nulls(count, pa.string()),
        }
        return pa.table(columns)

    # What the round record keeps

    def saved(self) -> dict[str, Any]:
        """Plain data beside the rows that wait."""
        return {"time": self.frontier.time, "least": {name: int(value) for name, value in self.frontier.least.items()}}

    def kept(self) -> dict[str, Kept]:
        """The rows that wait."""
        live = self.frontier.time if self.frontier.time in (NEVER, FOREVER) else self.frontier.time + 1
        return {"rows": Kept(self.added, live, self._state)}

    def _state(self) -> pa.Table:
        return pa.concat_tables(self.waiting.tables) if self.waiting.rows else self._schema.empty_table()

    @classmethod
    def restored(
        cls, bound: BoundRows, bench: Bench, saved: dict[str, Any], tables: Mapping[str, list[pa.Table]]
    ) -> Self:
        """Continue from what was saved; the tables may hold rows that were told since."""
        _, waiting = WaitingRows.of(tables.get("rows", ())).parted(saved["time"])
        return cls(bound, bench, Frontier(saved["time"], dict(saved["least"])), waiting)


def _minimum(column: pa.ChunkedArray) -> int | None:
    """The least value of a column that carries time, as whole microseconds or the number itself."""
    if pa.types.is_date32(column.type):
        days = pc.min(column.cast(pa.int32())).as_py()
        return None if days is None else days * DAY
    least = pc.min(column.cast(pa.int64())).as_py()
    return None if least is None else int(least)
