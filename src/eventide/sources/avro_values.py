"""Values in Avro as rows: by a schema that is given, or by the one in a registry that each message names.

Laws. A value is read by the schema that wrote it, and its fields are found by their names: a field that is not declared
is passed over, and a declared column that a schema of the registry does not have, as that of an older or a newer
message, is NULL. A field may be narrower than its column, never wider or another thing. A value of which not every byte
was read, whose number the registry does not know, or whose fields do not fit is malformed; so is one that is missing.
Spark's tasks and the local engine read by the same lines, so both give the same.

>>> given = AvroValues("stream 's'", (Column("n", "BIGINT"),), '{"type": "record", "name": "r", "fields": '
...                    '[{"name": "n", "type": "int"}]}')
>>> given.table([b"\\x0e", b"\\x0e\\x0e", None]).to_pylist()
[{'n': 7, '_malformed': None}, {'n': None, '_malformed': '0E0E'}, {'n': None, '_malformed': ''}]
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from eventide.avro.registry import Registry, unframed
from eventide.avro.schemas import arrow_type, numbered, parsed
from eventide.errors import DeclarationError, InputError
from eventide.plan.expressions.columns import Column
from eventide.plan.sql.stream_rows import MALFORMED
from eventide.sources.arrow_types import declared_table, matched, schema_of, spark_name

try:
    from fastavro import parse_schema, schemaless_reader
except ModuleNotFoundError as missing:
    raise DeclarationError("values in Avro need fastavro: pip install 'eventide[kafka]'") from missing

log = logging.getLogger(__name__)

OPTIONS = ("schema", "registry", "registry.user", "registry.password")
"""What can be said of values in Avro, behind `value.`."""


@dataclass(frozen=True)
class AvroValues:
    """Reads the columns of values, by a schema or a registry."""

    owner: str
    columns: tuple[Column, ...]
    schema: str | None = None
    registry: Registry | None = None

    @classmethod
    def of(cls, owner: str, columns: Sequence[Column], options: Mapping[str, str]) -> AvroValues:
        """As the options of a stream say behind `value.`; a schema is JSON, or a file that has it, and has the columns.

        >>> AvroValues.of("stream 's'", (), {})
        Traceback (most recent call last):
            ...
        eventide.errors.DeclarationError: stream 's': by which schema are its values written? Add value.schema, \
