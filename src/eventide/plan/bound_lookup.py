"""A lookup bound to its inputs: it is bound as a join over the times of both sides, and looks for one version only.

Law: rows and versions come in as the two sides of a join by equal times; `removed` is one key more of the versions.

>>> from eventide.plan.join import Side
>>> from eventide.plan.stream import columns
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
from eventide.plan.aggregate_ordered import order_key
from eventide.plan.band_value import STAMP
from eventide.plan.bound import Bound, Key, time_sql
from eventide.plan.bound_join import TypeOf, bind_join
from eventide.plan.carriers import carriers
from eventide.plan.columns import Column, quoted
from eventide.plan.derived import Derived, Least
from eventide.plan.dialect import same_answer
from eventide.plan.expressions import aggregates_in, check_columns, parsed
from eventide.plan.join import Band, Join, JoinKind
from eventide.plan.join_names import LEFT, RIGHT
from eventide.plan.join_text import met_columns, told_order, told_text
from eventide.plan.joined import BoundJoin, Carried, least_of_all
from eventide.plan.lookup import Lookup
from eventide.plan.port import IDENTITY
from eventide.plan.stream import Stream
from eventide.plan.window import Window

PASSED = "__passed"
"""Of a version: whether it holds before any row that can still come, unless a later one does."""


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
    def ports(self) -> tuple[Bound, Bound]:
        """The rows, and the versions."""
        return self.joined.ports

    @property
    def outputs(self) -> tuple[Column, ...]:
        """The user's columns."""
        return self.joined.outputs

    @property
    def carried(self) -> dict[str, tuple[Carried, ...]]:
        """The outputs that carry time; those of versions may be as old as they are."""
        every = self.joined.carried.items()
        return {name: parts for name, parts in every if all(part.side == LEFT for part in parts)}

    @property
    def results(self) -> Derived:
        """What it tells, as a stream for whoever reads it."""
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

    def _least(self, carried: Carried) -> Least | None:
        own = carriers(self.ports[LEFT].stream)[carried.column]
        return None if own is None else lambda t: carried.attribute.value(int(own(t)))


def joining(lookup: Lookup, rows: Stream, versions: Stream) -> Join:
    """The join of equal times that a lookup is bound as."""
    band = Band(rows.time or STAMP, versions.time or STAMP)
    kind = JoinKind.LEFT if lookup.keeps_all else JoinKind.INNER
    return Join(lookup.name, lookup.rows, lookup.versions, (band,), kind, where=lookup.where, select=lookup.select)


def bind_lookup(lookup: Lookup, rows: Stream, versions: Stream, type_of: TypeOf) -> BoundLookup:
    """Check a lookup against its inputs; `type_of` as for `bind_join` of `joining(lookup, rows, versions)`."""
    joined = bind_join(joining(lookup, rows, versions), rows, versions, type_of)
    left, right = (_timed(into) for into in joined.ports)
    if lookup.removed is not None:
        condition = parsed(lookup.removed, f"`removed` of {lookup.name!r}")
        check_columns(condition, versions.columns, f"{lookup.name!r}, input {versions.name!r}")
        if aggregates_in(condition) or type_of(versions, lookup.removed) != "BOOLEAN":
            raise DeclarationError(f"{lookup.name!r}: {lookup.removed!r} is no condition on single versions")
        right = replace(right, keys=(*right.keys, Key("removed", f"COALESCE({lookup.removed}, FALSE)", "BOOLEAN")))
    return BoundLookup(lookup, replace(joined, ports=(left, right)))


def _timed(into: Bound) -> Bound:
    """The port with the time itself for the value of its band: the time column of results is one later."""
    start, band, *keys = into.keys
    return replace(into, keys=(start, replace(band, sql=time_sql(into.stream)), *keys))


