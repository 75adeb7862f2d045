"""What status, why and explain say of where state is and how large: what is true, in each place."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from eventide.commands.why import state_words, states_of
from eventide.engine.introspection.status import Status
from eventide.engine.local.backend import LocalBackend
from eventide.engine.operators.placement import DRIVER_MEMORY
from eventide.engine.round.engine import Engine
from eventide.language.script import read_script
from eventide.report.explain import plan_of
from eventide.report.status import status_line
from eventide.report.stopped_run import read_progress
from tests.engine.cluster_here import ClusterHere

SCRIPT = """
CREATE STREAM s (t BIGINT, k STRING, v INT) FROM csv 's' TIMESTAMP BY t DELAY 30;
CREATE QUERY sums AS SELECT k, sum(v) AS total FROM s [RANGE 10] GROUP BY k;
CREATE QUERY most AS SELECT max(total) AS most FROM sums [RANGE 1000];
CREATE QUERY lasting AS SELECT t, k FROM s UNION ALL SELECT t, k FROM s ORDER BY t;
"""
PLACES = {"local": None, "default": DRIVER_MEMORY, "nothing stays": 0, "little stays": 100}


def engine(folder: Path, memory: int | None) -> Engine:
    program = read_script(SCRIPT).program
    if memory is None:
        return Engine(program, LocalBackend(), str(folder))
    return Engine(program, ClusterHere(), str(folder), driver_memory=memory)


def rows(first: int, count: int) -> dict[str, pa.Table]:
    times = pa.array(range(first, first + count), pa.int64())
    return {"s": pa.table({"t": times, "k": ["k"] * count, "v": pa.array([1] * count, pa.int32())})}


def check_sizes(running: Engine, status: Status, folder: Path) -> None:
    for query in status.queries:
        parts = [part for kind in running.state.operators[query.name].state.values() for part in kind.parts]
        assert query.state_rows == sum(part.rows for part in parts)
        tables = [part.table for part in parts if part.table is not None]
        if query.placement == "cluster":
            assert not tables, "no copy of it is with the driver"
            files = [folder / file.name for part in parts for file in part.files]
            assert query.state_bytes == sum(file.stat().st_size for file in files)
        else:
            assert len(tables) == len(parts)
            assert query.state_bytes == sum(table.nbytes for table in tables)


@pytest.mark.parametrize("place", PLACES)
def test_the_status_says_where_state_is_and_how_large(place: str, tmp_path: Path) -> None:
    memory = PLACES[place]
    running = engine(tmp_path, memory)
    before = {query.name: query.placement for query in running.status().queries}
    assert set(before.values()) == {"cluster" if memory == 0 else "driver"}, "also while nothing is kept"
    for round in range(3):
        running.round(rows(100 * round, 100), clock=round)
        check_sizes(running, running.status(), tmp_path)
    status = running.status()
    found = {query.name: query.placement for query in status.queries}
    expected = {"local": {"driver"}, "default": {"driver"}, "nothing stays": {"cluster"}}
    assert set(found.values()) == expected.get(place, {"cluster", "driver"})
    if memory:
        assert sum(query.state_bytes for query in status.queries if query.placement == "driver") <= memory
    assert ("on the cluster" in status_line(status)) == ("cluster" in found.values())
    # What is in the record, for those who ask while no engine runs.
    standing = read_progress(read_script(SCRIPT).program, str(tmp_path), "most")
    words = {state["name"]: state_words(**state) for state in states_of(standing, "most")}
    assert set(words) == {"sums", "most"}
    by_name = {query.name: query for query in status.queries}
    for name, said in words.items():
        one = by_name[name]
        assert said == state_words(name, one.placement, one.state_rows, one.state_bytes)
        assert said.endswith("on the cluster" if one.placement == "cluster" else "with the driver")
    running.close()
    again = engine(tmp_path, memory)
    check_sizes(again, again.status(), tmp_path)
    after = {query.name: (query.placement, query.state_rows) for query in again.status().queries}
    assert after == {query.name: (query.placement, query.state_rows) for query in status.queries}
    again.close()


def test_the_plan_says_where_windows_close() -> None:
    said = {
        "": ("up to 256 MiB of state stay with the driver", "the driver, in DuckDB; as a Spark job over Parquet where"),
        "SET driver.memory = 0;": ("nothing stays with the driver", "the cluster, as a Spark job over Parquet"),
        "SET engine = local;": ("all state is with this process", "this machine, in DuckDB"),
    }
    for setting, (memory, closing) in said.items():
        plan = plan_of(read_script(setting + SCRIPT))
        assert plan["driver_memory"]["words"].startswith(memory)
        assert all(query["merge"]["place"].startswith(closing) for query in plan["queries"])
