"""Rows, UNION ALL, joins and interfaces: what becomes of them in the plan, and what is refused, at which place."""

from __future__ import annotations

import pytest

from eventide.errors import LanguageError
from eventide.language.script import read_script
from eventide.plan.declared.join import Band, Join, JoinKind, Lookup, Side
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.rows import Rows

STREAMS = """CREATE STREAM a (ts TIMESTAMP, k STRING, v INT);
CREATE STREAM b (ts TIMESTAMP, k STRING, w INT);
CREATE STREAM r (tr BIGINT, k STRING) TIMESTAMP BY tr;
CREATE STREAM s (t BIGINT, k STRING, rows INT);
CREATE STREAM at_once (k STRING, v INT) TIMESTAMP BY ARRIVAL;
"""
SECOND = 1_000_000


def plan(text: str) -> Program:
    return read_script(STREAMS + text, "x.sql").program


def join_of(text: str) -> Join:
    [*_, last] = plan(text).steps
    assert isinstance(last, Join)
    return last


def rows_of(text: str) -> Rows:
    [*_, last] = plan(text).steps
    assert isinstance(last, Rows)
    return last


@pytest.mark.parametrize(
    ("text", "rows"),
    {
        "SELECT * FROM a": Rows("query_1", ("a",)),
        "SELECT * FROM a ORDER BY ts": Rows("query_1", ("a",)),
        "SELECT * FROM a WHERE v > 1 EMIT IN ORDER OF TIME": Rows(
            "query_1", ("a",), where="(v > 1)", simultaneous=True
        ),
        "SELECT * FROM a WHERE v > 1 EMIT IMMEDIATELY": Rows("query_1", ("a",), where="(v > 1)", ordered=False),
        "SELECT k, v + 1 FROM a": Rows("query_1", ("a",), named_as("k", v_1="v + 1")),
        "SELECT window_end, k FROM a": Rows("query_1", ("a",), named_as("k")),
        "SELECT x.k, ts AS at FROM a AS x": Rows("query_1", ("a",), named_as("k", at="ts")),
        "SELECT twice FROM (SELECT v * 2 AS twice FROM a WHERE v > 1)": Rows(
            "query_1", ("a",), named_as(twice="(v * 2)"), "(v > 1)"
        ),
        "SELECT * FROM (SELECT k FROM a)": Rows("query_1", ("a",), named_as("k")),
    }.items(),
)
def test_a_select_without_aggregates_gives_rows(text: str, rows: Rows) -> None:
    assert plan(text).steps == (rows,)


def test_all_columns_of_results_are_all_but_their_windows() -> None:
    query = "CREATE QUERY q AS SELECT k, max(v) AS top FROM a [RANGE 5 s] GROUP BY k;"
    assert rows_of(query + "SELECT * FROM q") == Rows("query_1", ("q",))
    assert rows_of(query + "SELECT *, window_start AS since FROM q") == Rows(
        "query_1", ("q",), named_as("k", "top", since="window_start")
    )


def test_plain_streams_are_merged_as_they_are() -> None:
    other = "CREATE STREAM a2 (ts TIMESTAMP, k STRING, v INT);"
    assert plan(other + "SELECT * FROM a UNION ALL SELECT * FROM a2").steps == (Rows("query_1", ("a", "a2")),)
    below, above = plan(other + "SELECT max(v) FROM (SELECT * FROM a UNION ALL SELECT * FROM a2) [RANGE 1 s]").steps
    assert below == Rows("query_1_below", ("a", "a2"), ordered=False)
    assert isinstance(above, Query)
    assert above.stream == "query_1_below"


def test_the_columns_of_a_union_go_by_the_names_of_the_first() -> None:
    steps = plan("SELECT k, v AS n FROM a UNION ALL SELECT k, w FROM b UNION ALL (SELECT k, v FROM a)").steps
    assert steps[:3] == (
        Rows("query_1_below", ("a",), named_as("k", n="v"), ordered=False),
        Rows("query_1_below_2", ("b",), named_as("k", n="w"), ordered=False),
        Rows("query_1_below_3", ("a",), named_as("k", n="v"), ordered=False),
    )
    assert steps[3] == Rows("query_1", ("query_1_below", "query_1_below_2", "query_1_below_3"))


def test_a_stream_twice_in_a_union_is_told_twice() -> None:
    steps = plan("SELECT * FROM a UNION ALL SELECT * FROM a").steps
    assert steps[-1] == Rows("query_1", ("a", "query_1_below"))


