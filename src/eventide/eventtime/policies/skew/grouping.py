"""Groups of sources that are watched as one: what they add to the delay, and which to choose.

*Grouping.* Several sources are watched as one, so that memory and work follow the groups (Srivastava and Widom, 5.2).
The bounds from group a to group b hold for every sender in a and every target in b: the join of all their sets. The
latency of a group is its longest. A group is never promised more than any of its members would be.

>>> from eventide.eventtime.policies.skew.per_source import distributed_sensors
>>> sensors = distributed_sensors(deviation=[1, 2, 9], latency=[4, 5, 6])
>>> small = group(sensors, [0, 0, 1])
>>> small.bounds(0, 0), small.bounds(0, 1), small.latency
((TimeBound(after=0, lag=3),), (TimeBound(after=0, lag=11),), (5, 6))

*Partition.* Which m groups of n sources add little delay? Srivastava and Widom leave this open (section 5.2), with the
hint that sources alike belong together. Delay is what `expected_delay` says it is. A group waits for its longest
latency, and between two groups holds the longest wait of any pair, so one unlike member costs all others. The search:

1. two first groupings: (a) neighbours joined, always the two groups whose union lengthens waits and latencies the
   least, summed over members; (b) sources in order of their delay, cut into equal parts;
2. from each, single sources move to another group or change places wherever that lowers the mean delay, until
   nothing does;
3. the better of the two.

Between groups it joins first bounds with first bounds and second with second, which is the true join while every pair
has one bound, and else a little weaker. Of more than `MOST_ALIKE` sources, those of nearly the same delay are first
tied together. `benchmarks/grouping.py` compares it with the optimum, which is out of reach for more than a dozen
sources.

>>> from eventide.eventtime.policies.skew.per_source import distributed_sensors
>>> partition(distributed_sensors(deviation=[5, 90, 6, 80], latency=[0, 0, 0, 0]), groups=2, gap=10)
(0, 1, 0, 1)

*Delay.* How long heartbeats trail when sources speak at random: the measure of a skew and of a grouping. The model:
every source speaks on average every `gap`, at random, in step with the clock (`pace` units of application time in each
unit of the clock). A row of source i that has just arrived promises to source j what lies w[i, j] back, where w is the
least of after + lag / pace over the time bounds of the pair. When i last spoke `age` ago, that is age + w[i, j]. So
heartbeats of j trail by

    latency[j] + mean of the least, over i, of (age of i + w[i, j])        with ages drawn from exponential laws.

Row bounds are left out: a group has none. A pair without a bound waits for ever; a source that nothing bounds has an
infinite delay.

>>> from eventide.eventtime.policies.skew.per_source import distributed_sensors
>>> sensors = distributed_sensors(deviation=[10, 10, 90], latency=[0, 0, 0])
>>> [round(expected_delay(sensors, gap=6, assignment=a), 1) for a in (None, (0, 0, 1), (0, 1, 1))]
[42.0, 47.1, 73.3]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.policies.skew.bounds import TimeBound, join_senders, join_targets
from eventide.eventtime.policies.skew.matrix import InOrder, Skew, SkewMatrix


def group(skew: Skew, assignment: Sequence[int]) -> Skew:
    """The skew between groups, where `assignment` names the group of each source: 0, 1, ..., none left out.

    Rows of several sources overtake each other, so only a group of one source may be in order.

    >>> from eventide.eventtime.policies.skew.per_source import distributed_sensors
    >>> group(distributed_sensors([1, 2], latency=[0, 0]), [0, 2])
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: group 1 has no source: number the groups 0, 1, 2, ... without a gap
    """
    members = members_of(assignment)
    if len(assignment) != len(skew.latency):
        raise DeclarationError(
            f"{len(assignment)} sources were assigned to groups, {len(skew.latency)} have bounds: assign each once"
        )
    entries = [
        [join_targets(join_senders(skew.bounds(i, j) for i in senders) for j in targets) for targets in members]
        for senders in members
    ]
    longer = skew.latency_exceeded or (0.0,) * len(skew.latency)
    grouped = SkewMatrix.of(
        entries,
        [max(skew.latency[j] for j in targets) for targets in members],
        [max(longer[j] for j in targets) for targets in members],
    )
    alone = tuple(a for a, sources in enumerate(members) if len(sources) == 1 and sources[0] in skew.in_order)
    return InOrder(grouped, alone) if alone else grouped


def members_of(assignment: Sequence[int]) -> list[list[int]]:
    """The sources of each group.

    >>> members_of([1, 0, 1])
    [[1], [0, 2]]
    """
    if len(assignment) == 0:
        raise DeclarationError("no source was assigned to a group: name the group of each source")
    used = set(assignment)
    if min(used) < 0:
        raise DeclarationError(f"group {min(used)} is negative: number the groups 0, 1, 2, ...")
    empty = next((number for number in range(max(used)) if number not in used), None)
    if empty is not None:
        raise DeclarationError(f"group {empty} has no source: number the groups 0, 1, 2, ... without a gap")
    members: list[list[int]] = [[] for _ in used]
    for source, number in enumerate(assignment):
        members[number].append(source)
    return members


Delays = NDArray[np.float64]


@dataclass(frozen=True)
class Rhythm:
    """How sources speak: each every `gap` of the clock on average, `pace` of application time passing per clock unit.

    >>> Rhythm(gap=0)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: gap 0 and pace 1.0 must be positive: how often do sources speak, how fast is time?
    """

    gap: float
    pace: float = 1.0

    def __post_init__(self) -> None:
        if not (self.gap > 0 and self.pace > 0):
            raise DeclarationError(
                f"gap {self.gap} and pace {self.pace} must be positive: how often do sources speak, how fast is time?"
            )


def pair_waits(skew: Skew, pace: float) -> Delays:
    """w[i, j]: how far back lies what a fresh row of i promises to j, `inf` where it never does."""
    n = range(len(skew.latency))
    bounds = ((b.after + b.lag / pace for b in skew.bounds(i, j) if isinstance(b, TimeBound)) for i in n for j in n)
    return np.array([min(waits, default=np.inf) for waits in bounds]).reshape(len(n), len(n))


def expected_delay(skew: Skew, gap: float, pace: float = 1.0, assignment: Sequence[int] | None = None) -> float:
    """The mean delay of heartbeats over all sources, watched each alone or in the groups of `assignment`."""
    rhythm = Rhythm(gap, pace)
    if assignment is None:
        return mean_delay(pair_waits(skew, pace), np.array(skew.latency), np.ones(len(skew.latency)), rhythm)
    grouped = group(skew, assignment)
    sizes = np.array([len(sources) for sources in members_of(assignment)], dtype=np.float64)
    return mean_delay(pair_waits(grouped, pace), np.array(grouped.latency), sizes, rhythm)


def mean_delay(waits: Delays, latency: NDArray[np.int64], sizes: Delays, rhythm: Rhythm) -> float:
    """The mean over sources, from the waits between groups, their latencies and sizes.

    >>> float(mean_delay(np.array([[7.0]]), np.array([2]), np.array([4.0]), Rhythm(gap=8)))
    11.0
    """
    return float((sizes * (latency + _mean_of_least(waits, sizes / rhythm.gap))).sum() / sizes.sum())


def _mean_of_least(waits: Delays, rate: Delays) -> Delays:
    # The least of (wait + exponential age) exceeds x with probability exp(-sum of rate * (x - wait) over waits < x).
    # Between two neighbouring waits that is one exponential, integrated piece by piece.
    order = np.argsort(waits, axis=0)
    in_order = np.take_along_axis(waits, order, axis=0)
    first = in_order[0]
    reachable = np.isfinite(in_order)
    start = np.where(reachable, in_order, 0) - np.where(np.isfinite(first), first, 0)
    speed = np.where(reachable, rate[order], 0)
    total = np.cumsum(speed, axis=0)
    moment = np.cumsum(speed * start, axis=0)
    # Exponents are negative, except for rounding and for pieces that do not exist.
    survival_at_start = np.exp(np.minimum(moment - total * start, 0))
    survival_at_end = np.zeros_like(start)
    survival_at_end[:-1] = np.where(reachable[1:], np.exp(np.minimum(moment[:-1] - total[:-1] * start[1:], 0)), 0)
    pieces = np.where(reachable, (survival_at_start - survival_at_end) / np.where(total > 0, total, 1), 0)
    mean: Delays = first + pieces.sum(axis=0)
    return mean


MOST_ALIKE = 100
MOST_SWEEPS = 10
BEYOND_ALL = 10
"""A pair without a bound counts as this many times the longest wait: dear, but comparable."""

Labels = NDArray[np.intp]


def partition(skew: Skew, groups: int, gap: float, pace: float = 1.0) -> tuple[int, ...]:
    """A group for each source, numbered 0, 1, ... in order of their first source; at most `groups` of them."""
    if groups < 1:
        raise DeclarationError(f"{groups} groups: give 1 or more")
    rhythm = Rhythm(gap, pace)
    sources = _Sources.of(skew, rhythm)
    ties = _ties(sources.delays())
    tied = sources.grouped(ties)
    m = min(groups, len(tied.latency))
    starts = (_neighbours_joined(tied, m), _equal_parts(np.argsort(tied.delays(), kind="stable"), m))
    best = min((_improved(tied, start, m) for start in starts), key=lambda labels: tied.grouped(labels).delay())
    labels = best[ties]
    first_seen = {label: number for number, label in enumerate(dict.fromkeys(labels.tolist()))}
    return tuple(first_seen[label] for label in labels.tolist())


@dataclass(frozen=True)
class _Sources:
    """Sources, or groups of them, as the search sees them: the k-th bound of every pair in layer k."""

    after: Delays
    lag: Delays
    latency: NDArray[np.int64]
    sizes: Delays
    rhythm: Rhythm

    @classmethod
    def of(cls, skew: Skew, rhythm: Rhythm) -> _Sources:
        n = len(skew.latency)
        sets = [[b for b in skew.bounds(i, j) if isinstance(b, TimeBound)] for i in range(n) for j in range(n)]
        longest = max((b.after + b.lag / rhythm.pace for bounds in sets for b in bounds), default=0.0)
        beyond = BEYOND_ALL * max(longest, max(skew.latency), rhythm.gap)
        layers = max(1, *map(len, sets))
        nothing: list[tuple[float, float]] = [(beyond, 0.0)] * layers
        # A pair with fewer bounds repeats its last one; simplified sets are in order of `after`.
        full = [(bounds + bounds[-1:] * (layers - len(bounds))) for bounds in sets]
        table = np.array(
            [[(float(b.after), b.lag / rhythm.pace) for b in bounds] or nothing for bounds in full]
        ).reshape(n, n, layers, 2)
        after, lag = np.moveaxis(table, (2, 3), (1, 0))
        return cls(after, lag, np.array(skew.latency), np.ones(n), rhythm)

    @cached_property
    def waits(self) -> Delays:
        """The least wait of each pair, in whichever layer."""
        waits: Delays = (self.after + self.lag).min(axis=0)
        return waits

    def delay(self) -> float:
        return mean_delay(self.waits, self.latency, self.sizes, self.rhythm)

    def delays(self) -> Delays:
        """How long heartbeats of each wait, on average over who speaks."""
        delays: Delays = self.latency + np.average(self.waits, axis=0, weights=self.sizes)
        return delays

    def grouped(self, labels: Labels) -> _Sources:
        """The skew between the groups that `labels` make, each as one source: by the weakest bounds of its members."""
        order = np.argsort(labels, kind="stable")
        starts = np.flatnonzero(np.concatenate(([True], np.diff(labels[order]) > 0)))

        def weakest(layers: Delays) -> Delays:
            by_sender = np.maximum.reduceat(layers[:, order], starts, axis=1)
            return np.maximum.reduceat(by_sender[:, :, order], starts, axis=2)

        return _Sources(
            weakest(self.after),
            weakest(self.lag),
            np.maximum.reduceat(self.latency[order], starts),
            np.add.reduceat(self.sizes[order], starts),
            self.rhythm,
        )

    def cost_of_unions(self) -> Delays:
        """For every two groups, how much their union lengthens waits and latencies, summed over members."""
        n = len(self.latency)
        cost = np.zeros((n, n))
        for waits in (self.waits, self.waits.T):
            # Column a, column b and their union, as seen from every other group.
            longer = np.maximum(waits[:, :, None], waits[:, None, :])
            for_a = (
                np.tensordot(self.sizes, longer - waits[:, :, None], axes=1) * self.sizes[:, None] / self.sizes.sum()
            )
            cost += for_a + for_a.T
        late = np.maximum(self.latency[:, None], self.latency[None, :]) - self.latency[:, None]
        cost += late * self.sizes[:, None] + (late * self.sizes[:, None]).T
        inside = np.maximum(self.waits, self.waits.T)
        alone = np.diag(self.waits)
        inside = np.maximum(inside, np.maximum(alone[:, None], alone[None, :]))
        own = (inside - alone[:, None]) * self.sizes[:, None]
        cost += own + own.T
        np.fill_diagonal(cost, np.inf)
        return cost


def _ties(delays: Delays) -> Labels:
    """Tie sources of nearly the same delay, into at most `MOST_ALIKE` bundles; leave few sources as they are."""
    n = len(delays)
    if n <= MOST_ALIKE:
        return np.arange(n)
    rank = np.argsort(np.argsort(delays, kind="stable"), kind="stable") / n
    # Half by rank, so that bundles stay small, and half by value, so that none reaches across a jump.
    value = (delays - delays.min()) / max(float(np.ptp(delays)), 1.0)
    return np.unique(np.floor((rank + value) / 2 * (MOST_ALIKE - 1)), return_inverse=True)[1]


def _neighbours_joined(sources: _Sources, groups: int) -> Labels:
    labels = np.arange(len(sources.latency))
    current = sources
    while len(current.latency) > groups:
        a, b = np.unravel_index(int(np.argmin(current.cost_of_unions())), current.waits.shape)
        labels[labels == max(a, b)] = min(a, b)
        labels[labels > max(a, b)] -= 1
        current = sources.grouped(labels)
    return labels


def _equal_parts(order: Labels, parts: int) -> Labels:
    labels = np.empty(len(order), dtype=np.intp)
    labels[order] = np.arange(len(order)) * parts // len(order)
    return labels


def _improved(sources: _Sources, start: Labels, groups: int) -> Labels:
    labels, best = start, sources.grouped(start).delay()
    for _ in range(MOST_SWEEPS):
        before = best
        for source in range(len(labels)):
            for changed in _changes(labels, source, groups):
                delay = sources.grouped(changed).delay()
                if delay < best - 1e-9:
                    labels, best = changed, delay
        if best == before:
            break
    return labels


def _changes(labels: Labels, source: int, groups: int) -> Iterator[Labels]:
    """The groupings in which `source` has moved to another group, or changed places with a later source."""
    home = labels[source]
    for there in range(groups):
        # The last source of a group stays: an empty group would only be a group less.
        if there != home and np.count_nonzero(labels == home) > 1:
            changed = labels.copy()
            changed[source] = there
            yield changed
    for other in range(source + 1, len(labels)):
        if labels[other] != home:
            changed = labels.copy()
            changed[source], changed[other] = labels[other], home
            yield changed
