"""Scripts of the pages (`sql` blocks) run on the local engine, over rows that are made up, and every query has results.

A block that declares no stream goes on from what its page has declared before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from eventide.avro.registry import Registry
from eventide.eventtime.heartbeat import layers
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.language.script import Script, read_script
from eventide.plan.declared.stream import Stream
from eventide.plan.sql.stream_rows import MALFORMED
from eventide.sinks.values import Avro
from eventide.sources.kafka_records import values_of
from eventide.storage.iceberg import table_at
from scripts.kafka_reader import committed_records
from tests.commands.processes import Here
from tests.docs.blocks import Block, tagged
from tests.docs.made_rows import rows_of, write_rows
from tests.sources.kafka_topics import new_topic, send
from tests.sources.schema_registry import SchemaRegistry, schema_registry

STREAMS = {
    "docs/language.md": "CREATE STREAM traffic (ts TIMESTAMP, detector STRING, speed INT) FROM json 'incoming';\n",
    "docs/prods.md": "CREATE STREAM traffic (ts TIMESTAMP, detector STRING, volume INT) FROM json 'incoming';\n",
}
"""What the blocks of a page read that declare no stream."""

POSTGRES = "postgresql://eventide@localhost:5432/reports"
"""Where the pages say that a database is; the tests have a real one elsewhere."""

KAFKA = "localhost:9092"
"""The same for a broker."""

REGISTRY = "http://localhost:8081"
"""The same for a registry of schemas."""

FUNCTIONS = {
    "functions.py": "def foundIn(word: str, text: str) -> bool:\n    return word[-1] == text[-1]\n",
    "mine.py": "def distance(early: str, final: str) -> float:\n    return float(early != final)\n",
}
"""Files with functions that a block may name."""


def script_of(block: Block) -> str:
    """The block with the streams it reads, and with a query where it has none."""
    text = block.text if "CREATE STREAM" in block.text else STREAMS[block.page] + block.text
    read = read_script(text)
    if read.program.steps:
        return text
    return text + "".join(f"SELECT count(*) FROM {stream.name} [RANGE 1 minute];\n" for stream in read.program.streams)


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with schema_registry() as server:
        yield server


def told_by(script: Script, printed: list[dict[str, object]], folder: Path) -> dict[str, int]:
    """How many results each query has told, wherever they went."""
    found = {}
    for output in script.outputs:
        if output.kind == "postgres":
            found[output.query] = rows_in(dict(output.options)["url"], str(output.path))
            continue
        if output.kind == "kafka":
            found[output.query] = len(committed_records(dict(output.options)["servers"], str(output.path)))
            continue
        if output.kind == "iceberg":
            table = table_at(str(output.path), dict(output.options) | {"warehouse": str(folder / "lake")})
            found[output.query] = 0 if table is None else table.scan().count()
            continue
        files = list((folder / output.path).iterdir()) if output.path is not None else []
        found[output.query] = len(files) or sum(row["query"] == output.query for row in printed)
    return found


def write_records(stream: Stream) -> None:
    """The rows of a stream in a topic that is made."""
    assert stream.input is not None
    options = dict(stream.input.options)
    servers, topic = options["kafka.bootstrap.servers"], options["subscribe"]
    new_topic(servers, name=topic)
    columns = [column for column in stream.columns if not column.name.startswith("kafka_")]
    inside = replace(stream, columns=tuple(columns), source=(), arrival=None)
    values: list[bytes] = [json.dumps(row).encode() for row in rows_of(inside)]
    if options.get("value.format") == "avro":
        rows = values_of(topic, columns, {"format": "json"}).table(values).drop_columns([MALFORMED])
        values = Avro(topic, Registry(options["value.registry"])).writer(rows.schema)(rows)
    send(servers, topic, values)


def write_table(stream: Stream) -> None:
    """The rows of a stream in a table of a database, which is made."""
    assert stream.input is not None
    kinds = {"STRING": "text", "INT": "int", "TIMESTAMP": "timestamptz", "BOOLEAN": "boolean"}
    columns = ", ".join(f"{column.name} {kinds[column.type]}" for column in stream.columns)
    values = ", ".join(f"%({column.name})s" for column in stream.columns)
    with psycopg.connect(dict(stream.input.options)["url"]) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {stream.input.path}; CREATE TABLE {stream.input.path} ({columns})")
        connection.cursor().executemany(f"INSERT INTO {stream.input.path} VALUES ({values})", list(rows_of(stream)))


def write_recording(stream: Stream, folder: Path) -> None:
    """What the policy of a stream is to learn from: rows of the same kind."""
    for layer in layers(stream.policy):
        if isinstance(layer, DropRatio) and layer.learned is not None:
            lines = "".join(json.dumps(row) + "\n" for row in rows_of(stream))
            (folder / layer.learned.origin).write_text(lines, encoding="utf-8")


def rows_in(url: str, table: str) -> int:
    """How many rows a table has, which go."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            f"WITH gone AS (DELETE FROM {table} RETURNING 1) SELECT count(*) FROM gone"
        ).fetchall()
    return int(found[0][0])


def blocks() -> list[Any]:
    """All of them; a broker takes seconds to start."""
    slow = pytest.mark.slow
    return [pytest.param(one, marks=[slow] if KAFKA in one.text else [], id=str(one)) for one in tagged("sql")]


@pytest.mark.parametrize("block", blocks())
def test_a_script_runs_and_every_query_of_it_has_results(
    block: Block, here: Here, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    text = script_of(block)
    if KAFKA in text:
        text = text.replace(KAFKA, request.getfixturevalue("kafka_server").servers)
    if REGISTRY in text:
        text = text.replace(REGISTRY, request.getfixturevalue("registry").url)
    if POSTGRES in text:
        text = text.replace(POSTGRES, request.getfixturevalue("postgres_server").url)
    script = read_script(text, block.page)
    (tmp_path / "script.sql").write_text(text, encoding="utf-8")
    for name, code in FUNCTIONS.items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    for number, stream in enumerate(script.program.streams):
        write_recording(stream, tmp_path)
        if stream.input is not None and stream.input.format == "kafka":
            write_records(stream)
        elif stream.is_captured:
            write_table(stream)
        else:
            write_rows(stream, tmp_path, number)
    for output in script.outputs:
        if output.kind == "kafka":
            new_topic(dict(output.options)["servers"], name=str(output.path))
    ran = here("run", "script.sql", "--engine", "local", "--bounded", "--json")
    assert ran.code == 0, ran.err
    told = told_by(script, ran.rows, tmp_path)
    assert all(told.values()), (told, ran.err)
    assert told or "found reads found_queue" in ran.err, "what is dropped in the end was asked about before"
    assert " rejected: " not in ran.err
    assert " came too late" not in ran.err
