"""A table of PostgreSQL that is asked for changes: versions that a lookup finds, deletes included, on both engines."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from eventide.engine.local.engine import LocalEngine
from eventide.engine.running import Running
from eventide.errors import InputError, LanguageError
from eventide.language.script import read_script
from eventide.plan.declared.program import Program
from eventide.sinks.sink import Memory
from eventide.sources.captured import CapturedInput
from eventide.storage.storage import Storage
from scripts.postgres_server import PostgresServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = [(5, "tea", 10), (7, "tea", 10), (7, "salt", 4), (8, "salt", 4), (9, "sand", 1)]


@pytest.fixture
def url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database with prices."""
    with psycopg.connect(postgres_server.url) as connection:
        connection.execute("CREATE TABLE prices (id text PRIMARY KEY, price int, changed timestamptz, gone boolean)")
    yield postgres_server.url
    with psycopg.connect(postgres_server.url) as connection:
        connection.execute("DROP TABLE prices")


def change(url: str, id: str, price: int | None, second: int, gone: bool = False) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO prices VALUES (%s, %s, to_timestamp(%s), %s) ON CONFLICT (id) DO UPDATE SET price ="
            " excluded.price, changed = excluded.changed, gone = excluded.gone",
            [id, price, second, gone],
        )


def program(folder: Path, url: str) -> Program:
    (folder / "orders").mkdir(exist_ok=True)
    lines = [json.dumps({"ts": f"1970-01-01 00:00:0{t}", "id": id, "n": n}) for t, id, n in ORDERS]
    (folder / "orders" / "a.json").write_text("\n".join(lines) + "\n")
    return read_script(f"""
        CREATE STREAM prices (id STRING, price INT, changed TIMESTAMP, gone BOOLEAN) FROM postgres 'prices'
            OPTIONS (url '{url}', version 'changed', deleted 'gone', poll '50 ms') DELAY 0;
        CREATE STREAM orders (ts TIMESTAMP, id STRING, n INT) FROM json '{folder}/orders' DELAY 0;
        CREATE QUERY priced AS SELECT o.ts, o.id, n * price AS total
        FROM orders AS o LEFT JOIN prices FOR SYSTEM_TIME AS OF o.ts AS p ON o.id = p.id;
    """).program


def engine_of(session: SparkSession | None, program: Program, state: Path, sink: Memory) -> Running:
    if session is None:
        return LocalEngine(program, str(state), {"priced": sink})
    from eventide.engine.spark.engine import SparkEngine

    return SparkEngine(session, program, str(state), {"priced": sink}, tick=0.1)


def priced(sink: Memory) -> list[tuple[Any, ...]]:
    return sorted(((row["ts"].second, row["id"], row["total"]) for row in sink.rows("priced")), key=repr)


@pytest.fixture(params=["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.slow])])
def session(request: pytest.FixtureRequest) -> SparkSession | None:
    """Each test on both engines: None is the local one."""
    found: SparkSession | None = request.getfixturevalue("spark") if request.param == "spark" else None
    return found


def test_a_lookup_finds_the_version_of_its_time_and_none_of_a_deleted_row(
    session: SparkSession | None, tmp_path: Path, url: str
) -> None:
    change(url, "tea", 2, 1)
    change(url, "salt", 1, 1)
    sink, seen = Memory(), threading.Event()
    engine = engine_of(session, program(tmp_path, url), tmp_path / "state", sink)

    def rows_seen() -> bool:
        return engine.engine.streams["prices"].losses.rows >= 2

    engine.on_round(lambda _: seen.set() if rows_seen() else None)
    engine.start()
    assert seen.wait(120), "the first versions were not found"
    change(url, "tea", 3, 7)
    change(url, "salt", None, 8, gone=True)
    engine.stop()
    engine_of(session, program(tmp_path, url), tmp_path / "state", sink).start(bounded=True).await_end()
    assert priced(sink) == [(5, "tea", 20), (7, "salt", 4), (7, "tea", 30), (8, "salt", None), (9, "sand", None)]


def test_rows_that_were_read_come_again_although_the_table_has_others_now(tmp_path: Path, url: str) -> None:
    stream, storage = program(tmp_path, url).stream("prices"), Storage.at(tmp_path / "state")
    for id in ("tea", "salt", "sand"):
        change(url, id, 1, 1)
    given = CapturedInput(stream, storage)
    given.portion()
    position = given.position()
    taken, portion = given.take(2, 0.0), given.portion()
    change(url, "tea", 9, 2)
    again = CapturedInput(stream, storage)
    again.seek(position)
    rows, exact = again.repeat(portion)
    assert exact
    assert rows == taken
    rest = [again.take(9, 1.0), again.take(9, 1.0)]
    found = sorted((row["id"], row["price"]) for table in rest if table is not None for row in table.to_pylist())
    assert ("tea", 9) in found
    assert len(found) == 2, "what was captured before the restart is not captured again"


def test_rows_that_are_not_settled_wait_and_those_without_a_version_are_not_found(tmp_path: Path, url: str) -> None:
    stream = program(tmp_path, url).stream("prices")
    assert stream.input is not None
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO prices VALUES ('old', 1, now() - interval '1 hour'), ('new', 1, now()), ('x', 1, NULL)"
        )
    settled = replace(stream, input=replace(stream.input, options=(*stream.input.options, ("settle", "10 minutes"))))
    found = CapturedInput(settled, Storage.at(tmp_path / "state")).take(9, 0.0)
    assert found is not None
    assert found.column("id").to_pylist() == ["old"]


def test_a_database_that_is_not_there_at_the_start_is_an_error_without_the_password(tmp_path: Path) -> None:
    stream = program(tmp_path, "postgresql://eve:hunter2@127.0.0.1:9/shop").stream("prices")
    with pytest.raises(InputError, match="'prices': prices cannot be read from PostgreSQL") as told:
        CapturedInput(stream, Storage.at(tmp_path / "state")).take(1, 0.0)
    assert "hunter2" not in str(told.value)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("url 'u'", "a table of PostgreSQL is no stream by itself"),
        ("url 'u', version 'changd'", "the version column 'changd' is not declared"),
        ("url 'u', version 'id'", "the version 'id' is STRING, and must be TIMESTAMP or a whole number"),
        ("url 'u', version 'changed', poll 'soon'", "poll 'soon' is no length of time"),
        ("url 'u', version 'changed', polls '5 s'", "has no option 'polls'"),
        ("url 'u', version 'price', settle '5 s'", "only versions that are times settle"),
        ("url 'u', version 'changed', deleted 'price'", "what flags deleted rows is BOOLEAN"),
    ],
)
def test_what_cannot_be_asked_for_changes_is_told(options: str, told: str) -> None:
    with pytest.raises(LanguageError, match=told):
        read_script(
            "CREATE STREAM prices (id STRING, price INT, changed TIMESTAMP) FROM postgres 'prices' "
            f"OPTIONS ({options}) DELAY 0;"
        )
