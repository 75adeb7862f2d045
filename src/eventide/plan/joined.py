"""What the engine needs to know of a join: its ports, its bands in whole numbers, and what it tells.

Law: an output that is made of a column with time carries time on. The row of a time t may be a pair whose other row has
that time; then its own row lies no further back than the bands reach. So each such output has a least value for t.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil

from sqlglot import exp

from eventide.plan.band_value import STAMP, BandValue
from eventide.plan.bound import Bound
from eventide.plan.carriers import carriers
from eventide.plan.columns import Column
from eventide.plan.derived import Derived, Least
from eventide.plan.expressions import columns_in, parsed
from eventide.plan.join import Join
from eventide.plan.join_names import LEFT, PREFIXES
from eventide.plan.query import Named
from eventide.plan.stream import TimeKind, kind_of
from eventide.plan.temporal import Temporal, temporal
from eventide.plan.window import Window


@dataclass(frozen=True)
class Reach:
    """A band in whole numbers: the value of each side, and low <= right - left <= high."""

    left: BandValue
    right: BandValue
    low: int
    high: int

    @property
    def values(self) -> tuple[BandValue, BandValue]:
        """The values of both sides."""
        return self.left, self.right


@dataclass(frozen=True)
class Carried:
    """An output that carries time: the side and the column it is made of, and how."""

    side: int
    column: str
    attribute: Temporal


@dataclass(frozen=True)
class BoundJoin:
    """What the engine needs to know of a join; `condition`, `where` and `values` speak of names where rows meet."""

    join: Join
    ports: tuple[Bound, Bound]
    bands: tuple[Reach, ...]
    condition: str | None
    where: str | None
    values: tuple[Named, ...]
    types: tuple[str, ...]
    spelled: tuple[str, ...]
    """The outputs as the user wrote them."""

    @property
    def name(self) -> str:
        """The name that others read it by."""
        return self.join.name

    @property
    def outputs(self) -> tuple[Column, ...]:
        """The user's columns."""
        return tuple(Column(value.name, kind) for value, kind in zip(self.values, self.types, strict=True))

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of a chunk that are compared for being equal."""
        first = 1 + len(self.bands)
        return tuple(f"__k{place}" for place in range(first, len(self.ports[LEFT].keys)))

    @property
    def keeps(self) -> tuple[bool, bool]:
        """Of which sides rows are told alone."""
        return self.join.kind.keeps_left, self.join.kind.keeps_right

    @property
    def time_kind(self) -> TimeKind:
        """What the times of its rows look like."""
        kinds = {port.stream.time_kind for port in self.ports}
        return kinds.pop() if len(kinds) == 1 else TimeKind.TIMESTAMP

    @property
    def results(self) -> Derived:
        """Its rows as a stream for whoever reads it."""
        carries = tuple((name, least_of_all(map(self._least, parts))) for name, parts in self.carried.items())
        return Derived.of(self.name, self.outputs, self.time_kind, Window(1), carries)

    @cached_property
    def carried(self) -> dict[str, tuple[Carried, ...]]:
        """The outputs that carry time: of COALESCE, which may be either side's, what each part of it is made of."""
        found = {}
        for value in self.values:
            expression = parsed(value.sql, "an output")
            coalesced = isinstance(expression, exp.Coalesce)
            parts = [expression.this, *expression.expressions] if coalesced else [expression]
            carried = [self._carried(part) for part in parts]
            if None not in carried:
                found[value.name] = tuple(one for one in carried if one is not None)
        return found

    def _carried(self, expression: exp.Expression) -> Carried | None:
        for side, (prefix, into) in enumerate(zip(PREFIXES, self.ports, strict=True)):
            for name in columns_in(expression):
                carrier = next((one for one in carriers(into.stream) if prefix + one == name), None)
                kind = None if carrier is None else kind_of(into.stream.column(carrier))
                found = None if kind is None else temporal(expression, name, kind)
                # A fraction is rounded when it is computed, so its least value is not exactly known.
                if carrier is not None and found is not None and found.increasing and found.whole:
                    return Carried(side, carrier, found)
        return None

    def _least(self, carried: Carried) -> Least | None:
        """What an output has at least in a row of a time; None where only the run knows (`JoinRun.frontier`)."""
        side, other = carried.side, 1 - carried.side
        own, theirs = (carriers(self.ports[one].stream) for one in (side, other))
        time, of_column = self.ports[side].stream.time, own[carried.column]
        end = None if time is None else own[time]
        dated = [
            (band, known)
            for band in self.bands
            if band.values[side].column == time and (known := _at_least(band.values[other].column, theirs)) is not None
        ]
        if of_column is None or end is None or not dated:
            return None
        # The time column of a stream is its time; that of results is one later.
        ahead = int(end(0))

        def reached(band: Reach, known: Least, t: int) -> int:
            """The first time of a partner of a row of the other side that has time t."""
            least = band.values[other].of(known(t)) + (-band.high if side == LEFT else band.low)
            return band.values[side].first(least, t) - ahead

        def least(t: int) -> int:
            since = min(t, max(reached(band, known, t) for band, known in dated))
            return ceil(carried.attribute.value(ceil(of_column(since))))

        return least


def least_of_all(leasts: Iterable[Least | None]) -> Least | None:
    """What holds of all of them; None where one is not known."""
    every = list(leasts)
    known = [least for least in every if least is not None]
    return (lambda t: min(least(t) for least in known)) if len(known) == len(every) else None


def _at_least(column: str, known: Mapping[str, Least | None]) -> Least | None:
    return (lambda t: t) if column == STAMP else known[column]
