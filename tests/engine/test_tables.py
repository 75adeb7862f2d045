"""Tables of files and of a database, joined to a stream as they are, on both engines."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from eventide.engine.local.engine import LocalEngine
from eventide.errors import EventideError, InputError, LanguageError
from eventide.language.script import read_script
from eventide.plan.declared.evolution import Consent
from eventide.plan.declared.program import Program
from eventide.sinks.sink import Memory
from scripts.postgres_server import PostgresServer
from tests.engine.small_streams import made, put

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECOND = 1_000_000


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def session(request: pytest.FixtureRequest) -> SparkSession | None:
    """Each test on both engines: None is the local one."""
    found: SparkSession | None = request.getfixturevalue("spark") if request.param == "spark" else None
    return found


def program(folder: Path, kind: str = "LEFT JOIN", of: str = "FROM csv '{}/d.csv' REFRESH EVERY 10 seconds") -> Program:
    text = f"""
    CREATE STREAM s (t BIGINT, k STRING, v INT) FROM parquet '{folder}/in' LIMIT 1 FILES PER ROUND
    TIMESTAMP BY t DELAY 0;
    CREATE TABLE d (k STRING, name STRING) {of.format(folder)};
    CREATE QUERY named AS SELECT s.t, d.name FROM s {kind} d ON s.k = d.k EMIT IMMEDIATELY;
    """
    return read_script(text).program


def say(folder: Path, *names: str) -> None:
    (folder / "d.csv").write_text("k,name\n" + "".join(f"a,{name}\n" for name in names))


def told(sink: Memory) -> list[tuple[int, str]]:
    return sorted((row["t"], row["name"]) for row in sink.rows("named"))


def test_a_table_is_read_at_every_start_and_what_was_told_stays(session: SparkSession | None, tmp_path: Path) -> None:
    sink = Memory()

    def run(rows: int | None) -> None:
        with made(session, program(tmp_path), tmp_path / "checkpoint", {"named": sink}) as engine:

            def look(_: object) -> None:
                if rows is not None and engine.engine.streams["s"].losses.rows >= rows:
                    engine.stop()

            engine.on_round(look)
            engine.start(bounded=rows is None).await_end()

    put(tmp_path / "in", 0, [1, 2])
    say(tmp_path, "Oslo")
    run(rows=2)
    put(tmp_path / "in", 1, [3, 4])
    say(tmp_path, "Bari", "Rome")
    run(rows=None)
    assert told(sink) == [(1, "Oslo"), (2, "Oslo"), (3, "Bari"), (3, "Rome"), (4, "Bari"), (4, "Rome")]


def test_a_refresh_comes_when_its_time_has_passed_and_a_table_that_is_gone_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, sink = [100 * SECOND], Memory()
    put(tmp_path / "in", 0, [1])
    say(tmp_path, "Oslo")
    with LocalEngine(program(tmp_path), str(tmp_path / "c"), {"named": sink}, now=lambda: clock[0]) as engine:
        engine.recover()
        engine.step(bounded=True)
        say(tmp_path, "Rome")
        put(tmp_path / "in", 1, [2])
        clock[0] += 9 * SECOND
        engine.step(bounded=True)
        put(tmp_path / "in", 2, [3])
        clock[0] += 1 * SECOND
        engine.step(bounded=True)
        (tmp_path / "d.csv").unlink()
        put(tmp_path / "in", 3, [4])
        clock[0] += 10 * SECOND
        with caplog.at_level(logging.WARNING):
            engine.step(bounded=True)
    assert told(sink) == [(1, "Oslo"), (2, "Oslo"), (3, "Rome"), (4, "Rome")]
    assert "table 'd' stays as it was read last" in caplog.text


def test_a_round_that_is_run_again_sees_the_table_that_it_saw(tmp_path: Path) -> None:
    sink = Memory()
    put(tmp_path / "in", 0, [1])
    put(tmp_path / "in", 1, [2])
    say(tmp_path, "Oslo")

    def die(number: int, step: str) -> None:
        if step == "emit" and sink.queries and number == 2:
            raise SystemExit

    with LocalEngine(program(tmp_path), str(tmp_path / "c"), {"named": sink}, observer=die) as engine:
        engine.recover()
        engine.step(bounded=True)
        with pytest.raises(SystemExit):
            engine.step(bounded=True)
    assert told(sink) == [(1, "Oslo"), (2, "Oslo")]
    say(tmp_path, "Rome")
    put(tmp_path / "in", 2, [3])
    with LocalEngine(program(tmp_path), str(tmp_path / "c"), {"named": sink}) as engine:
        assert told(sink) == [(1, "Oslo")], "the round has not happened"
        engine.recover()
        engine.step(bounded=True)
    assert told(sink) == [(1, "Oslo"), (2, "Oslo"), (3, "Rome")]


def test_a_table_that_is_not_there_is_an_error_at_the_start(session: SparkSession | None, tmp_path: Path) -> None:
    put(tmp_path / "in", 0, [1])
    with pytest.raises(EventideError, match=r"d\.csv"):
        made(session, program(tmp_path), tmp_path / "checkpoint", {"named": Memory()}).start(bounded=True).await_end()


def test_a_new_query_over_a_table_reads_the_past_of_its_stream(tmp_path: Path) -> None:
    sink = Memory()
    put(tmp_path / "in", 0, [1, 2])
    say(tmp_path, "Oslo")
    whole = program(tmp_path, "JOIN")
    first = Program((whole.streams[0],))
    with LocalEngine(first, str(tmp_path / "c")) as engine:
        engine.recover()
        engine.step(bounded=True)
    consent = Consent(backfill=("named",))
    with LocalEngine(whole, str(tmp_path / "c"), {"named": sink}, consent=consent) as engine:
        engine.run(bounded=True)
    assert told(sink) == [(1, "Oslo"), (2, "Oslo")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT k, count(*) AS n FROM d [RANGE 10] GROUP BY k", "'d' is a table, and a query reads a stream"),
        ("SELECT s.v FROM d JOIN s ON s.k = d.k", "'d' is a table, and stands on the left"),
        ("SELECT s.v FROM s FULL JOIN d ON s.k = d.k", "a join with a table is an inner or a LEFT join"),
        ("SELECT s.v FROM s JOIN d ON s.v > 3", "has no equal keys, so nothing says whose rows are meant"),
        ("SELECT s.v FROM s LEFT JOIN d ON s.k = d.k AND s.v > d.w", "equal keys and no other condition"),
        ("SELECT s.v FROM s JOIN d FOR SYSTEM_TIME AS OF s.t ON s.k = d.k", "'d' is a table without versions"),
    ],
)
def test_what_a_table_cannot_do_is_told_at_its_place(text: str, said: str) -> None:
    declared = """CREATE STREAM s (t BIGINT, k STRING, v INT) FROM csv 'in';
    CREATE TABLE d (k STRING, w INT) FROM csv 'd.csv';
    """
    with pytest.raises(LanguageError, match=said):
        read_script(declared + text)


@pytest.mark.parametrize(
    ("clauses", "said"),
    [
        ("FROM kafka 'd'", "a table comes from parquet, csv, json, orc, delta or postgres"),
        ("", "a table comes from"),
        ("FROM csv 'd.csv' REFRESH EVERY 0 seconds", "this would read the table all the time"),
        ("FROM csv 'd.csv' DELAY 5", "expected FROM, OPTIONS, FORMAT, REFRESH EVERY or the end"),
    ],
)
def test_a_declaration_that_makes_no_table_is_refused(clauses: str, said: str) -> None:
    with pytest.raises(LanguageError, match=said):
        read_script(f"CREATE TABLE d (k STRING, w INT) {clauses}")


def test_a_table_of_a_database_is_joined_with_the_types_that_were_declared(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    sink = Memory()
    put(tmp_path / "in", 0, [1, 2])
    with psycopg.connect(postgres_server.url) as connection:
        connection.execute("DROP TABLE IF EXISTS names")
        connection.execute("CREATE TABLE names (k text, name text, unread int)")
        connection.execute("INSERT INTO names VALUES ('a', 'Oslo', 1), ('a', NULL, 2)")
    of = f"FROM postgres 'public.names' OPTIONS (url '{postgres_server.url}')"
    with LocalEngine(program(tmp_path, "JOIN", of), str(tmp_path / "c"), {"named": sink}) as engine:
        engine.run(bounded=True)
    rows = sorted((row["t"], row["name"] or "") for row in sink.rows("named"))
    assert rows == [(1, ""), (1, "Oslo"), (2, ""), (2, "Oslo")]
    with pytest.raises(InputError, match="table 'd': nowhere cannot be read from PostgreSQL"):
        LocalEngine(
            program(tmp_path, "JOIN", of.replace("public.names", "nowhere")), str(tmp_path / "d"), {"named": sink}
        ).run(bounded=True)


def test_a_delta_table_is_joined_as_it_is_now_also_after_rows_were_changed(tmp_path: Path) -> None:
    put(tmp_path / "in", 0, [1])
    place = tmp_path / "d"
    write_deltalake(place, pa.table({"k": ["a", "b"], "name": ["Oslo", "Rome"], "more": [1, 2]}))
    for number, name in enumerate(("Oslo", "Bari")):
        sink = Memory()
        declared = program(tmp_path, of="FROM delta '{}/d'")
        with made(None, declared, tmp_path / str(number), {"named": sink}) as engine:
            engine.start(bounded=True).await_end()
        assert told(sink) == [(1, name)]
        DeltaTable(place).update(updates={"name": "'Bari'"}, predicate="k = 'a'")
    with made(None, program(tmp_path, of="FROM delta '{}/none'"), tmp_path / "other", {"named": sink}) as engine:
        engine.start(bounded=True)
        with pytest.raises(InputError, match="there is no Delta table at"):
            engine.await_end()
