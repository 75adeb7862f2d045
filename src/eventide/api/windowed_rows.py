"""Windows in Python: of time, of a count of rows, and sessions, over anything that gives rows.

>>> import pyarrow as pa
>>> from eventide.api.stream import stream
>>> cars = stream(pa.table({"t": [1, 12, 18]}), time="t")
>>> [cars.window(20, 10), cars.rows(2), cars.sessions(5)][2].agg(n="count(*)").run().column("n").to_pylist()
[1, 1, 1]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from eventide.api.arguments import Length, length, life
from eventide.errors import DeclarationError
from eventide.plan.declared.window import GrowingWindow, LifeWindow, RowWindow, SessionWindow, Window

if TYPE_CHECKING:
    from eventide.api.query_builder import QueryBuilder


class WindowedRows(ABC):
    """The methods that cut rows into windows."""

    def window(
        self,
        range: Length,
        slide: Length | None = None,
        *,
        step: Length | None = None,
        offset: Length | None = None,
        empty: bool = False,
        retain: Length | None = None,
    ) -> QueryBuilder:
        """Aggregate in windows of time, `range` long, one every `slide` (by default as long as `range`).

        With a `step` they begin every `range` and grow to that by one step after the other (CUMULATE).
        `offset` shifts the start of windows. `empty` gives results of windows without rows, too. `retain` is how long
        after its end late rows still revise a window.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> cars = stream(pa.table({"t": [1, 12, 18]}), time="t")
        >>> cars.window(20, 10).agg(n="count(*)").run().column("n").to_pylist()
        [1, 3, 2]
        >>> cars.window(20, step=10).agg(n="count(*)").run().column("n").to_pylist()
        [1, 3]
        """
        builder = self._builder
        kind = builder.stream.time_kind
        long = length(range, kind, "the range of the window")
        slid = long if slide is None else length(slide, kind, "the slide of the window")
        moved = 0 if offset is None else length(offset, kind, "the offset of the window")
        kept = 0 if retain is None else length(retain, kind, "how long windows are retained")
        if step is None:
            return builder._over(Window(long, slid, moved, empty), kept)
        if slide is not None:
            raise DeclarationError("a window slides or grows: give `slide` for windows of one length, else `step`")
        grows = length(step, kind, "the step of the window")
        return builder._over(GrowingWindow(long, grows, moved, empty), kept)

    def rows(self, range: int, slide: int | None = None) -> QueryBuilder:
        """Aggregate in windows over the last `range` rows in the order of time, one every `slide` rows."""
        return self._builder._over(RowWindow(range, range if slide is None else slide), 0)

    def sessions(
        self, gap: Length | None = None, *, by: str | None = None, retain: Length | None = None
    ) -> QueryBuilder:
        """Aggregate in the sessions of each group: rows of which each comes at most `gap` after the one before it.

        `by` is SQL that gives each row a gap of its own, such as "n * INTERVAL '5' MINUTES". `retain` is how long after
        its end late rows still make a session longer.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> clicks = stream(pa.table({"t": [1, 12, 30], "who": ["a", "a", "a"]}), time="t")
        >>> found = clicks.sessions(15).groupBy("who").agg(n="count(*)").run()
        >>> found.select(["window_start", "window_end", "n"]).to_pylist()
        [{'window_start': 1, 'window_end': 27, 'n': 2}, {'window_start': 30, 'window_end': 45, 'n': 1}]
        """
        builder = self._builder
        kind = builder.stream.time_kind
        if gap is None and by is None:
            raise DeclarationError(".sessions() needs a gap: .sessions('10 minutes'), or by=... for one of each row")
        long = 0 if gap is None else length(gap, kind, "the gap of sessions")
        kept = 0 if retain is None else length(retain, kind, "how long sessions are retained")
        return builder._over(SessionWindow(long, by), kept)

    def stateTtl(self, ttl: Length) -> QueryBuilder:  # noqa: N802
        """Aggregate without a window: the state of a group lives until `ttl` after its last row, or "forever".

        What it gave by then is its result; `.emitChanges()` shows each value as it changes.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> clicks = stream(pa.table({"t": [1, 12, 30], "who": ["a", "a", "a"]}), time="t")
        >>> found = clicks.stateTtl("forever").groupBy("who").agg(n="count(*)").emitChanges().run()
        >>> found.select(["kind", "n"]).to_pylist()
        [{'kind': 'changed', 'n': 3}, {'kind': 'final', 'n': 3}]
        """
        builder = self._builder
        return builder._over(LifeWindow(life(ttl, builder.stream.time_kind, "the TTL of state")), 0)

    @property
    @abstractmethod
    def _builder(self) -> QueryBuilder:
        """A query over these rows that is not complete."""