def versions_text(bound: BoundLookup, rows: str, versions: str) -> str:
    """Each row with its version, both with all their columns; rows without a version are left out.

    Versions and rows of a key are put in the order of time; a row takes the latest time before it. So the work grows
    with the rows and the versions of their keys, not with their product.
    """
    equal = " AND ".join(f"l_{key} = r_{key}" for key in bound.keys)
    keys = ", ".join(f"l_{key} AS {key}" for key in bound.keys)
    of_versions = ", ".join(f"r_{key} AS {key}" for key in bound.keys)
    wanted = f"SELECT * FROM {versions} LEFT SEMI JOIN {rows} ON {equal}"
    both = (
        f"SELECT {_identity('l_', '__row')}, l___t AS __at, CAST(NULL AS BIGINT) AS __since, {keys} FROM {rows} "
        f"UNION ALL SELECT {_nobody('__row')}, r___t AS __at, r___t AS __since, {of_versions} FROM ({wanted})"
    )
    # Peers in the order of a window count too, so a version that begins at the time of the row does.
    over = f"OVER (PARTITION BY {', '.join(bound.keys)} ORDER BY __at)"
    numbers = ", ".join(f"__row{column.name}" for column in IDENTITY)
    last = f"SELECT {numbers}, max(__since) {over} AS __last FROM ({both})"
    dated = f"SELECT {numbers}, __last FROM ({last}) WHERE __row{IDENTITY[0].name} IS NOT NULL"
    columns = ", ".join(quoted(c.name) for side in (LEFT, RIGHT) for c in met_columns(bound.joined, side))
    own = ", ".join(f"l_{column.name}" for column in IDENTITY)
    same = " AND ".join(f"l_{column.name} = __row{column.name}" for column in IDENTITY)
    ranked = f"row_number() OVER (PARTITION BY {own} ORDER BY {', '.join(_greatest(bound))}) AS __place"
    found = (
        f"SELECT {columns}, {ranked} FROM {rows} JOIN ({dated}) ON {same} JOIN {versions} ON {equal} AND r___t = __last"
    )
    ended = "" if bound.removed is None else f" AND NOT r_{bound.removed}"
    return f"SELECT {columns} FROM ({found}) WHERE __place = 1{ended}"


def needed_text(bound: BoundLookup, versions: str) -> str:
    """The versions that can still be asked for: those not passed, and of those passed the latest of each key."""
    latest = f"max(CASE WHEN {PASSED} THEN __t END) OVER (PARTITION BY {', '.join(bound.keys)}) AS __last"
    ended = "" if bound.removed is None else f" AND NOT ({PASSED} AND {bound.removed})"
    return f"SELECT * FROM (SELECT *, {latest} FROM {versions}) WHERE (__last IS NULL OR __t >= __last){ended}"


def lookup_exact(bound: BoundLookup) -> bool:
    """Whether DuckDB gives Spark's answer of what a lookup tells."""
    known = (*met_columns(bound.joined, LEFT), *met_columns(bound.joined, RIGHT), Column("__rows", "BIGINT"))
    return same_answer(f"SELECT * FROM ({told_text(bound.joined, 'told')}){told_order(bound.joined)}", known)


def _greatest(bound: BoundLookup) -> list[str]:
    """What orders versions of one time, the one that counts first; those that end a row come last."""
    parts = [] if bound.removed is None else [f"r_{bound.removed}"]
    for column in bound.ports[RIGHT].kept:
        name = quoted(f"r_{column.name}")
        key = order_key(name, column.type)
        if key is not None:
            parts += [f"({name} IS NULL)"] if key[0] != name else []
            parts.append(f"{key[0]} DESC NULLS LAST")
    return [*parts, *(f"r_{column.name}" for column in IDENTITY)]


def _identity(prefix: str, name: str) -> str:
    return ", ".join(f"{prefix}{column.name} AS {name}{column.name}" for column in IDENTITY)


def _nobody(name: str) -> str:
    return ", ".join(f"CAST(NULL AS {column.type}) AS {name}{column.name}" for column in IDENTITY)
