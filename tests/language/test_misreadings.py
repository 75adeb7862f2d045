"""What other systems write otherwise, and usual slips: refused at their place, with what to write instead."""

from __future__ import annotations

import pytest

from eventide.errors import LanguageError
from eventide.language.script import read_script

N = "CREATE STREAM N (t BIGINT, k STRING, v INT);\n"

MEANT: dict[str, tuple[int, int, str, str | None]] = {
    "SELECT sum(v) OVER (PARTITION BY k) AS x FROM N": (
        2,
        8,
        "the rows that sum looks at are never all there, as a stream has no end",
        "ORDER BY t to look at those before, or PARTITION BY t to look at those of the same time",
    ),
    "SELECT rank() OVER (PARTITION BY k ORDER BY t) AS x FROM N": (2, 8, "rank needs all rows", "PARTITION BY t too"),
    "SELECT lag(v) OVER (ORDER BY t DESC) AS x FROM N": (2, 8, "never all there", "ORDER BY t"),
    "SELECT row_number() OVER (PARTITION BY t) AS x FROM N": (2, 8, "row_number needs an order", None),
    "SELECT lag(v, k) OVER (ORDER BY t) AS x FROM N": (2, 8, "needs a number of rows", None),
    "SELECT ntile(2) OVER (PARTITION BY t ORDER BY v ROWS 1 PRECEDING) AS x FROM N": (
        2,
        8,
        "ntile has no frame",
        None,
    ),
    "SELECT max(v) OVER (ORDER BY t RANGE INTERVAL 5 SECONDS PRECEDING) AS x FROM N": (2, 8, "is in numbers", None),
    "SELECT max(v) OVER (ORDER BY t ROWS BETWEEN 1 FOLLOWING AND 1 PRECEDING) AS x FROM N": (
        2,
        8,
        "this frame ends before it begins",
        None,
    ),
    "SELECT max(v) OVER (ORDER BY t ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING) AS x FROM N": (
        2,
        8,
        "a frame up to UNBOUNDED FOLLOWING never ends",
        "say how far it reaches",
    ),
    "SELECT max(v) OVER w AS x FROM N": (2, 8, "there is no window 'w'", "write WINDOW w AS (..)"),
    "SELECT lag(v) OVER (ORDER BY t) AS x FROM N EMIT IMMEDIATELY": (2, 45, "OVER waits for those", "leave it out"),
    "SELECT v FROM N QUALIFY v > 1": (2, 25, "QUALIFY chooses by a function with OVER", "write WHERE"),
    "SELECT DISTINCT ON (k) v FROM N [RANGE 5 ROWS]": (2, 40, "looks back over a length of time", "[RANGE 1 hour]"),
    "SELECT v, count(*) AS n, rank() OVER (ORDER BY count(*)) AS r FROM N [RANGE 5] GROUP BY v LIMIT 2": (
        2,
        97,
        "LIMIT and OVER in one SELECT cannot be run yet",
        "put one of them into a query around",
    ),
    "SELECT v, count(*) AS n FROM N [RANGE 5] GROUP BY v HAVING rank() OVER (ORDER BY n) < 3": (
        2,
        60,
        "HAVING sees no OVER",
        "choose by it in QUALIFY, behind the SELECT",
    ),
    "SELECT v FROM N WHERE row_number() OVER (PARTITION BY v) = 1": (2, 23, "WHERE sees no OVER", "QUALIFY"),
    "SELECT max(v) FROM N [RANGE 5 minuts]": (2, 31, "not 'minuts'", "did you mean minutes?"),
    "SELECT max(v) FROM N [RANGE 1 month]": (2, 31, "not 'month'", "say how many days"),
    "SELECT max(v) FROM N [RANGE 5 GROUP BY k": (2, 31, "not 'GROUP BY'", "close the window before it with ]"),
    "SELECT max(v) FROM N RANGE 5": (2, 28, "not '5'", "a window stands in brackets: [RANGE 5 minutes]"),
    "SELECT max(v) FROM N (RANGE 5 minutes)": (2, 31, "expected )", "a window stands in brackets: [RANGE 5 minutes]"),
    "SELECT max(v) FROM N [RANGE 5] SELECT max(v) FROM N [RANGE 6]": (2, 32, "not 'SELECT'", "before it with ;"),
    "SELECT max(v) FORM N [RANGE 5]": (2, 20, "not 'N'", "did you mean FROM?"),
    "SELECT max(v) FROM N [RANGE 5] EMIT CHANGES": (2, 32, "that no window ends", "PROD EVERY 10 seconds"),
    "SELECT max(v) FROM N [RANGE 5] EMIT FINAL": (2, 37, "not 'FINAL'", "PROD EVERY 10 seconds"),
    "SELECT max(v) FROM N [RANGE 5] STATE TTL 5": (2, 32, "all that is kept here ends by itself", "leave it out"),
    "SELECT v FROM N STATE TTL 5": (2, 17, "all that is kept here ends by itself", "leave it out"),
    "SELECT v FROM N EMIT CHANGES": (2, 17, "and these are rows", "rows do not change"),
    "SELECT max(v) FROM N [RANGE 5] STATE TTL": (2, 41, "expected a number or a length", None),
    "SELECT max(v) FROM N WITH WATERMARK t 5": (2, 22, "not 'WITH'", "how time moves is said in CREATE STREAM"),
    "SELECT max(v) FROM N GROUP BY TUMBLING(t, 5)": (
        2,
        8,
        "could never close",
        "TUMBLING is not known here: write FROM N",
    ),
    "SELECT max(v) FROM TABLE(JUMP(TABLE N, DESCRIPTOR(t), 1, 5))": (2, 37, "expected )", None),
    "SELECT avrg(v) FROM N [RANGE 5]": (2, 8, "'avrg' is no aggregate", "did you mean avg?"),
    "SELECT k max(v) FROM N [RANGE 5] GROUP BY k": (2, 10, "unexpected 'max'", "put a comma before it"),
    "SELECT max(v, 3) FROM N [RANGE 5]": (2, 8, "takes one value", "greatest(..)"),
    "SELECT max(v)) FROM N [RANGE 5]": (2, 14, "not ')'", "it closes nothing"),
    "SELECT max(v), FROM N [RANGE 5]": (2, 16, "behind the comma", "leave the comma out"),
    "SELECT FROM N [RANGE 5]": (2, 13, "has no columns", "SELECT *"),
    "SELECT max(v) N [RANGE 5]": (2, 17, "not '['", "write FROM N"),
    "SELECT max(v) WHERE v > 3 FROM N [RANGE 5]": (2, 27, "not 'FROM'", "FROM stands before WHERE"),
    "SELECT max(v) FROM N [RANGE 5] WHERE v => 3": (2, 40, "not '=>'", "did you mean >=?"),
    "SELECT max(v) FROM N [RANGE 5] WHERE v IN 1, 2": (2, 44, "not ','", "IN (1, 2)"),
    "SELECT max(v) FROM N [RANGE 5] WHERE k IS 'a'": (2, 43, "IS is for NULL", "write ="),
    "SELECT max(v) FROM N [RANGE 5] WHERE v > (SELECT max(v) FROM N)": (2, 50, "before their windows", "HAVING"),
    "SELECT max(v) FROM N [RANGE 5] GROUP k": (2, 38, "not 'k'", "write GROUP BY"),
    "SELECT max(v) FROM N [RANGE 5] LIMIT": (2, 37, "ends too early", "LIMIT 10"),
    "SELECT max(v) FROM N [RANGE 5] [RANGE 6]": (2, 32, "not '['", "a query has one window"),
    "SELECT max(v) FROM N [RANGE 5, RANGE 6]": (2, 32, "RANGE is given twice", None),
    "SELECT max(v) FROM N [RANGE -5]": (2, 29, "RANGE -5 is no length", None),
    "SELECT max(v) FROM N WINDOW TUMBLING (SIZE 5 MINUTES)": (2, 44, "expected )", "TUMBLING is not known here"),
    "SELECT max(v) AS select FROM N [RANGE 5]": (2, 18, "not 'select'", "AS `select`"),
    "SELECT max(v) AS top FROM N [RANGE 5] HAVING tp > 3": (2, 46, "no column 'tp'", "did you mean 'top'?"),
    "SELECT k AS window_end, max(v) FROM N [RANGE 5] GROUP BY k": (2, 8, "a column of every result", None),
    "SELECT x.v FROM N AS a": (2, 8, "nothing here is called 'x'", "did you mean a.v?"),
    "SELECT cast(v AS STRNG) FROM N": (2, 18, "expected a type", "did you mean STRING?"),
    "SELECT cast(v, INT) FROM N": (2, 16, "unexpected 'INT'", "CAST(v AS INT)"),
    "SELECT CASE WHEN v > 5 THEN 1 FROM N": (2, 31, "expected END", None),
    "SELECT max(v) FROM N [RANGE 5] INTO out": (2, 37, "cannot go to 'out'", "INTO 'out'"),
    "CREATE STREAM s (ts TIMESTAMP v INT)": (2, 31, "not 'v'", "put a comma before it"),
    "CREATE STREAM s (t BIGINT) WITH (KAFKA_TOPIC = 's')": (2, 28, "not 'WITH'", "USING kafka OPTIONS"),
    "CREATE STREAM s (ts TIMESTAMP, WATERMARK FOR ts AS ts)": (2, 42, "not 'FOR'", "DELAY 5 minutes"),
    "CREATE STREAM s (t BIGINT) DRATIO 0%": (2, 35, "DRATIO 0% is no share", "more than 0%"),
    "CREATE STREAM s (t BIGINT) DRATIO 5": (2, 35, "DRATIO 5 is no share", "write 5%"),
    "DELETE FROM N": (2, 1, "not 'DELETE'", "declares streams and queries"),
    "CREATE VIEW a AS SELECT max(v) FROM N [RANGE 5]": (2, 8, "not 'VIEW'", "a view is a query here"),
    "CREATE TABLE a (t BIGINT)": (2, 14, "a table comes from parquet", "CREATE STREAM name"),
    "INSERT INTO a SELECT v FROM N": (2, 1, "not 'INSERT'", "CREATE QUERY name AS SELECT .. INTO 'dir'"),
}


