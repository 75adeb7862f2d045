"""The input of a stream as a streaming DataFrame, with text that could not be read kept.

Law: `read_stream` gives exactly the declared columns, in order and with the declared types, and one more, `_malformed`:
NULL for a good row, the raw text of one that could not be read. What can be known to be wrong before the stream starts
(no such path, format or table, other columns, other types) is an error before it starts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from eventide.errors import DeclarationError
from eventide.plan.declared.stream import Input, Stream
from eventide.plan.expressions.columns import Column, quoted
from eventide.plan.sql.stream_rows import MALFORMED
from eventide.sources.arrow_types import matched, places_in_header
from eventide.sources.debezium import raw, unpacked_sql
from eventide.sources.options import (
    FILES,
    input_of,
    limit_options,
    needs_path,
    split_options,
    text_options,
)
from eventide.sources.spark_errors import translated_errors
from eventide.sources.spark_values import OURS, PARSING, conforming, corrupt_ddl, ddl, kept_aside, records, types_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


EVERY_AGE = {"maxFileAge": "1000000d"}
"""Spark passes over files that are older than another one by seven days, without a word: all that come after one whose
time, by somebody's wrong clock, is in the future. Its log names every file for ever; to remember them costs no more."""

WHICH_RECORDS = frozenset({"subscribe", "subscribepattern", "startingoffsets", "failondataloss"})
"""Options that say which records of Kafka are read."""

Files = Sequence[str] | None

LOCAL = "file:"
"""How Spark begins the name of a file that the driver can see itself."""


def read_stream(spark: SparkSession, stream: Stream) -> DataFrame:
    """A streaming DataFrame with the declared columns and `_malformed`, but for those that are computed."""
    stream = stream.as_read
    if stream.is_in_envelopes:
        return _unpacked(stream, read_stream(spark, raw(stream)))
    given = input_of(stream)
    limits = limit_options(given)
    if given.format in FILES and not any(name.lower() == "maxfileage" for name, _ in given.options):
        limits |= EVERY_AGE
    owner = f"stream {stream.name!r}"
    with translated_errors(spark, owner, given.format, given.path):
        if given.format in ("csv", "json"):
            return _text_files(spark, stream, given, limits)
        if given.format in FILES:
            return _files(spark, stream, given, limits)
        if given.format == "table":
            frame = spark.readStream.options(**dict(given.options), **limits).table(needs_path(stream, given))
            return conforming(stream, frame, f"the table {given.path}")
        if given.format == "replay":
            return _replay(spark, stream, given, limits)
        if given.format == "iceberg":
            from eventide.sources.iceberg.spark import read_iceberg

            return conforming(stream, read_iceberg(spark, stream, limits), f"the table {given.path}")
        return _by_name(spark, stream, given, limits)


def read_files(spark: SparkSession, stream: Stream, files: Sequence[str]) -> DataFrame:
    """The rows of files that the stream has read, once more, as a DataFrame with the same columns."""
    stream = stream.as_read
    if stream.is_in_envelopes:
        return _unpacked(stream, read_files(spark, raw(stream), files))
    given = input_of(stream)
    paths = [unquote(file) for file in files]
    with translated_errors(spark, f"stream {stream.name!r}", given.format, given.path):
        if given.format in ("csv", "json"):
            return _text_files(spark, stream, given, {}, paths)
        return _files(spark, stream, given, {}, paths)


def read_offsets(spark: SparkSession, stream: Stream, began: Mapping[str, Mapping[str, int]], until: str) -> DataFrame:
    """The records of topics that the stream has read, once more: of each partition from where it began on.

    A partition that is not in `began` is read from its beginning. What the broker has deleted is left out.
    """
    stream = stream.as_read
    if stream.removed is not None:
        return _unpacked(stream, read_offsets(spark, raw(stream), began, until))
    given, ends = input_of(stream), json.loads(until)
    named = {name: value for name, value in split_options(given)[1].items() if name.lower() not in WHICH_RECORDS}
    starts = {topic: {part: began.get(topic, {}).get(part, -2) for part in parts} for topic, parts in ends.items()}
    chosen = {
        "assign": json.dumps({topic: [*map(int, parts)] for topic, parts in ends.items()}),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": until,
        "failOnDataLoss": "false",
    }
    with translated_errors(spark, f"stream {stream.name!r}", given.format, given.path):
        frame = spark.read.format("kafka").options(**_of_records(stream, {**named, **chosen})).load()
        return records(stream, given, frame)


def _unpacked(stream: Stream, messages: DataFrame) -> DataFrame:
    says, columns = unpacked_sql(stream)
    return messages.where(says).selectExpr(*columns)


