"""The results of one query in one round, ready to leave the engine.

Law: a result row names its query, its kind, its window [window_start, window_end), the round that gave it, how many
rows went into it and the heartbeat that closed it; then come the group columns and the values. A round gives one
`Results` per query, also an empty one; the same round run again gives the same.

>>> r = Results.of_table("q", 3, pa.table({"query": ["q"], "total": [7]}))
>>> r.rows, r.table().column_names
(1, ['query', 'total'])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeVar

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Made = TypeVar("Made")


class Kind(Enum):
    """How sure a result is."""

    EARLY = "early"
    FINAL = "final"
    REVISED = "revised"


class Parts(Protocol):
    """Rows on the cluster in parts, each of which one of Spark's tasks reads where it is."""

    def map(self, function: Callable[[int, Iterator[pa.RecordBatch]], Made]) -> list[Made]:
        """Call a function with the number and the rows of every part, in tasks; what it returned, by number.

        The function and what it returns are pickled; a task that fails may be tried again, by another worker.
        """
        ...


@dataclass(frozen=True)
class Results:
    """All result rows of `query` in `round`. `batches` may be read again; it never holds more than needed at once.

    `key` names the columns by which a result takes the place of an earlier one: window and groups. Rows have none.

    Rows that are on the cluster can be taken without passing through this process: `frame` gives them as a DataFrame
    of Spark, and `parts` to functions that run in Spark's tasks. Where they are with the driver, both are None.
    """

    query: str
    round: int
    rows: int
    schema: pa.Schema
    batches: Callable[[], Iterator[pa.RecordBatch]]
    frame: Callable[[], DataFrame] | None = None
    parts: Parts | None = None
    key: tuple[str, ...] = ()

    @classmethod
    def of_table(cls, query: str, round: int, table: pa.Table) -> Results:
        """Results that are at hand."""
        return cls(query, round, table.num_rows, table.schema, lambda: iter(table.to_batches()))

    def table(self) -> pa.Table:
        """All rows at once."""
        return pa.Table.from_batches(list(self.batches()), schema=self.schema)