def test_windows_over_a_union_go_by_its_time() -> None:
    ordered = "SELECT ts AS at, k FROM a UNION ALL SELECT ts, k FROM b"
    for text in (
        f"SELECT count(*) FROM ({ordered}) GROUP BY at/60 AS minute",
        f"SELECT count(*) FROM ({ordered}) GROUP BY date_trunc('minute', at)",
        f"SELECT count(*) FROM ({ordered}) GROUP BY window(at, '1 minute')",
        f"SELECT count(*) FROM ({ordered}) [RANGE 1 minute WATTR at]",
    ):
        [query] = plan(text).queries
        assert query.window.range == 60 * SECOND, text  # type: ignore[union-attr]


BANDS = {
    "a.ts = b.ts": Band("ts", "ts"),
    "abs(a.ts - b.ts) <= INTERVAL 5 SECONDS": Band("ts", "ts", -5 * SECOND, 5 * SECOND),
    "INTERVAL 5 SECONDS > abs(b.ts - a.ts)": Band("ts", "ts", 1 - 5 * SECOND, 5 * SECOND - 1),
    "a.ts BETWEEN b.ts - INTERVAL 5 SECONDS AND b.ts": Band("ts", "ts", 0, 5 * SECOND),
    "a.ts >= b.ts AND a.ts <= b.ts + INTERVAL 1 MINUTE": Band("ts", "ts", -60 * SECOND, 0),
    "b.ts > a.ts AND b.ts - a.ts < INTERVAL 1 SECOND": Band("ts", "ts", 1, SECOND - 1),
    "a.ts/60 = b.ts/60": Band("FLOOR(UNIX_SECONDS(ts) / 60)", "FLOOR(UNIX_SECONDS(ts) / 60)"),
    "date_trunc('hour', a.ts) = date_trunc('hour', b.ts)": Band("DATE_TRUNC('HOUR', ts)", "DATE_TRUNC('HOUR', ts)"),
    "unix_seconds(a.ts) = unix_seconds(b.ts) + 1": Band("UNIX_SECONDS(ts)", "UNIX_SECONDS(ts)", -1, -1),
}


@pytest.mark.parametrize("condition", BANDS)
def test_what_relates_times_is_a_band(condition: str) -> None:
    join = join_of(f"SELECT a.k FROM a JOIN b ON {condition} AND a.k = b.k AND a.v < b.w")
    assert join.bands == (BANDS[condition],)
    assert (join.left, join.right) == (Side("a", "a", ("k",)), Side("b", "b", ("k",)))
    assert join.condition == "(a.v < b.w)"


@pytest.mark.parametrize(
    ("condition", "band"),
    {
        "r.tr/2 = s.t + 1": Band("FLOOR(tr / 2)", "t", -1, -1),
        "r.tr = 2 * s.t": Band("tr", "2 * t"),
        "3 * s.t - 2 * r.tr <= 7 AND 6 * s.t >= 4 * r.tr": Band("2 * tr", "3 * t", 0, 7),
        "-r.tr >= -s.t AND s.t <= r.tr + 1.5": Band("tr", "t", 0, 1),
        "r.tr div 60 = s.t div 60": Band("tr DIV 60", "t DIV 60"),
    }.items(),
)
def test_times_that_are_numbers_are_related_by_numbers(condition: str, band: Band) -> None:
    assert join_of(f"SELECT r.k FROM r, s WHERE {condition}").bands == (band,)


def test_windows_of_both_sides_are_a_band() -> None:
    join = join_of("SELECT a.k FROM a [RANGE 5 s] x JOIN b [RANGE 10 s] AS y ON x.k = y.k".replace("a.k", "x.k"))
    assert join.bands == (Band("ts", "ts", 1 - 10 * SECOND, 5 * SECOND - 1),)
    stamped = join_of("SELECT a.k FROM a [RANGE 5 s] JOIN at_once [RANGE 5 s] ON a.k = at_once.k")
    assert stamped.bands[0].right == "_time"


