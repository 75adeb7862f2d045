"""Rows over time: those of a range of time, and the place of each in the order, wherever they lie.

Laws. *Range*: rows that are done with may lie in the files of a relation; whoever reads says from which time on rows
count. *Order*: time is cut into stretches, of which it is counted how many rows each holds; the number of a row is the
sum of the stretches before its own and its place within that. So every stretch is sorted by itself, wherever it lies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.relations.executor import Executor, Statement, one_row
from eventide.engine.relations.relation import Relation
from eventide.engine.relations.segments import Segments
from eventide.eventtime.instant import NEVER, Instants
from eventide.plan.bound.query import instant_sql


def from_time(executor: Executor, rows: Relation, first: int, column: str = "__t") -> Relation:
    """The rows of a relation whose times, or panes, are not before `first`."""
    low = rows.least(column)
    if first == NEVER or low is None or low >= first:
        return rows
    if rows.table is not None:
        return rows.kept(pc.greater_equal(rows.table.column(column), first))
    text = f"SELECT found.* FROM found CROSS JOIN edge WHERE found.{column} >= edge.__first"
    statement = Statement(text, identified=True)
    return executor.relation(statement, {"found": rows, "edge": one_row(first=first)}, rows.layout)


def least_live(executor: Executor, rows: Segments, columns: Sequence[str], first: int) -> dict[str, int]:
    """The least values of columns in the rows from `first` on; columns that are NULL in all of them are left out."""
    if not columns or all(part.summary.least["__t"] >= first for part in rows.parts):
        return {name: low for name in columns if (low := rows.least(name)) is not None}
    types = {column.name: column.type for column in rows.layout.columns}
    minima = ", ".join(f"min({instant_sql(name, types[name])}) AS m{place}" for place, name in enumerate(columns))
    statement = Statement(f"SELECT {minima} FROM found CROSS JOIN edge WHERE found.__t >= edge.__first")
    [least] = executor.table(statement, {"found": rows, "edge": one_row(first=first)}).to_pylist()
    return {name: least[f"m{place}"] for place, name in enumerate(columns) if least[f"m{place}"] is not None}


def least_since(rows: Segments, column: str, first: int) -> int | None:
    """The least value from `first` on, as far as summaries tell; None where there are no rows.

    Segments that hold nothing from `first` on are forgotten, so there is a value: at or after the one that is given.
    """
    low = rows.least(column)
    return None if low is None else max(low, first)


def known_times(rows: Segments, column: str = "__t") -> Instants:
    """The distinct times of rows, ascending; of a relation on the cluster only the first and the last."""
    times = [
        np.array([part.summary.least[column], part.summary.greatest[column]], dtype=np.int64)
        if part.table is None
        else part.table.column(column).to_numpy()
        for part in rows.parts
    ]
    return np.unique(np.concatenate(times)) if times else np.zeros(0, dtype=np.int64)


ROWS_A_STRETCH = 500_000
MOST_STRETCHES = 256
NUMBER = "__number"


def numbered_text(time: str, order: Sequence[str], rows: str = "ready") -> str:
    """The rows `ready` of the `span` of time with their `__number` in the order, from its first number on.

    `rows` may be a statement under the name `ready`.
    """
    stretched = (
        f"SELECT ready.*, (ready.{time} - span.__low) div span.__width AS __stretch FROM {rows} CROSS JOIN span "
        f"WHERE ready.{time} >= span.__low AND ready.{time} < span.__high"
    )
    counts = f"SELECT __stretch AS __of, count(*) AS __n FROM ({stretched}) GROUP BY __stretch"
    # By a column that is the same in all of them: without one, Spark warns that it sorts them in one place.
    before = "sum(__n) OVER (PARTITION BY span.__first ORDER BY __of) - __n + span.__first"
    firsts = f"SELECT __of, CAST({before} AS BIGINT) AS __from FROM ({counts}) CROSS JOIN span"
    place = f"row_number() OVER (PARTITION BY __stretch ORDER BY {', '.join(order)})"
    return (
        f"SELECT *, __from + {place} - 1 AS {NUMBER} FROM ({stretched}) JOIN ({firsts}) firsts "
        "ON __stretch = firsts.__of"
    )


def span_of(ready: Segments, time: str, low: int, high: int, first: int, rows_a_stretch: int | None = None) -> pa.Table:
    """The times from `low` up to, not including, `high`, in stretches; the first row in them has the number `first`."""
    low = max(low, min(part.summary.least[time] for part in ready.parts))
    high = min(high, max(part.summary.greatest[time] for part in ready.parts) + 1)
    count = min(MOST_STRETCHES, -(-ready.rows // (rows_a_stretch or ROWS_A_STRETCH)))
    return one_row(low=low, high=high, width=max(1, -(-(high - low) // count)), first=first)
