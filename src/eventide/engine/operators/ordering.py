"""The place of rows in an order over time, found without bringing them all to one place.

Law: time is cut into stretches, of which it is counted how many rows each holds; the number of a row is the sum of the
stretches before its own and its place within that. So every stretch is sorted by itself, wherever it lies.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from eventide.engine.relations.segments import Segments
from eventide.engine.relations.statement import one_row

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