def test_conditions_on_one_side_go_where_they_do_not_change_the_answer() -> None:
    on = "ON a.ts = b.ts AND a.v > 1 AND b.w > 2 WHERE a.v < 9 AND b.w < 8"
    inner = join_of(f"SELECT a.k FROM a JOIN b {on}")
    assert (inner.left.where, inner.right.where) == ("(a.v > 1) AND (a.v < 9)".replace("a.", ""), "(w > 2) AND (w < 8)")
    assert (inner.condition, inner.where) == (None, None)
    left = join_of(f"SELECT a.k FROM a LEFT JOIN b {on}")
    assert (left.left.where, left.right.where, left.condition) == (None, "(w > 2)", "(a.v > 1)")
    assert left.where == "(a.v < 9) AND (b.w < 8)"
    full = join_of(f"SELECT a.k FROM a FULL OUTER JOIN b {on}")
    assert (full.left.where, full.right.where, full.condition) == (None, None, "(a.v > 1) AND (b.w > 2)")


def test_gigascopes_words_make_where_the_condition_of_the_join() -> None:
    for word, kind in (
        ("INNER_JOIN", JoinKind.INNER),
        ("left_outer_join", JoinKind.LEFT),
        ("RIGHT_OUTER_JOIN", JoinKind.RIGHT),
        ("OUTER_JOIN", JoinKind.FULL),
    ):
        join = join_of(f"SELECT a.k, b.w {word} FROM a, b WHERE a.ts = b.ts AND a.k = b.k")
        assert (join.kind, join.where, join.left.keys) == (kind, None, ("k",))


def test_a_sub_query_that_computes_does_so_before_an_outer_join() -> None:
    text = "SELECT a.k, n FROM a {} JOIN (SELECT ts, coalesce(w, 0) AS n FROM b) AS x ON a.ts = x.ts"
    assert join_of(text.format("")).right == Side("b", "x")
    below, above = plan(text.format("LEFT")).steps
    assert below == Rows("query_1_below", ("b",), named_as("ts", n="COALESCE(w, 0)"), ordered=False)
    assert isinstance(above, Join)
    assert above.right == Side("query_1_below", "x")


def test_three_inputs_are_a_join_of_a_join() -> None:
    third = "CREATE STREAM c (ts TIMESTAMP, k STRING, u INT);"
    text = "SELECT v, w, u FROM a JOIN b ON a.ts = b.ts AND a.k = b.k LEFT JOIN c ON b.ts = c.ts AND a.k = c.k"
    first, second = plan(third + text).steps
    assert isinstance(first, Join)
    assert [item.name for item in first.select] == ["a_k", "a_v", "b_ts", "b_w"]
    assert isinstance(second, Join)
    assert second.left == Side("query_1_below", "query_1_below", ("a_k",))
    assert (second.bands, second.kind) == ((Band("b_ts", "ts"),), JoinKind.LEFT)


def test_the_time_of_one_side_is_followed_through_a_join_of_joins() -> None:
    third = "CREATE STREAM c (ts TIMESTAMP, k STRING, u INT);"
    near = "abs({} - {}) <= INTERVAL 5 SECONDS"
    on = (near.format("a.ts", "b.ts"), near.format("b.ts", "c.ts"))
    assert join_of(f"{third} SELECT u FROM a JOIN b ON {on[0]} JOIN c ON {on[1]}").bands[0].left == "b_ts"


def test_an_aggregate_over_a_join_reads_a_hidden_one() -> None:
    first, second = plan("SELECT a.k, max(w) AS top FROM a JOIN b ON a.ts = b.ts WINDOW [RANGE 9 s] GROUP BY a.k").steps
    assert isinstance(first, Join)
    assert first.select == named_as(a_k="a.k", b_w="b.w")
    assert isinstance(second, Query)
    assert (second.stream, second.groups, second.select) == (first.name, named_as(k="a_k"), named_as(top="MAX(b_w)"))


def test_as_of_looks_up_the_version_that_held_then() -> None:
    text = "SELECT a.k, w FROM a {} b FOR SYSTEM_TIME AS OF a.ts AS p ON a.k = p.k {}"
    inner, left = plan(text.format("JOIN", "AND w > 1 AND v > 2")).steps + plan(text.format("LEFT JOIN", "")).steps
    select = named_as(k="a.k", w="p.w")
    assert inner == Lookup(
        "query_1", Side("a", "a", ("k",), "(v > 2)"), Side("b", "p", ("k",)), where="(p.w > 1)", select=select
    )
    assert left == Lookup("query_1", Side("a", "a", ("k",)), Side("b", "p", ("k",)), True, select=select)


def test_what_was_made_for_a_query_goes_with_it() -> None:
    text = "CREATE QUERY q AS SELECT max(w) AS top FROM a JOIN b ON a.ts = b.ts WINDOW [RANGE 9 s];"
    assert plan(text + "DROP QUERY q; DROP STREAM a").steps == ()
    with pytest.raises(LanguageError, match="the query 'q' reads it"):
        plan(text + "DROP STREAM a")


