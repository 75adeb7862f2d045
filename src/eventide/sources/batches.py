"""Arrow batches from Python: an iterable of tables or record batches as a stream of the local engine.

Law: rows come in the order of the iterable. The position is the number of rows taken; to continue from it the same
rows are drawn again and passed over, so an iterable that starts elsewhere each time cannot be continued exactly.

>>> from eventide.plan.declared.stream import Stream, columns
>>> stream = Stream("s", columns("t BIGINT"), time="t")
>>> given = Batches(stream, [pa.table({"t": [1, 2, 3]}), pa.table({"t": [4]})])
>>> given.take(2, 0).column("t").to_pylist(), given.position()
([1, 2], {'rows': 2})
>>> given.take(9, 0).column("t").to_pylist(), given.take(9, 0), given.ended
([3, 4], None, True)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from eventide.plan.declared.stream import Stream
from eventide.sources.arrow_types import declared_table


class Batches:
    """The rows of an iterable of Arrow tables or record batches; it is drawn from only when rows are asked for."""

    def __init__(self, stream: Stream, batches: Iterable[pa.Table | pa.RecordBatch]) -> None:
        self._stream = stream
        self._batches: Iterator[pa.Table | pa.RecordBatch] = iter(batches)
        self._rest: pa.Table | None = None
        self._rows = 0
        self._noted = 0
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether the iterable has been drawn to its end."""
        return self._ended

    @property
    def caught_up(self) -> bool:
        """The same: what an iterable has now cannot be told from what it will have."""
        return self._ended

    def take(self, max_rows: int, wait: float) -> pa.Table | None:
        """The next rows. `wait` means nothing here: an iterable gives its next batch or ends."""
        tables: list[pa.Table] = []
        wanted = max_rows
        while wanted > 0 and (table := self._next()) is not None:
            tables.append(table.slice(0, wanted))
            self._rest = table.slice(wanted) if table.num_rows > wanted else None
            wanted -= tables[-1].num_rows
        self._rows += max_rows - wanted
        return pa.concat_tables(tables) if tables else None

    def _next(self) -> pa.Table | None:
        """What is left of the last batch, or the next one that has rows."""
        if self._rest is not None:
            return self._rest
        for batch in self._batches:
            table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
            if table.num_rows:
                owner = f"stream {self._stream.name!r}"
                return declared_table(owner, self._stream.columns, table, "a batch")
        self._ended = True
        return None

    def position(self) -> dict[str, Any]:
        """How many rows were taken."""
        return {"rows": self._rows}

    def seek(self, position: dict[str, Any]) -> None:
        """Draw and pass over as many rows."""
        while self._rows < int(position["rows"]):
            if self.take(min(1_000_000, int(position["rows"]) - self._rows), 0.0) is None:
                break
        self._noted = self._rows

    def portion(self) -> dict[str, Any]:
        """How many rows were taken since this was last asked."""
        rows, self._noted = self._rows - self._noted, self._rows
        return {"rows": rows}

    def repeat(self, portion: dict[str, Any]) -> tuple[pa.Table | None, bool]:
        """Take as many rows again."""
        wanted = int(portion["rows"])
        tables = self.take(wanted, 0.0) if wanted else None
        return tables, (0 if tables is None else tables.num_rows) == wanted

    def close(self) -> None:
        """Do nothing: batches hold nothing open."""