which is JSON or a file, or value.registry, the address of a schema registry
        """
        for name in options:
            if name not in (*OPTIONS, "format", "header"):
                known = ", ".join(f"value.{option}" for option in OPTIONS)
                raise DeclarationError(f"{owner}: values in Avro have no option value.{name}; they have {known}")
        schema, url = options.get("schema"), options.get("registry")
        if (schema is None) == (url is None):
            ways = "value.schema, which is JSON or a file, or value.registry, the address of a schema registry"
            asked = "by which schema are its values written? Add" if schema is None else "choose one of"
            raise DeclarationError(f"{owner}: {asked} {ways}")
        if url is not None:
            registry = Registry(url, options.get("registry.user"), options.get("registry.password"))
            return cls(owner, tuple(columns), registry=registry)
        return cls(owner, tuple(columns), schema)

    @property
    def is_written_out(self) -> bool:
        """Whether the schema stands in the script itself."""
        return self.schema is not None and self.schema.lstrip()[:1] in ("{", "[", '"')

    def opened(self) -> AvroValues:
        """The same, if its registry answers; or with the schema that a file has, if that has the columns."""
        if self.registry is not None:
            self.registry.check(self.owner)
            return self
        assert self.schema is not None
        text = self.schema if self.is_written_out else _text_of(self.schema, self.owner)
        there = {field.name: spark_name(field.type) for field in _version(self.owner, text).fields}
        matched(self.owner, self.columns, there, "the schema of its values")
        return replace(self, schema=text)

    def table(self, values: Sequence[bytes | None]) -> pa.Table:
        """The rows of values, in their order; where one is malformed, its bytes in hexadecimal digits."""
        by_schema: dict[str | None, list[tuple[int, bytes]]] = {}
        numbers: dict[int, str | None] = {}
        for place, value in enumerate(values):
            schema, rest = (self.schema, value or b"") if value else (None, b"")
            if value and self.registry is not None and (message := unframed(value)) is not None:
                number, rest = message
                if number not in numbers:
                    numbers[number] = self.registry.schema(number)
                schema = numbers[number]
            by_schema.setdefault(schema, []).append((place, rest))
        tables, places = list[pa.Table](), list[int]()
        for schema, found in by_schema.items():
            read = [place for place, _ in found] if schema is None else self._read(schema, found, tables, places)
            tables.append(self._malformed([(values[place] or b"").hex().upper() for place in read]))
            places += read
        if not tables:
            return self._malformed([])
        return pa.concat_tables(tables).take(pa.array(sorted(range(len(places)), key=places.__getitem__), pa.int64()))

    def _read(
        self, schema: str, values: list[tuple[int, bytes]], tables: list[pa.Table], places: list[int]
    ) -> list[int]:
        """Add the rows of values of one schema; the places of those that cannot be read are given back."""
        try:
            version = _version(self.owner, schema)
            if self.registry is not None:
                self._fitting(version.fields)
        except (DeclarationError, InputError) as error:
            _warn(f"{self.owner}: values of a schema cannot be read: {error}")
            return [place for place, _ in values]
        rows, wrong = [], []
        for place, value in values:
            row = version.row(value)
            if row is None:
                wrong.append(place)
            else:
                rows.append((place, row))
        try:
            tables.append(self._table(version, [row for _, row in rows]))
            places += [place for place, _ in rows]
        except (InputError, pa.ArrowException, OverflowError, ValueError):
            # One of them has a value that its column cannot hold.
            for place, row in rows:
                try:
                    tables.append(self._table(version, [row]))
                    places.append(place)
                except (InputError, pa.ArrowException, OverflowError, ValueError):
                    wrong.append(place)
        return wrong

    def _fitting(self, there: Sequence[pa.Field]) -> tuple[Column, ...]:
        """The columns that a schema has, each of a type that fits."""
        kinds = {field.name: spark_name(field.type) for field in there}
        names = {name.lower() for name in kinds}
        found = tuple(column for column in self.columns if column.name.lower() in names)
        matched(self.owner, found, kinds, "a value")
        return found

    def _table(self, version: Version, rows: list[dict[str, Any]]) -> pa.Table:
        columns = self._fitting(version.fields)
        there = pa.Table.from_pylist(rows, schema=pa.schema(list(version.fields)))
        if len(there.schema) == 0:
            there = pa.table({MALFORMED: pa.nulls(len(rows), pa.string())})
        found = declared_table(self.owner, columns, there, "a value")
        schema = schema_of(self.columns)
        return pa.table(
            [
                found.column(field.name) if field.name in found.column_names else pa.nulls(found.num_rows, field.type)
                for field in schema
            ],
            schema=schema,
        )

    def _malformed(self, texts: list[str]) -> pa.Table:
        schema = schema_of(self.columns)
        nulls = [pa.nulls(len(texts), field.type) for field in schema if field.name != MALFORMED]
        return pa.table([*nulls, pa.array(texts, pa.string())], schema=schema)


@dataclass(frozen=True)
class Version:
    """A schema, ready to be read by, and the fields of its records."""

    schema: Any
    fields: tuple[pa.Field, ...]

    def row(self, value: bytes) -> dict[str, Any] | None:
        """The record that the bytes are, all of them."""
        given = io.BytesIO(value)
        try:
            found = schemaless_reader(given, self.schema, None)
        except Exception:
            # Bytes that are no record fail in any way: an end too early, a branch that is not there, no UTF-8.
            return None
        return found if given.tell() == len(value) and isinstance(found, dict) else None


@lru_cache(maxsize=1000)
def _version(owner: str, text: str) -> Version:
    whole = parsed(text, owner)
    return Version(parse_schema(numbered(json.loads(text))), tuple(arrow_type(whole)))


@lru_cache(maxsize=1000)
def _warn(text: str) -> None:
    """Once, and not for every batch."""
    log.warning("%s", text, extra={"event": "schema warning"})


def _text_of(schema: str, owner: str) -> str:
    try:
        return Path(schema).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise DeclarationError(f"{owner}: the schema {schema} cannot be read: {reason}") from None
