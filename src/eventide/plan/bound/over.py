"""Bind window functions to their input: what is kept of each row, what of earlier ones, and the SQL of each value.

Laws. *Inner columns*: arguments, groups and orders are computed where a row is judged, so one that fails is rejected by
itself. *Aggregates* are those of partials: each row is a slice of its own, and a frame merges some of them; so types,
exact sums and what is reported as lost are as in windows. *Running*: of a frame that begins at the first row, the last
row of each group carries the merge of all before it.

>>> from eventide.plan.declared.over import named_as
>>> from eventide.plan.declared.stream import columns
>>> cars = Stream("cars", columns("t BIGINT, k STRING, v INT"), time="t")
>>> types = {"`v`": "INT", "v": "INT", "k": "STRING", "`t`": "BIGINT", "`k`": "STRING", "t": "BIGINT"}
>>> over = Over("o", ("cars",), values=named_as(mean="avg(v) OVER (PARTITION BY k ORDER BY t ROWS 2 PRECEDING)"))
>>> bound = bind_over(over, cars, lambda stream, sql: types.get(sql, "BIGINT"))
>>> [f"{column.name} {column.type}" for column in bound.outputs], bound.whole, bound.reach
(['t BIGINT', 'k STRING', 'v INT', 'mean DOUBLE'], None, Reach(rows=2, time=0, ahead_rows=0, ahead_time=0))
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.plan.bound.frames import NOTHING, FrameColumn, Frames, Inner, Order, Reach, time_of
from eventide.plan.bound.query import Key
from eventide.plan.bound.rows import BoundRows, TypeIn, bind_rows, output_columns, port
from eventide.plan.declared.over import Over
from eventide.plan.declared.query import Named
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Derived, Stream
from eventide.plan.declared.temporal import Bucket, with_floors
from eventide.plan.expressions.columns import Column, quoted
from eventide.plan.expressions.parse import parsed


@dataclass(frozen=True)
class BoundOver(BoundRows):
    """What the engine needs to know of window functions.

    `values` are the SQL of each value over `frames`; `inner` columns are kept beside the outputs of a row. `groups` and
    `order` are the inner columns of the groups and, in the order of time, of what orders simultaneous rows.
    """

    inner: tuple[Column, ...] = ()
    groups: tuple[str, ...] = ()
    order: Order = ()
    frames: tuple[FrameColumn, ...] = ()
    values: tuple[Named, ...] = ()
    checks: tuple[tuple[str, str], ...] = ()
    whole: Bucket | None = None
    """The stretches of time that a group is never longer than; None in the order of time."""
    reach: Reach = NOTHING
    portable: bool = True

    @property
    def shown(self) -> tuple[Column, ...]:
        """The outputs that are columns of the row itself."""
        return self.outputs[: len(self.outputs) - len(self.values)]

    @property
    def stored(self) -> tuple[Column, ...]:
        """What waits of a row beside its time."""
        return (*self.shown, *self.inner)

    @property
    def names_in_port(self) -> tuple[str, ...]:
        """The columns of a port's chunk that are kept, in their order."""
        return tuple(f"__k{i + 1}" for i in range(len(self.stored)))

    def _sql(self, output: str) -> str:
        # What a function says of a row carries no time.
        return "NULL" if any(value.name == output for value in self.values) else super()._sql(output)


def bind_over(over: Over, stream: Stream, type_in: TypeIn) -> BoundOver:
    """Check window functions against their input."""
    select = over.select or tuple(Named(column.name, quoted(column.name)) for column in output_columns(stream))
    # The condition and what is computed for single rows are those of a projection.
    plain = bind_rows(Rows(over.name, over.inputs, select, over.where, over.ordered), (stream,), type_in)
    inner = Inner(over, stream, type_in)
    groups = tuple(inner.keep(sql) for sql in over.calls[0].partition) or (inner.keep("0", "INT"),)
    for column, sql in zip(groups, over.calls[0].partition, strict=False):
        if "MAP<" in column.type or column.type == "VARIANT":
            raise DeclarationError(f"{over.name!r} cannot group by {sql!r}: {column.type} values do not compare")
    whole = _whole(over.calls[0].partition, stream)
    found = Frames(over, stream, inner, tuple(column.name for column in groups), whole).read()
    every = (*plain.outputs, *(Column(name, kind) for name, kind in found.types.items()))
    keys = (*(Key(c.name, item.sql, c.type) for c, item in zip(plain.outputs, select, strict=True)),)
    into = port(over.name, stream.name, stream, (), (*keys, *inner.keys.values()), over.where)
    return BoundOver(
        replace(over, select=select),
        (into,),
        every,
        plain.kind,
        tuple(Column(key.name, key.type) for key in inner.keys.values()),
        tuple(column.name for column in groups),
        found.order,
        tuple(found.frames),
        tuple(found.values),
        tuple(dict.fromkeys(found.checks)),
        whole,
        found.reach,
        found.portable,
    )


def _whole(partition: tuple[str, ...], stream: Stream) -> Bucket | None:
    """The shortest stretches of time that the groups lie in."""
    # Around 0, DIV makes one stretch twice as long.
    exact = [sql for sql in partition if with_floors(parsed(sql, "a group")).find(exp.IntDiv) is None]
    found = [one.bucket for sql in exact if (one := time_of(sql, stream)) is not None and one.bucket is not None]
    if not found:
        return None
    shortest = min(found, key=lambda one: one.width)
    # The time column of results is one later than their time.
    return Bucket(shortest.width, (shortest.offset - isinstance(stream, Derived)) % shortest.width)
