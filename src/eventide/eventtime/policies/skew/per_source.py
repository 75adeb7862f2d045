"""Skew from a few values per source, and the skew of two common systems.

In most systems the bound of a pair is a sum of what the sender brings and what the target brings (Srivastava and Widom,
section 5.1; both systems of section 4 are so). A `TimeTerm` says

    after(i, j) = max(0, (give[i] + take[j]) / rate[j], rounded up)        lag(i, j) = out[i] + into[j]

for *every* ordered pair, a source with itself included; `own` adds bounds that a source keeps with itself.

A row that gives later and less than another row of the same round can never promise more, to anyone. So only the rows
that are not beaten in both respects meet all n targets: a round of k speaking sources costs about k log k + n, not k
n.

>>> apart = TimeTerm.of(out=[3, 1], into=[3, 1])
>>> sensors = PerSourceSkew.of(latency=[0, 0], between=[apart], own=[[TimeBound(0, 3)], []])
>>> sensors.bounds(0, 0), sensors.bounds(0, 1)
((TimeBound(after=0, lag=3),), (TimeBound(after=0, lag=4),))

*Two systems.* A global counter and distributed sensors, from what one knows of each source (section 4).

>>> global_counter(fastest=[1, 2], slowest=[4, 9], latency=[0, 0]).bounds(0, 1)
(TimeBound(after=8, lag=0), RowBound(rows=1, lag=0))
>>> distributed_sensors(deviation=[5, 3], latency=[0, 0], rate=[2, 2]).bounds(0, 1)
(TimeBound(after=0, lag=8), TimeBound(after=4, lag=0))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, isfinite

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.instant import Instants, shift_all
from eventide.eventtime.policies.skew.bounds import (
    LONGEST,
    BoundSet,
    RowBound,
    SkewBound,
    TimeBound,
    check_length,
    simplified,
)
from eventide.eventtime.policies.skew.matrix import (
    ABSENT,
    RowPromises,
    TimePromises,
    check_bounds,
    check_latency,
    row_lags,
    time_layers,
)


@dataclass(frozen=True)
class TimeTerm:
    """One time bound for every pair; see the module for the formula."""

    give: tuple[int, ...]
    take: tuple[int, ...]
    out: tuple[int, ...]
    into: tuple[int, ...]
    rate: tuple[float, ...]
    exceeded: float = 0.0

    @classmethod
    def of(
        cls,
        *,
        give: Sequence[int] = (),
        take: Sequence[int] = (),
        out: Sequence[int] = (),
        into: Sequence[int] = (),
        rate: Sequence[float] = (),
        exceeded: float = 0.0,
    ) -> TimeTerm:
        """Make the term; values that are not given are 0 for every source, a rate is 1.

        >>> TimeTerm.of(give=[-2, -5], take=[9, 3], exceeded=0.01).bound(1, 1)
        TimeBound(after=0, lag=0, exceeded=0.01)
        """
        n = _common_length(give, take, out, into, rate)
        for value in (*give, *take):
            check_length("a term's give or take, without its sign,", abs(value))
        for value in (*out, *into):
            check_length("a term's out or into", value)
        for pace in rate:
            if not (isfinite(pace) and pace > 0):
                raise DeclarationError(f"rate {pace} must be positive: leave the rate out where none is known")
        zeros, ones = (0,) * n, (1.0,) * n
        return cls(
            tuple(map(int, give)) or zeros,
            tuple(map(int, take)) or zeros,
            tuple(map(int, out)) or zeros,
            tuple(map(int, into)) or zeros,
            tuple(map(float, rate)) or ones,
            exceeded,
        )

    @cached_property
    def arrays(self) -> tuple[Instants, Instants, Instants, Instants]:
        """The values `give`, `take`, `out` and `into`, as arrays over sources."""
        give, take, out, into = (np.array(v, dtype=np.int64) for v in (self.give, self.take, self.out, self.into))
        return give, take, out, into

    def wait(self, give: Instants) -> Instants:
        """`after` from senders with these values of `give` (rows) to every target (columns)."""
        total = give[:, None] + self.arrays[1]
        if self._pace is not None:
            total = np.ceil(np.minimum(total / self._pace, LONGEST)).astype(np.int64)
        wait: Instants = np.maximum(total, 0)
        return wait

    @cached_property
    def _pace(self) -> NDArray[np.float64] | None:
        # Whole numbers stay whole where no rate is given: floats would round waits above 2**53.
        return np.array(self.rate) if any(rate != 1 for rate in self.rate) else None

    def bound(self, sender: int, target: int) -> TimeBound:
        """The bound of one pair of sources."""
        total = self.give[sender] + self.take[target]
        if self._pace is not None:
            total = ceil(min(total / self.rate[target], LONGEST))
        return TimeBound(max(total, 0), self.out[sender] + self.into[target], self.exceeded)


@dataclass(frozen=True)
class RowTerm:
    """One row bound for every pair: `RowBound(rows, out[i] + into[j])`.

    >>> RowTerm(1, out=(0, 0), into=(2, 3)).bound(0, 1)
    RowBound(rows=1, lag=3)
    """

    rows: int
    out: tuple[int, ...]
    into: tuple[int, ...]
    exceeded: float = 0.0

    def bound(self, sender: int, target: int) -> RowBound:
        """The bound of one pair of sources."""
        return RowBound(self.rows, self.out[sender] + self.into[target], self.exceeded)


@dataclass(frozen=True)
class PerSourceSkew:
    """Terms that hold between all sources, and bounds each keeps with itself; memory grows with the sources."""

    latency: tuple[int, ...]
    between: tuple[TimeTerm | RowTerm, ...]
    own: tuple[BoundSet, ...]

    @classmethod
    def of(
        cls,
        latency: Sequence[int],
        between: Iterable[TimeTerm | RowTerm] = (),
        own: Sequence[Iterable[SkewBound]] = (),
    ) -> PerSourceSkew:
        """Check lengths, simplify sets.

        >>> PerSourceSkew.of([0, 0], own=[[TimeBound(0, 0)]])
        Traceback (most recent call last):
            ...
        eventide.errors.DeclarationError: own bounds of 1 sources, latencies of 2: give one of each per source
        """
        latencies = check_latency(latency)
        n, terms = len(latencies), tuple(_plain(term) for term in between)
        for term in terms:
            if len(term.out) != n or len(term.into) != n:
                raise DeclarationError(
                    f"a term has values of {len(term.out)} sources, there are {n} latencies: give one per source"
                )
            term.bound(0, 0)  # checks the share and, for rows, their number
        if len(own) not in (0, n):
            raise DeclarationError(f"own bounds of {len(own)} sources, latencies of {n}: give one of each per source")
        sets = tuple(simplified(check_bounds(bounds)) for bounds in own) or ((),) * n
        return cls(latencies, terms, sets)

    @property
    def in_order(self) -> tuple[int, ...]:
        """None: `InOrder` says it of some."""
        return ()

    def bounds(self, sender: int, target: int) -> BoundSet:
        """What a row of `sender` promises of `target`."""
        own = self.own[sender] if sender == target else ()
        return simplified((*own, *(term.bound(sender, target) for term in self.between)))

    def within(self, exceeded: float) -> PerSourceSkew:
        """The same skew, only with bounds that may fail for at most this share of rows."""
        terms = tuple(term for term in self.between if term.exceeded <= exceeded)
        return replace(self, between=terms, own=tuple(tuple(b for b in s if b.exceeded <= exceeded) for s in self.own))

    @cached_property
    def _own_layers(self) -> list[tuple[Instants, Instants]]:
        return time_layers(self.own)

    @cached_property
    def _own_row_lags(self) -> dict[int, Instants]:
        return row_lags(self.own)

    @property
    def latency_exceeded(self) -> tuple[float, ...]:
        """Nothing is longer on its way than its latency."""
        return ()

    @property
    def longest_after(self) -> int:
        """The largest `after` of any time bound."""
        own = [int(after.max()) for after, _ in self._own_layers]
        between = [int(t.wait(np.array([max(t.give)])).max()) for t in self.between if isinstance(t, TimeTerm)]
        return max((*own, *between), default=0)

    @property
    def row_counts(self) -> tuple[int, ...]:
        """The different `rows` of all row bounds, ascending."""
        return tuple(sorted({*self._own_row_lags, *(t.rows for t in self.between if isinstance(t, RowTerm))}))

    def time_promises(self, senders: NDArray[np.intp], latest: Instants) -> Iterator[TimePromises]:
        """What rows of `senders` with times `latest` promise by time bounds."""
        for after, lag in self._own_layers:
            present = after[senders] != ABSENT
            target = senders[present]
            yield TimePromises(target, after[target], shift_all(latest[present], -lag[target]))
        everyone = np.arange(len(self.latency), dtype=np.intp)
        for term in self.between:
            if isinstance(term, TimeTerm) and len(senders):
                give, _, out, into = term.arrays
                brought = shift_all(latest, -out[senders])
                best = unbeaten(give[senders], brought)
                promise = shift_all(brought[best, None], -into)
                target = np.broadcast_to(everyone, promise.shape)
                yield TimePromises(target.ravel(), term.wait(give[senders[best]]).ravel(), promise.ravel())

    def row_promises(self, rows: int, senders: NDArray[np.intp], latest: Instants) -> RowPromises:
        """What they promise by row bounds that wait for `rows` rows."""
        targets, promises = [np.zeros(0, dtype=np.intp)], [np.zeros(0, dtype=np.int64)]
        if rows in self._own_row_lags:
            lag = self._own_row_lags[rows]
            present = lag[senders] != ABSENT
            targets.append(senders[present])
            promises.append(shift_all(latest[present], -lag[senders[present]]))
        for term in self.between:
            if isinstance(term, RowTerm) and term.rows == rows and len(senders):
                brought = shift_all(latest, -np.array(term.out, dtype=np.int64)[senders]).max()
                targets.append(np.arange(len(self.latency), dtype=np.intp))
                promises.append(shift_all(np.full(len(self.latency), brought), -np.array(term.into, dtype=np.int64)))
        return RowPromises(np.concatenate(targets), np.concatenate(promises))


def unbeaten(cost: Instants, gain: Instants) -> NDArray[np.intp]:
    """The places that no other place beats by costing no more and gaining no less; of equals, one.

    >>> unbeaten(np.array([3, 1, 2, 2]), np.array([9, 5, 4, 7])).tolist()
    [1, 3, 0]
    """
    order = np.lexsort((-gain, cost))
    gained = gain[order]
    before = np.concatenate(([True], gained[1:] > np.maximum.accumulate(gained)[:-1]))
    return order[before]


def _plain(term: TimeTerm | RowTerm) -> TimeTerm | RowTerm:
    no_rows_to_wait_for = isinstance(term, RowTerm) and term.rows == 0
    return TimeTerm.of(out=term.out, into=term.into, exceeded=term.exceeded) if no_rows_to_wait_for else term


def _common_length(*given: Sequence[float]) -> int:
    lengths = {len(values) for values in given if len(values)}
    if len(lengths) != 1:
        raise DeclarationError(f"a term needs values for the same number of sources, not for {sorted(lengths)}")
    return lengths.pop()


def global_counter(fastest: Sequence[int], slowest: Sequence[int], latency: Sequence[int]) -> PerSourceSkew:
    """Sources that stamp rows with tokens of one rising counter, a new token only after the last row is out.

    A source takes from `fastest` to `slowest` of clock time from the counter's issue of a token to the row. A slow
    target may still hold an older token for slowest[j] - fastest[i] after a row of i, and for at most one row. No
    timeout is needed.
    """
    if not len(fastest) == len(slowest) == len(latency):
        raise DeclarationError(
            f"{len(fastest)} fastest, {len(slowest)} slowest times and {len(latency)} latencies: give one per source"
        )
    for source, (low, high) in enumerate(zip(fastest, slowest, strict=True)):
        check_length("fastest", low)
        if low > high:
            raise DeclarationError(
                f"source {source}: its fastest time {low} is more than its slowest {high}: swap them"
            )
    zeros = (0,) * len(latency)
    return PerSourceSkew.of(
        latency,
        between=[TimeTerm.of(give=[-low for low in fastest], take=slowest), RowTerm(1, out=zeros, into=zeros)],
        own=[[TimeBound(0, 0)]] * len(latency),
    )


def distributed_sensors(
    deviation: Sequence[int], latency: Sequence[int], rate: Sequence[float] | None = None
) -> PerSourceSkew:
    """Sources with clocks of their own, each off by less than `deviation` from a common application clock.

    A clock that is set right goes back by less than its deviation; rows between two settings rise. (A clock that may
    be off by exactly d, or that repeats a reading, declares d + 1.) `rate` is the least application time that passes
    at a source, settings included, for each unit of the clock. With it every lag vanishes after a while and no
    timeout is needed.
    """
    terms = [TimeTerm.of(out=deviation, into=deviation)]
    own = [[TimeBound(0, d)] for d in deviation]
    if rate is not None:
        caught_up = TimeTerm.of(give=deviation, take=deviation, rate=rate)
        alone = TimeTerm.of(take=deviation, rate=rate)
        terms.append(caught_up)
        own = [[*bounds, alone.bound(i, i)] for i, bounds in enumerate(own)]
    return PerSourceSkew.of(latency, between=terms, own=own)
