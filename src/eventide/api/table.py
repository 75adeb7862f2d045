"""Tables in Python: what a stream is joined to as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath

import pyarrow as pa

from eventide.api.arguments import Length, length
from eventide.api.inputs import ArrowData, given_rows
from eventide.api.stream import EventStream
from eventide.errors import DeclarationError
from eventide.language.ddl.create_stream import TABLE_FORMATS, format_by_ending
from eventide.plan.declared.program import NAME
from eventide.plan.declared.stream import Input, Stream, Table, TimeKind, Timestamps, columns
from eventide.plan.expressions.columns import Column


@dataclass(frozen=True)
class TablePlace:
    """Where a table is, for the engine that reads it."""

    columns: tuple[Column, ...]


def table(
    place: str | PathLike[str] | pa.Table,
    schema: str | None = None,
    format: str | None = None,
    name: str = "table",
    refresh: Length | None = None,
    options: Mapping[str, str] | None = None,
) -> EventStream:
    """Name a table that streams are joined to as it is: `stream.join(table, on="key")`, inner or left.

    A row of the stream meets all rows of its keys, as the table was read last; what was emitted is not revised.

    - `place`: a path, the name of a table of PostgreSQL (`format="postgres"`), or an Arrow table.
    - `schema`: its columns, `"door STRING, city STRING"`. An Arrow table has its own.
    - `format`: parquet, csv, json, orc or postgres; by default what the path ends with.
    - `refresh`: read it again after so long, such as `'5 minutes'`. Without it, it is read at every start.
    - `options`: of the format, such as `{"url": "postgresql://db/geo"}`.

    >>> import pyarrow as pa
    >>> from eventide.api.stream import stream
    >>> visits = stream(pa.table({"t": [1, 12], "door": ["n", "s"]}), time="t", name="visits")
    >>> doors = table(pa.table({"door": ["n"], "city": ["Oslo"]}), name="doors")
    >>> visits.join(doors, on="door", how="left").select("t", "city").run().column("city").to_pylist()
    ['Oslo', None]
    """
    if not NAME.fullmatch(name):
        raise DeclarationError(f"{name!r} cannot name a table: use letters, digits and underscores, a letter first")
    kept = Table(None if refresh is None else length(refresh, TimeKind.TIMESTAMP, "refresh"))
    if isinstance(place, pa.Table):
        if refresh is not None or schema is not None:
            raise DeclarationError("an Arrow table is what it is: give a path to read it again, and its schema")
        given = given_rows(place)
        assert isinstance(given, ArrowData)
        return EventStream(Stream(name, given.columns, timestamps=Timestamps.INTERNAL, table=kept), given)
    path = fspath(place)
    kind = format or format_by_ending(path)
    if kind not in TABLE_FORMATS:
        raise DeclarationError(f"what is the format of {path!r}? Give format={', '.join(map(repr, TABLE_FORMATS))}")
    if schema is None:
        raise DeclarationError("which columns does the table have? Give schema='key STRING, name STRING'")
    declared = columns(schema)
    source = Input(kind, path, tuple((options or {}).items()))
    stream = Stream(name, declared, timestamps=Timestamps.INTERNAL, input=source, table=kept)
    return EventStream(stream, TablePlace(declared))
