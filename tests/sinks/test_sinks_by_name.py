"""Sinks as SQL names them."""

from __future__ import annotations

import pytest

from eventide.errors import DeclarationError
from eventide.sinks import Console, Directory, Memory, Sink, sink_of


def test_every_name_gives_its_sink() -> None:
    for format in ("parquet", "JSON", "csv"):
        sink = sink_of(format, "out")
        assert isinstance(sink, Directory)
        assert sink.format == format.lower()
    assert isinstance(sink_of("console", options={"rows": "5"}), Console)
    assert isinstance(sink_of("memory"), Memory)
    assert isinstance(sink_of("memory"), Sink)


@pytest.mark.parametrize(
    ("format", "path", "options", "told"),
    [
        (
            "avro",
            "out",
            {},
            "there is no sink of format 'avro': choose parquet, json, csv, delta, iceberg, jdbc, kafka, postgres",
        ),
        ("csv", None, {}, "a sink of format 'csv' needs a directory: INTO csv 'path'"),
        ("memory", "out", {}, "a sink of format 'memory' writes no files: leave 'out' out"),
        ("csv", "out", {"header": "no"}, "a sink of format 'csv' has no option 'header'; it has none"),
        ("console", None, {"rows": "many"}, "rows='many' is not a number of rows"),
        ("kafka", "t", {"servers": "a", "value.format": "xml"}, "value.format 'xml' is not known: use json or avro"),
        (
            "kafka",
            "t",
            {"servers": "a", "value.registry": "b"},
            "registry is for values in Avro: add value.format 'avro'",
        ),
        ("kafka", "t", {}, r"INTO kafka needs the option servers: OPTIONS \(servers 'localhost:9092'\)"),
        ("iceberg", "t", {"mode": "append"}, r"INTO iceberg needs a catalog: OPTIONS \(warehouse '/folder'\), or"),
        ("jdbc", "t", {}, r"INTO jdbc needs the option url: OPTIONS \(url 'jdbc:postgresql://host"),
        ("jdbc", "t", {"url": "postgresql://db/o"}, "postgresql://db/o is no address of JDBC"),
        ("jdbc", "t", {"url": "jdbc:x:y", "mode": "upsert"}, "INTO jdbc appends, and knows no 'upsert'"),
        ("kafka", "t", {"acks": "1"}, "a sink of format 'kafka' has no option 'acks'; it has servers, key, headers"),
        ("postgres", None, {}, "a sink of format 'postgres' needs a table: INTO postgres 'table'"),
        ("postgres", "t", {}, r"INTO postgres needs the option url: OPTIONS \(url 'postgresql://user@host"),
        (
            "postgres",
            "t",
            {"url": "x", "Mode": "all"},
            "there is no mode 'all': choose upsert, append or replace round",
        ),
        ("console", None, {"rows": "0"}, "a console of 0 rows shows nothing"),
    ],
)
def test_what_cannot_be_meant_is_told(format: str, path: str | None, options: dict[str, str], told: str) -> None:
    with pytest.raises(DeclarationError, match=told):
        sink_of(format, path, options)