def read_table(spark: SparkSession, table: Stream) -> DataFrame:
    """The rows that a table has now."""
    given = input_of(table)
    path = needs_path(table, given)
    with translated_errors(spark, f"table {table.name!r}", given.format, path):
        if given.format == "postgres":
            frame = spark.read.format("jdbc").options(**jdbc_options(table)).load()
            return conforming(table, frame, f"the table {path}")
        if given.format == "delta":
            frame = spark.read.format("delta").options(**dict(given.options)).load(path)
            return conforming(table, frame, f"the Delta table {path}")
        read = _text_files if given.format in ("csv", "json") else _files
        # Other tables than those of before may be there: Spark would remember them.
        spark.catalog.refreshByPath(path)
        return read(spark, table, given, {}, [path])


def jdbc_options(table: Stream) -> dict[str, str]:
    """How Spark reads a table of PostgreSQL, by JDBC.

    >>> from eventide.plan.declared.stream import Table, Timestamps, columns
    >>> given = Input("postgres", "cities", (("url", "postgresql://eve@db:5433/geo"), ("password", "p")))
    >>> d = Stream("d", columns("k INT"), timestamps=Timestamps.INTERNAL, input=given, table=Table())
    >>> found = jdbc_options(d)
    >>> found["url"], found["dbtable"], found["user"]
    ('jdbc:postgresql://db:5433/geo', 'cities', 'eve')
    """
    given = input_of(table)
    options = {name.lower(): value for name, value in given.options}
    parts = urlsplit(options.get("url", ""))
    if parts.scheme not in ("postgresql", "postgres") or not parts.hostname:
        raise DeclarationError(
            f"table {table.name!r}: where is the database? Add OPTIONS (url 'postgresql://user@host:5432/database')"
        )
    place = parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
    user, password = options.get("user", parts.username), options.get("password", parts.password)
    found = {"url": f"jdbc:postgresql://{place}{parts.path}", "dbtable": needs_path(table, given)}
    found |= {"driver": "org.postgresql.Driver"}
    return found | {name: unquote(one) for name, one in (("user", user), ("password", password)) if one}


def _loaded(
    spark: SparkSession, kind: str, schema: str, options: Mapping[str, str], path: str, files: Files
) -> DataFrame:
    """Files as a stream; where they are named, just these, once."""
    if files is None:
        return spark.readStream.format(kind).schema(schema).options(**options).load(path)
    return spark.read.format(kind).schema(schema).options(**options).load(list(files))


def _text_files(
    spark: SparkSession, stream: Stream, given: Input, limits: Mapping[str, str], files: Files = None
) -> DataFrame:
    path = needs_path(stream, given)
    options = text_options(given)
    if reserved := OURS & options.keys():
        raise DeclarationError(
            f"stream {stream.name!r}: the option {min(reserved)} is not yours to set: malformed rows are always kept, "
            f"in {MALFORMED}"
        )
    columns = stream.columns
    first = _first_file(spark, path)
    if given.format == "csv" and options["header"].lower() == "true":
        header = None if first is None else _header(spark, first, options)
        columns = stream.columns if header is None else _in_the_order_of(stream, header, str(first))
        # A file whose header names other columns stops the stream; Spark's default would read it by position. It can
        # compare names only, and not such as are none, or twice there.
        comparable = header is None or [n.lower() for n in header] == [column.name.lower() for column in columns]
        options.setdefault("enforceschema", "false" if comparable else "true")
    every = {**options, **limits, **PARSING}
    parsed = _loaded(spark, given.format, corrupt_ddl(columns), every, _streamable(path, first), files)
    return kept_aside(parsed, stream.columns, [column.name for column in columns])


