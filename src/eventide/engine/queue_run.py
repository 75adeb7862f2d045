"""A queue before an expensive function while it runs: rows wait, go through bit by bit, or are set aside in a burst.

Laws. *Each once*: a row that came in time is told exactly once; none is dropped, whatever is set aside. *In time*: the
earliest of those that wait go first, simultaneous ones as they came. *Frontier*: later rows are after `frontier.time`
or lie in one of `frontier.holes`, the panes of rows that were set aside; a row that comes later into such a pane joins
those that were set aside there. *Late*: a row at or before the frontier, and in no hole. *Room*: in one round no more
rows go than `room`, however many turns there are; when everything ends, all go.

Whether a file still holds a row that has gone is known from the numbers of those that went (`gone`) and from `live`,
before which none is held, and none will be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eventide.engine.frontiers import least_time
from eventide.engine.operator_run import Frontier, Kept
from eventide.engine.rows_run import RowsRun
from eventide.engine.taken import Answer, Taken
from eventide.engine.waiting_rows import WaitingRows
from eventide.engine.workbench import Bench
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, Instants
from eventide.eventtime.queueing import Turn
from eventide.eventtime.span import Span, merged
from eventide.plan.bound_rows import BoundRows
from eventide.plan.queue import Queue, Sideline
from eventide.plan.window import Window

NUMBER, SINCE = "__number", "__since"


@dataclass(frozen=True)
class QueueRun(RowsRun):
    """Rows that wait (`waiting`), and rows that were set aside (`aside`, each with the clock `__since` then)."""

    aside: WaitingRows = field(default_factory=WaitingRows)
    room: int = 0
    """How many rows may still go in this round."""
    clock: int = NEVER
    numbered: int = 0
    """How many rows have come in: the number of the next one."""
    credit: int = 0
    gone: pa.Table | None = None
    moved: pa.Table | None = None
    """Rows of this turn: which have gone, and which came to those set aside."""
    departed: WaitingRows = field(default_factory=WaitingRows)
    """Rows that have gone and that files may still hold."""

    @property
    def rows(self) -> int:
        """Rows that are held."""
        return self.waiting.rows + self.aside.rows

    @property
    def bytes(self) -> int:
        """Memory of the rows that are held."""
        return self.waiting.bytes + self.aside.bytes

    @property
    def holds(self) -> Instants:
        """The times of rows that are held, ascending, each once."""
        return np.union1d(self.waiting.times, self.aside.times)

    @property
    def holes(self) -> tuple[Span, ...]:
        """The panes of rows that were set aside."""
        if self.aside.rows == 0:
            return ()
        window = self._queue.window
        assert isinstance(window, Window)
        panes = np.unique(self.aside.times - (self.aside.times - window.offset) % window.pane)
        return merged(Span(int(pane), int(pane) + window.pane) for pane in panes)

    def begun(self, clock: int, room: int) -> Self:
        """At the beginning of a round."""
        return replace(self, clock=max(clock, self.clock), room=room)

    def take(self, port: str, chunk: pa.Table) -> tuple[Self, Taken]:
        """Add the rows of a round; those behind the frontier are late, but for those of a pane that was set aside."""
        holes, times = self.holes, _instants(chunk, "__t")
        apart = _within(times, holes)
        late = ~apart & (times <= self.frontier.time) if self.frontier.time != NEVER else np.zeros(len(times), bool)
        refused, accepted = chunk.filter(pa.array(late)), chunk.filter(pa.array(~late))
        taken = Taken(chunk.num_rows, accepted, tuple(pc.unique(refused.column("__t")).to_pylist()), refused.num_rows)
        if accepted.num_rows == 0:
            return self, taken
        numbers = pa.array(self.numbered + np.arange(accepted.num_rows, dtype=np.int64))
        rows = self._rows_of(accepted).append_column(NUMBER, numbers)
        run = replace(self, come=(*self.come, rows), numbered=self.numbered + rows.num_rows)
        return run, taken

    def would_tell(self, frontiers: Mapping[str, Frontier]) -> bool:
        """Whether a row waits: the next round lets some go."""
        return self.rows > 0

    def advance(self, frontiers: Mapping[str, Frontier]) -> tuple[Self, Answer]:
        """Let rows go through, as many as there is room for; nothing else of whoever reads it is held back."""
        reached = max(self.frontier.time, least_time(frontiers.values()))
        run = self._with_new()
        turn = run._turn(FOREVER if reached == FOREVER else self.room)
        new, waiting = _earliest(run.waiting, turn.new)
        old, aside = _first_set_aside(run.aside, turn.aside)
        ready = [*new, *(table.drop_columns([SINCE]) for table in old)]
        time = reached if waiting.rows == 0 else max(self.frontier.time, min(reached, waiting.first - 1))
        gone = pa.concat_tables([table.select(_MARKS.names) for table in ready]) if ready else None
        run = replace(
            run,
            waiting=waiting,
            aside=aside,
            room=max(0, self.room - turn.new - turn.aside),
            credit=turn.credit,
            gone=gone,
        )
        run = replace(run, frontier=Frontier(time, holes=run.holes), departed=run._departing(gone))
        return run, Answer.of(self._told(ready))

    def _departing(self, gone: pa.Table | None) -> WaitingRows:
        live = self._live
        departed = self.departed if gone is None else self.departed.added(gone)
        return departed.parted(live if abs(live) >= EDGE else live - 1)[1]

    def _with_new(self) -> Self:
        """With what has come in this turn: rows of a pane that was set aside go there."""
        holes = self.holes
        waiting, aside = self.waiting, self.aside
        moved: list[pa.Table] = []
        for rows in self.come:
            apart = pa.array(_within(_instants(rows, "__t"), holes))
            waiting = waiting.added(rows.filter(pc.invert(apart)))
            joining = _stamped(rows.filter(apart), self.clock)
            aside = aside.added(joining)
            moved.append(joining)
        added = pa.concat_tables(self.come) if self.come else None
        return replace(self, waiting=waiting, aside=aside, come=(), added=added, moved=_marks(moved))

    def _turn(self, room: int) -> Turn:
        how = self._queue.sideline or Sideline()
        overdue = 0
        if how.within is not None and self.aside.rows:
            since = np.concatenate([_instants(table, SINCE) for table in self.aside.tables])
            overdue = int((since <= self.clock - how.within).sum())
        return Turn.of(room, self.waiting.rows, self.aside.rows, overdue, how.one_in, self.credit)

    def setting_aside(self, last: int) -> tuple[Self, pa.Table | None]:
        """Set the rows aside that wait with a time up to `last`; also which ones those are, for the disk."""
        passed, waiting = self.waiting.parted(last)
        if not passed:
            return self, None
        moving = [_stamped(table, self.clock) for table in passed]
        run = replace(self, waiting=waiting, aside=self.aside.added(*moving))
        return run, _marks(moving)

    def told_nothing(self) -> EarlyQueueRun:
        """The queue as a prod passes it: rows that wait stay, and hold nothing back."""
        return EarlyQueueRun(self.bound, self.bench, self.frontier)

    @property
    def _queue(self) -> Queue:
        assert isinstance(self.bound.rows, Queue)
        return self.bound.rows

    @property
    def _live(self) -> int:
        """No row before this is held, or will ever be: it never goes back, since what is set aside are whole panes."""
        time, window = self.frontier.time, self._queue.window
        if -EDGE < time < EDGE:
            time = window.pane_of(time + 1) if isinstance(window, Window) else time + 1
        return min([time, *(hole.start for hole in self.holes)])

    # What the round record keeps

    def saved(self) -> dict[str, Any]:
        """Plain data beside the rows."""
        return {
            "time": self.frontier.time,
            "clock": self.clock,
            "numbered": self.numbered,
            "credit": self.credit,
            "live": self._live,
            "waiting": self.waiting.rows,
            "aside": self.aside.rows,
        }

    def kept(self) -> dict[str, Kept]:
        """The rows that came, the numbers of those that have gone, and of those that were set aside, with the clock."""
        live = self._live
        return {
            "rows": Kept(self.added, live, lambda: _all([*self.waiting.tables, *self._aside_rows()], self._numbered)),
            "gone": Kept(self.gone, live, lambda: _all(list(self.departed.tables), _MARKS)),
            "aside": Kept(self.moved, live, lambda: _marks(list(self.aside.tables)) or _SET_ASIDE.empty_table()),
        }

    def _aside_rows(self) -> list[pa.Table]:
        return [table.drop_columns([SINCE]) for table in self.aside.tables]

    @property
    def _numbered(self) -> pa.Schema:
        return self._schema.append(pa.field(NUMBER, pa.int64()))

    @classmethod
    def restored(
        cls, bound: BoundRows, bench: Bench, saved: dict[str, Any], tables: Mapping[str, list[pa.Table]]
    ) -> Self:
        """Continue from what was saved; the tables may hold rows that have gone since."""
        run = cls(
            bound,
            bench,
            Frontier(saved["time"]),
            clock=saved["clock"],
            numbered=saved["numbered"],
            credit=saved["credit"],
        )
        rows = _all(tables.get("rows", []), run._numbered)
        gone = _all(tables.get("gone", []), _MARKS)
        rows = rows.filter(
            pc.and_(
                pc.invert(pc.is_in(rows.column(NUMBER), value_set=gone.column(NUMBER).combine_chunks())),
                pc.greater_equal(rows.column("__t"), saved["live"]),
            )
        )
        marks = _all(tables.get("aside", []), _SET_ASIDE)
        place = pc.index_in(rows.column(NUMBER), value_set=marks.column(NUMBER).combine_chunks())
        rows = rows.append_column(SINCE, marks.column(SINCE).take(place))
        waiting = rows.filter(pc.is_null(place)).drop_columns([SINCE])
        run = replace(run, waiting=WaitingRows.of([waiting]), aside=WaitingRows.of([rows.filter(pc.is_valid(place))]))
        return replace(run, frontier=Frontier(saved["time"], holes=run.holes), departed=run._departing(gone))


@dataclass(frozen=True)
class EarlyQueueRun(RowsRun):
    """A queue that a prod passes: nothing goes through it, and time goes on as far as the inputs say."""

    def advance(self, frontiers: Mapping[str, Frontier]) -> tuple[Self, Answer]:
        """Tell nothing: an early answer does not wait for an expensive function."""
        time = max(self.frontier.time, least_time(frontiers.values()))
        return replace(self, frontier=Frontier(time)), Answer.of(self._told([]))


_MARKS = pa.schema([("__t", pa.int64()), (NUMBER, pa.int64())])
_SET_ASIDE = pa.schema([*_MARKS, (SINCE, pa.int64())])


def _instants(table: pa.Table, column: str) -> Instants:
    return np.asarray(table.column(column).to_numpy(), dtype=np.int64)


def _within(times: Instants, holes: Sequence[Span]) -> NDArray[np.bool_]:
    found = np.zeros(len(times), dtype=np.bool_)
    for hole in holes:
        found |= hole.contains(times)
    return found


def _stamped(rows: pa.Table, clock: int) -> pa.Table:
    return rows.append_column(SINCE, pa.array(np.full(rows.num_rows, clock, dtype=np.int64)))


def _marks(tables: list[pa.Table]) -> pa.Table | None:
    """Which rows were set aside, and when."""
    found = [table.select(_SET_ASIDE.names) for table in tables if table.num_rows]
    return pa.concat_tables(found) if found else None


def _all(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables([table.select(schema.names) for table in tables]) if tables else schema.empty_table()


def _earliest(waiting: WaitingRows, count: int) -> tuple[list[pa.Table], WaitingRows]:
    """So many rows, the earliest first, simultaneous ones as they came; and the rest."""
    if count >= waiting.rows:
        return list(waiting.tables), WaitingRows()
    if count == 0:
        return [], waiting
    times = np.concatenate([_instants(table, "__t") for table in waiting.tables])
    passed, rest = waiting.parted(int(np.partition(times, count - 1)[count - 1]))
    return _cut(pa.concat_tables(passed), ("__t", NUMBER), count, rest)


def _first_set_aside(aside: WaitingRows, count: int) -> tuple[list[pa.Table], WaitingRows]:
    """So many of the rows that were set aside, those of the first window first, and the rest."""
    if count >= aside.rows:
        return list(aside.tables), WaitingRows()
    if count == 0:
        return [], aside
    return _cut(pa.concat_tables(aside.tables), (SINCE, "__t", NUMBER), count, WaitingRows())


def _cut(rows: pa.Table, order: Sequence[str], count: int, rest: WaitingRows) -> tuple[list[pa.Table], WaitingRows]:
    """The first `count` rows in an order; the others are added to the rest."""
    places = np.lexsort([_instants(rows, name) for name in reversed(order)])
    first, others = rows.take(pa.array(places[:count])), rows.take(pa.array(places[count:]))
    return [first], rest.added(others)
