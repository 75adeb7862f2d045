"""STATE TTL and EMIT CHANGES: what they declare, in SQL and Python, and what they do not go with."""

from __future__ import annotations

import pyarrow as pa
import pytest
from rich.console import Console

from eventide.api.stream import stream
from eventide.errors import DeclarationError, LanguageError
from eventide.language.script import read_script
from eventide.plan.declared.join import Band, Join
from eventide.plan.declared.query import Query
from eventide.plan.declared.window import LONGEST_GAP, LifeWindow, SessionWindow, Window
from eventide.report.explain import plan_of, trees

STREAM = "CREATE STREAM s (ts TIMESTAMP, k STRING, n INT) TIMESTAMP BY ts SOURCE BY k;\n"
OTHER = "CREATE STREAM o (at TIMESTAMP, k STRING, m INT);\n"
NUMBERS = "CREATE STREAM a (t BIGINT, k STRING);\nCREATE STREAM b (t BIGINT, k STRING);\n"
MINUTE = 60_000_000


def queries_of(select: str, streams: str = STREAM + OTHER) -> tuple[Query, ...]:
    return read_script(streams + select).program.queries


@pytest.mark.parametrize(
    ("written", "ttl", "changes"),
    [
        ("SELECT k, count(*) FROM s GROUP BY k STATE TTL 1 minute EMIT CHANGES", MINUTE, True),
        ("SELECT k, count(*) FROM s GROUP BY k EMIT CHANGES STATE TTL 1 minute INTO MEMORY", MINUTE, True),
        ("SELECT count(*) FROM s STATE TTL 1 minute PROD EVERY 1 s", MINUTE, False),
        ("SELECT count(*) FROM s EMIT CHANGES STATE TTL FOREVER", LONGEST_GAP, True),
        ("SELECT DISTINCT k FROM s STATE TTL 1 minute", MINUTE, False),
        ("SELECT max(n) FROM (SELECT n, k FROM s WHERE n > 1) AS x STATE TTL 1 minute", MINUTE, False),
    ],
)
def test_an_aggregate_without_a_window_has_the_life_of_its_state(written: str, ttl: int, changes: bool) -> None:
    [query] = queries_of(written)
    assert (query.window, query.changes) == (LifeWindow(ttl), changes)


def test_state_is_of_what_has_no_window_alone() -> None:
    below, above = queries_of("SELECT max(c) FROM (SELECT count(*) AS c FROM s [RANGE 1 minute]) AS x STATE TTL 1 hour")
    assert (below.window, above.window) == (Window(MINUTE), LifeWindow(60 * MINUTE))


@pytest.mark.parametrize(
    ("written", "bands"),
    [
        ("SELECT n FROM s JOIN o ON s.k = o.k STATE TTL 1 minute", [("ts", "at", -MINUTE, MINUTE)]),
        ("SELECT n FROM s LEFT JOIN o ON s.k = o.k STATE TTL FOREVER", [("ts", "at", -LONGEST_GAP, LONGEST_GAP)]),
        (
            "SELECT n FROM s WHERE EXISTS (SELECT 1 FROM o WHERE o.k = s.k) STATE TTL 1 s",
            [("ts", "at", -(10**6), 10**6)],
        ),
        ("SELECT n FROM s JOIN o ON s.k = o.k AND o.at >= s.ts STATE TTL 1 s", [("ts", "at", -(10**6), 10**6)]),
        (
            "SELECT n FROM s JOIN o ON s.ts = o.at JOIN s AS x ON x.k = o.k STATE TTL 1 s",
            [("ts", "at", 0, 0), ("window_end", "ts", -(10**6) - 1, 10**6 - 1)],
        ),
    ],
)
def test_a_join_that_relates_no_times_has_a_band_of_its_ttl(
    written: str, bands: list[tuple[str, str, int, int]]
) -> None:
    joins = [one for one in read_script(STREAM + OTHER + written).program.operators if isinstance(one, Join)]
    assert [join.bands for join in joins] == [(Band(*band),) for band in bands]


def test_one_ttl_is_for_the_join_and_for_the_aggregate_over_it() -> None:
    program = read_script(
        f"{NUMBERS}SELECT a.k, count(*) FROM a JOIN b ON a.k = b.k GROUP BY a.k EMIT CHANGES STATE TTL 7"
    ).program
    [join] = program.operators
    assert isinstance(join, Join)
    assert (join.bands, program.queries[0].window) == ((Band("t", "t", -7, 7),), LifeWindow(7))


