"""Rows of a stretch of time: what operators that hold rows one by one share.

Law: rows that are done with may lie in the files of a relation; whoever reads says from which time on rows count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc

from eventide.engine.relations.executor import Executor
from eventide.engine.relations.relation import Relation
from eventide.engine.relations.segments import Segments
from eventide.engine.relations.statement import Statement, one_row
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

    Segments that hold nothing from `first` on are forgotten, so there is a value: at or after the one that is told.
    """
    low = rows.least(column)
    return None if low is None else max(low, first)


def known_times(rows: Segments) -> Instants:
    """The times of rows, ascending, each once; of those on the cluster the first and the last of each relation."""
    times = [
        np.array([part.summary.least["__t"], part.summary.greatest["__t"]], dtype=np.int64)
        if part.table is None
        else part.table.column("__t").to_numpy()
        for part in rows.parts
    ]
    return np.unique(np.concatenate(times)) if times else np.zeros(0, dtype=np.int64)
