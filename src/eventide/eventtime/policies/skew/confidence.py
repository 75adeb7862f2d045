"""Bounds that may fail: which of them a budget of losses affords, and whether they fail as seldom as declared.

After the probabilistic bounds of Srivastava and Widom (section 2): a bound with `exceeded` = e holds with confidence
1 - e, and rows that break it are late.

*Loss.* A row of source j is late only if it breaks a bound toward j that is used, or was longer on its way than the
latency of j. So at most the sum of these shares of its rows is late (`loss_at_most`), whatever depends on what.

*Budget.* `affordable` keeps the bounds that never fail, and of the others toward each source, and of the latencies
declared for it, as many as fit into the budget together: first the shortest latency that fits, then the surest bounds.
So the loss of each source stays within the budget if every bound is kept as declared.

>>> from eventide.eventtime.policies.skew.bounds import TimeBound
>>> sure, good, poor = TimeBound(0, 50), TimeBound(0, 9, 0.01), TimeBound(0, 5, 0.1)
>>> skew, unused = affordable([[[sure, good, poor]]], [{0.0: 8, 0.02: 3}], budget=0.05)
>>> skew.bounds(0, 0), skew.latency, loss_at_most(skew), unused
((TimeBound(after=0, lag=9, exceeded=0.01), TimeBound(after=0, lag=50)), (3,), (0.03,), ((0, 0, \
TimeBound(after=0, lag=5, exceeded=0.1)),))

*Observed.* Of n rows of a source, k came at or below its heartbeat. `is_broken` says whether so many are more than
chance explains, if each is late with the declared share at most: k > np + 3 sqrt(np(1 - p)); where nothing may be late,
one row is enough. A wrong alarm is about as rare as three standard deviations, one look in a thousand.

>>> is_broken(late=14, rows=1000, share=0.01), is_broken(late=24, rows=1000, share=0.01), is_broken(1, 10**6, 0.0)
(False, True, True)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt

from eventide.errors import DeclarationError
from eventide.eventtime.policies.skew.bounds import SkewBound
from eventide.eventtime.policies.skew.matrix import Skew, SkewMatrix

Unused = tuple[tuple[int, int, SkewBound], ...]
"""Bounds of pairs (sender, target) that a budget does not afford."""

TOLERANCE = 1e-12
"""Shares are binary fractions, and 1 % + 2 % shall fit into 3 %."""


def loss_at_most(skew: Skew) -> tuple[float, ...]:
    """For each source, the largest share of its rows that may come at or below its heartbeat.

    >>> from eventide.eventtime.policies.skew.bounds import TimeBound
    >>> loss_at_most(SkewMatrix.of([[[TimeBound(0, 2, 0.25)], []], [[TimeBound(4, 0, 0.5)], []]], [0, 0]))
    (0.75, 0.0)
    """
    sources = range(len(skew.latency))
    exceeded = skew.latency_exceeded or (0.0,) * len(skew.latency)
    return tuple(min(1.0, exceeded[j] + sum(b.exceeded for i in sources for b in skew.bounds(i, j))) for j in sources)


def affordable(
    entries: Sequence[Sequence[Sequence[SkewBound]]], latencies: Sequence[Mapping[float, int]], budget: float
) -> tuple[SkewMatrix, Unused]:
    """The skew of bounds that may fail for at most `budget` of the rows of each source, and the bounds left out.

    `latencies` are those of each source, by the share of its rows that are longer on the way.

    >>> affordable([[[]]], [{0.1: 3}], budget=0.05)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: more rows than 5 % are longer on their way than every declared latency: declare \
a surer one
    """
    n = range(len(latencies))
    kept: list[list[list[SkewBound]]] = [[[b for b in entries[i][j] if not b.exceeded] for j in n] for i in n]
    chosen: list[tuple[float, int]] = []
    unused: list[tuple[int, int, SkewBound]] = []
    for j in n:
        fitting = [(length, share) for share, length in latencies[j].items() if share <= budget + TOLERANCE]
        if latencies[j] and not fitting:
            raise DeclarationError(
                f"more rows than {100 * budget:.4g} % are longer on their way than every declared latency: "
                "declare a surer one"
            )
        length, spent = min(fitting, default=(0, 0.0))
        chosen.append((spent, length))
        uncertain = [(b.exceeded, i, b) for i in n for b in entries[i][j] if b.exceeded]
        for share, i, bound in sorted(uncertain, key=lambda one: one[:2]):
            if spent + share <= budget + TOLERANCE:
                kept[i][j].append(bound)
                spent += share
            else:
                unused.append((i, j, bound))
    matrix = SkewMatrix.of(kept, [length for _, length in chosen], [share for share, _ in chosen])
    return matrix, tuple(unused)


def is_broken(late: int, rows: int, share: float) -> bool:
    """Whether more rows are late than chance explains, if each is with this share at most."""
    if share >= 1:
        return False
    mean = rows * share
    return late > 0 and late > mean + 3 * sqrt(mean * (1 - share))
