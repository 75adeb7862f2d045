"""What joins and lookups do alike: how rows of a side are judged and stamped, and how what they found is told.

Law: both are bound as joins (`plan.bound_join`), so their rows have the same columns on the way in, while they are held
and on the way out.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.arrow_types import arrow_type
from eventide.engine.taken import Answer, Taken
from eventide.engine.workbench import Bench
from eventide.errors import DataFaultError
from eventide.plan.columns import Column
from eventide.plan.join_names import LEFT, PREFIXES, RIGHT
from eventide.plan.join_text import COUNT, met_columns, told_text
from eventide.plan.joined import BoundJoin
from eventide.plan.stream import Timestamps

Two = tuple[pa.Table, pa.Table]

TOLD = "eventide_told"


def side_of(bound: BoundJoin, port: str) -> int:
    """The side that a port leads to."""
    return [into.query.name for into in bound.ports].index(port)


def stamped(bound: BoundJoin, side: int, chunk: pa.Table, clock: int) -> pa.Table:
    """Rows without a time of their own: theirs is the clock of the round, also in what bands compare."""
    if bound.ports[side].stream.timestamps is Timestamps.EXTERNAL or chunk.num_rows == 0:
        return chunk
    bands = {f"__k{place}": band.values[side].of(clock) for place, band in enumerate(bound.bands, 1)}
    for name, value in {"__pane": clock, "__t": clock, "__k0": clock, **bands}.items():
        stamp = pa.array(np.full(chunk.num_rows, value, dtype=np.int64))
        chunk = chunk.set_column(chunk.schema.get_field_index(name), name, stamp)
    return chunk


def judged(chunk: pa.Table, late_by: list[pa.ChunkedArray], schema: pa.Schema) -> tuple[pa.Table, Taken]:
    """The rows of a chunk that none of these finds late, as they are held; and what became of all of them.

    >>> came = pa.table({"__t": [3, 8], "v": [1, 2]})
    >>> rows, taken = judged(came, [pc.less(came.column("__t"), 5)], pa.schema([("v", pa.int64())]))
    >>> rows.to_pylist(), taken.late_panes
    ([{'v': 2}], (3,))
    """
    accepted, late = chunk, chunk.slice(0, 0)
    if late_by and chunk.num_rows:
        is_late = reduce(pc.or_, late_by)
        accepted, late = chunk.filter(pc.invert(is_late)), chunk.filter(is_late)
    taken = Taken(chunk.num_rows, accepted, tuple(pc.unique(late.column("__t")).to_pylist()), late.num_rows)
    return accepted.select(schema.names).cast(schema), taken


def with_rows(two: Two, side: int, rows: pa.Table) -> Two:
    """Both sides, with more rows on one of them."""
    more = pa.concat_tables([two[side], rows])
    return (more, two[RIGHT]) if side == LEFT else (two[LEFT], more)


def told(bound: BoundJoin, bench: Bench, pairs: pa.Table, alone: list[list[pa.Table]]) -> Answer:
    """What the user sees of pairs, and of rows alone of the left and of the right side."""
    schema = schema_of((*met_columns(bound, LEFT), *met_columns(bound, RIGHT), Column(COUNT, "BIGINT")))
    parts = [_counted(pairs, 2, schema)]
    for side, tables in enumerate(alone):
        parts += (_counted(met(table, side), 1, schema) for table in tables if table.num_rows)
    both = pa.concat_tables(parts)
    shown = _answer_schema(bound)
    if both.num_rows == 0:
        return Answer.of(shown.empty_table())
    try:
        return Answer.of(bench.ask(told_text(bound, TOLD), {TOLD: both}).cast(shown))
    except DataFaultError:
        return Answer.of(bench.ask(told_text(bound, TOLD, careful=True), {TOLD: both}).cast(shown), lossy=True)


def schema_of(columns: tuple[Column, ...]) -> pa.Schema:
    """The columns as Arrow has them."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])


def met(rows: pa.Table, side: int) -> pa.Table:
    """Rows with the names that columns have where both sides meet."""
    return rows.rename_columns([PREFIXES[side] + name for name in rows.column_names])


def _answer_schema(bound: BoundJoin) -> pa.Schema:
    fixed = [Column(name, "BIGINT") for name in ("window_start", "window_end", "rows")]
    return schema_of((*fixed, *bound.outputs, Column("__lost", "STRING")))


def _counted(rows: pa.Table, count: int, schema: pa.Schema) -> pa.Table:
    """Rows with all columns of both sides, NULL where they have none, and how many rows each is made of."""
    columns = [
        pa.nulls(rows.num_rows, field.type) if field.name not in rows.column_names else rows.column(field.name)
        for field in schema
        if field.name != COUNT
    ]
    return pa.table([*columns, pa.array(np.full(rows.num_rows, count, dtype=np.int64))], schema=schema)