@pytest.mark.parametrize("text", MEANT)
def test_what_was_probably_meant_is_told(text: str) -> None:
    line, column, message, hint = MEANT[text]
    with pytest.raises(LanguageError) as raised:
        read_script(N + text, "x.sql")
    error = raised.value
    assert (error.line, error.column, error.text) == (line, column, text)
    assert message in error.message
    assert hint is None or hint in (error.hint or "")


def test_a_query_behind_a_forgotten_semicolon_is_not_taken_for_a_watermark() -> None:
    with pytest.raises(LanguageError) as raised:
        read_script(N + "SELECT max(v) FROM N [RANGE 5]\nWITH a AS (SELECT v FROM N) SELECT v FROM a", "x.sql")
    assert raised.value.hint == "end the statement before it with ;"


def test_stretches_that_differ_in_length_or_that_nobody_knows_are_told_apart() -> None:
    stream = "CREATE STREAM s (ts TIMESTAMP);\n"
    for unit, message, hint in (
        ("month", "stretches of a month are not equally long", "[RANGE 30 days]"),
        ("minut", "date_trunc knows no 'minut'", "did you mean 'minute'?"),
    ):
        with pytest.raises(LanguageError) as raised:
            read_script(stream + f"SELECT date_trunc('{unit}', ts) AS u, count(*) FROM s GROUP BY u", "x.sql")
        assert raised.value.message == message
        assert hint in (raised.value.hint or "")


def test_the_order_of_windows_needs_no_words_and_does_no_harm() -> None:
    script = read_script(N + "SELECT max(v) AS top FROM N [RANGE 5] ORDER BY window_end, top DESC", "x.sql")
    assert [order.sql for order in script.program.queries[0].order] == ["top"]


def test_sparks_window_may_be_grouped_by_its_name() -> None:
    stream = "CREATE STREAM s (ts TIMESTAMP);\n"
    script = read_script(stream + "SELECT window(ts, '5 minutes') AS w, count(*) AS n FROM s GROUP BY w", "x.sql")
    (query,) = script.program.queries
    assert (query.groups, [value.name for value in query.select]) == ((), ["n"])
