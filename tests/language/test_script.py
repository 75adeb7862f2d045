"""What a script means: defaults, statements, outputs, names, and what is refused with which words at which place."""

from __future__ import annotations

import pickle

import pytest

from eventide.errors import DeclarationError, LanguageError
from eventide.language.grammar.source_text import (
    DropStatement,
    ExplainStatement,
    FunctionStatement,
    QueryStatement,
    SetStatement,
    ShowStatement,
    StreamStatement,
)
from eventide.language.script import Function, OutputTarget, Script, read_script
from eventide.plan.declared.query import Named
from eventide.plan.declared.stream import Future, Input, Timestamps
from eventide.plan.declared.window import RowWindow, SameWindow, Window

MINUTE = 60_000_000
S = "CREATE STREAM S (ts TIMESTAMP, k STRING, v INT, w DOUBLE, s STRUCT<a: INT>, xs ARRAY<INT>);\n"
N = "CREATE STREAM N (t BIGINT, k STRING, v INT);\n"


def refused(text: str) -> LanguageError:
    with pytest.raises(LanguageError) as raised:
        read_script(text, "x.sql")
    return raised.value


def query(text: str) -> Script:
    return read_script(S + N + text)


def test_the_shortest_useful_file_has_two_statements() -> None:
    script = read_script("CREATE STREAM s (ts TIMESTAMP) FROM json 'in'; SELECT count(*) FROM s [RANGE 1 minute]")
    [stream] = script.program.streams
    assert (stream.time, stream.source, stream.input) == ("ts", (), Input("json", "in"))
    [only] = script.program.queries
    assert (only.name, only.window, only.select) == ("query_1", Window(MINUTE), (Named("count", "COUNT(*)"),))
    assert script.outputs == (OutputTarget("query_1"),)


@pytest.mark.parametrize("text", ["", "  \n", "-- nothing\n/* at all */", ";;"])
def test_an_empty_text_is_an_empty_script(text: str) -> None:
    assert read_script(text).program.streams == ()


def test_statements_are_kept_with_their_places_and_texts() -> None:
    script = read_script(
        "/* a */ CREATE STREAM s (ts TIMESTAMP);\nCREATE FUNCTION f FROM 'f.py' RETURNS INT EXPENSIVE;\n"
        "  SET a.b = 5 minutes; SET c = 'd e';\nQuery q: SELECT count(*) FROM s [RANGE 5] ;\n"
        "SHOW STREAMS; SHOW QUERIES; EXPLAIN q; SELECT max(ts) FROM s [RANGE 5]; DROP QUERY q"
    )
    kinds = [StreamStatement, FunctionStatement, SetStatement, SetStatement, QueryStatement]
    kinds += [ShowStatement, ShowStatement, ExplainStatement, QueryStatement, DropStatement]
    assert [type(statement) for statement in script.statements] == kinds
    assert [(s.place.line, s.place.column) for s in script.statements[:4]] == [(1, 9), (2, 1), (3, 3), (3, 24)]
    assert script.statements[4].text == "Query q: SELECT count(*) FROM s [RANGE 5]"
    assert script.settings == {"a.b": "5 minutes", "c": "d e"}
    assert script.functions == (Function("f", "f.py", "INT", True),)
    assert [only.name for only in script.program.queries] == ["query_1"]


def test_a_stream_says_everything_in_any_order() -> None:
    [stream] = read_script(
        "CREATE STREAM `s` (at TIMESTAMP, `a b` STRING, seen TIMESTAMP) FUTURE 5 min REJECT SOURCE BY `A B`, at "
        "LIMIT 10 ROWS PER ROUND USING kafka OPTIONS (subscribe 'x', path 'p', n = 3) ARRIVAL BY seen TIMESTAMP BY at"
    ).program.streams
    assert (stream.time, stream.source, stream.arrival) == ("at", ("a b", "at"), "seen")
    assert stream.input == Input("kafka", "p", (("subscribe", "x"), ("n", "3")), max_rows=10)
    assert stream.future == Future(5 * MINUTE, reject=True)


@pytest.mark.parametrize(
    ("columns", "time"),
    [
        ("a STRING, at TIMESTAMP", "at"),
        ("d DATE, n BIGINT", "d"),
        ("d DATE, at TIMESTAMP", "at"),
        ("v BIGINT, time INT", "time"),
    ],
)
def test_the_time_is_found_by_itself(columns: str, time: str) -> None:
    assert read_script(f"CREATE STREAM s ({columns})").program.streams[0].time == time


