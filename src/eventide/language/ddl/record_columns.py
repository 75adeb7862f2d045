"""What CREATE STREAM says of the records that rows come in: columns beside the declared ones, sources, arrival.

*Kafka.* Law: a stream has those columns of a record that it declares or a clause names. If it has an event time of its
own that the clock follows, its rows arrive at the times of their records, unless ARRIVAL BY names something else.

*Change data* has the columns of a table, and what each change has beside them. A table that is asked for changes has a
column that grows with each of them, and perhaps one that flags rows which are deleted.

>>> columns_of_changes((("path", "in"),), {}, (), SourceText(""))
()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from eventide.errors import DeclarationError
from eventide.language.grammar.nodes import Clause
from eventide.language.grammar.source_text import SourceText
from eventide.plan.declared.captured import captured_by
from eventide.plan.declared.stream import CHANGED_AT, ENVELOPE, REMOVED, TimeKind, kind_of
from eventide.plan.expressions.columns import Column

OF_RECORDS = {
    "kafka_topic": "STRING",
    "kafka_partition": "INT",
    "kafka_offset": "BIGINT",
    "kafka_timestamp": "TIMESTAMP",
    "kafka_key": "BINARY",
}
"""What every record of Kafka has beside its value; whoever names one in a clause need not declare it."""

NOTED = Column("kafka_timestamp", "TIMESTAMP")
"""When Kafka got a record, or its producer wrote it."""

RAW = frozenset(name.removeprefix("kafka_") for name in OF_RECORDS) | {"value", "headers"}
"""A stream that declares nothing else has the record itself as its row."""

NAMING = ("TIMESTAMP BY", "ARRIVAL BY", "SOURCE BY")
"""Clauses that name columns."""


def columns_of_records(
    columns: tuple[Column, ...], clauses: dict[str, Clause]
) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """The columns, with those of Kafka that clauses name; and the sources where these are its partitions."""
    origin = clauses.get("FROM") or clauses.get("USING")
    if origin is None or origin.expressions[0].name.lower() != "kafka":
        return columns, ()
    declared = {column.name.lower() for column in columns}
    sources = [part.name.lower() for part in clauses["SOURCE BY"].expressions] if "SOURCE BY" in clauses else []
    by_partition = sources == ["partition"] and "partition" not in declared
    topics = origin.expressions[-1].name
    several = "," in topics or topics.startswith("^") or clauses.get("USING") is origin
    partitions = (("kafka_topic",) if several else ()) + ("kafka_partition",) if by_partition else ()
    named = [part.name.lower() for words in NAMING if words in clauses for part in clauses[words].expressions]
    added = [name for name in dict.fromkeys((*named, *partitions)) if name in OF_RECORDS and name not in declared]
    return (*columns, *(Column(name, OF_RECORDS[name]) for name in added)), partitions


def arrives_by_record(clauses: dict[str, Clause], columns: tuple[Column, ...], time: Column | None) -> bool:
    """Whether rows have a time of their own, and beside it that of their record, which is when they arrived."""
    origin = clauses.get("FROM")
    if origin is None or origin.expressions[0].name.lower() != "kafka" or time is None:
        return False
    own = {column.name.lower(): column.type for column in columns}
    is_value = not own.keys() <= RAW
    is_other = time.name.lower() != NOTED.name and kind_of(time) is not TimeKind.SEQUENCE
    return is_value and is_other and own.get(NOTED.name, NOTED.type) == NOTED.type


def options_of_topics(topics: str, options: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The options by which Spark knows topics, or a pattern of their names, which begins with ^; from the beginning on.

    >>> options_of_topics("cars", [("servers", "localhost:9092")])[:2]
    [('subscribe', 'cars'), ('kafka.bootstrap.servers', 'localhost:9092')]
    """
    own = {"servers": "kafka.bootstrap.servers", "starting": "startingOffsets"}
    named = [(own.get(name.lower(), name), value) for name, value in options]
    known = {name.lower() for name, _ in named}
    named += [] if "startingoffsets" in known else [("startingOffsets", "earliest")]
    return [("subscribePattern" if topics.startswith("^") else "subscribe", topics), *named]


CHANGES = "debezium"
WITH_CHANGES = ("json", "kafka")


def columns_of_changes(
    options: Sequence[tuple[str, str]], clauses: Mapping[str, Clause], columns: Iterable[Column], source: SourceText
) -> tuple[Column, ...]:
    """The columns that change data has beside those of its table, the time first; none for other streams."""
    envelope = next((value for name, value in options if name.lower() == ENVELOPE), None)
    if envelope is None:
        return ()
    if envelope.lower() != CHANGES:
        raise source.error(f"there is no envelope {envelope!r}", clauses["OPTIONS"], f"write envelope '{CHANGES}'")
    origin = clauses.get("FROM") or clauses.get("USING")
    if origin is not None and origin.expressions[0].name.lower() not in WITH_CHANGES:
        raise source.error(
            "messages of change data come from Kafka or from files of JSON", origin, "write FROM kafka, or FROM json"
        )
    if any(name.lower() == "value.format" and value.lower() != "json" for name, value in options):
        raise source.error("messages of change data are JSON", clauses["OPTIONS"], "leave value.format out")
    for column in columns:
        if column.name.lower() in (CHANGED_AT, REMOVED):
            raise source.error(f"a change has a column {column.name!r} of its own", clauses["OPTIONS"], "leave it out")
    return Column(CHANGED_AT, "TIMESTAMP"), Column(REMOVED, "BOOLEAN")


def columns_of_versions(
    options: Sequence[tuple[str, str]], clauses: Mapping[str, Clause], columns: Iterable[Column], source: SourceText
) -> tuple[Column | None, Column | None]:
    """Of a table that is asked for changes: its version, which is its time, too, and the flag of deleted rows."""
    origin = clauses.get("FROM") or clauses.get("USING")
    if origin is None or origin.expressions[0].name.lower() != "postgres":
        return None, None
    if not any(name.lower() == "version" for name, _ in options):
        raise source.error(
            "a table of PostgreSQL is no stream by itself",
            origin,
            "add OPTIONS (version 'updated_at') for a column that grows with every change, or write CREATE TABLE",
        )
    try:
        captured = captured_by(options)
    except DeclarationError as error:
        raise source.error(str(error), clauses["OPTIONS"]) from error
    declared = {column.name.lower(): column for column in columns}
    version, deleted = declared.get(captured.version.lower()), declared.get((captured.deleted or "").lower())
    for what, name, column in (("version", captured.version, version), ("deleted", captured.deleted, deleted)):
        if name is not None and column is None:
            raise source.error(f"the {what} column {name!r} is not declared", clauses["OPTIONS"])
    if version is not None and kind_of(version) not in (TimeKind.TIMESTAMP, TimeKind.SEQUENCE):
        raise source.error(
            f"the version {version.name!r} is {version.type}, and must be TIMESTAMP or a whole number",
            clauses["OPTIONS"],
        )
    if version is not None and captured.settle and kind_of(version) is not TimeKind.TIMESTAMP:
        raise source.error("only versions that are times settle", clauses["OPTIONS"], "leave settle out")
    if deleted is not None and deleted.type != "BOOLEAN":
        raise source.error(
            f"{deleted.name!r} is {deleted.type}, and what flags deleted rows is BOOLEAN", clauses["OPTIONS"]
        )
    return version, deleted