REFUSED = {
    "SELECT k, count(*) FROM s GROUP BY k": "or say how long state lives without one: EMIT CHANGES STATE TTL 1 day",
    "SELECT k, count(*) FROM s GROUP BY k EMIT CHANGES": "EMIT CHANGES STATE TTL 1 day",
    "SELECT n FROM s JOIN o ON s.k = o.k": "or say for how long rows are kept: STATE TTL 10 minutes",
    "SELECT n FROM s JOIN o ON s.ts <= o.at": "or say for how long rows are kept: STATE TTL 10 minutes",
    "SELECT n FROM s JOIN o ON s.k = o.k EMIT CHANGES STATE TTL 1 s": "rows do not change: leave it out",
    "SELECT n FROM s JOIN o ON s.ts = o.at STATE TTL 1 s": "all that is kept here ends by itself",
    "SELECT count(*) FROM s GROUP BY date_trunc('hour', ts) STATE TTL 1 s": "all that is kept here ends by itself",
    "SELECT count(*) FROM s STATE TTL 0 s": "give more than 0, or FOREVER",
    "SELECT count(*) FROM s STATE TTL 4000000 days": "write FOREVER",
    "SELECT count(*) FROM s STATE TTL 5 rows": "rows",
    "SELECT count(*) AS c FROM s HAVING c > 1 EMIT CHANGES STATE TTL 1 s": "drop HAVING from EMIT CHANGES",
    "SELECT count(*) AS c FROM s EMIT CHANGES STATE TTL 1 s PROD EVERY 1 s": "all that a prod could ask for",
    "SELECT k, count(*) AS c FROM s GROUP BY k ORDER BY c LIMIT 1 STATE TTL 1 s": "each state is a window of its own",
    "SELECT k, count(*) AS c FROM s GROUP BY k STATE TTL 1 s CLOSE BY SOURCE": "states close with all sources together",
    "SELECT k, count(*) AS c FROM s [RETAIN 1 s] GROUP BY k STATE TTL 1 s": "how late a row may be",
    "SELECT max(c) FROM (SELECT k, count(*) AS c FROM s GROUP BY k) AS x STATE TTL FOREVER": "lives for ever",
    "CREATE QUERY q AS SELECT count(*) AS c FROM s STATE TTL FOREVER; SELECT c FROM q": "so it has no final results",
}


@pytest.mark.parametrize("written", REFUSED)
def test_what_does_not_go_with_the_life_of_state_is_refused_at_its_place(written: str) -> None:
    with pytest.raises(LanguageError, match=REFUSED[written]) as found:
        read_script(STREAM + OTHER + written)
    assert found.value.line == 3


def test_state_that_lives_for_ever_and_is_never_shown_is_warned_of() -> None:
    texts = ("SELECT count(*) FROM s STATE TTL FOREVER", "SELECT count(*) FROM s STATE TTL FOREVER EMIT CHANGES")
    warned = ["none before; add EMIT CHANGES" in str(read_script(STREAM + text).warnings) for text in texts]
    assert warned == [True, False]


def test_explain_says_how_long_state_lives() -> None:
    told = plan_of(
        read_script(
            f"{STREAM}{OTHER}CREATE QUERY q AS SELECT k, count(*) FROM s GROUP BY k EMIT CHANGES STATE TTL 1 hour;"
            "CREATE QUERY g AS SELECT count(*) FROM s EMIT CHANGES STATE TTL FOREVER;"
            "CREATE QUERY j AS SELECT n FROM s JOIN o ON s.k = o.k STATE TTL FOREVER;"
        )
    )
    lives, endless = (query["window"] for query in told["queries"])
    assert (lives["ttl"], lives["words"]) == (
        60 * MINUTE,
        "none: the state of a group lives until 1 h after its last row",
    )
    assert (endless["ttl"], endless["words"]) == (None, "none: the state of a group lives for ever")
    [join] = told["operators"]
    assert (join["bands"][0]["words"], join["held"]) == ("any", ["rows of both sides for ever"])
    console = Console(width=200, highlight=False)
    with console.capture() as capture:
        for tree in trees(told):
            console.print(tree)
    assert "changes: every round emits the values that it has changed" in capture.get()


def test_python_says_what_sql_says() -> None:
    rows = stream(pa.table({"t": [1], "k": ["a"]}), time="t", name="rows")
    asked = rows.stateTtl(5).groupBy("k").agg(c="count(*)")
    assert (asked.plan.queries[0].window, asked.plan.queries[0].changes) == (LifeWindow(5), False)
    assert asked.emitChanges().plan.queries[0].changes
    assert rows.stateTtl("forever").agg(c="count(*)").plan.queries[0].window == LifeWindow(LONGEST_GAP)
    assert "state lives for ever" in repr(rows.stateTtl("forever"))
    join = rows.join(rows.alias("o"), on="k", within="forever").declared
    assert isinstance(join, Join)
    assert join.bands == (Band("t", "t", -LONGEST_GAP, LONGEST_GAP),)
    with pytest.raises(DeclarationError, match="results of windows come when these are over"):
        rows.window(5).agg(c="count(*)").emitChanges()
    assert SessionWindow(5) != LifeWindow(5)