def test_the_column_of_arrival_is_not_taken_for_the_time() -> None:
    text = "CREATE STREAM s (a TIMESTAMP, b TIMESTAMP) ARRIVAL BY b"
    assert read_script(text).program.streams[0].time == "a"


def test_timestamps_may_be_those_of_arrival_or_none() -> None:
    streams = read_script(
        "CREATE STREAM a (v INT) TIMESTAMP BY ARRIVAL; CREATE STREAM b (v INT) TIMESTAMP BY NONE;"
        "CREATE STREAM c (arrival BIGINT) TIMESTAMP BY arrival"
    ).program.streams
    assert [s.timestamps for s in streams] == [Timestamps.INTERNAL, Timestamps.LATENT, Timestamps.EXTERNAL]


def test_inputs() -> None:
    streams = read_script(
        "CREATE STREAM a (t BIGINT) FROM STDIN; CREATE STREAM b (t BIGINT) FROM STDIN FORMAT arrow;"
        "CREATE STREAM c (t BIGINT) FROM 'x.csv.gz' OPTIONS (header false);"
        "CREATE STREAM d (t BIGINT) FROM 'in' FORMAT orc;"
    ).program.streams
    inputs = [Input("stdin"), Input("stdin", options=(("format", "arrow"),)), None, Input("orc", "in")]
    inputs[2] = Input("csv", "x.csv.gz", (("header", "false"),))
    assert [s.input for s in streams] == inputs


def test_outputs() -> None:
    script = query(
        "CREATE QUERY a AS SELECT count(*) FROM N [RANGE 5] INTO 'out';"
        "CREATE QUERY b AS SELECT count(*) FROM N [RANGE 5] INTO 'b' FORMAT CSV;"
        "SELECT count(*) FROM N [RANGE 5] INTO json 'c'; SELECT count(*) FROM N [RANGE 5] "
        "INTO CONSOLE OPTIONS (rows 50); SELECT count(*) FROM N [RANGE 5] INTO memory"
    )
    assert script.outputs == (
        OutputTarget("a", "parquet", "out"),
        OutputTarget("b", "csv", "b"),
        OutputTarget("query_1", "json", "c"),
        OutputTarget("query_2", "console", None, (("rows", "50"),)),
        OutputTarget("query_3", "memory"),
    )


@pytest.mark.parametrize(
    ("window", "meant"),
    [
        ("[RANGE 5 minutes SLIDE 1 minute]", Window(5 * MINUTE, MINUTE)),
        ("[RANGE=300, SLIDE=60s]", Window(5 * MINUTE, MINUTE)),
        ("WINDOW [RANGE 5min SLIDE 60000ms WATTR ts]", Window(5 * MINUTE, MINUTE)),
        ("[RANGE INTERVAL '5' MINUTES SLIDE '1 minute']", Window(5 * MINUTE, MINUTE)),
        ("[RANGE 1.5 hours OFFSET 30 min EMPTY WINDOWS]", Window(90 * MINUTE, offset=30 * MINUTE, empty=True)),
        ("[RANGE 100 ROWS SLIDE 10 ROWS]", RowWindow(100, 10)),
        ("[RANGE 100 SLIDE 10 WATTR tuples]", RowWindow(100, 10)),
    ],
)
def test_windows(window: str, meant: Window | RowWindow) -> None:
    assert query(f"SELECT count(*) FROM S {window}").program.queries[0].window == meant


