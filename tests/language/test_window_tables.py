"""Windows that grow, windows as functions in FROM, and the edges of windows in a SELECT."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eventide.api.stream import stream
from eventide.errors import DeclarationError, LanguageError
from eventide.language.script import read_script
from eventide.plan.declared.window import GrowingWindow, SessionWindow, Window

STREAM = "CREATE STREAM s (ts TIMESTAMP, k STRING, n INT) TIMESTAMP BY ts;\n"
MINUTE = 60_000_000

MEANT = {
    "FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '5' MINUTES))": Window(5 * MINUTE),
    "FROM tumble(s, ts, INTERVAL '5 minutes') AS t": Window(5 * MINUTE),
    "FROM hop(s, ts, INTERVAL '1' MINUTE, INTERVAL '5' MINUTES)": Window(5 * MINUTE, MINUTE),
    "FROM TABLE(CUMULATE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '5' MINUTES))": GrowingWindow(
        5 * MINUTE, MINUTE
    ),
    "FROM s [RANGE 5 minutes STEP 1 minute OFFSET 1 minute]": GrowingWindow(5 * MINUTE, MINUTE, MINUTE),
    "FROM TABLE(SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' MINUTES))": SessionWindow(5 * MINUTE),
}


@pytest.mark.parametrize("written", MEANT)
def test_a_function_in_from_is_a_window_behind_its_stream(written: str) -> None:
    sql = f"{STREAM}SELECT window_start, window_end, k, count(*) AS c {written} GROUP BY k, window_start, window_end"
    [query] = read_script(sql).program.queries
    assert (query.window, [group.name for group in query.groups]) == (MEANT[written], ["k"])


REFUSED = {
    "FROM s [RANGE 5 minutes STEP 2 minutes]": "give a STEP that divides RANGE",
    "FROM s [RANGE 5 minutes STEP 0 minutes]": "STEP 0 minutes is no length",
    "FROM s [RANGE 5 minutes STEP 1 minute SLIDE 1 minute]": "slides or grows",
    "FROM s [STEP 1 minute]": "STEP without RANGE",
    "FROM s [RANGE 5 ROWS STEP 1 ROW]": "STEP does not go with a window over a count of rows",
    "FROM s [RANGE 5 minutes STEP 1 minute EMPTY WINDOWS]": "drop EMPTY WINDOWS",
    "FROM s [RANGE 5 minutes PARTITION BY k]": "PARTITION BY is for sessions",
    "FROM s [RANGE 5 ROWS PARTITION BY k]": "PARTITION BY names others",
    "FROM s [RANGE 5 ROWS PARTITION BY k OFFSET 1] GROUP BY k": "a RANGE and a SLIDE of ROWS",
    "FROM s [RANGE 5 ROWS SLIDE 0 ROWS PARTITION BY k] GROUP BY k": "a RANGE and a SLIDE of ROWS",
    "FROM s [RANGE 5 ROWS PARTITION BY k] GROUP BY k LIMIT 3": "LIMIT beside windows of groups",
    "FROM (SELECT * FROM s) [RANGE 5 ROWS PARTITION BY k] GROUP BY k": "a stream with a time column",
    "FROM tumble(s, k, INTERVAL '5' MINUTES)": "'k' does not tell the time of stream 's'",
    "FROM tumble(s, ts)": "TUMBLE needs size",
    "FROM tumble(s, ts, INTERVAL '5' DAY, INTERVAL '1' DAY, INTERVAL '1' DAY)": "TUMBLE takes size, offset",
    "FROM hop(s, ts, INTERVAL '5' DAY)": "HOP needs slide and size",
    "FROM tumble(s, ts, INTERVAL '5' DAY) [RANGE 5 minutes]": "\\[",
    "FROM tumble(s, ts, INTERVAL '5' DAY) a JOIN s b ON a.k = b.k": "TUMBLE in a join cannot be run yet",
    "FROM tumble(nobody, ts, INTERVAL '5' DAY)": "there is no stream 'nobody'",
}


@pytest.mark.parametrize("written", REFUSED)
def test_what_is_no_such_window_is_refused(written: str) -> None:
    with pytest.raises(LanguageError, match=REFUSED[written]):
        read_script(f"{STREAM}SELECT count(*) AS c {written}")


EDGES = {
    "window_start AS a, count(*) AS c": "window_start",
    "window.end AS a, k, count(*) AS c": "window_end",
    "window_end - INTERVAL '1' SECOND AS a, count(*) AS c": "window_end - INTERVAL '1' SECOND",
    "HOP_START(ts, INTERVAL '1' MINUTE, INTERVAL '5' MINUTES) AS a, count(*) AS c": "window_start",
}


@pytest.mark.parametrize("selected", EDGES)
def test_the_edges_of_a_window_are_values(selected: str) -> None:
    [query] = read_script(f"{STREAM}SELECT {selected} FROM s GROUP BY k, window(ts, '5 minutes')").program.queries
    assert {item.name: item.sql for item in query.select}["a"] == EDGES[selected]
    assert [group.name for group in query.groups] == ["k"]


def test_an_edge_of_an_aggregate_or_of_empty_windows_is_refused() -> None:
    with pytest.raises(LanguageError, match="window_start"):
        read_script(f"{STREAM}SELECT max(window_start) AS a FROM s [RANGE 5 minutes]")
    rows = stream(pa.table({"t": [1, 25]}), time="t")
    with pytest.raises(DeclarationError, match="windows that have no rows"):
        rows.window(10, empty=True).agg("window_start AS a", n="count(*)").run()


def test_windows_that_grow_in_python_are_those_of_sql() -> None:
    rows = stream(pa.table({"t": [1, 12]}), time="t")
    asked = rows.window(20, step=10).agg("window_end - window_start AS length", n="count(*)")
    assert asked.plan.queries[0].window == GrowingWindow(20, 10)
    assert [(row["length"], row["n"]) for row in asked.run().to_pylist()] == [(10, 1), (20, 2)]
    with pytest.raises(DeclarationError, match="slides or grows"):
        rows.window(20, 10, step=10)
