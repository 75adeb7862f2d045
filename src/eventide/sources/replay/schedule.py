"""A schedule on disk: all rows of a replay in the order of delivery, and when each is due.

Law: rows are sorted by `_due` (microseconds from the start of the replay), so what is due at a moment is a number of
rows from the beginning. The file is an Arrow file of batches of `BATCH` rows, the last one shorter; beside it lies a
small index with the last due time of each batch.

This module imports nothing of Eventide's: Spark sends it to its workers as it is.
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterator
from typing import Any

DUE = "_due"
BATCH = 65_536


class Schedule:
    """A schedule that was written; picklable, opened when it is read."""

    def __init__(self, path: str) -> None:
        self.path = path
        with open(path + ".index", encoding="utf-8") as file:
            index = json.load(file)
        self.rows: int = index["rows"]
        self._last_due: list[int] = index["last_due"]
        self._reader: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_reader": None}

    def _open(self) -> Any:
        if self._reader is None:
            import pyarrow as pa

            self._reader = pa.ipc.open_file(pa.memory_map(self.path))
        return self._reader

    def due_by(self, elapsed: int) -> int:
        """How many rows are due so many microseconds after the start."""
        batch = bisect.bisect_right(self._last_due, elapsed)
        if batch == len(self._last_due):
            return self.rows
        due = self._open().get_batch(batch).column(DUE).to_numpy()
        return int(batch * BATCH + due.searchsorted(elapsed, side="right"))

    def due(self, row: int) -> int | None:
        """When a row is due; None beyond the last one."""
        if row >= self.rows:
            return None
        return int(self._open().get_batch(row // BATCH).column(DUE)[row % BATCH].as_py())

    def read(self, start: int, stop: int) -> Iterator[Any]:
        """The rows from `start` up to, not including, `stop`, as Arrow batches without their due times."""
        while start < stop:
            batch = self._open().get_batch(start // BATCH)
            rows = min(stop - start, BATCH - start % BATCH)
            yield batch.slice(start % BATCH, rows).drop_columns([DUE])
            start += rows
