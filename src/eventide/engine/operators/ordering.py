"""The place of rows in an order over time, found without bringing them all to one place.

Law: time is cut into stretches, of which the driver learns how many rows each holds; the number of a row is the sum of
the stretches before its own and its place within that. So every stretch is sorted by itself, wherever it lies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eventide.engine.relations.executor import Executor
from eventide.engine.relations.segments import Segments
from eventide.engine.relations.statement import Statement, one_row

ROWS_A_STRETCH = 500_000
MOST_STRETCHES = 256
NUMBER = "__number"


def numbered_text(time: str, order: Sequence[str]) -> str:
    """The rows `ready` of the stretch of time in `span`, with their `__number` in the order, from `firsts` on."""
    place = f"row_number() OVER (PARTITION BY __stretch ORDER BY {', '.join(order)})"
    return (
        f"SELECT *, __first + {place} - 1 AS {NUMBER} FROM ({_stretched(time)}) JOIN firsts ON __stretch = firsts.__of"
    )


def stretches(
    executor: Executor,
    ready: Segments,
    time: str,
    low: int,
    high: int,
    first: int,
    rows_a_stretch: int = ROWS_A_STRETCH,
) -> tuple[int, dict[str, Segments | pa.Table]]:
    """How many rows there are with a time from `low` up to, not including, `high`; and what `numbered_text` reads.

    The first of them gets the number `first`.
    """
    low = max(low, min(part.summary.least[time] for part in ready.parts))
    high = min(high, max(part.summary.greatest[time] for part in ready.parts) + 1)
    count = min(MOST_STRETCHES, -(-ready.rows // rows_a_stretch))
    width = max(1, -(-(high - low) // count))
    span = one_row(low=low, high=high, width=width)
    statement = Statement(f"SELECT __stretch, count(*) AS n FROM ({_stretched(time)}) GROUP BY __stretch")
    counted = executor.table(statement, {"ready": ready, "span": span}).sort_by("__stretch")
    counts = counted.column("n").to_numpy()
    firsts = pa.table(
        {
            "__of": counted.column("__stretch").cast(pa.int64()),
            "__first": pa.array(first + np.cumsum(counts) - counts, pa.int64()),
        }
    )
    return int(counts.sum()), {"ready": ready, "span": span, "firsts": firsts}


def _stretched(time: str) -> str:
    return (
        f"SELECT ready.*, (ready.{time} - span.__low) div span.__width AS __stretch FROM ready CROSS JOIN span "
        f"WHERE ready.{time} >= span.__low AND ready.{time} < span.__high"
    )
