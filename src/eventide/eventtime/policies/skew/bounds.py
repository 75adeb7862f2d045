"""Skew bounds: how far, and for how long, one source may trail another. Sets of them, simplified and joined.

After the skew bounds of Srivastava and Widom (sections 2, 3.1, 5.2). A bound of the ordered pair (i, j) starts from a
row that source i emits at instant c with time T. It says of source j:

- `TimeBound(after, lag)`: every row that j emits later than c + after has a time greater than T - lag.
- `RowBound(rows, lag)`: every row that j emits later than c, except the first `rows` of them, has a time greater than
  T - lag. With `rows=0` this is `TimeBound(0, lag)`.

Both may carry `exceeded`, the largest share of the rows of j that may break the bound (confidence is 1 - exceeded).

>>> at_most_three_rows_share_a_time = (TimeBound(0, 1), RowBound(2, 0))
>>> simplified([TimeBound(5, 3), TimeBound(5, 4), RowBound(9, 3), RowBound(9, 5)])
(TimeBound(after=5, lag=3), RowBound(rows=9, lag=3))
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from eventide.errors import DeclarationError

LONGEST = 2**60
"""No bound and no latency may be longer: sums of a few of them must stay within int64."""


def check_length(what: str, value: int) -> None:
    """Refuse a length that is no whole number from 0 to `LONGEST`.

    >>> check_length("latency", -3)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: latency -3 must be a whole number from 0 to 1152921504606846976
    """
    if isinstance(value, bool) or not hasattr(value, "__index__") or not 0 <= value <= LONGEST:
        raise DeclarationError(f"{what} {value} must be a whole number from 0 to {LONGEST}")


def _check_exceeded(exceeded: float) -> None:
    if not 0 <= exceeded < 1:
        raise DeclarationError(
            f"exceeded {exceeded} must be a share from 0 (never) to below 1: write 0.01 for 'by 1 % of the rows'"
        )


@dataclass(frozen=True)
class TimeBound:
    """Later than `after` on the clock, the other source emits only times greater than `lag` before the row's.

    >>> TimeBound(after=0, lag=5)
    TimeBound(after=0, lag=5)
    >>> TimeBound(after=-1, lag=5)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a bound's after -1 must be a whole number from 0 to 1152921504606846976
    """

    after: int
    lag: int
    exceeded: float = 0.0

    def __post_init__(self) -> None:
        """Check the declaration."""
        check_length("a bound's after", self.after)
        check_length("a bound's lag", self.lag)
        _check_exceeded(self.exceeded)

    def __repr__(self) -> str:
        """Leave out a confidence of one."""
        return f"TimeBound(after={self.after}, lag={self.lag}{_confidence(self.exceeded)})"


@dataclass(frozen=True)
class RowBound:
    """After `rows` further rows, the other source emits only times greater than `lag` before the row's.

    >>> RowBound(rows=1, lag=0, exceeded=0.01)
    RowBound(rows=1, lag=0, exceeded=0.01)
    """

    rows: int
    lag: int
    exceeded: float = 0.0

    def __post_init__(self) -> None:
        """Check the declaration."""
        check_length("a bound's rows", self.rows)
        check_length("a bound's lag", self.lag)
        _check_exceeded(self.exceeded)

    def __repr__(self) -> str:
        """Leave out a confidence of one."""
        return f"RowBound(rows={self.rows}, lag={self.lag}{_confidence(self.exceeded)})"


def _confidence(exceeded: float) -> str:
    return f", exceeded={exceeded}" if exceeded else ""


SkewBound: TypeAlias = TimeBound | RowBound
BoundSet: TypeAlias = tuple[SkewBound, ...]
"""All that is promised of one ordered pair of sources; empty when nothing is."""


def implies(strong: SkewBound, weak: SkewBound) -> bool:
    """Whether bound `strong` implies bound `weak`, with at least its confidence.

    >>> implies(TimeBound(1, 2), TimeBound(3, 2)), implies(TimeBound(0, 2), RowBound(7, 2))
    (True, True)
    >>> implies(RowBound(7, 2), TimeBound(9, 2))
    False
    """
    if strong.lag > weak.lag or strong.exceeded > weak.exceeded:
        return False
    if isinstance(weak, TimeBound):
        return isinstance(strong, TimeBound) and strong.after <= weak.after
    # Clock time says nothing of how many rows pass in it, except when there is none to wait for.
    return strong.after == 0 if isinstance(strong, TimeBound) else strong.rows <= weak.rows


def simplified(bounds: Iterable[SkewBound]) -> BoundSet:
    """The same promises without those that another one implies; time bounds first, quickest first.

    >>> simplified([RowBound(0, 4), TimeBound(3, 1), TimeBound(2, 9)])
    (TimeBound(after=0, lag=4), TimeBound(after=3, lag=1))
    """
    distinct = {_plain(bound) for bound in bounds}
    kept = [b for b in distinct if not any(other != b and implies(other, b) for other in distinct)]
    return tuple(sorted(kept, key=lambda b: (isinstance(b, RowBound), _wait(b), b.lag, b.exceeded)))


def _plain(bound: SkewBound) -> SkewBound:
    no_rows_to_wait_for = isinstance(bound, RowBound) and bound.rows == 0
    return TimeBound(0, bound.lag, bound.exceeded) if no_rows_to_wait_for else bound


def _wait(bound: SkewBound) -> int:
    return bound.after if isinstance(bound, TimeBound) else bound.rows


def join_senders(sets: Iterable[BoundSet]) -> BoundSet:
    """What holds for one target after a row of *any* of several senders (the join of section 5.2).

    Of every choice of one bound from each set, the weaker half in each respect. That covers the paper's closure (the
    strongest bound at every instant) without listing instants. Either bound may fail, so the shares add up.
    A wait for clock time and a wait for rows cannot both be said in one bound: such a pair promises nothing.

    >>> join_senders([(TimeBound(1, 2), TimeBound(3, 1)), (TimeBound(2, 0),)])
    (TimeBound(after=2, lag=2), TimeBound(after=3, lag=1))
    >>> join_senders([(RowBound(2, 1),), (RowBound(5, 0),)])
    (RowBound(rows=5, lag=1),)
    """

    def weaker(a: SkewBound, b: SkewBound) -> SkewBound | None:
        lag, exceeded = max(a.lag, b.lag), a.exceeded + b.exceeded
        if exceeded >= 1:
            return None
        if isinstance(a, TimeBound) and isinstance(b, TimeBound):
            return TimeBound(max(a.after, b.after), lag, exceeded)
        if isinstance(a, RowBound) and isinstance(b, RowBound):
            return RowBound(max(a.rows, b.rows), lag, exceeded)
        by_time, by_rows = (a, b) if isinstance(a, TimeBound) else (b, a)
        assert isinstance(by_time, TimeBound)
        assert isinstance(by_rows, RowBound)
        return RowBound(by_rows.rows, lag, exceeded) if by_time.after == 0 else None

    def both(first: BoundSet, second: BoundSet) -> BoundSet:
        pairs = (weaker(a, b) for a in first for b in second)
        return simplified(bound for bound in pairs if bound is not None)

    return reduce(both, (simplified(bounds) for bounds in sets))


def join_targets(sets: Iterable[BoundSet]) -> BoundSet:
    """What holds for *each* of several targets after a row of one sender, when the targets are watched as one.

    Time bounds join as in `join_senders`; a row of one target breaks only its own bound, so the larger share holds.
    Row bounds are lost: rows of the whole group say nothing of a member that kept silent.

    >>> join_targets([(TimeBound(1, 2, 0.1), RowBound(3, 0)), (TimeBound(2, 0, 0.2), RowBound(3, 0))])
    (TimeBound(after=2, lag=2, exceeded=0.2),)
    """

    def both(first: BoundSet, second: BoundSet) -> BoundSet:
        return simplified(
            TimeBound(max(a.after, b.after), max(a.lag, b.lag), max(a.exceeded, b.exceeded))
            for a in first
            for b in second
            if isinstance(a, TimeBound) and isinstance(b, TimeBound)
        )

    return reduce(both, (simplified(bounds) for bounds in sets))
