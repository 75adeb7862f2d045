"""ORC files."""

from typing import Any

from pyarrow import RecordBatch, Schema, Table

class ORCFile:
    nrows: int
    nstripes: int
    schema: Schema
    def __init__(self, source: Any) -> None: ...
    def read_stripe(self, n: int, columns: list[str] | None = ...) -> RecordBatch: ...
    def read(self, columns: list[str] | None = ...) -> Table: ...

def write_table(table: Table, where: Any) -> None: ...
