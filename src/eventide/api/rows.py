"""Rows as they are, in Python: chosen and computed one by one, merged, or joined.

Law: what is built is the operator that SQL becomes. Rows can be started by themselves, and read by all that can read a
stream: windows, merges, joins.

>>> import pyarrow as pa
>>> from eventide.api.stream import stream
>>> north = stream(pa.table({"t": [1, 12], "car": ["x", "y"], "speed": [50, 60]}), time="t", name="north")
>>> south = stream(pa.table({"t": [3, 11], "car": ["x", "z"], "speed": [70, 80]}), time="t", name="south")
>>> north.union(south).select("car", kmh="speed * 2").run().column("car").to_pylist()
['x', 'x', 'z', 'y']
>>> both = north.join(south, on="car", within=5)
>>> both.declared.bands[0], [column.name for column in both.columns]
(Band(left='t', right='t', low=-5, high=5), ['car', 't', 'speed', 'south_t', 'south_speed'])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from eventide.api.arguments import Expression, Length
from eventide.api.startable import UNNAMED, Startable, checked_name
from eventide.errors import DeclarationError
from eventide.language.scope import Clock
from eventide.plan.declared.program import Operator
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import TimeKind
from eventide.plan.expressions.columns import Column

if TYPE_CHECKING:
    from eventide.api.joining import EventJoin
    from eventide.api.nodes import Node
    from eventide.api.query import ContinuousQuery
    from eventide.api.query_builder import QueryBuilder


class ReadableRows:
    """The methods of everything that gives rows: streams, queries, merges and joins."""

    def where(self, condition: Expression) -> QueryBuilder:
        """Keep only rows that fulfil a condition; a row that is left out still moves time."""
        return self._builder.where(condition)

    filter = where

    def sample(self, fraction: float) -> QueryBuilder:
        """Use about this share of the rows; see `QueryBuilder.sample`."""
        return self._builder.sample(fraction)

    def select(self, *columns: Expression, **expressions: Expression) -> EventRows:
        """Give rows with these columns; see `QueryBuilder.select`."""
        return self._builder.select(*columns, **expressions)

    def window(
        self,
        range: Length,
        slide: Length | None = None,
        *,
        offset: Length | None = None,
        empty: bool = False,
        retain: Length | None = None,
    ) -> QueryBuilder:
        """Aggregate in windows of time; see `QueryBuilder.window`."""
        return self._builder.window(range, slide, offset=offset, empty=empty, retain=retain)

    def rows(self, range: int, slide: int | None = None) -> QueryBuilder:
        """Aggregate in windows over a count of rows; see `QueryBuilder.rows`."""
        return self._builder.rows(range, slide)

    def groupBy(self, *columns: Expression, **expressions: Expression) -> QueryBuilder:  # noqa: N802
        """Group by columns; see `QueryBuilder.groupBy`."""
        return self._builder.groupBy(*columns, **expressions)

    groupby = groupBy

    def agg(self, *aggregates: Expression | Mapping[str, str], **named: Expression) -> ContinuousQuery:
        """Raise an error: over a stream, an aggregate needs a window first, `.window(..)` or `.rows(..)`."""
        return self._builder.agg(*aggregates, **named)

    def union(self, *others: Node | QueryBuilder) -> EventRows:
        """Merge these rows with those of the others, in the order of time (UNION ALL); all have the same columns."""
        from eventide.api.joining import merged

        return merged([self._read, *(readable(other) for other in others)])

    def join(
        self,
        other: Node | QueryBuilder,
        on: str | Sequence[str] = (),
        within: Length | None = None,
        how: str = "inner",
    ) -> EventJoin:
        """Join with another stream: pairs of rows whose times are close to each other.

        - `on`: columns that are equal on both sides, or a condition with the names of the inputs:
          `"north.car = south.car"`.
        - `within`: how far the times of a pair may be apart. Without it, `on` must have a condition on the times.
        - `how`: inner, left, right or full, also in PySpark's spelling (left_outer, outer).

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> north = stream(pa.table({"t": [1], "car": ["x"]}), time="t", name="north")
        >>> south = stream(pa.table({"t": [3], "car": ["x"]}), time="t", name="south")
        >>> north.join(south, on="car", within=5).select("car", gap="south.t - north.t").run().column("gap").to_pylist()
        [2]
        """
        from eventide.api.joining import joined

        return joined(self._read, readable(other), on, within, how)

    def lookup(self, table: Node | QueryBuilder, on: str | Sequence[str], how: str = "inner") -> EventJoin:
        """Look up, for each row, the version of a table's row that holds at its time (a temporal join).

        It is JOIN .. FOR SYSTEM_TIME AS OF in SQL. `table` is a stream of versions: each row of it holds for its key
        from its time on, until the next version of the key. `on` names the key, or says which columns are equal:
        `"orders.product = prices.id"`. `how` is inner, or left to keep rows without a version.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> orders = stream(pa.table({"t": [1, 12, 25], "id": ["x"] * 3}), time="t", name="orders")
        >>> prices = stream(pa.table({"t": [0, 20], "id": ["x"] * 2, "price": [5, 7]}), time="t", name="prices")
        >>> orders.lookup(prices, on="id").run().column("price").to_pylist()
        [5, 5, 7]
        """
        from eventide.api.joining import looked_up

        return looked_up(self._read, readable(table), on, how)

    def alias(self, name: str) -> EventRows:
        """Give these rows another name in a join, like AS in SQL, for example to join a stream with itself.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> cars = stream(pa.table({"t": [1, 3], "car": ["x", "x"]}), time="t")
        >>> after = cars.alias("a").join(cars.alias("b"), on="a.car = b.car AND b.t BETWEEN a.t + 1 AND a.t + 5")
        >>> after.select("a.car", gap="b.t - a.t").run().column("gap").to_pylist()
        [2]
        """
        return replace(self._builder.select(), known_as=checked_name(name))

    @property
    def _builder(self) -> QueryBuilder:
        from eventide.api.query_builder import QueryBuilder

        return QueryBuilder(self._read)

    @property
    def _read(self) -> Node:
        return self  # type: ignore[return-value]


@dataclass(frozen=True)
class EventRows(ReadableRows, Startable):
    """Single rows of one or several inputs: a projection, a merge or a join, ready to start.

    `declared` is the node in the plan; its inputs get their names in `plan`.
    """

    declared: Operator
    inputs: tuple[Node, ...]
    columns: tuple[Column, ...]
    """Their types are found when it runs."""

    clock: Clock
    name: str | None = None
    known_as: str | None = None
    """Its name in a join, where that is another."""

    def __repr__(self) -> str:
        columns = ", ".join(column.name for column in self.columns)
        return f"<rows {self.name or self.declared.name or 'without a name'!r}: {columns}; .explain() tells more>"

    @property
    def called(self) -> str:
        """The name of the rows."""
        return self.name or UNNAMED

    @property
    def time_kind(self) -> TimeKind:
        """What the times of its rows look like."""
        return self.clock.kind

    def named(self, name: str) -> EventRows:
        """The same rows under a name, which their results and files carry."""
        # The same object is the same operator to all that read it.
        return self if name == self.name else replace(self, name=checked_name(name))

    def immediately(self) -> EventRows:
        """Give rows in the round in which they come, instead of in the order of time."""
        if not isinstance(self.declared, Rows):
            return self
        return replace(self, declared=replace(self.declared, ordered=False))


def readable(given: Node | QueryBuilder) -> Node:
    """What gives rows; a builder with conditions gives those that pass."""
    from eventide.api.query_builder import QueryBuilder

    if isinstance(given, QueryBuilder):
        return given.select()
    if not isinstance(given, ReadableRows):
        raise DeclarationError(f"{given!r} gives no rows: give a stream made by eventide.stream(df, time='ts')")
    return given._read
