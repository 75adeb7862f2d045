"""Feather files."""

from typing import Any

from pyarrow import Table

def read_table(source: Any, *, memory_map: bool = ...) -> Table: ...
def write_feather(df: Table, dest: Any, compression: str | None = ..., chunksize: int | None = ...) -> None: ...