@pytest.mark.parametrize(
    ("group", "meant"),
    [
        ("ts/60 AS tb", Window(MINUTE)),
        ("date_trunc('hour', ts)", Window(60 * MINUTE)),
        ("k, date_trunc('hour', ts), date_trunc('minute', ts)", Window(MINUTE)),
        ("cast(ts AS DATE)", Window(24 * 60 * MINUTE)),
        ("unix_seconds(ts) div 30", Window(MINUTE // 2)),
        ("date_trunc('WEEK', ts)", Window(7 * 24 * 60 * MINUTE, offset=4 * 24 * 60 * MINUTE)),
    ],
)
def test_a_group_that_is_a_stretch_of_time_makes_the_window(group: str, meant: Window) -> None:
    assert query(f"SELECT count(*) FROM S GROUP BY {group}").program.queries[0].window == meant


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        ("window(ts, '5 minutes')", Window(5 * MINUTE)),
        ("k, WINDOW(ts, '5 minutes', '1 minute')", Window(5 * MINUTE, MINUTE)),
        ("window(ts, '5 minutes', '1 minute', '30 seconds')", Window(5 * MINUTE, MINUTE, MINUTE // 2)),
    ],
)
def test_a_window_in_the_words_of_spark(call: str, meant: Window) -> None:
    [found] = query(f"SELECT window.start, window, max(v) FROM S GROUP BY {call}").program.queries
    assert found.window == meant
    assert "window" not in [group.name for group in found.groups]


def test_a_query_with_a_function_of_the_user_behind_its_argument_compiles() -> None:
    [found] = read_script(
        "CREATE STREAM WordStream (ts TIMESTAMP, word STRING, SomeText STRING);"
        "CREATE FUNCTION foundIn FROM 'found.py' RETURNS BOOLEAN EXPENSIVE;"
        "Select count(word) from WordStream where word foundIn(SomeText) Window[Range=5 min, Slide=1 min]"
    ).program.queries
    assert (found.where, found.window) == ("FOUNDIN(word, SomeText)", Window(5 * MINUTE, MINUTE))


def test_a_group_that_nobody_named_makes_room_for_a_column_of_its_name() -> None:
    [found] = query("SELECT upper(k) AS k, max(v) FROM N [RANGE 5] GROUP BY k").program.queries
    assert found.groups == (Named("k_2", "k"), Named("k", "UPPER(k)"))


def test_brackets_without_range_add_to_the_window_of_a_group() -> None:
    [found] = query("SELECT count(*) FROM S [RETAIN 1 hour] GROUP BY ts/60 AS tb").program.queries
    assert (found.window, found.retain) == (Window(MINUTE), 60 * MINUTE)


def test_groups_values_and_conditions() -> None:
    [found] = query(
        "SELECT s.a AS a, upper(k) AS big, max(v) - min(v) AS spread, sum(v) / count(*), x.k FROM S AS x [RANGE 5] "
        "WHERE x.v > 1 OR w IS NULL GROUP BY s.a, k HAVING spread > 1 AND big <> 'A' AND count(*) > 2"
    ).program.queries
    assert found.groups == (Named("a", "s.a"), Named("k", "k"), Named("big", "UPPER(k)"))
    assert found.select == (Named("spread", "MAX(v) - MIN(v)"), Named("sum_v_count", "SUM(v) / COUNT(*)"))
    assert found.where == "(v > 1 OR w IS NULL)"
    assert found.having == "spread > 1 AND big <> 'A' AND COUNT(*) > 2"


def test_a_group_may_be_used_in_the_words_it_was_written_in() -> None:
    [found] = query("SELECT t/60*60 AS since, max(v) + t/60 AS m FROM N GROUP BY t/60 AS tb").program.queries
    assert found.groups == (
        Named("tb", "(t - PMOD(t, 60)) DIV 60"),
        Named("since", "((t - PMOD(t, 60)) DIV 60) * 60"),
    )
    assert found.select == (Named("m", "MAX(v) + tb"),)


def test_groups_by_place_by_alias_and_all_are_the_same() -> None:
    texts = ("GROUP BY upper(k)", "GROUP BY 1", "GROUP BY big", "GROUP BY ALL")
    found = {query(f"SELECT upper(k) AS big, count(*) FROM S [RANGE 5] {text}").program.queries[0] for text in texts}
    assert len(found) == 1


def test_names_that_nobody_gave_are_plain_and_unique() -> None:
    [found] = query("SELECT max(v), max(v) + 1, MAX(v), count(DISTINCT k), avg(s.a) FROM S [RANGE 5]").program.queries
    assert [value.name for value in found.select] == ["max_v", "max_v_1", "max_v_2", "count_distinct_k", "avg_a"]


def test_the_edges_of_the_window_are_in_every_result_anyway() -> None:
    [found] = query("SELECT window_start, count(*) AS n, window_end FROM S [RANGE 5]").program.queries
    assert [value.name for value in found.select] == ["n"]


def test_a_word_of_sql_may_name_a_column_in_backticks() -> None:
    text = "CREATE STREAM s (t BIGINT, `from` INT, `null` STRING); "
    [found] = read_script(text + "SELECT max(`from`), `null` FROM s [RANGE 5] GROUP BY `null`").program.queries
    assert (found.select[0].sql, found.groups[0].sql) == ("MAX(`from`)", "`null`")


def test_lambdas_and_fields_are_no_columns() -> None:
    [found] = query("SELECT sum(size(filter(xs, x -> x > v))) AS n FROM S [RANGE 5] WHERE s.a > 1").program.queries
    assert found.select[0].sql == "SUM(SIZE(FILTER(xs, x -> x > v)))"


def test_a_query_reads_a_query_in_its_windows_or_in_its_own() -> None:
    script = query(
        "CREATE QUERY sums AS SELECT k, sum(v) AS total FROM N [RANGE 50] GROUP BY k;"
        "CREATE QUERY most AS SELECT max(total) FROM sums; CREATE QUERY long AS SELECT max(total) FROM sums [RANGE 500]"
    )
    assert [(q.stream, q.window) for q in script.program.queries[1:]] == [("sums", SameWindow()), ("sums", Window(500))]


def test_a_sub_query_with_aggregates_is_a_query_without_an_output() -> None:
    script = query(
        "CREATE QUERY q AS SELECT max(t) FROM (SELECT sum(v) AS t FROM N [RANGE 5] GROUP BY k); DROP QUERY q"
    )
    assert script.program.queries == ()
    script = query("WITH a AS (SELECT sum(v) AS t FROM N [RANGE 5] GROUP BY k) SELECT max(t) FROM a x WHERE x.t > 1")
    assert [q.name for q in script.program.queries] == ["query_1_below", "query_1"]
    assert [output.query for output in script.outputs] == ["query_1"]


def test_order_limit_distinct_and_sample() -> None:
    text = (
        "SELECT k, sum(v) AS n FROM N TABLESAMPLE (25 PERCENT) [RANGE 5] GROUP BY k ORDER BY 2 DESC, upper(k) LIMIT 3"
    )
    [found] = query(text).program.queries
    assert [(o.sql, o.descending) for o in found.order] == [("SUM(v)", True), ("UPPER(k)", False)]
    assert (found.limit, found.sample) == (3, 0.25)
    [found] = query("SELECT DISTINCT k, v > 1 AS big FROM N [RANGE 5]").program.queries
    assert (found.select, found.groups) == ((), (Named("k", "k"), Named("big", "v > 1")))


REFUSED = {
    "SELEC 1": (1, 1, "expected a statement", "did you mean SELECT?"),
    "CREATE STREM s (t BIGINT)": (1, 8, "expected STREAM, TABLE, QUERY, BOUNDS, INTERFACE SET", "did you mean STREAM?"),
    "CREATE STREAM s (t BIGINTT)": (1, 20, "expected a type", "did you mean BIGINT?"),
    "CREATE STREAM s (t BIGINT, T INT)": (1, 28, "declared twice", None),
    "CREATE STREAM s (a TIMESTAMP, b TIMESTAMP)": (1, 15, "which column tells the time", "TIMESTAMP BY a or b"),
    "CREATE STREAM s (v DOUBLE)": (1, 15, "no column of stream 's' tells the time", "TIMESTAMP BY ARRIVAL"),
    "CREATE STREAM s (t BIGINT) TIMESTAMP BY tt": (1, 41, "no column 'tt'", "did you mean 't'?"),
    "CREATE STREAM s (t BIGINT) SLAK 5": (1, 28, "expected", "did you mean SLACK?"),
    "CREATE STREAM s (t BIGINT) SLACK 5 SLACK 6": (1, 36, "given twice", None),
    "CREATE STREAM s (t BIGINT) SLACK 5 minutes": (1, 34, "sequence of numbers", "plain number"),
    "CREATE STREAM s (t BIGINT) DRATIO 5": (1, 35, "DRATIO 5 is no share", "write 5%"),
    "CREATE STREAM s (t BIGINT) ESTIMATOR KIM": (1, 28, "ESTIMATOR without DRATIO", "add DRATIO"),
    "CREATE STREAM s (t BIGINT) DRATIO 1% ESTIMATOR KIMM": (1, 38, "no estimator KIMM", "did you mean 'KIM'?"),
    "CREATE STREAM s (t BIGINT) DRATIO 1% OWN PROGRESS": (1, 38, "keep one of them", None),
    "CREATE STREAM s (ts TIMESTAMP) BOUNDS (SOURCE a)": (1, 32, "no column that names them", "SOURCE BY"),
    "CREATE STREAM s (t BIGINT, a INT) SOURCE BY a, t BOUNDS (SOURCE a)": (1, 50, "more than one column", "one column"),
    "CREATE STREAM s (ts TIMESTAMP, p BIGINT) PUNCTUATED BY p": (1, 42, "'p' is BIGINT", "a BOOLEAN column"),
    "CREATE STREAM s (t BIGINT) CLOCK SKEW 5": (1, 28, "which no clock follows", "ARRIVAL BY"),
    "CREATE STREAM s (t BIGINT) FROM 'in'": (1, 28, "format of this path", "FROM json"),
    "CREATE STREAM s (t BIGINT) LIMIT 5 FILES PER DAY": (1, 46, "expected ROUND, not 'DAY'", None),
    "SELECT max(v FROM N [RANGE 5]": (3, 14, "expected )", None),
    "SELECT max(vv) FROM N [RANGE 5]": (3, 12, "no column 'vv'", "did you mean 'v'?"),
    "SELECT max(v) FROM NN [RANGE 5]": (3, 20, "no stream 'NN'", "did you mean 'N'?"),
    "SELECT max(v) FROM N [RANG 5]": (3, 23, "expected RANGE", "did you mean RANGE?"),
    "SELECT max(v) FROM N [RANGE 5 parsecs]": (3, 31, "expected RANGE", None),
    "SELECT max(v) FROM N [RANGE '5 parsecs']": (3, 29, "'parsecs' is no unit", None),
    "SELECT max(v) FROM N": (3, 8, "could never close", "GROUP BY t/60 AS tb"),
    "SELECT max(v) FROM (SELECT v FROM N)": (3, 8, "no longer has the time of the stream", "select t below it"),
    "SELECT max(v) FROM N GROUP BY t % 60": (3, 8, "could never close", "FROM N [RANGE"),
    "SELECT max(v) FROM N GROUP BY -t": (3, 8, "could never close", "FROM N [RANGE"),
    "SELECT max(v), k FROM N [RANGE 5]": (3, 16, "neither in an aggregate nor a group", "GROUP BY"),
    "SELECT k, mx(v) FROM N [RANGE 5] GROUP BY k": (
        3,
        14,
        "neither in an aggregate",
        "mx is no aggregate: did you mean max?",
    ),
    "SELECT lower(k) || k, max(v) FROM N [RANGE 5] GROUP BY lower(k)": (
        3,
        20,
        "'k' is neither in an aggregate",
        "GROUP BY",
    ),
    "SELECT k FROM N [RANGE 5]": (3, 18, "no aggregate", "SELECT DISTINCT"),
    "SELECT * FROM N [RANGE 5] GROUP BY k": (3, 8, "* is every column of a row", "select aggregates"),
    "SELECT max(v) FROM N [RANGE 0]": (3, 29, "RANGE 0 is no length", None),
    "SELECT max(v) FROM N [RANGE 5 SLIDE 0]": (3, 37, "SLIDE 0 is no length", None),
    "SELECT max(v) FROM S GROUP BY window(k, '5 minutes')": (3, 31, "goes by the time of the stream", "its time is ts"),
    "SELECT max(v) FROM S GROUP BY window(ts, '5 parsecs')": (3, 42, "'parsecs' is no unit", None),
    "SELECT max(v) FROM S GROUP BY window(ts, 5)": (3, 42, "expected window(time", None),
    "SELECT max(v) FROM S [RANGE 5] GROUP BY window(ts, '5 s')": (3, 41, "this is its second", None),
    "SELECT max(v) FROM N [RANGE 5] ORDER BY k": (3, 41, "neither in an aggregate nor a group", None),
    "CREATE QUERY a AS SELECT max(m) FROM (SELECT max(v) m FROM N [RANGE 5]) [RANGE 9 RETAIN 9]": (
        3,
        1,
        "retain",
        None,
    ),
    "SELECT max(v) FROM N [SLIDE 5]": (3, 23, "SLIDE without RANGE", None),
    "SELECT max(v) FROM N [RANGE 5 WATTR k]": (3, 31, "'k' does not tell the time", None),
    "SELECT max(v) FROM N [RANGE 5] [RANGE 6]": (3, 32, "expected", None),
    "SELECT max(v) FROM N [RANGE 5] WHERE max(v) > 1": (3, 38, "WHERE sees single rows", "HAVING"),
    "SELECT max(v) AS rows FROM N [RANGE 5]": (3, 8, "is a column of every result", None),
    "SELECT max(v) AS a, min(v) AS A FROM N [RANGE 5]": (3, 21, "two columns are named", None),
    "SELECT count(*) FROM N SEMI JOIN S ON N.k = S.k": (3, 34, "is a time and N.t is a number", None),
    "SELECT max(v) FROM N UNION ALL SELECT max(v) FROM S": (3, 8, "this aggregate could never close", None),
    "SELECT count(*) FROM N [RANGE 5] WHERE v IN (SELECT 1)": (3, 53, "more than FROM and WHERE", None),
    "SELECT count(*) FROM N [RANGE 5] WHERE v > (SELECT 1)": (3, 52, "a query inside an expression", "SELECT .. FROM"),
    "SELECT count(*) FROM N [RANGE 5] INTO 'x' FORMAT pq": (3, 50, "cannot go to 'pq'", None),
    "SELECT count(*) FROM N [RANGE 5] INTO parquet": (3, 34, "needs a directory", None),
    "CREATE QUERY S AS SELECT count(*) FROM N [RANGE 5]": (3, 14, "already a stream 'S'", "another name"),
    "DROP QUERY q": (3, 12, "no query 'q'", None),
    "EXPLAIN q": (3, 9, "no query 'q'", None),
    "SELECT 'abc": (3, 8, "this text is not closed", "begins with '"),
    "SELECT `abc": (3, 8, "this name is not closed", None),
    "SELECT 1 /* abc": (3, 10, "this comment is not closed", None),
    "CREATE FUNCTION f": (3, 17, "where is the function", "FROM 'file.py'"),
    "SHOW TABLES": (3, 6, "expected STREAMS or QUERIES", None),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_wrong_is_shown_at_its_place_with_a_way_out(text: str) -> None:
    line, column, message, hint = REFUSED[text]
    error = refused((S + N if line == 3 else "") + text)
    assert (error.line, error.column, error.text, error.file) == (line, column, text, "x.sql")
    assert message in error.message
    assert hint is None or hint in (error.hint or "")
    assert isinstance(error, DeclarationError)


def test_an_error_shows_the_line_with_a_marker_below_the_place() -> None:
    error = refused("CREATE STREAM s (t BIGINT);\n\tSELECT max(tt)\n  FROM s [RANGE 5]")
    assert (
        str(error)
        == "x.sql:2:13: there is no column 'tt'\n    \tSELECT max(tt)\n    \t           ^\n  did you mean 't'?"
    )
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_missing_semicolon_is_suspected() -> None:
    assert refused("CREATE STREAM s (t BIGINT)\nSELECT 1").hint == "end the statement before it with ;"
    text = "CREATE STREAM s (t BIGINT);\nSELECT max(t) FROM s [RANGE 5]\nSET a = 1"
    assert refused(text).hint == "end the statement before it with ;"


def test_comments_are_no_part_of_what_is_computed() -> None:
    text = "SELECT k /* a */, max(v) -- b\n FROM N [RANGE 5] WHERE v /* c */ > 1 GROUP BY k HAVING max(v) /* d */ > 1"
    [found] = query(text).program.queries
    told = (found.groups[0].sql, found.select[0].sql, found.where, found.having)
    assert told == ("k", "MAX(v)", "(v > 1)", "MAX(v) > 1")


def test_a_text_from_windows_is_read() -> None:
    assert read_script("\ufeffCREATE STREAM s (t BIGINT);\r\n").program.streams[0].name == "s"
    error = refused("CREATE STREAM s (t BIGINT);\r\nSELECT max(tt) FROM s [RANGE 5]\r\n")
    assert (error.line, error.column, error.text) == (2, 12, "SELECT max(tt) FROM s [RANGE 5]")


def test_a_stream_that_is_read_cannot_be_dropped() -> None:
    text = S + "CREATE QUERY q AS SELECT count(*) FROM S [RANGE 5];"
    assert "DROP QUERY q before" in str(refused(text + "DROP STREAM s"))
    assert read_script(text + "DROP QUERY Q; DROP STREAM s").program.streams == ()


def test_two_queries_cannot_write_into_one_directory() -> None:
    one = "SELECT count(*) FROM S [RANGE 5] INTO 'out';"
    assert "writes into 'out' already" in refused(S + one + one).message
