"""A query that is whole: its plan, and how to start it.

Law: `plan` is the program that SQL would have become. Starting the same query twice gives two runs of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eventide.api.arguments import Expression, Length, length
from eventide.api.column_text import is_column, order_text
from eventide.api.rows import NOWHERE, NamedRows, Node, Startable, checked_name
from eventide.errors import DeclarationError
from eventide.eventtime.early.triggers import Earliness
from eventide.language.scope.scope import Scope, ScopeRelation, over
from eventide.language.select.aggregate_query import clock_of_results
from eventide.language.select.group_by import Group, with_time
from eventide.plan.declared.query import Prods, Query, order_by
from eventide.plan.declared.rows import Sideline
from eventide.plan.declared.stream import TimeKind
from eventide.plan.expressions.columns import Column
from eventide.plan.expressions.parse import parsed
from eventide.results.error import Comparison

if TYPE_CHECKING:
    from eventide.api.stream import EventStream


@dataclass(frozen=True)
class QueueOptions:
    """How the rows of a query wait before expensive functions."""

    functions: tuple[str, ...] = ()
    room: int | None = None
    sideline: Sideline | None = None


@dataclass(frozen=True)
class ContinuousQuery(NamedRows, Startable):
    """A window aggregate over a stream, a merge, a join or another query, ready to start. Made by `agg`.

    Law: another query can read it like a stream. Its rows are its final results, and their time is the last instant of
    their window.
    """

    stream: Node
    declared: Query
    queue: QueueOptions | None = None
    prodded_by: EventStream | None = None
    """The stream whose rows prod it."""

    def __repr__(self) -> str:
        values = ", ".join(f"{value.sql} AS {value.name}" for value in self.declared.select)
        groups = f" by {', '.join(group.name for group in self.declared.groups)}" if self.declared.groups else ""
        return f"<query {self.called!r}: {values or 'groups'}{groups}; .explain() tells more>"

    @property
    def called(self) -> str:
        """The name of the query."""
        return self.declared.name

    def named(self, name: str) -> ContinuousQuery:
        """The same query under a name: its results and its files carry it."""
        # The same object is the same query to all that read it.
        return self if name == self.called else replace(self, declared=replace(self.declared, name=checked_name(name)))

    @property
    def columns(self) -> tuple[Column, ...]:
        """Its groups and values; the types of values are found when it runs."""
        return self._results().outputs

    @property
    def time_kind(self) -> TimeKind:
        """What the ends of its windows look like."""
        return self._results().clock.kind

    @property
    def _name(self) -> str:
        return self.called

    def _scope(self) -> Scope:
        return over(self._results(), {self.called.lower()})

    def _results(self) -> ScopeRelation:
        """Its results, for those that read them: with the two ends of their windows.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> cars = stream(pa.table({"t": [1, 12], "car": ["x", "y"], "speed": [50, 60]}), time="t", name="cars")
        >>> counts = cars.window(10).groupBy("car").agg(n="count(*)").named("counts")
        >>> list(cars._scope().columns), list(counts._scope().columns)
        (['t', 'car', 'speed'], ['car', 'n', 'window_start', 'window_end'])
        """
        below, asked = self.stream._scope(), self.declared
        groups = [(group.name, parsed(group.sql, f"group {group.name!r}")) for group in asked.groups]
        columns = [Column(name, below.type_of(expression)) for name, expression in groups]
        columns += [Column(value.name, "") for value in asked.select]
        timed = [with_time(Group(name, expression, expression), expression, below) for name, expression in groups]
        return ScopeRelation(asked, NOWHERE, tuple(columns), clock_of_results(asked, below, timed))

    def agg(self, *aggregates: Expression | Mapping[str, str], **named: Expression) -> ContinuousQuery:
        """Aggregate the results of this query, in each of its windows; `groupBy` and `window` may come before.

        See `QueryBuilder.agg` for the forms of an aggregate.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> cars = stream(pa.table({"t": [1, 2, 12], "car": ["x", "y", "y"]}), time="t")
        >>> counts = cars.window(10).groupBy("car").agg(n="count(*)").named("counts")
        >>> counts.agg(cars="count(*)").run().column("cars").to_pylist()
        [2, 1]
        >>> counts.where("n > 0").window(20).agg(total="sum(n)").run().column("total").to_pylist()
        [3]
        """
        return self._builder.agg(*aggregates, **named)

    def orderBy(self, *columns: Expression) -> ContinuousQuery:  # noqa: N802
        """Give the results of each window in this order: `"mean DESC"`, `F.desc("mean")`.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> cars = stream(pa.table({"t": [1, 2, 3], "car": ["x", "y", "y"]}), time="t")
        >>> counts = cars.window(10).groupBy("car").agg(n="count(*)")
        >>> counts.orderBy("n DESC").limit(1).run().column("car").to_pylist()
        ['y']
        """
        texts = [order_text(each) if is_column(each) else str(each) for each in columns]
        return replace(self, declared=replace(self.declared, order=order_by(*texts)))

    def limit(self, rows: int) -> ContinuousQuery:
        """Give only the first so many results of each window, in the order of `orderBy`."""
        if not isinstance(rows, int):
            raise DeclarationError(f".limit({rows!r}): give a whole number of results")
        return replace(self, declared=replace(self.declared, limit=rows))

    def queued(
        self,
        *expensive: str,
        rows: int | None = None,
        sideline: bool = False,
        one_in: int | None = None,
        within: Length | None = None,
    ) -> ContinuousQuery:
        """Let rows wait in a queue before `expensive` functions, so that rounds (micro-batches) stay short.

        - `rows`: how many rows pass in a round; without it, as many as take about half a second.
        - `sideline`: set bursts aside. If a pane has more rows than the function can take in its length, those that
          still wait when their window is over and prodded pass when no new row waits.
        - `one_in`: also let one of them pass after so many new rows.
        - `within`: also let them pass before all others, so long after they were set aside.

        `docs/bursts.md` has the law.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> words = stream(pa.table({"t": [1, 12], "word": ["a", "b"]}), time="t", name="words")
        >>> asked = words.where("length(word) > 0").window(10).agg(n="count(soundex(word))")
        >>> [operator.name for operator in asked.queued("soundex", rows=100).plan.operators]
        ['query_queue']
        """
        aside = sideline or one_in is not None or within is not None
        long = None if within is None else length(within, TimeKind.TIMESTAMP, "queued(within=...)")
        return replace(self, queue=QueueOptions(expensive, rows, Sideline(one_in, long) if aside else None))

    def emitChanges(self) -> ContinuousQuery:  # noqa: N802
        """Give the new value of each group that a round has changed, in place of its last one: kind `changed`.

        It is for aggregates without a window, after `.stateTtl(...)`. When a group is forgotten its value is final.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> cars = stream(pa.table({"t": [1, 2], "v": [5, 6]}), time="t")
        >>> cars.stateTtl(10).agg(total="sum(v)").emitChanges().plan.queries[0].changes
        True
        """
        return replace(self, declared=replace(self.declared, changes=True))

    def prodded(
        self,
        every: Length | None = None,
        at: float | Sequence[float] = (),
        within: float | Earliness | None = None,
        estimate: bool = False,
        by: EventStream | None = None,
        compare: Mapping[str, Comparison] | None = None,
        rows: int | None = None,
        discarding: bool = False,
        where: Mapping[str, Any] | None = None,
    ) -> ContinuousQuery:
        """Give early results, too, by prods (early triggers).

        Law: final results are the same with prods and without.

        - `every`: prod at every multiple of this length on the clock.
        - `rows`: prod all open windows whenever so many rows have come.
        - `at`: prod each window once at each of these shares of its last slide, such as `[0.75, 0.9]`.
        - `within`: prod each window once, as early as this mean error permits, with 95 % confidence; an `Earliness`
          says how surely, how fast, and between which points.
        - `by`: a stream whose rows are prods. Each asks for windows up to its time, in the groups given by its columns
          of the same names. A stream with prods among its own rows (`eventide.stream(..., prodded=...)`) needs none.
        - `discarding`: with `every` or `rows`, early results are over what came since the last ones.
        - `estimate`: also extrapolate early sums and counts.
        - `compare`: functions by the name of a value. Each takes early and final values, two Arrow arrays without NULL,
          and returns errors: 0 where the early value is as good as the final one.
        - `where`: ask for these groups alone: by the name of a group a value, a list, or `{"between": [low, high]}`.

        `docs/prods.md` says more.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> cars = stream(pa.table({"t": [1, 8], "v": [5, 6]}), time="t", name="cars")
        >>> asks = stream(pa.table({"t": [9]}), time="t", name="asks")
        >>> totals = cars.window(10).agg(total="sum(v)").prodded(by=asks).run()
        >>> [(row["kind"], row["total"]) for row in totals.to_pylist()]
        [('early', 11), ('final', 11)]
        """
        from eventide.api.stream import EventStream

        if by is not None and not isinstance(by, EventStream):
            raise DeclarationError(f"prodded(by={by!r}) is no stream: make one with eventide.stream(rows, time='ts')")
        without_prods = replace(self, declared=replace(self.declared, prods=None), prodded_by=None)
        kinds = {stream.time_kind for stream in without_prods.plan.streams}
        kind = TimeKind.SEQUENCE if kinds == {TimeKind.SEQUENCE} else TimeKind.TIMESTAMP
        prods = Prods(
            None if every is None else length(every, kind, "prodded(every=...)"),
            (float(at),) if isinstance(at, int | float) else tuple(map(float, at)),
            Earliness(within) if isinstance(within, int | float) else within,
            estimate,
            None if by is None else by.declared.name,
            any(stream.prods is not None for stream in without_prods.plan.streams),
            tuple((compare or {}).items()),
            rows,
            discarding,
            dict(where or {}),
        )
        return replace(self, declared=replace(self.declared, prods=prods), prodded_by=by)
