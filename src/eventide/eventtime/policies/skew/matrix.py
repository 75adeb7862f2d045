"""The skew between all sources, and whether a pause of all of them needs a timeout.

*Skew.* Bounds for every ordered pair of sources, and a latency for every source. A `Skew` answers two kinds of
question. To people and to checks it shows the bounds of a pair. To the generator of heartbeats it says, for all sources
at once, what the rows that have just arrived promise (line 4 of figure 2, Srivastava and Widom). `SkewMatrix` stores
every pair; `per_source.PerSourceSkew` computes them from a few values per source.

>>> pair = SkewMatrix.of([[[TimeBound(0, 0)], [TimeBound(2, 5)]], [[], [TimeBound(0, 0)]]], latency=[0, 3])
>>> pair.bounds(0, 1)
(TimeBound(after=2, lag=5),)
>>> [p.wait.tolist() for p in pair.time_promises(np.array([0]), np.array([100]))]
[[0, 2]]

*Timeout.* Can rows wait for ever when all sources pause, and by which bounds (theorem 3.3, Srivastava and Widom)? A row
of source i is released when every source j has been promised up to its time. In silence only time bounds still fall
due, so the promise to j ends at T - (the least lag of any time bound of the pair). Without a timeout nothing stalls
exactly when that least lag is 0 for every pair. Row bounds do not help: the rows that they wait for do not come.

>>> from eventide.eventtime.policies.skew.bounds import TimeBound
>>> from eventide.eventtime.policies.skew.matrix import SkewMatrix
>>> need = timeout_needed(SkewMatrix.of([[[TimeBound(0, 0)], [TimeBound(0, 5)]], [[], [TimeBound(0, 0)]]], [0, 0]))
>>> print(need)
a timeout is needed: when all sources pause, some rows would wait for ever
  rows of source 0: source 1 may trail by 5 for ever; add TimeBound(after, 0) if it catches up after a while
  rows of source 1: nothing bounds source 0 in clock time
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.instant import Instants, shift_all
from eventide.eventtime.policies.skew.bounds import BoundSet, RowBound, SkewBound, TimeBound, check_length, simplified

ABSENT = -1


class TimePromises(NamedTuple):
    """Promises to `target` that hold for rows emitted later than `wait` from now."""

    target: NDArray[np.intp]
    wait: Instants
    promise: Instants


class RowPromises(NamedTuple):
    """Promises to `target` that hold once the target has emitted a number of further rows."""

    target: NDArray[np.intp]
    promise: Instants


class Skew(Protocol):
    """Bounds between sources 0, 1, ..., n-1."""

    @property
    def latency(self) -> tuple[int, ...]:
        """The longest way of a row from each source to us, in clock time."""
        ...

    @property
    def latency_exceeded(self) -> tuple[float, ...]:
        """The share of the rows of each source that may be longer on their way; empty where none may."""
        ...

    @property
    def in_order(self) -> tuple[int, ...]:
        """The sources whose rows arrive in the order in which they were emitted."""
        ...

    @property
    def longest_after(self) -> int:
        """The largest `after` of any time bound."""
        ...

    @property
    def row_counts(self) -> tuple[int, ...]:
        """The different `rows` of all row bounds, ascending."""
        ...

    def bounds(self, sender: int, target: int) -> BoundSet:
        """What a row of `sender` promises of `target`, simplified."""
        ...

    def within(self, exceeded: float) -> Skew:
        """The same skew, only with bounds that may fail for at most this share of rows."""
        ...

    def time_promises(self, senders: NDArray[np.intp], latest: Instants) -> Iterator[TimePromises]:
        """What rows of `senders` with times `latest` promise by time bounds."""
        ...

    def row_promises(self, rows: int, senders: NDArray[np.intp], latest: Instants) -> RowPromises:
        """What they promise by row bounds that wait for `rows` rows."""
        ...


@dataclass(frozen=True)
class InOrder:
    """The bounds of `skew`, of which some sources are not reordered on their way to us (section 2 of the paper).

    >>> InOrder(SkewMatrix.of([[[TimeBound(0, 1)]]], latency=[5]), (0,)).latency
    (5,)
    """

    skew: Skew
    in_order: tuple[int, ...]

    @property
    def latency(self) -> tuple[int, ...]:
        """Those of the bounds."""
        return self.skew.latency

    @property
    def latency_exceeded(self) -> tuple[float, ...]:
        """Those of the bounds."""
        return self.skew.latency_exceeded

    @property
    def longest_after(self) -> int:
        """That of the bounds."""
        return self.skew.longest_after

    @property
    def row_counts(self) -> tuple[int, ...]:
        """Those of the bounds."""
        return self.skew.row_counts

    def bounds(self, sender: int, target: int) -> BoundSet:
        """Those of the bounds."""
        return self.skew.bounds(sender, target)

    def within(self, exceeded: float) -> InOrder:
        """The same sources in order, only with bounds that may fail for at most this share of rows."""
        return InOrder(self.skew.within(exceeded), self.in_order)

    def time_promises(self, senders: NDArray[np.intp], latest: Instants) -> Iterator[TimePromises]:
        """Those of the bounds."""
        return self.skew.time_promises(senders, latest)

    def row_promises(self, rows: int, senders: NDArray[np.intp], latest: Instants) -> RowPromises:
        """Those of the bounds."""
        return self.skew.row_promises(rows, senders, latest)


@dataclass(frozen=True)
class SkewMatrix:
    """Every ordered pair has its own bound set; memory grows with the square of the sources."""

    entries: tuple[tuple[BoundSet, ...], ...]
    latency: tuple[int, ...]
    latency_exceeded: tuple[float, ...] = ()

    @property
    def in_order(self) -> tuple[int, ...]:
        """None: `InOrder` says it of some."""
        return ()

    @classmethod
    def of(
        cls,
        entries: Sequence[Sequence[Iterable[SkewBound]]],
        latency: Sequence[int],
        latency_exceeded: Sequence[float] = (),
    ) -> SkewMatrix:
        """Check shapes, simplify sets.

        >>> SkewMatrix.of([[[TimeBound(0, 0)], []]], latency=[0])
        Traceback (most recent call last):
            ...
        eventide.errors.DeclarationError: for 1 latencies the skew matrix must be 1 x 1: row 0 has 2 entries
        """
        latencies = check_latency(latency)
        n = len(latencies)
        if len(entries) != n:
            raise DeclarationError(f"for {n} latencies the skew matrix must be {n} x {n}: it has {len(entries)} rows")
        for i, row in enumerate(entries):
            if len(row) != n:
                raise DeclarationError(
                    f"for {n} latencies the skew matrix must be {n} x {n}: row {i} has {len(row)} entries"
                )
        simple = tuple(tuple(simplified(check_bounds(bounds)) for bounds in row) for row in entries)
        return cls(simple, latencies, check_shares(latency_exceeded, simple))

    def bounds(self, sender: int, target: int) -> BoundSet:
        """What a row of `sender` promises of `target`."""
        return self.entries[sender][target]

    def within(self, exceeded: float) -> SkewMatrix:
        """The same matrix, only with bounds that may fail for at most this share of rows.

        >>> SkewMatrix.of([[[TimeBound(0, 2, 0.1), TimeBound(0, 9)]]], [0]).within(0.05).bounds(0, 0)
        (TimeBound(after=0, lag=9),)
        """
        return SkewMatrix.of(
            [[[b for b in s if b.exceeded <= exceeded] for s in row] for row in self.entries],
            self.latency,
            self.latency_exceeded,
        )

    @cached_property
    def _time_layers(self) -> list[tuple[Instants, Instants]]:
        n = len(self.latency)
        flat = [bounds for row in self.entries for bounds in row]
        return [(after.reshape(n, n), lag.reshape(n, n)) for after, lag in time_layers(flat)]

    @cached_property
    def _row_lags(self) -> dict[int, Instants]:
        n = len(self.latency)
        return {rows: lag.reshape(n, n) for rows, lag in row_lags([b for row in self.entries for b in row]).items()}

    @property
    def longest_after(self) -> int:
        """The largest `after` of any time bound."""
        return max((int(after.max()) for after, _ in self._time_layers), default=0)

    @property
    def row_counts(self) -> tuple[int, ...]:
        """The different `rows` of all row bounds, ascending."""
        return tuple(self._row_lags)

    def time_promises(self, senders: NDArray[np.intp], latest: Instants) -> Iterator[TimePromises]:
        """What rows of `senders` with times `latest` promise by time bounds."""
        for after, lag in self._time_layers:
            wait = after[senders]
            row, target = np.nonzero(wait != ABSENT)
            yield TimePromises(target, wait[row, target], shift_all(latest[row], -lag[senders[row], target]))

    def row_promises(self, rows: int, senders: NDArray[np.intp], latest: Instants) -> RowPromises:
        """What they promise by row bounds that wait for `rows` rows."""
        lag = self._row_lags[rows][senders]
        row, target = np.nonzero(lag != ABSENT)
        return RowPromises(target, shift_all(latest[row], -lag[row, target]))


def check_latency(latency: Sequence[int]) -> tuple[int, ...]:
    """One latency per source, none negative, at least one source."""
    if len(latency) == 0:
        raise DeclarationError("no latency was declared: give one for each source (0 where rows arrive at once)")
    for value in latency:
        check_length("latency", value)
    return tuple(int(value) for value in latency)


def check_shares(exceeded: Sequence[float], entries: Sequence[Sequence[BoundSet]]) -> tuple[float, ...]:
    """Refuse shares that are none, and those of sources whose rows are counted; empty where no row is longer.

    A row that was longer on its way than its latency may be counted for bounds that it is too old for, and any number
    of promises may then come too early.

    >>> check_shares([0.01], [[(RowBound(2, 0),)]])
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: rows of source 0 may be longer on their way than its latency, and a bound counts \
them: declare a latency that is never exceeded, or a bound in clock time
    """
    if not any(exceeded):
        return ()
    if len(exceeded) != len(entries) or not all(0 <= share < 1 for share in exceeded):
        raise DeclarationError(f"latencies are exceeded by {list(exceeded)}: give a share from 0 to below 1 per source")
    for target, share in enumerate(exceeded):
        if share and any(isinstance(bound, RowBound) for row in entries for bound in row[target]):
            raise DeclarationError(
                f"rows of source {target} may be longer on their way than its latency, and a bound counts them: "
                "declare a latency that is never exceeded, or a bound in clock time"
            )
    return tuple(map(float, exceeded))


def check_bounds(bounds: Iterable[SkewBound]) -> tuple[SkewBound, ...]:
    """Refuse what is no bound, before arithmetic meets it."""
    given = (bounds,) if isinstance(bounds, TimeBound | RowBound) else tuple(bounds)
    for bound in given:
        if not isinstance(bound, TimeBound | RowBound):
            raise DeclarationError(f"{bound!r} is no skew bound: write TimeBound(after, lag) or RowBound(rows, lag)")
    return given


def time_layers(sets: Sequence[BoundSet]) -> list[tuple[Instants, Instants]]:
    """The time bounds of many sets as arrays: layer k holds `after` and `lag` of the k-th bound, `ABSENT` where none.

    >>> [(a.tolist(), d.tolist()) for a, d in time_layers([(TimeBound(1, 2),), ()])]
    [([1, -1], [2, -1])]
    """
    by_set = [[b for b in bounds if isinstance(b, TimeBound)] for bounds in sets]
    layers = []
    for k in range(max(map(len, by_set), default=0)):
        after = np.array([found[k].after if k < len(found) else ABSENT for found in by_set], dtype=np.int64)
        lag = np.array([found[k].lag if k < len(found) else ABSENT for found in by_set], dtype=np.int64)
        layers.append((after, lag))
    return layers


def row_lags(sets: Sequence[BoundSet]) -> dict[int, Instants]:
    """The row bounds of many sets as arrays: for each different `rows`, the lag of each set, `ABSENT` where none.

    >>> {rows: lag.tolist() for rows, lag in row_lags([(RowBound(3, 1),), ()]).items()}
    {3: [1, -1]}
    """
    lags: dict[int, Instants] = {}
    for rows in sorted({b.rows for bounds in sets for b in bounds if isinstance(b, RowBound)}):
        found = [[b.lag for b in bounds if isinstance(b, RowBound) and b.rows == rows] for bounds in sets]
        lags[rows] = np.array([min(lag, default=ABSENT) for lag in found], dtype=np.int64)
    return lags


SHOWN = 20


@dataclass(frozen=True)
class Stall:
    """Rows of `sender` may wait for ever for `target`, which trails by `lag` at rest (None: by anything)."""

    sender: int
    target: int
    lag: int | None

    def __str__(self) -> str:
        """Say it, and what would help."""
        if self.lag is None:
            return f"rows of source {self.sender}: nothing bounds source {self.target} in clock time"
        return (
            f"rows of source {self.sender}: source {self.target} may trail by {self.lag} for ever; "
            "add TimeBound(after, 0) if it catches up after a while"
        )


@dataclass(frozen=True)
class TimeoutNeed:
    """The pairs whose bounds make a timeout necessary; true when there are any."""

    stalls: tuple[Stall, ...]

    def __bool__(self) -> bool:
        """Whether a timeout is needed."""
        return bool(self.stalls)

    def __str__(self) -> str:
        """Name the pairs, the first twenty of many."""
        if not self.stalls:
            return "no timeout is needed: when all sources pause, every row is released in the end"
        lines = ["a timeout is needed: when all sources pause, some rows would wait for ever"]
        lines += [f"  {stall}" for stall in self.stalls[:SHOWN]]
        if len(self.stalls) > SHOWN:
            lines.append(f"  and {len(self.stalls) - SHOWN} more pairs")
        return "\n".join(lines)


def timeout_needed(skew: Skew) -> TimeoutNeed:
    """Check every ordered pair, a source with itself included."""
    stalls = []
    sources = range(len(skew.latency))
    for i in sources:
        for j in sources:
            lag = min((b.lag for b in skew.bounds(i, j) if isinstance(b, TimeBound)), default=None)
            if lag != 0:
                stalls.append(Stall(i, j, lag))
    return TimeoutNeed(tuple(stalls))
