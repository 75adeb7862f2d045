"""A lookup bound to its inputs: it is bound as a join over the times of both sides, and looks for one version only.

Law: rows and versions come in as the two sides of a join by equal times; `removed` is one key more of the versions.

>>> from eventide.plan.declared.join import Side
>>> from eventide.plan.declared.stream import columns
>>> orders = Stream("orders", columns("ts BIGINT, id STRING"), time="ts")
>>> prices = Stream("prices", columns("since BIGINT, id STRING, price INT"), time="since")
>>> lookup = Lookup("l", Side("orders", keys=("id",)), Side("prices", keys=("id",)), removed="price IS NULL")
>>> bound = bind_lookup(lookup, orders, prices, lambda stream, sql: "BOOLEAN" if "NULL" in sql else "STRING")
>>> [port.query.name for port in bound.ports], [key.sql for key in bound.ports[1].keys][1:]
(['l__left', 'l__right'], ['CAST(`since` AS BIGINT)', 'id', 'COALESCE(price IS NULL, FALSE)'])
>>> list(dict(bound.results.carries))
['ts']
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from eventide.errors import DeclarationError
from eventide.plan.bound.join import BoundJoin, SideTimeOutput, TypeOf, bind_join, least_of_all
from eventide.plan.bound.join_inputs import LEFT, RIGHT, STAMP
from eventide.plan.bound.query import BoundQuery, Key, time_sql
from eventide.plan.declared.join import Band, Join, JoinKind, Lookup
from eventide.plan.declared.stream import Derived, Least, Stream
from eventide.plan.declared.temporal import time_columns
from eventide.plan.declared.window import Window
from eventide.plan.expressions.columns import Column
from eventide.plan.expressions.parse import aggregates_in, check_columns, parsed


@dataclass(frozen=True)
class BoundLookup:
    """What the engine needs to know of a lookup."""

    lookup: Lookup
    joined: BoundJoin

    @property
    def name(self) -> str:
        """The name that others read it by."""
        return self.lookup.name

    @property
    def ports(self) -> tuple[BoundQuery, BoundQuery]:
        """The rows, and the versions."""
        return self.joined.ports

    @property
    def outputs(self) -> tuple[Column, ...]:
        """The columns that the user selects."""
        return self.joined.outputs

    @property
    def carried(self) -> dict[str, tuple[SideTimeOutput, ...]]:
        """The outputs that carry time; those of versions may be as old as they are."""
        every = self.joined.carried.items()
        return {name: parts for name, parts in every if all(part.side == LEFT for part in parts)}

    @property
    def results(self) -> Derived:
        """The rows of the lookup, as a stream for its readers."""
        carries = tuple((name, least_of_all(map(self._least, parts))) for name, parts in self.carried.items())
        return Derived.of(self.name, self.outputs, self.ports[LEFT].stream.time_kind, Window(1), carries)

    @property
    def removed(self) -> str | None:
        """The column of a version that tells whether it ends the table's row."""
        return None if self.lookup.removed is None else f"__k{len(self.ports[RIGHT].keys) - 1}"

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of a chunk that are compared for being equal."""
        return tuple(f"__k{place}" for place in range(2, len(self.ports[LEFT].keys)))

    def _least(self, carried: SideTimeOutput) -> Least | None:
        own = time_columns(self.ports[LEFT].stream)[carried.column]
        return None if own is None else lambda t: carried.attribute.value(int(own(t)))


def joining(lookup: Lookup, rows: Stream, versions: Stream) -> Join:
    """The join of equal times that a lookup is bound as."""
    band = Band(rows.time or STAMP, versions.time or STAMP)
    kind = JoinKind.LEFT if lookup.keeps_all else JoinKind.INNER
    return Join(lookup.name, lookup.rows, lookup.versions, (band,), kind, where=lookup.where, select=lookup.select)


def bind_lookup(lookup: Lookup, rows: Stream, versions: Stream, type_of: TypeOf) -> BoundLookup:
    """Check a lookup against its inputs; `type_of` as for `bind_join` of `joining(lookup, rows, versions)`."""
    joined = bind_join(joining(lookup, rows, versions), rows, versions, type_of, by_time=not lookup.as_it_is)
    left, right = (_timed(into) for into in joined.ports)
    if lookup.removed is not None:
        condition = parsed(lookup.removed, f"`removed` of {lookup.name!r}")
        check_columns(condition, versions.columns, f"{lookup.name!r}, input {versions.name!r}")
        if aggregates_in(condition) or type_of(versions, lookup.removed) != "BOOLEAN":
            raise DeclarationError(f"{lookup.name!r}: {lookup.removed!r} is no condition on single versions")
        right = replace(right, keys=(*right.keys, Key("removed", f"COALESCE({lookup.removed}, FALSE)", "BOOLEAN")))
    return BoundLookup(lookup, replace(joined, ports=(left, right)))


def _timed(into: BoundQuery) -> BoundQuery:
    """The port with the time itself for the value of its band: the time column of results is one later."""
    start, band, *keys = into.keys
    return replace(into, keys=(start, replace(band, sql=time_sql(into.stream)), *keys))