def warnings(text: str) -> list[str]:
    slow = "CREATE STREAM slow (ts TIMESTAMP, k STRING, v INT) FROM json 'in' DELAY 0;"
    kept = slow.replace("slow", "kept").replace("DELAY 0", "DELAY 0 TIMEOUT 1 minute")
    return [w.message for w in read_script(STREAMS + slow + kept + text).warnings if "silent" in w.message]


def test_an_input_whose_time_stands_still_in_silence_is_warned_of() -> None:
    on = "ON a.ts = slow.ts"
    [merge] = warnings("SELECT * FROM a UNION ALL SELECT * FROM slow; SELECT * FROM a UNION ALL SELECT * FROM kept")
    assert merge == (
        "when 'slow' falls silent, its time stands still, and the rows of all others wait for it; add TIMEOUT to 'slow'"
    )
    [left] = warnings(f"SELECT a.k FROM a LEFT JOIN slow {on}")
    assert "rows of 'a' without a partner are not emitted" in left
    assert warnings(f"SELECT a.k FROM a JOIN slow {on}; SELECT a.k FROM a RIGHT JOIN slow {on}") == []


INTERFACES = "".join(f"CREATE STREAM {name}.P (time BIGINT, ip STRING);" for name in ("main0", "main1", "control"))


def test_interfaces_are_merged_by_the_planner_once_for_all_that_read_them() -> None:
    sets = "CREATE INTERFACE SET some AS main0, control; CREATE INTERFACE SET more AS some, main1;"
    text = "SELECT count(*) FROM {} [RANGE 5]; SELECT max(ip) FROM {} [RANGE 5]"
    found = {
        "P": ("main0_P", "main1_P", "control_P"),
        "[some].P": ("main0_P", "control_P"),
        "[more].P": ("main0_P", "main1_P", "control_P"),
    }
    for name, inputs in found.items():
        program = plan(INTERFACES + sets + text.format(name, name))
        assert program.operators == (Rows(name.strip("[").replace("].", "_"), inputs, ordered=False),)
    assert plan(INTERFACES + "SELECT count(*) FROM main1.P [RANGE 5]").operators == ()


def test_a_column_with_the_name_of_a_function_without_parentheses_stays_a_column() -> None:
    text = "CREATE STREAM x (t BIGINT, `current_date` INT); CREATE STREAM y (t BIGINT, `current_date` INT);"
    found = join_of(text + "SELECT x.`current_date` FROM x JOIN y ON x.t = y.t AND x.`current_date` = y.`current_date`")
    assert found.left.keys == found.right.keys == ("`current_date`",)


