"""Lines of JSON and CSV say what the rows say: as Python reads them, and as Spark and DuckDB do."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import types

from eventide.eventtime.instant import FOREVER, NEVER
from eventide.results.results import Results
from eventide.sinks import Directory
from eventide.sinks.lines import LineWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UTC = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class Floating:
    """Equals every text that a reader takes for this number."""

    value: float
    single: bool = False

    def __eq__(self, text: object) -> bool:
        if not math.isfinite(self.value):
            return text == {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(self.value)]
        read = np.float32(str(text)) if self.single else float(str(text))
        return repr(float(read)) == repr(self.value)


@dataclass(frozen=True)
class Kind:
    """A type, and pairs of a value of it and what should be read of that."""

    type: Any
    pairs: st.SearchStrategy[tuple[Any, Any]]


def kind(type: Any, values: st.SearchStrategy[Any], said: Callable[[Any], Any]) -> Kind:
    missing = st.just((None, None))
    return Kind(type, missing | values.map(lambda value: (value, said(value))))


def instants(unit: str, zone: str | None) -> Kind:
    length = {"s": 1_000_000, "ms": 1_000, "us": 1}[unit]
    first, last = -62_135_596_800_000_000 // length, 253_402_300_799_000_000 // length

    def said(number: int) -> str:
        at = datetime(1970, 1, 1) + timedelta(microseconds=number * length)
        return at.isoformat(timespec="microseconds") + ("" if zone is None else "Z")

    return kind(pa.timestamp(unit, zone), st.integers(first, last), said)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
TEXTS = kind(pa.string(), TEXT, str)
LEAVES = [
    TEXTS,
    kind(pa.large_string(), TEXT, str),
    kind(pa.int64(), st.integers(-(2**63), 2**63 - 1), str),
    kind(pa.uint8(), st.integers(0, 255), str),
    kind(pa.bool_(), st.booleans(), lambda value: value),
    kind(pa.float64(), st.floats(), Floating),
    kind(pa.float32(), st.floats(width=32), lambda value: Floating(value, single=True)),
    kind(pa.binary(), st.binary(max_size=5), lambda value: base64.b64encode(value).decode()),
    kind(pa.date32(), st.dates(), date.isoformat),
    kind(pa.decimal128(38, 10), st.decimals(-(10**20), 10**20, places=10), lambda value: f"{value:f}"),
    kind(pa.decimal128(5, 5), st.decimals("-0.99999", "0.99999", places=5), lambda value: f"{value:f}"),
    instants("us", "UTC"),
    instants("us", None),
    instants("ms", "Europe/Berlin"),
    instants("s", None),
]


def nested(inner: Kind) -> st.SearchStrategy[Kind]:
    missing = st.just((None, None))
    lists = st.lists(inner.pairs, max_size=3).map(lambda pairs: ([a for a, _ in pairs], [b for _, b in pairs]))
    two = st.lists(inner.pairs, min_size=2, max_size=2).map(
        lambda pairs: ([a for a, _ in pairs], [b for _, b in pairs])
    )
    maps = st.dictionaries(TEXT, inner.pairs, max_size=3).map(
        lambda found: ([(key, a) for key, (a, _) in found.items()], {key: b for key, (_, b) in found.items()})
    )
    name = 'it\'s a "name"'
    structs = inner.pairs.map(lambda pair: ({name: pair[0], "b": 1}, {name: pair[1], "b": "1"}))
    return st.sampled_from(
        [
            Kind(pa.list_(inner.type), missing | lists),
            Kind(pa.large_list(inner.type), missing | lists),
            Kind(pa.list_(inner.type, 2), missing | two),
            Kind(pa.map_(pa.string(), inner.type), missing | maps),
            Kind(pa.struct([(name, inner.type), ("b", pa.int32())]), missing | structs),
        ]
    )


KINDS = st.recursive(st.sampled_from(LEAVES), lambda inner: inner.flatmap(nested), max_leaves=3)


@dataclass(frozen=True)
class Example:
    table: pa.Table
    rows: list[dict[str, Any]]


@st.composite
def examples(draw: st.DrawFn) -> Example:
    kinds = draw(st.lists(KINDS, min_size=2, max_size=3))
    names = draw(st.lists(TEXT, min_size=len(kinds), max_size=len(kinds), unique=True))
    size = draw(st.integers(1, 3))
    columns = [draw(st.lists(each.pairs, min_size=size, max_size=size)) for each in kinds]
    arrays = [pa.array([a for a, _ in pairs], each.type) for each, pairs in zip(kinds, columns, strict=True)]
    rows = [{name: column[at][1] for name, column in zip(names, columns, strict=True)} for at in range(size)]
    return Example(pa.table(arrays, names), rows)


def read_json(text: str) -> Any:
    return json.loads(text, parse_float=str, parse_int=str)


def text_of(format: str, table: pa.Table) -> str:
    lines = LineWriter(format, table.schema)
    return lines.head + lines.of(table).decode()


@settings(max_examples=60)
@given(examples())
def test_a_line_of_json_says_what_the_row_says(example: Example) -> None:
    lines = text_of("json", example.table).split("\n")
    assert lines.pop() == ""
    assert [read_json(line) for line in lines] == example.rows


def in_csv(type: Any, said: Any) -> Any:
    """What stands in the field: nothing for a missing value, JSON for a nested one."""
    if said is None:
        return ""
    return {True: "true", False: "false"}[said] if types.is_boolean(type) else said


@settings(max_examples=60)
@given(examples())
def test_a_line_of_csv_says_what_the_row_says(example: Example) -> None:
    head, *fields = csv.reader(io.StringIO(text_of("csv", example.table), newline=""), strict=True)
    assert head == example.table.column_names
    for row, found in zip(example.rows, fields, strict=True):
        for type, said, field in zip(example.table.schema.types, row.values(), found, strict=True):
            read = read_json(field) if field and types.is_nested(type) else field
            assert in_csv(type, said) == read


def test_rows_keep_their_order() -> None:
    table = pa.table({"a": np.arange(100_000)})
    assert text_of("csv", table).split("\n")[1:-1] == [str(number) for number in range(100_000)]


def test_a_missing_text_and_an_empty_one_are_told_apart() -> None:
    table = pa.table({"a": [None, ""], "b": [1, 2]})
    assert text_of("csv", table) == 'a,b\n,1\n"",2\n'


def test_instants_at_the_ends_of_time_are_infinite() -> None:
    # The heartbeat that closes everything at the end of a run lies beyond every calendar.
    table = pa.table({"at": pa.array([FOREVER, NEVER, NEVER + 1], UTC)})
    assert text_of("csv", table) == "at\ninfinity\n-infinity\n-infinity\n"
    assert text_of("csv", pa.table({"at": pa.array([FOREVER - 1], UTC)})) == "at\n294247-01-10T04:00:54.775806Z\n"


def test_nanoseconds_are_kept() -> None:
    table = pa.table({"at": pa.array([1], pa.timestamp("ns", "UTC"))})
    assert text_of("json", table) == '{"at":"1970-01-01T00:00:00.000000001Z"}\n'


def test_types_of_other_kinds_are_written_as_text() -> None:
    table = pa.table(
        {
            "length": pa.array([3_661_500_000], pa.duration("us")),
            "word": pa.array(["a"]).dictionary_encode(),
            "time": pa.array([3_600_000_000], pa.time64("us")),
            "none": pa.nulls(1),
        }
    )
    assert text_of("json", table) == '{"length":"01:01:01.5","word":"a","time":"01:00:00","none":null}\n'


def test_columns_whose_names_mean_something_in_sql_are_only_names() -> None:
    table = pa.table({"rows": [1], "select": [2], "'; DROP TABLE rows; --": [3], "C0": [4], "c0": [5]})
    assert json.loads(text_of("json", table)) == {name: at + 1 for at, name in enumerate(table.column_names)}


WHOLE = {
    "at": pa.array([1_700_000_000_123_456, None], UTC),
    "local": pa.array([1_700_000_000_123_456, None], pa.timestamp("us")),
    "day": pa.array([date(2026, 1, 31), None]),
    "number": pa.array([2**53 + 1, None], pa.int64()),
    "mean": pa.array([math.nan, -math.inf]),
    "price": pa.array([Decimal("12345678901234567890.0123456789"), Decimal("-0.5000000000")], pa.decimal128(38, 10)),
    "name": pa.array(["grün, \\ 'so'", None]),
    "bytes": pa.array([b"\x00\xff", None]),
    "good": pa.array([True, None]),
}


@pytest.mark.spark
@pytest.mark.parametrize("format", ["json", "csv", "parquet"])
def test_spark_reads_back_what_was_written(format: str, tmp_path: Path, spark: SparkSession) -> None:
    from pyspark.sql.pandas.types import from_arrow_schema

    table = pa.table(WHOLE if format != "csv" else {name: values for name, values in WHOLE.items() if name != "bytes"})
    Directory(tmp_path, format).emit(Results.of_table("q", 0, table))
    (tmp_path / f".q-0000000001.{format}.tmp").write_text("half a file of a writer that was killed")
    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    read = spark.read.schema(schema).option("header", True).format(format).load(str(tmp_path)).toArrow()
    # By their text: NaN does not equal itself.
    assert str(read.cast(table.schema).to_pydict()) == str(table.to_pydict())


@pytest.mark.parametrize("format", ["json", "csv"])
def test_duckdb_finds_the_types_by_itself(format: str, tmp_path: Path) -> None:
    table = pa.table({name: WHOLE[name] for name in ("at", "day", "number", "name", "good")})
    Directory(tmp_path, format).emit(Results.of_table("q", 0, table))
    read = duckdb.read_json if format == "json" else duckdb.read_csv
    found = read(f"{tmp_path}/q-*.{format}").to_arrow_table()
    assert found.cast(table.schema).to_pydict() == table.to_pydict()
