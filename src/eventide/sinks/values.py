"""What the values of records say: the columns of results as JSON, or in Avro.

Laws. Each value is one row. In Avro its schema follows from the types of the columns, all of which may be missing.
Where a registry is named, the schema is registered there under the name of the topic before the first record is
written, and each value begins with its number. Without one, a value is the bare bytes, to be read by the same schema.

>>> rows = pa.table({"road": ["a", None], "n": pa.array([1, 2], pa.int64())})
>>> Json().writer(rows.schema)(rows)
[b'{"road":"a","n":1}', b'{"road":null,"n":2}']
>>> Avro("speeds").writer(rows.schema)(rows)
[b'\\x02\\x02a\\x02\\x02', b'\\x00\\x02\\x04']
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias

import pyarrow as pa

from eventide.avro.registry import Registry, framed
from eventide.errors import DeclarationError
from eventide.sinks.lines import LineWriter, numbers_for_times

Writer: TypeAlias = Callable[[pa.Table], list[bytes]]
"""Makes a value of each row."""

FORMATS = ("json", "avro")


class Values(Hashable, Protocol):
    """How rows become values; it may be sent to Spark's tasks."""

    def writer(self, schema: pa.Schema) -> Writer:
        """What makes values of rows with these columns."""
        ...


@dataclass(frozen=True)
class Json:
    """Objects with the columns of a row."""

    def writer(self, schema: pa.Schema) -> Writer:
        """Lines of JSON."""
        return partial(each_line, LineWriter("json", schema))


@dataclass(frozen=True)
class Avro:
    """Records of Avro; `name` is that of the topic."""

    name: str
    registry: Registry | None = None

    def writer(self, schema: pa.Schema) -> Writer:
        """Records of Avro, whose schema is registered by now."""
        try:
            from fastavro import parse_schema, schemaless_writer

            from eventide.avro.schemas import avro_type
        except ModuleNotFoundError as missing:
            raise DeclarationError("values in Avro need fastavro: pip install 'eventide[kafka]'") from missing
        written = avro_type(pa.struct(list(schema)), re.sub(r"\W|^(?=\d)", "_", self.name, flags=re.ASCII))
        parsed = parse_schema(written)
        number = None if self.registry is None else self.registry.register(f"{self.name}-value", written)
        numbered = pa.schema([field.with_type(numbers_for_times(field.type)) for field in schema])

        def values(rows: pa.Table) -> list[bytes]:
            found = []
            for row in rows.cast(numbered).to_pylist(maps_as_pydicts="strict"):
                value = io.BytesIO()
                schemaless_writer(value, parsed, row)
                found.append(value.getvalue() if number is None else framed(number, value.getvalue()))
            return found

        return values


def each_line(lines: LineWriter, table: pa.Table) -> list[bytes]:
    """The lines one by one: JSON has no end of a line within a value."""
    return lines.of(table).split(b"\n")[:-1]


def values_of(topic: str, options: Mapping[str, str]) -> Values:
    """How values are written by the options of INTO kafka, or an error that says which there are.

    >>> values_of("speeds", {"value.format": "avro", "value.registry": "http://localhost:8081"})
    Avro(name='speeds', registry=Registry(url='http://localhost:8081', user=None, patience=60.0))
    """
    kind = options.get("value.format", "json").lower()
    if kind not in FORMATS:
        raise DeclarationError(f"value.format {kind!r} is not known: use {' or '.join(FORMATS)}")
    given = {name.removeprefix("value.registry").lstrip("."): value for name, value in options.items()}
    url = options.get("value.registry")
    if kind == "json":
        if any(name.startswith("value.registry") for name in options):
            raise DeclarationError("a schema registry is for values in Avro: add value.format 'avro'")
        return Json()
    return Avro(topic, None if url is None else Registry(url, given.get("user"), given.get("password")))
