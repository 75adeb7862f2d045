"""Text as columns on Spark, and what a record of a message queue has beside its value; what could not be read is kept.

Law: whether a row is malformed is a property of the row and of the declared columns, never of the queries that run. So
`_malformed` always asks for every declared column: Spark would otherwise skip the conversion of columns that no query
uses, and a broken value there would go unseen until a query was added. A malformed row has NULL in every other column.

>>> malformed_sql(["a"], "bad")
'CASE WHEN `bad` IS NOT NULL AND (`a` IS NOT NULL OR length(`bad`) >= 0) THEN make_valid_utf8(`bad`) END'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from eventide.errors import InputError
from eventide.plan.declared.stream import Input, Stream
from eventide.plan.expressions.columns import Column, literal, quoted, spark_type
from eventide.plan.sql.stream_rows import MALFORMED
from eventide.sources.arrow_types import matched
from eventide.sources.options import VALUES, split_options, unknown_format

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from eventide.sources.avro_values import AvroValues


# The raw text as Spark's parsers deliver it; never seen outside.
CORRUPT = "_eventide_corrupt"
PARSING = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
OURS = frozenset(name.lower() for name in PARSING)


def ddl(columns: Sequence[Column], *more: str) -> str:
    """A schema as Spark reads it."""
    return ", ".join([*(f"{quoted(column.name)} {column.type}" for column in columns), *more])


def corrupt_ddl(columns: Sequence[Column]) -> str:
    """A schema with the column in which Spark leaves what it could not parse."""
    return ddl(columns, f"{CORRUPT} STRING")


def malformed_sql(names: Sequence[str], corrupt: str = CORRUPT) -> str:
    """The text of a malformed row, else NULL; a length is never negative, but the optimizer cannot know."""
    every = " OR ".join(f"{quoted(name)} IS NOT NULL" for name in names)
    raw = quoted(corrupt)
    return f"CASE WHEN {raw} IS NOT NULL AND ({every} OR length({raw}) >= 0) THEN make_valid_utf8({raw}) END"


def kept_aside(parsed: DataFrame, columns: Sequence[Column], names: Sequence[str]) -> DataFrame:
    """From what a parser gave (`names` and the corrupt column) the declared columns and `_malformed`.

    What stands beside the text that was parsed stays also where that is malformed: it says where the row is from.
    """
    given = parsed.selectExpr("*", f"{malformed_sql(names)} AS {MALFORMED}")
    good = (
        f"CASE WHEN {MALFORMED} IS NULL THEN {quoted(c.name)} END AS {quoted(c.name)}"
        if c.name in names
        else quoted(c.name)
        for c in columns
    )
    return given.selectExpr(*good, MALFORMED)


def parsed_value(frame: DataFrame, columns: Sequence[Column], kind: str, options: Mapping[str, str]) -> DataFrame:
    """Parse the column `value` (text, or bytes of text) as JSON or CSV; whatever stands beside it stays.

    A value that is NULL or blank is malformed with an empty text. Spark pushes filters below a projection and
    evaluates it there once more: to parse every value once, the text is made to depend on the partition's number.
    """
    given = ", ".join(f"{literal(name)}, {literal(text)}" for name, text in {**options, **PARSING}.items())
    once = "if(spark_partition_id() >= 0, _eventide_text, NULL)"
    parse = f"from_{kind}({once}, {literal(corrupt_ddl(columns))}, map({given})) AS _eventide_row"
    beside = [quoted(name) for name in frame.columns if name != "value"]
    rows = frame.selectExpr(*beside, "coalesce(CAST(value AS STRING), '') AS _eventide_text").selectExpr("*", parse)
    return rows.selectExpr(
        *beside,
        *(f"_eventide_row.{quoted(column.name)} AS {quoted(column.name)}" for column in columns),
        f"if(trim(_eventide_text) = '', '', _eventide_row.{CORRUPT}) AS {CORRUPT}",
    )


def records(stream: Stream, given: Input, frame: DataFrame) -> DataFrame:
    """The declared columns of what a source gives, and `_malformed`: its own columns, or those in its value."""
    of_value, _ = split_options(given)
    own = {name.lower() for name in frame.columns}
    if given.format == "kafka" and not all(column.name.lower() in own for column in stream.columns):
        of_value.setdefault("format", "json")
    if "format" in of_value:
        return _value_parsed(stream, given, frame, of_value)
    return conforming(stream, frame, f"the source {given.format}")


def _value_parsed(stream: Stream, given: Input, frame: DataFrame, of_value: Mapping[str, str]) -> DataFrame:
    """The columns of the value, and those of the record under its format's name: `kafka_timestamp`, `kafka_topic`."""
    kind, prefix = of_value["format"], f"{given.format}_"
    if kind not in VALUES:
        raise unknown_format(f"stream {stream.name!r}", kind)
    if "value" not in frame.columns:
        raise InputError(
            f"stream {stream.name!r}: the source {given.format} has no column 'value' to parse as {kind}, only "
            f"{', '.join(frame.columns)}: leave out value.format"
        )
    named = frame.selectExpr(*(f"{quoted(n)} AS {quoted(n if n == 'value' else prefix + n)}" for n in frame.columns))
    inside = [column for column in stream.columns if not column.name.lower().startswith(prefix)]
    beside = [column for column in stream.columns if column.name.lower().startswith(prefix)]
    found = matched(f"stream {stream.name!r}", beside, types_of(named), f"a record of {given.format}")
    kept = (f"CAST({quoted(name)} AS {column.type}) AS {quoted(column.name)}" for name, column in found)
    if kind == "avro":
        from eventide.sources.avro_values import AvroValues

        values = AvroValues.of(f"stream {stream.name!r}", inside, of_value).opened()
        read = _read_in_tasks(named.selectExpr("value", *kept), inside, values)
        return read.select(*(quoted(column.name) for column in stream.columns), MALFORMED)
    parsed = parsed_value(named.selectExpr("value", *kept), inside, kind, of_value)
    return kept_aside(parsed, stream.columns, [column.name for column in inside])


def _read_in_tasks(frame: DataFrame, inside: Sequence[Column], values: AvroValues) -> DataFrame:
    """The columns of values that Spark has no parser for, by the lines that the local engine reads them with."""
    from pyspark.sql.pandas.functions import arrow_udf

    def rows(value: pa.Array) -> pa.Array:
        found = values.table(value.to_pylist()).to_struct_array()
        return pa.concat_arrays(found.chunks) if found.num_chunks else pa.array([], found.type)

    # Not deterministic, so that Spark reads every value once, whatever queries make of its columns.
    read = arrow_udf(rows, ddl(inside, f"{MALFORMED} STRING")).asNondeterministic()  # type: ignore[call-overload]
    beside = [quoted(name) for name in frame.columns if name != "value"]
    return frame.select(*beside, read("value").alias("_eventide_row")).selectExpr(*beside, "_eventide_row.*")


def types_of(frame: DataFrame) -> dict[str, str]:
    """The types of columns by their names."""
    return {field.name: spark_type(field.dataType.simpleString()) for field in frame.schema.fields}


def conforming(stream: Stream, frame: DataFrame, place: str) -> DataFrame:
    """The declared columns of a frame that has them, none of them malformed."""
    found = matched(f"stream {stream.name!r}", stream.columns, types_of(frame), place)
    chosen = (f"CAST({quoted(name)} AS {column.type}) AS {quoted(column.name)}" for name, column in found)
    return frame.selectExpr(*chosen, f"CAST(NULL AS STRING) AS {MALFORMED}")
