"""Large results go from Spark's tasks into a table of their own beside the target, part by part.

Law: a part is in the staging table as a whole or not at all, however often a task tries; nothing of it is seen in the
target until the driver's transaction takes all parts over, which also removes the staging table.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import psycopg
import pyarrow as pa

from eventide.errors import EngineError
from eventide.masking import masked_text
from eventide.sinks.lines import LineWriter
from eventide.sinks.postgres_table import PART, Staging, Target, copy_rows, line_writer

PATIENCE = 60.0
"""So many seconds a task waits for a server that has gone away."""


@dataclass(frozen=True)
class PartCopy:
    """Copies parts into a staging table, in Spark's tasks, which get it from the driver."""

    conninfo: str = field(repr=False)
    target: str
    staging: Staging
    schema: pa.Schema
    what: str

    def __call__(self, number: int, batches: Iterator[pa.RecordBatch]) -> EngineError | None:
        """Copy a part, in place of what an earlier attempt left; what was refused."""
        with_part = self.schema.append(pa.field(PART, pa.int32()))
        tables = [pa.Table.from_batches([batch], self.schema) for batch in batches]
        numbered = [t.append_column(PART, pa.array([number] * t.num_rows, pa.int32())) for t in tables]
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with psycopg.connect(self.conninfo) as connection:
                    target = Target(connection, self.target)
                    target.run("DELETE FROM {s} WHERE {part} = %s", number, **self.staging.names)
                    copy_rows(target, numbered, with_part, _lines(with_part), self.staging.table)
                return None
            except psycopg.Error as error:
                if not isinstance(error, psycopg.OperationalError) or time.monotonic() > deadline:
                    return EngineError(f"{self.what}: {masked_text(str(error).strip().partition(chr(10))[0])}")
            time.sleep(1.0)


@lru_cache(maxsize=4)
def _lines(schema: pa.Schema) -> LineWriter:
    """One for each worker process: to plan the lines takes long."""
    return line_writer(schema)
