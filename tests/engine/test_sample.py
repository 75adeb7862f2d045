"""A sample is the same rows on both engines, about the share of them, and nothing of it depends on rounds."""

from __future__ import annotations

import hashlib
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from eventide.errors import DeclarationError
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Stream, Timestamps, columns
from eventide.plan.declared.window import Window
from eventide.sources.arrow_types import arrow_type
from eventide.testing.trial import EngineName, Trial

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM = Stream(
    "s",
    columns(
        "t TIMESTAMP, id INT, text STRING, ok BOOLEAN, x DOUBLE, f FLOAT, m DECIMAL(12, 3), d DATE, "
        "z TIMESTAMP_NTZ, n TINYINT, xs ARRAY<INT>, b BINARY"
    ),
    time="t",
)
FRACTIONS = [0.0, -0.0, 0.1, 1e-7, 1e7, 1.5e300, float("nan"), float("inf"), None, 123456.789, -3.0]
TEXTS = ["", "a", None, "äöü", "line\nend", "NULL", " b "]


def row(number: int) -> list[Any]:
    return [
        datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=number),
        number,
        TEXTS[number % len(TEXTS)],
        [True, False, None][number % 3],
        FRACTIONS[number % len(FRACTIONS)],
        None if number % 5 == 0 else FRACTIONS[number % 5],
        None if number % 4 == 0 else Decimal(number) / 8 - 10,
        date(1969, 12, 25) + timedelta(days=number),
        datetime(1969, 12, 31, 23) + timedelta(minutes=number),
        number % 100 - 50,
        None if number % 2 else [number],
        str(number).encode(),
    ]


def table() -> pa.Table:
    values = zip(*(row(number) for number in range(400)), strict=True)
    named = zip(STREAM.columns, values, strict=True)
    return pa.table({column.name: pa.array(given, arrow_type(column.type)) for column, given in named})


def taken(share: float, folder: Path, engine: EngineName = "local", spark: SparkSession | None = None) -> set[int]:
    query = Query("q", "s", Window(10**9), (), named_as("id"), sample=share)
    with Trial(Program((STREAM,), (query,)), folder, engine, spark) as trial:
        for part in (table().slice(0, 150), table().slice(150)):
            trial.round({"s": part}, clock=0, heartbeats={})
        trial.end(clock=0)
        [found] = trial.output().final
    return set(found.column("id").to_pylist())


def test_a_smaller_share_is_part_of_a_larger_one(tmp_path: Path) -> None:
    shares = [taken(share, tmp_path / str(share)) for share in (0.1, 0.5, 0.9, 1.0)]
    assert all(one < other for one, other in pairwise(shares))
    assert [len(one) for one in shares] == pytest.approx([40, 200, 360, 400], abs=40)


@pytest.mark.spark
def test_both_engines_take_the_same_rows_whatever_is_in_them(tmp_path: Path, spark: SparkSession) -> None:
    assert taken(0.5, tmp_path / "spark", "spark", spark) == taken(0.5, tmp_path / "local")


def test_what_is_taken_follows_from_the_values_alone(tmp_path: Path) -> None:
    simple = Stream("s", columns("t BIGINT, k STRING"), time="t")
    query = Query("q", "s", Window(1000), (), named_as("t"), sample=0.3)
    rows = [(number, None if number % 3 == 0 else f"k{number}") for number in range(300)]
    with Trial(Program((simple,), (query,)), tmp_path) as trial:
        trial.round({"s": pa.table({"t": [t for t, _ in rows], "k": [k for _, k in rows]})}, clock=0, heartbeats={})
        trial.end(clock=0)
        [found] = trial.output().final
    digests = {t: hashlib.md5(f"{t}\x1f{k or chr(0x1E)}".encode()).hexdigest() for t, k in rows}
    assert set(found.column("t").to_pylist()) == {
        t for t, digest in digests.items() if int(digest[:8], 16) < 0.3 * 2**32
    }


def test_a_stream_of_nothing_that_can_be_told_apart_has_no_sample(tmp_path: Path) -> None:
    lists = Stream("s", columns("xs ARRAY<INT>"), timestamps=Timestamps.INTERNAL)
    query = Query("q", "s", Window(10), named_as(n="count(*)"), sample=0.5)
    with pytest.raises(DeclarationError, match="no column of stream 's' can tell which rows to take"):
        Trial(Program((lists,), (query,)), tmp_path)
