"""All rows of a table at once, for the local engine.

>>> import os, tempfile
>>> from eventide.plan.declared.stream import Input, Stream, Table, Timestamps, columns
>>> path = os.path.join(tempfile.mkdtemp(), "d.csv")
>>> with open(path, "w") as file:
...     _ = file.write("k,city\\na,Rome\\n")
>>> d = Stream(
...     "d", columns("k STRING, city STRING"), timestamps=Timestamps.INTERNAL, input=Input("csv", path), table=Table()
... )
>>> read_table(d).to_pylist()
[{'k': 'a', 'city': 'Rome', '_malformed': None}]
"""

from __future__ import annotations

import pyarrow as pa

from eventide.plan.declared.stream import Stream
from eventide.plan.sql.stream_rows import MALFORMED
from eventide.sources.arrow_types import arrow_type
from eventide.sources.local_input import open_input
from eventide.sources.options import input_of

AT_A_TIME = 1_000_000


def read_table(table: Stream) -> pa.Table:
    """The rows that a table has now, with the text of those that cannot be read."""
    if input_of(table).format == "postgres":
        # Its package is an extra.
        from eventide.sources.postgres_table import read_postgres

        return read_postgres(table)
    if input_of(table).format == "delta":
        from eventide.sources.delta import read_delta

        return read_delta(table)
    given = open_input(table)
    try:
        parts = []
        while (part := given.take(AT_A_TIME, 0.0)) is not None:
            parts.append(part)
    finally:
        given.close()
    return pa.concat_tables(parts) if parts else no_rows(table)


def no_rows(table: Stream) -> pa.Table:
    """A table without rows."""
    fields = [(column.name, arrow_type(column.type)) for column in table.columns]
    return pa.schema([*fields, (MALFORMED, pa.string())]).empty_table()
