"""Values in Avro, by a schema or a registry: what was written is what is read, and what is no record is malformed."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fastavro import parse_schema, schemaless_writer
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.avro.registry import Registry, framed
from eventide.errors import DeclarationError, EngineError, InputError
from eventide.plan.expressions.columns import columns
from eventide.sinks.values import Avro
from eventide.sources.arrow_types import spark_type_of
from eventide.sources.avro_values import AvroValues
from tests.sources.schema_registry import SchemaRegistry, schema_registry

OWNER = "stream 's'"
FIRST = datetime(1970, 1, 1, tzinfo=UTC)
SIMPLE: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.string(), st.text(max_size=5)),
    (pa.binary(), st.binary(max_size=5)),
    (pa.date32(), st.dates()),
    (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
    (pa.timestamp("us"), st.datetimes()),
    (pa.decimal128(9, 2), st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-2))),
]


@st.composite
def kinds(draw: st.DrawFn, depth: int = 2) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    """A type, and values of it, some of them missing."""
    shape = draw(st.sampled_from(("plain", "plain", "list", "struct", "map"))) if depth else "plain"
    if shape == "plain":
        kind, values = draw(st.sampled_from(SIMPLE))
    elif shape == "struct":
        parts = draw(st.lists(kinds(depth=depth - 1), min_size=1, max_size=2))
        names = "xy"[: len(parts)]
        kind = pa.struct([pa.field(name, part) for name, (part, _) in zip(names, parts, strict=True)])
        values = st.fixed_dictionaries({name: some for name, (_, some) in zip(names, parts, strict=True)})
    else:
        inner, some = draw(kinds(depth=depth - 1))
        kind = pa.list_(pa.field("element", inner)) if shape == "list" else pa.map_(pa.string(), inner)
        values = st.lists(some, max_size=2)
        if shape == "map":
            values = st.dictionaries(st.text(max_size=2), some, max_size=2).map(lambda d: list(d.items()))
    return kind, st.none() | values


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    made = draw(st.lists(kinds(), min_size=1, max_size=3))
    schema = pa.schema([pa.field(f"c{place}", kind) for place, (kind, _) in enumerate(made)])
    row = st.fixed_dictionaries({f"c{place}": values for place, (_, values) in enumerate(made)})
    return pa.Table.from_pylist(draw(st.lists(row, max_size=4)), schema=schema)


@pytest.fixture(scope="module")
def server() -> Iterator[SchemaRegistry]:
    with schema_registry() as server:
        yield server


@settings(max_examples=60)
@given(rows=tables())
def test_what_is_written_is_what_is_read(server: SchemaRegistry, rows: pa.Table) -> None:
    registry = Registry(server.url)
    values = Avro(f"t{len(server.subjects)}", registry).writer(rows.schema)(rows)
    declared = columns(", ".join(f"{field.name} {spark_type_of(field.type)}" for field in rows.schema))
    # Spark's tasks get it as bytes.
    given = pickle.loads(pickle.dumps(AvroValues(OWNER, declared, registry=registry)))
    found = given.table(values)
    assert found.drop_columns(["_malformed"]).to_pylist() == rows.to_pylist()
    assert found.column("_malformed").null_count == len(rows)
    cut = given.table([value[:-1] for value in values])
    assert cut.column("_malformed").to_pylist() == [value[:-1].hex().upper() for value in values]


def record(*fields: tuple[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": n, "type": t} for n, t in fields]})


def value(schema: str, **row: Any) -> bytes:
    written = io.BytesIO()
    schemaless_writer(written, parse_schema(json.loads(schema)), row)
    return written.getvalue()


def test_types_of_avro_are_columns() -> None:
    place = {"type": "record", "name": "place", "fields": [{"name": "x", "type": "float"}]}
    schema = record(
        ("D", {"type": "int", "logicalType": "date"}),
        ("ms", {"type": "long", "logicalType": "timestamp-millis"}),
        ("at", {"type": "long", "logicalType": "local-timestamp-micros"}),
        ("price", {"type": "fixed", "name": "f", "size": 4, "logicalType": "decimal", "precision": 6, "scale": 2}),
        ("kind", {"type": "enum", "name": "e", "symbols": ["CAR", "BUS"]}),
        ("id", {"type": "string", "logicalType": "uuid"}),
        ("n", ["null", "int", "long"]),
        ("here", place),
        ("there", ["null", "place"]),
    )
    declared = columns(
        "d DATE, ms TIMESTAMP, at TIMESTAMP_NTZ, price DECIMAL(8, 2), kind STRING, id STRING, n BIGINT, "
        "here STRUCT<x: FLOAT>, there STRUCT<x: FLOAT>"
    )
    given = AvroValues.of(OWNER, declared, {"schema": schema}).opened()
    at = datetime(2026, 1, 2, 3, 4, 5, 6000)
    row = {"D": date(2026, 1, 2), "ms": at.replace(tzinfo=UTC), "at": at, "price": Decimal("-1.50"), "kind": "BUS"}
    row |= {"id": "0" * 8 + "-0000-0000-0000-" + "0" * 12, "n": 7, "here": {"x": 1.5}, "there": None}
    [found] = given.table([value(schema, **row)]).to_pylist()
    assert found.pop("_malformed") is None
    assert [*found.values()] == [*row.values()]


def test_a_time_that_no_column_holds_makes_its_own_value_malformed() -> None:
    schema = record(("t", {"type": "long", "logicalType": "timestamp-millis"}))
    given = AvroValues.of(OWNER, columns("t TIMESTAMP"), {"schema": schema}).opened()
    values = [value(schema, t=1), value(schema, t=2**62), value(schema, t=3)]
    found = given.table(values).to_pylist()
    assert [row["t"] for row in found] == [FIRST + timedelta(milliseconds=1), None, FIRST + timedelta(milliseconds=3)]
    assert [row["_malformed"] for row in found] == [None, values[1].hex().upper(), None]


def test_messages_of_several_schemas_are_read_each_by_its_own(server: SchemaRegistry) -> None:
    versions = [
        record(("t", "long"), ("k", "string")),
        record(("T", "int"), ("k", "string"), ("v", ["null", "int"])),
        record(("t", "string"), ("k", "string")),
    ]
    one, two, other = (server.keep(f"several-{n}", text) or 0 for n, text in enumerate(versions))
    given = AvroValues.of(OWNER, columns("t BIGINT, k STRING, v INT"), {"registry": server.url}).opened()
    messages = [
        framed(two, value(versions[1], T=1, k="a", v=5)),
        framed(one, value(versions[0], t=2, k="b")),
        framed(other, value(versions[2], t="x", k="c")),
        framed(4711, b"x"),
        b"{}",
        None,
        framed(two, value(versions[1], T=3, k="d", v=None)),
    ]
    found = given.table(messages).to_pylist()
    assert [(row["t"], row["k"], row["v"]) for row in found] == [
        *((1, "a", 5), (2, "b", None)),
        *((None, None, None),) * 4,
        (3, "d", None),
    ]
    malformed = [None, None, *((message or b"").hex().upper() for message in messages[2:6]), None]
    assert [row["_malformed"] for row in found] == malformed


def test_a_registry_is_asked_for_a_schema_once_and_again_while_it_fails(server: SchemaRegistry) -> None:
    schema = record(("n", "int"))
    number = server.keep("once", schema) or 0
    server.asked.clear()
    server.failing = 2
    given = AvroValues(OWNER, columns("n INT"), registry=Registry(server.url))
    for n in range(3):
        assert given.table([framed(number, value(schema, n=n))]).to_pylist() == [{"n": n, "_malformed": None}]
    assert server.asked == [f"/schemas/ids/{number}"] * 3


def test_a_registry_lets_in_whoever_has_its_password_and_no_text_shows_it() -> None:
    with schema_registry("eve", "hunter22") as server:
        options = {"registry": server.url, "registry.user": "eve", "registry.password": "hunter22"}
        given = AvroValues.of(OWNER, columns("n INT"), options).opened()
        assert "hunter22" not in repr(given)
        AvroValues.of(OWNER, columns("n INT"), {"registry": server.url.replace("//", "//eve:hunter22@")}).opened()
        with pytest.raises(InputError, match=rf"the schema registry at {server.url} does not let us in"):
            AvroValues.of(OWNER, columns("n INT"), options | {"registry.password": "hunter23"}).opened()
        address = server.url
    with pytest.raises(InputError, match=rf"{OWNER}: the schema registry at {address} does not answer: .*Does it run"):
        AvroValues.of(OWNER, columns("n INT"), {"registry": address}).opened()


def test_a_schema_that_does_not_go_with_those_before_is_refused(server: SchemaRegistry) -> None:
    registry = Registry(server.url)
    Avro("refused", registry).writer(pa.schema([("n", pa.int64())]))
    with pytest.raises(
        EngineError, match=r"refuses the schema for 'refused-value', which does not go with those before"
    ):
        Avro("refused", registry).writer(pa.schema([("n", pa.string())]))


def test_what_cannot_be_read_or_written_is_told(tmp_path: Path) -> None:
    def opened(of: str, **options: str) -> None:
        AvroValues.of(OWNER, columns(of), {name.replace("_", "."): text for name, text in options.items()}).opened()

    (tmp_path / "s.avsc").write_text(record(("n", "int")))
    opened("n BIGINT", schema=str(tmp_path / "s.avsc"))
    for of, schema, message in (
        ("m INT", record(("n", "int")), "declares m INT, but the schema of its values has only n INT"),
        ("n INT", record(("n", "long")), "the schema of its values has n BIGINT: declare it as it is there"),
        ("n INT", "{", "this is no JSON, and so no schema of Avro"),
        ("n INT", '"long"', "a value is a record, and this is the schema of 'long'"),
        ("n INT", record(("n", "town")), "the schema speaks of 'town', and does not say what it is"),
        ("n INT", record(("n", ["int", "string"])), r'may be any of \["int", "string"\] has no one type'),
        ("n INT", "gone.avsc", r"the schema gone\.avsc cannot be read: No such file"),
    ):
        with pytest.raises((DeclarationError, InputError), match=message):
            opened(of, schema=schema)
    with pytest.raises(DeclarationError, match=r"no option value\.topic; they have value\.schema, value\.registry"):
        opened("n INT", topic="x")
    with pytest.raises(DeclarationError, match=r"choose one of value\.schema"):
        opened("n INT", schema="{}", registry="http://localhost:1")
    for kind, name, message in (
        (pa.int64(), "how many", "Avro has no name 'how many': write AS"),
        (pa.map_(pa.int32(), pa.int32()), "m", "Avro has maps of texts alone, and 't_m' is map<int32, int32>"),
        (pa.duration("us"), "d", "Avro has no type for 't_d'"),
    ):
        with pytest.raises(DeclarationError, match=message):
            Avro("t").writer(pa.schema([(name, kind)]))
