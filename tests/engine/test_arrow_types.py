"""A Spark type goes to Arrow, to DuckDB and back unchanged."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import DeclarationError
from eventide.sources.arrow_types import SIMPLE, arrow_type, duckdb_type, spark_type_of

PLAIN = st.sampled_from([spark for spark, _, _ in SIMPLE if spark != "VOID"])
DECIMALS = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: f"DECIMAL({p}, {s})"))
TYPES = st.recursive(
    PLAIN | DECIMALS,
    lambda inner: (
        inner.map(lambda kind: f"ARRAY<{kind}>")
        | st.tuples(PLAIN, inner).map(lambda pair: f"MAP<{pair[0]}, {pair[1]}>")
        | st.lists(inner, min_size=1, max_size=3).map(
            lambda kinds: "STRUCT<" + ", ".join(f"f{n}: {kind}" for n, kind in enumerate(kinds)) + ">"
        )
    ),
    max_leaves=4,
)


@given(kind=TYPES)
def test_a_type_survives_arrow(kind: str) -> None:
    assert spark_type_of(arrow_type(kind)) == kind


@given(kind=TYPES)
def test_a_type_survives_duckdb(kind: str) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        empty = connection.sql(f"SELECT CAST(NULL AS {duckdb_type(kind)}) AS x").to_arrow_table()
    assert spark_type_of(empty.schema.field(0).type) == kind


@pytest.mark.parametrize(
    ("arrow", "kind"),
    [
        (pa.large_string(), "STRING"),
        (pa.timestamp("ns", "Europe/Paris"), "TIMESTAMP"),
        (pa.dictionary(pa.int8(), pa.string()), "STRING"),
        (pa.large_list(pa.uint32()), "ARRAY<BIGINT>"),
        (pa.decimal256(50, 3), "DECIMAL(38, 3)"),
        (pa.struct([("a b", pa.int32())]), "STRUCT<`a b`: INT>"),
        (pa.null(), "VOID"),
    ],
)
def test_what_arrow_has_more_of_becomes_the_nearest(arrow: pa.DataType, kind: str) -> None:
    assert spark_type_of(arrow) == kind


@pytest.mark.parametrize("kind", ["VARIANT", "INTERVAL DAY TO SECOND", "no type"])
def test_a_type_without_counterpart_is_refused(kind: str) -> None:
    with pytest.raises(DeclarationError):
        arrow_type(kind)
    with pytest.raises(DeclarationError):
        spark_type_of(pa.duration("us"))
