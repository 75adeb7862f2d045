"""What can be asked of rows in Python, and what can be started; rows chosen and computed one by one, merged, or joined.

Law: what is built is the operator that SQL becomes. Rows can be started by themselves, and read by all that can read a
stream: windows, merges, joins. Starting the same thing twice gives two runs of their own.

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

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Self, TypeAlias

import pyarrow as pa
from sqlglot import exp

from eventide.api.arguments import Expression, Length, condition_text, group_named, value_named
from eventide.api.windowed_rows import WindowedRows
from eventide.errors import DeclarationError
from eventide.language.scope.scope import Clock, Scope, ScopeRelation, over
from eventide.plan.declared.program import NAME, Operator, Program
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import TimeKind
from eventide.plan.expressions.columns import Column
from eventide.sinks.sink import Sink

if TYPE_CHECKING:
    from eventide.api.joining import EventJoin
    from eventide.api.query import ContinuousQuery
    from eventide.api.query_builder import QueryBuilder
    from eventide.api.running_query import RunningQuery
    from eventide.api.stream import EventStream

UNNAMED = "query"
NOWHERE = exp.Placeholder()
"""Where in the text something stands that was written in Python: there is no text."""

Node: TypeAlias = "EventStream | EventRows | ContinuousQuery"
"""What gives rows: those of a stream, those that were chosen, merged or joined, the results of a query."""

GivenSink: TypeAlias = "str | PathLike[str] | Callable[[pa.Table], object] | Sink | None"
"""Where results go: a directory, a function of an Arrow table, any sink; None keeps them in memory."""


class ReadableRows(WindowedRows):
    """The methods of everything that gives rows: streams, queries, merges, joins, and queries that are not complete."""

    def where(self, condition: Expression) -> QueryBuilder:
        """Keep only rows that fulfil a condition, as SQL text or a Column. Several conditions must all hold.

        A row that is left out still moves time.
        """
        builder = self._builder
        text = condition_text(condition, builder._known, builder._owner)
        return replace(builder, conditions=(*builder.conditions, text))

    filter = where

    def sample(self, fraction: float) -> QueryBuilder:
        """Use about this share of the rows, like TABLESAMPLE.

        Law: the values of a row decide whether it is used, so every run and engine uses the same rows.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> numbers = stream(pa.table({"t": list(range(1000))}), time="t")
        >>> 80 < numbers.sample(0.1).run().num_rows < 120
        True
        """
        if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 < fraction <= 1:
            raise DeclarationError(f".sample({fraction!r}): give a share above 0 and up to 1, such as 0.1")
        return replace(self._builder, share=float(fraction))

    def select(self, *columns: Expression, **expressions: Expression) -> EventRows:
        """Give rows with these columns: names, Columns, SQL text with AS or under a name; without any, all columns.

        Law: each row keeps its own time, and rows come in the order of time.
        """
        return self._builder.select(*columns, **expressions)

    def over(self, **values: str) -> EventRows:
        """Give these rows with all their columns and, beside them, window functions: SQL text with OVER, by name.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> cars = stream(pa.table({"t": [3, 1, 2], "car": ["x", "x", "y"], "km": [9, 5, 4]}), time="t")
        >>> cars.over(before="lag(km) OVER (PARTITION BY car ORDER BY t)").run().column("before").to_pylist()
        [None, None, 5]
        """
        return self._builder.over(**values)

    def dropDuplicates(self, *columns: str, within: Length | None = None) -> EventRows:  # noqa: N802
        """Give the first row of each value of these columns; or those without such a row less than `within` before.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> sent = stream(pa.table({"t": [1, 3, 9], "id": [7, 7, 7]}), time="t")
        >>> sent.dropDuplicates("id", within=5).run().column("t").to_pylist()
        [1, 9]
        """
        return self._builder.dropDuplicates(*columns, within=within)

    def groupBy(self, *columns: Expression, **expressions: Expression) -> QueryBuilder:  # noqa: N802
        """Give one result for each group: names of columns, Columns, or SQL text under a name (`hour="hour(ts)"`)."""
        builder = self._builder
        groups = [group_named(each, builder._known, builder._owner) for each in columns]
        groups += [value_named(each, builder._known, builder._owner, name) for name, each in expressions.items()]
        return replace(builder, groups=(*builder.groups, *groups))

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
        - `within`: how far the times of a pair may be apart, which is how long rows are kept; "forever" keeps all.
          Without it, `on` must have a condition on the times.
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
    @abstractmethod
    def _read(self) -> Node:
        """What a query over it reads."""


class NamedRows(ReadableRows):
    """Rows with a name and columns, which a query can read: all but a query that is not complete."""

    @property
    def _read(self) -> Node:
        return self  # type: ignore[return-value]

    @property
    @abstractmethod
    def _name(self) -> str:
        """The name of what is read."""

    @property
    def _alias(self) -> str:
        """By which name its columns are called in a join."""
        return self._name

    @abstractmethod
    def _scope(self) -> Scope:
        """What a query over it sees, as SQL would see it behind FROM: its columns, and those that carry time."""


class Startable(ABC):
    """A query with windows, or rows, that has a name and a plan and can be started."""

    @property
    @abstractmethod
    def called(self) -> str:
        """The name under which it is started."""

    @abstractmethod
    def named(self, name: str) -> Self:
        """The same query under a name, which its results and files carry."""

    @property
    def plan(self) -> Program:
        """The streams, operators and queries as plan nodes."""
        from eventide.api.start import planned

        return planned((self,))[1]

    def explain(self) -> None:
        """Print how it is computed: time, windows, what is kept, and the SQL of each step, as `eventide explain`."""
        from eventide.report.explain import show_program

        show_program(self.plan, self.called)

    def start(
        self,
        sink: GivenSink = None,
        checkpoint: str | PathLike[str] | None = None,
        name: str | None = None,
        *,
        format: str = "parquet",
        every: str | None = None,
        bounded: bool | None = None,
        driver_memory: int | str | None = None,
        replace: bool = False,
        accept: bool = False,
        backfill: bool = False,
    ) -> RunningQuery:
        """Start the query; its results go to `sink`, or are kept in memory.

        - `checkpoint`: a folder. A later start of the same query with it continues exactly where this run ended.
          Without it, a temporary one is used and removed with the process.
        - `name`: the name of the query in its results and files.
        - `format`: parquet, json or csv, if `sink` is a directory.
        - `every`: begin a round (a micro-batch) at most so often, such as `'1 second'`.
        - `bounded`: read the rows that are there now, close every window, and end. The default for Arrow data.
        - `driver_memory`: how much state stays on the driver when it runs on Spark, in bytes or such as `'1 GB'`
          (default 256 MiB); state above that is on the cluster.
        - `replace`: delete results of this query that another checkpoint has written to the directory `sink`. Without
          it, such a start is refused.
        - `accept`: the query is not the one that the checkpoint was made by; drop the state of what changed.
        - `backfill`: a query that changed reads all rows that its files have given, and not only those to come.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> cars = stream(pa.table({"t": [1, 12]}), time="t")
        >>> running = cars.window(10).agg(n="count(*)").start()
        >>> running.awaitTermination(), running.results().column("n").to_pylist()
        (True, [1, 1])
        """
        from eventide.api.start import start

        one = self if name is None else self.named(name)
        return start(
            one,
            sinks={one.called: sink},
            checkpoint=checkpoint,
            format=format,
            every=every,
            bounded=bounded,
            driver_memory=driver_memory,
            replace=replace,
            accept=accept,
            backfill=(one.called,) if backfill else (),
        )[one.called]

    def run(self) -> pa.Table:
        """Read the rows that are there now, close every window, and return all results.

        A `LostRowsWarning` says how many rows were late or rejected.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> cars = stream(pa.table({"t": [1, 12], "speed": [50, 60]}), time="t")
        >>> cars.window(10).agg(top="max(speed)").run().column("top").to_pylist()
        [50, 60]
        """
        with self.start(bounded=True) as running:
            return running.together.finished()[self.called]


def checked_name(name: str) -> str:
    """The name, if a query can have it."""
    if not NAME.fullmatch(name):
        raise DeclarationError(f"{name!r} cannot name a query: use letters, digits and underscores, a letter first")
    return name


@dataclass(frozen=True)
class EventRows(NamedRows, Startable):
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

    @property
    def _name(self) -> str:
        return self.called

    @property
    def _alias(self) -> str:
        if self.known_as is None and self.name is None and len(self.inputs) == 1:
            return self.inputs[0]._alias
        return self.known_as or self.called

    def _scope(self) -> Scope:
        rows = replace(self.declared, name=self.called)
        return over(ScopeRelation(rows, NOWHERE, self.columns, self.clock), {self.called.lower()})

    def named(self, name: str) -> EventRows:
        """The same rows under a name, which their results and files carry."""
        # The same object is the same operator to all that read it.
        return self if name == self.name else replace(self, name=checked_name(name))

    def immediately(self) -> EventRows:
        """Give rows in the round in which they come, instead of in the order of time."""
        if not isinstance(self.declared, Rows):
            return self
        return replace(self, declared=replace(self.declared, ordered=False))

    def by_time(self) -> EventRows:
        """Give rows in the order of time alone: simultaneous ones go as they come, and do not wait for each other."""
        if not isinstance(self.declared, Rows):
            return self
        return replace(self, declared=replace(self.declared, ordered=True, simultaneous=True))


def readable(given: Node | QueryBuilder) -> Node:
    """What gives rows; a builder with conditions gives those that pass."""
    if not isinstance(given, ReadableRows):
        raise DeclarationError(f"{given!r} gives no rows: give a stream made by eventide.stream(df, time='ts')")
    return given._read