def _first_file(spark: SparkSession, path: str) -> str | None:
    """The file that the stream will read first, if there is one yet."""
    try:
        listed = spark.read.format("binaryFile").load(path)
    except Exception as failure:
        # A pattern may match nothing today and a file tomorrow; a plain path must be there.
        if "[PATH_NOT_FOUND]" in str(failure) and re.search(r"[*?{\[]", path):
            return None
        raise
    # Spark has the names, as URIs; when files were written it tells in a job only, which takes longer than all else.
    files = [unquote(uri) for uri in listed.inputFiles()]
    if len(files) < 2:
        return files[0] if files else None
    if all(file.startswith(LOCAL) for file in files):
        return min(files, key=lambda file: (Path(file.removeprefix(LOCAL)).stat().st_mtime_ns // 1_000_000, file))
    first = listed.select("path", "modificationTime").orderBy("modificationTime", "path").first()
    return None if first is None else str(first.path)


def _streamable(path: str, first: str | None) -> str:
    """Spark streams folders and patterns only: one file becomes a pattern that matches it alone.

    >>> _streamable("in/a.json", "file:/x/in/a.json"), _streamable("in", "file:/x/in/a.json")
    ('in/a.jso[n]', 'in')
    """
    alone = first is not None and first.rsplit("/", 1)[-1] == path.rsplit("/", 1)[-1]
    return f"{path[:-1]}[{path[-1]}]" if alone and path[-1].isalnum() else path


def _header(spark: SparkSession, file: str, options: Mapping[str, str]) -> list[str]:
    """What the first line of a file says, as it stands there: Spark would give names to columns that have none."""
    first = spark.read.options(**{**options, "header": "false", "inferSchema": "false"}).csv(file).first()
    return [] if first is None else [name or "" for name in first]


def _in_the_order_of(stream: Stream, header: Sequence[str], file: str) -> tuple[Column, ...]:
    """The columns as a header names them: those not declared become text that nobody reads.

    >>> from eventide.plan.expressions.columns import columns
    >>> _in_the_order_of(Stream("s", columns("V INT, at TIMESTAMP"), time="at"), ["", "at", "v", "V"], "x.csv")[2:]
    (Column(name='V', type='INT'), Column(name='_c3', type='STRING'))
    """
    places = places_in_header(f"stream {stream.name!r}", stream.columns, header, file)
    declared = dict(zip(places, stream.columns, strict=True))
    found: list[Column] = []
    for place, name in enumerate(header):
        taken = {column.name.lower() for column in (*found, *stream.columns)}
        if place in declared:
            found.append(declared[place])
        else:
            found.append(Column(f"_c{place}" if not name or name.lower() in taken else name, "STRING"))
    return tuple(found)


def _files(
    spark: SparkSession, stream: Stream, given: Input, limits: Mapping[str, str], files: Files = None
) -> DataFrame:
    """Files that know their schema: they are read with it, as far as it was declared."""
    path = needs_path(stream, given)
    options = dict(given.options)
    schema = ddl(stream.columns)
    first = _first_file(spark, path)
    if first is not None:
        there = spark.read.format(given.format).options(**options).load(path)
        found = (
            matched(f"stream {stream.name!r}", stream.columns, types_of(there), path) if given.format != "text" else []
        )
        schema = ddl([Column(name, types_of(there)[name]) for name, _ in found])
    if given.format == "text":
        schema = "value STRING"
    frame = _loaded(spark, given.format, schema, {**options, **limits}, _streamable(path, first), files)
    return _one_text(stream, frame) if given.format == "text" else conforming(stream, frame, path)


def _one_text(stream: Stream, frame: DataFrame) -> DataFrame:
    """Lines of text: the one declared column is the line, whatever its name."""
    if [column.type for column in stream.columns] != ["STRING"]:
        raise DeclarationError(
            f"stream {stream.name!r} reads lines of text: declare one column, of type STRING; or read csv or json"
        )
    return frame.selectExpr(f"value AS {quoted(stream.columns[0].name)}", f"CAST(NULL AS STRING) AS {MALFORMED}")


def _replay(spark: SparkSession, stream: Stream, given: Input, limits: Mapping[str, str]) -> DataFrame:
    """The rows of a schedule that is made now."""
    # Data sources in Python are classes of PySpark's: its import can wait until one is needed.
    from eventide.sources.replay.delivery import planned
    from eventide.sources.replay.spark import register

    register(spark)
    options = {name: value for name, value in given.options if name.lower() == "partitions"}
    reader = spark.readStream.format("replay").schema(ddl(stream.columns, f"{MALFORMED} STRING"))
    return reader.options(schedule=planned(stream).path, **options, **limits).load()


def _by_name(spark: SparkSession, stream: Stream, given: Input, limits: Mapping[str, str]) -> DataFrame:
    """Whatever else Spark knows by its name: rate, socket, Kafka, a Python data source, a connector."""
    options = split_options(given)[1]
    if given.format == "kafka":
        options = _of_records(stream, options)
    reader = spark.readStream.format(given.format).options(**options, **limits)
    return records(stream, given, reader.load(given.path) if given.path else reader.load())


def _of_records(stream: Stream, options: Mapping[str, str]) -> dict[str, str]:
    """The options of a reader of Kafka: committed records alone, and headers where they are declared."""
    fixed = {"kafka.isolation.level": "read_committed"}
    if any(column.name.lower() in ("headers", "kafka_headers") for column in stream.columns):
        fixed["includeHeaders"] = "true"
    named = {name.lower() for name in options}
    return {**options, **{name: value for name, value in fixed.items() if name.lower() not in named}}
