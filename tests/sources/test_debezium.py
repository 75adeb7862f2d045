"""Change data in Debezium's messages: rows of a table, and versions that a lookup finds, deletes included."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eventide.engine.local.engine import LocalEngine
from eventide.errors import LanguageError
from eventide.language.script import read_script
from eventide.plan.declared.program import Program
from eventide.sinks.sink import Memory
from eventide.sources.local_input import open_input
from tests.engine.small_streams import made
from tests.sources.input_contract import continues_from_every_position

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEA, DEAR, SALT = ({"id": "tea", "price": 2}, {"id": "tea", "price": 3}, {"id": "salt", "price": 1})
MESSAGES: list[dict[str, Any]] = [
    {"before": None, "after": TEA, "op": "r", "ts_ms": 9_999, "source": {"ts_ms": 0}},
    {
        "schema": {"type": "struct"},
        "payload": {"before": None, "after": SALT, "op": "c", "ts_ms": 1_000, "source": None},
    },
    {"before": TEA, "after": DEAR, "op": "u", "ts_ms": 9_999, "source": {"ts_ms": 7_000, "db": "shop"}},
    {"before": {"id": "salt", "price": None}, "after": None, "op": "d", "ts_ms": 8_000},
]
ORDERS = [(5, "tea", 10), (7, "tea", 10), (7, "salt", 4), (8, "salt", 4), (9, "sand", 1)]


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def session(request: pytest.FixtureRequest) -> SparkSession | None:
    """Each test on both engines: None is the local one."""
    found: SparkSession | None = request.getfixturevalue("spark") if request.param == "spark" else None
    return found


def program(folder: Path) -> Program:
    for name, lines in (
        ("changes", [json.dumps(message) for message in MESSAGES]),
        ("orders", [json.dumps({"ts": f"1970-01-01 00:00:0{t}", "id": id, "n": n}) for t, id, n in ORDERS]),
    ):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "a.json").write_text("\n".join(lines) + "\n")
    return read_script(f"""
        CREATE STREAM prices (id STRING, price INT) FROM json '{folder}/changes' OPTIONS (envelope 'debezium') DELAY 0;
        CREATE STREAM orders (ts TIMESTAMP, id STRING, n INT) FROM json '{folder}/orders' DELAY 0;
        CREATE QUERY priced AS SELECT o.ts, o.id, n * price AS total
        FROM orders AS o LEFT JOIN prices FOR SYSTEM_TIME AS OF o.ts AS p ON o.id = p.id;
    """).program


def test_a_change_is_a_row_with_its_time_and_whether_it_ends_the_row(tmp_path: Path) -> None:
    stream = program(tmp_path).stream("prices")
    assert (stream.time, stream.removed) == ("changed_at", "removed")
    for max_rows in (1, 3, 100):
        rows = continues_from_every_position(lambda: open_input(stream), max_rows)
        told = [(row["id"], row["price"], row["changed_at"], row["removed"]) for row in rows]
        assert told == [
            ("tea", 2, datetime.fromtimestamp(0, UTC), False),
            ("salt", 1, datetime.fromtimestamp(1, UTC), False),
            ("tea", 3, datetime.fromtimestamp(7, UTC), False),
            ("salt", None, datetime.fromtimestamp(8, UTC), True),
        ]


def test_a_lookup_finds_the_version_of_its_time_and_none_of_what_was_deleted(
    session: SparkSession | None, tmp_path: Path
) -> None:
    sink = Memory()
    made(session, program(tmp_path), tmp_path / "checkpoint", {"priced": sink}).start(bounded=True).await_end()
    found = sorted((row["ts"].second, row["id"], row["total"]) for row in sink.rows("priced"))
    assert found == [(5, "tea", 20), (7, "salt", 4), (7, "tea", 30), (8, "salt", None), (9, "sand", None)]


def test_a_message_that_cannot_be_read_is_rejected_and_a_tombstone_is_left_out(tmp_path: Path) -> None:
    declared = program(tmp_path)
    with (tmp_path / "changes" / "a.json").open("a") as file:
        file.write("{broken\n\n")
    with LocalEngine(declared, str(tmp_path / "c"), {"priced": Memory()}) as engine:
        engine.run(bounded=True)
        losses = engine.engine.streams["prices"].losses
    assert (losses.rows, losses.rejected) == (5, 1)


def test_messages_in_other_files_are_refused() -> None:
    with pytest.raises(LanguageError, match="messages of change data come from Kafka or from files of JSON"):
        read_script("CREATE STREAM s (id STRING) FROM parquet 'in' OPTIONS (envelope 'debezium')")


@pytest.mark.parametrize(
    ("columns", "envelope", "said"),
    [
        ("id STRING", "maxwell", "there is no envelope 'maxwell'"),
        ("id STRING, removed INT", "debezium", "a change has a column 'removed' of its own"),
        ("id STRING", "debezium', value.format 'avro", "messages of change data are JSON"),
    ],
)
def test_what_is_no_change_data_is_refused(columns: str, envelope: str, said: str) -> None:
    with pytest.raises(LanguageError, match=said):
        read_script(f"CREATE STREAM s ({columns}) FROM json 'in' OPTIONS (envelope '{envelope}')")
