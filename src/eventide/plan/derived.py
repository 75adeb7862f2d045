"""The results of a query as a stream that other queries read.

Law: a row of it is a final result of the query below: its groups and values, `window_start` and `window_end`. Its time
is the last instant of its window, so a window below counts in the window above in which it ends. Its heartbeat is the
bound of the query below less 1: every later result has a time at or after the bound. So no row of it is ever late, and
it has neither sources nor a policy of its own. Results of windows over a count of rows have numbers of rows for times.

>>> from eventide.plan.columns import columns
>>> sums = Derived.of("sums", columns("sensor INT, total BIGINT"), TimeKind.TIMESTAMP, Window(60, 20))
>>> [column.name for column in sums.columns], sums.time_kind.value
(['sensor', 'total', 'window_start', 'window_end'], 'timestamp')
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from eventide.eventtime.punctuated import Punctuated
from eventide.plan.columns import Column
from eventide.plan.stream import Stream, TimeKind
from eventide.plan.window import Window

WINDOW_START, WINDOW_END = "window_start", "window_end"

Least = Callable[[int], int | Fraction]
"""What a column has at least in a row of a time (`plan.carriers`); None where only the running operator knows."""


@dataclass(frozen=True)
class Derived(Stream):
    """The stream of a query's final results; `windows` are those of the query, `carries` its columns with time."""

    windows: Window = field(default_factory=lambda: Window(1))
    carries: tuple[tuple[str, Least | None], ...] = field(default=(), compare=False)

    @classmethod
    def of(
        cls,
        query: str,
        outputs: tuple[Column, ...],
        kind: TimeKind,
        windows: Window,
        carries: tuple[tuple[str, Least | None], ...] = (),
    ) -> Derived:
        """The stream of the query of that name, whose windows have edges of that kind."""
        edge = "BIGINT" if kind is TimeKind.SEQUENCE else "TIMESTAMP"
        columns = (*outputs, Column(WINDOW_START, edge), Column(WINDOW_END, edge))
        return cls(query, columns, time=WINDOW_END, policy=Punctuated(), windows=windows, carries=carries)
