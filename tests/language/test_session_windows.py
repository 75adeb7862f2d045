"""Sessions in SQL and Python: every spelling is one plan, and what does not go with them is refused at its place."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eventide.api.stream import stream
from eventide.errors import DeclarationError, LanguageError
from eventide.language.script import read_script
from eventide.plan.declared.query import Query, named_as, order_by
from eventide.plan.declared.window import SessionWindow, Window

STREAM = "CREATE STREAM s (ts TIMESTAMP, k STRING, n INT) TIMESTAMP BY ts SOURCE BY k;\n"
NUMBERS = "CREATE STREAM s (t BIGINT, k STRING, n INT);\n"


@pytest.mark.parametrize(
    "written",
    [
        "FROM s [SESSION 10 minutes] GROUP BY k",
        "FROM s WINDOW [SESSION = INTERVAL '10' MINUTES] GROUP BY k",
        "FROM s GROUP BY k, session_window(ts, '10 minutes')",
        "FROM s GROUP BY session_window(ts, INTERVAL 10 MINUTES), k",
        "FROM s GROUP BY k, SESSION(ts, INTERVAL '10' MINUTES)",
        "FROM (SELECT ts AS at, k FROM s) AS x GROUP BY k, SESSION(at, INTERVAL '10' MINUTES)",
    ],
)
def test_all_spellings_of_a_session_are_one(written: str) -> None:
    [query] = read_script(f"{STREAM}SELECT k, count(*) AS c {written}").program.queries
    assert query.window == SessionWindow(600_000_000)
    assert [group.name for group in query.groups] == ["k"]


def test_a_gap_of_each_row_is_over_the_columns_of_the_stream() -> None:
    below = "(SELECT ts, k, n * 2 AS m FROM s) AS x"
    script = read_script(f"{STREAM}SELECT count(*) AS c FROM {below} [SESSION m * INTERVAL '1' SECOND] GROUP BY k")
    assert script.program.queries[0].window == SessionWindow(by="(n * 2) * INTERVAL '1' SECOND")


REFUSED = {
    "[SESSION 10 minutes SLIDE 1 minute]": "SLIDE does not go with SESSION",
    "[SESSION 10 minutes RANGE 1 hour]": "RANGE does not go with SESSION",
    "[SESSION 10 minutes OFFSET 1 minute]": "OFFSET does not go with SESSION",
    "[SESSION 10 minutes EMPTY WINDOWS]": "EMPTY WINDOWS does not go with SESSION",
    "[SESSION 10 minutes, WATTR ROWS]": "the gap of a session is a length of time",
    "[SESSION 10 rows]": "the gap of a session is a length of time",
    "[SESSION 0 s]": "give a gap above 0",
    "[SESSION n]": "is no length of time: write an interval",
    "[SESSION CASE WHEN n > 1 THEN k ELSE '1 s' END]": "is no length of time",
    "[SESSION max(n) * INTERVAL '1' SECOND]": "is an aggregate",
    "[SESSION m * INTERVAL '1' SECOND]": "there is no column 'm'",
    "[SESSION 10 minutes] GROUP BY k ORDER BY c": "ORDER BY and LIMIT have nothing to choose from",
    "[SESSION 10 minutes] GROUP BY k CLOSE BY SOURCE": "sessions close with all sources together",
    "[SESSION 10 minutes] GROUP BY k PROD AT 50 %": "has no end yet, so it has no points in time",
    "[SESSION 10 minutes] GROUP BY k PROD EVERY 1 s ESTIMATE": "drop ESTIMATE and COMPARE",
    "[SESSION 10 minutes] GROUP BY session_window(ts, '1 minute')": "this is its second",
    "GROUP BY session_window(k, '1 minute')": "session_window[(][)] goes by the time of the stream",
    "GROUP BY session_window(ts)": "expected session_window",
    "GROUP BY TUMBLE(ts, n)": "expected TUMBLE",
    "GROUP BY HOP(ts, INTERVAL '5' MINUTES)": "expected HOP",
    "[SESSION 10 minutes PARTITION BY n] GROUP BY k": "those of its groups, and PARTITION BY names others",
}


@pytest.mark.parametrize("written", REFUSED)
def test_what_does_not_go_with_sessions_is_refused(written: str) -> None:
    with pytest.raises(LanguageError, match=REFUSED[written]):
        read_script(f"{STREAM}SELECT count(*) AS c FROM s {written}")


def test_the_same_window_as_a_session_is_no_window_for_others() -> None:
    script = f"{STREAM}CREATE QUERY v AS SELECT k, count(*) AS c FROM s [SESSION 1 s] GROUP BY k;\nSELECT max(c) FROM v"
    with pytest.raises(LanguageError, match="no two sessions are the same window"):
        read_script(script)
    assert read_script(f"{script} [RANGE 1 hour]").program.queries[1].window == Window(3_600_000_000)


def test_the_gap_of_a_stream_of_numbers_is_a_number() -> None:
    [plain] = read_script(f"{NUMBERS}SELECT count(*) AS c FROM s [SESSION 10]").program.queries
    [own] = read_script(f"{NUMBERS}SELECT count(*) AS c FROM s [SESSION n + 1]").program.queries
    assert (plain.window, own.window) == (SessionWindow(10), SessionWindow(by="n + 1"))
    with pytest.raises(LanguageError, match="sequence of numbers"):
        read_script(f"{NUMBERS}SELECT count(*) AS c FROM s [SESSION 10 minutes]")


def test_sessions_in_python_are_those_of_sql() -> None:
    rows = stream(pa.table({"t": [1], "k": ["a"], "n": [1]}), time="t")
    assert rows.sessions(10, retain=50).groupBy("k").agg(c="count(*)").plan.queries[0].window == SessionWindow(10)
    assert rows.sessions(by="n + 1").agg(c="count(*)").plan.queries[0].window == SessionWindow(by="n + 1")
    assert "sessions with a gap of 10" in repr(rows.sessions(10))
    with pytest.raises(DeclarationError, match="needs a gap"):
        rows.sessions()
    with pytest.raises(DeclarationError, match="one gap"):
        rows.sessions(10, by="n")
    with pytest.raises(DeclarationError, match="nothing to choose from"):
        Query("q", "s", SessionWindow(10), named_as(c="count(*)"), order=order_by("c"))