REFUSED = {
    "SELECT a.k FROM a JOIN b ON a.k = b.k": (24, "nothing relates the time of 'a' to that of 'b'", "add a.ts = b.ts"),
    "SELECT a.k FROM a, b": (20, "nothing relates the time", "a.ts BETWEEN b.ts - INTERVAL 5 SECONDS"),
    "SELECT a.k FROM a JOIN b ON a.ts <= b.ts": (31, "b.ts may be any time after a.ts", "add b.ts <= a.ts + INTERVAL"),
    "SELECT r.k FROM r JOIN s ON r.tr > s.t": (31, "r.tr may be any time after s.t", "add r.tr <= s.t + 5"),
    "SELECT r.k FROM r JOIN s ON r.tr > s.t AND r.tr < s.t": (31, "no pair of rows can have these times", None),
    "SELECT a.k FROM (SELECT k FROM a) AS x JOIN b ON x.k = b.k".replace("a.k", "x.k"): (
        45,
        "no column here carries 'ts' of 'x'",
        "select the time below the join",
    ),
    "SELECT k FROM a JOIN b ON a.ts = b.ts": (8, "'k' is a column of a and of b", "say which: a.k or b.k"),
    "SELECT a.z FROM a JOIN b ON a.ts = b.ts": (10, "there is no column 'z'", "there are"),
    "SELECT v FROM a JOIN a ON v = v": (22, "two inputs of this join are called 'a'", "AS"),
    "SELECT v FROM a JOIN (SELECT * FROM b) ON 1 = 1": (30, "this sub-query needs a name", "AS name"),
    "SELECT v FROM a NATURAL JOIN b": (30, "NATURAL JOIN cannot be run yet", None),
    "SELECT v FROM a [RANGE 5 s] JOIN b ON a.k = b.k": (18, "'a' has a window in this join and 'b' has none", None),
    "SELECT v FROM a [RANGE 5 ROWS] JOIN b [RANGE 5 s] ON a.k = b.k": (24, "the last rows of a stream", None),
    "SELECT max(v) FROM a JOIN b ON a.ts = b.ts": (8, "could never close", "WINDOW [RANGE 5 minutes"),
    "SELECT v FROM a JOIN b ON a.ts = b.ts ORDER BY v": (48, "emitted as they are found", None),
    "SELECT a.k OUTER_JOIN FROM a WHERE v > 1": (28, "OUTER_JOIN joins two streams", "FROM a, b"),
    "SELECT a.k FROM a JOIN b ON a.ts = b.ts WHERE max(v) > 1": (47, "WHERE sees single rows", None),
    "SELECT v FROM a JOIN b FOR SYSTEM_TIME AS OF b.ts ON a.k = b.k": (48, "AS OF goes by the time of 'a'", "a.ts"),
    "SELECT v FROM a JOIN b FOR SYSTEM_TIME AS OF a.ts ON v > w": (22, "has no equal keys", "a.key = b.key"),
    "SELECT v FROM a FULL JOIN b FOR SYSTEM_TIME AS OF a.ts ON a.k = b.k": (27, "an inner or a LEFT join", None),
    "SELECT v FROM a LEFT JOIN b FOR SYSTEM_TIME AS OF a.ts ON a.k = b.k AND w > 1": (
        73,
        "no other condition",
        "WHERE",
    ),
    "SELECT k FROM a UNION SELECT k FROM b": (8, "UNION without ALL", "SELECT DISTINCT"),
    "SELECT k FROM a EXCEPT SELECT k FROM b": (8, "EXCEPT cannot be run yet", None),
    "SELECT k, v FROM a UNION ALL SELECT k FROM b": (37, "has 1 columns and the first one has 2", "same columns"),
    "SELECT k, v FROM a UNION ALL SELECT w, k FROM b": (37, "column 1 is k INT here, and k STRING", "CAST"),
    "SELECT k FROM a UNION ALL SELECT k FROM s": (8, "have no common order", "TIMESTAMP"),
    "SELECT k FROM a UNION ALL SELECT k FROM b LIMIT 5": (49, "LIMIT is for the results of a window", None),
    "SELECT k FROM a LIMIT 5": (23, "LIMIT is for the results of a window", None),
    "SELECT k FROM a ORDER BY v": (26, "rows come in the order of time", "ORDER BY ts"),
    "SELECT k FROM a ORDER BY ts DESC": (26, "rows come in the order of time", "ORDER BY ts"),
    "SELECT k FROM a HAVING v > 1": (24, "HAVING chooses among groups", "WHERE"),
    "SELECT * FROM s": (8, "'rows' is a column of every result", "rows AS my_rows"),
    "SELECT k AS round FROM a": (8, "'round' is a column of every result", None),
    "SELECT max(v) FROM a [RANGE 5 s] EMIT IN ORDER OF TIME": (34, "and this gives windows", "drop it"),
    "SELECT v FROM a EMIT IMMEDIATELY EMIT IN ORDER OF TIME": (34, "say different things", "keep one of them"),
    "SELECT max(v) FROM a [RANGE 5 s] EMIT IMMEDIATELY": (34, "EMIT IMMEDIATELY is for rows", "leave it out"),
    "SELECT count(*) FROM (SELECT * FROM a UNION ALL SELECT ts, k, w FROM b) [RANGE 5 s SLACK 3]": (
        84,
        "SLACK is for a stream, and this reads several streams",
        "CREATE STREAM",
    ),
    "CREATE INTERFACE SET x AS y": (27, "there is no interface 'y'", "CREATE STREAM y.P"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_is_refused_at_its_place(text: str) -> None:
    column, message, hint = REFUSED[text]
    with pytest.raises(LanguageError) as caught:
        plan(text)
    error = caught.value
    assert message in error.message
    assert (error.line, error.column) == (STREAMS.count("\n") + 1, column)
    assert (hint or "") in (error.hint or "")


def test_interfaces_with_other_columns_cannot_be_merged() -> None:
    text = "CREATE STREAM main0.P (time BIGINT, ip STRING); CREATE STREAM main1.P (time BIGINT, ip INT);"
    with pytest.raises(LanguageError, match=r"main1\.P has ip INT where main0\.P has ip STRING"):
        plan(text + "SELECT count(*) FROM P [RANGE 5]")
