"""What other systems write otherwise, and usual slips: refused at their place, with what to write instead."""

from __future__ import annotations

import pytest

from eventide.errors import LanguageError
from eventide.language.script import read_script

N = "CREATE STREAM N (t BIGINT, k STRING, v INT);\n"

MEANT: dict[str, tuple[int, int, str, str | None]] = {
    "SELECT sum(v) OVER (PARTITION BY k) FROM N [RANGE 5]": (
        2,
        8,
        "OVER cannot be run yet",
        "aggregate in a window, FROM s [RANGE 5 minutes]; over all groups of a window, "
        "by a query over the query's name",
    ),
    "SELECT v, rank() OVER (ORDER BY count(*) DESC) AS r FROM N [RANGE 5] GROUP BY v": (
        2,
        11,
        "OVER cannot be run yet",
        "for the first n of each window: ORDER BY COUNT(*) DESC LIMIT n, behind GROUP BY",
    ),
    "SELECT v, count(*) AS n FROM N [RANGE 5] GROUP BY v HAVING rank() OVER (ORDER BY n) < 3": (
        2,
        60,
        "OVER cannot be run yet",
        "ORDER BY n LIMIT n",
    ),
    "SELECT v FROM N WHERE row_number() OVER (PARTITION BY v) = 1": (2, 23, "OVER cannot be run yet", None),
    "SELECT max(v) FROM N [RANGE 5 minuts]": (2, 31, "not 'minuts'", "did you mean minutes?"),
    "SELECT max(v) FROM N [RANGE 1 month]": (2, 31, "not 'month'", "say how many days"),
    "SELECT max(v) FROM N [RANGE 5 GROUP BY k": (2, 31, "not 'GROUP BY'", "close the window before it with ]"),
    "SELECT max(v) FROM N RANGE 5": (2, 28, "not '5'", "a window stands in brackets: [RANGE 5 minutes]"),
    "SELECT max(v) FROM N (RANGE 5 minutes)": (2, 31, "expected )", "a window stands in brackets: [RANGE 5 minutes]"),
    "SELECT max(v) FROM N [RANGE 5] SELECT max(v) FROM N [RANGE 6]": (2, 32, "not 'SELECT'", "before it with ;"),
    "SELECT max(v) FORM N [RANGE 5]": (2, 20, "not 'N'", "did you mean FROM?"),
    "SELECT max(v) FROM N [RANGE 5] EMIT CHANGES": (2, 37, "not 'CHANGES'", "PROD EVERY 10 seconds"),
    "SELECT max(v) FROM N WITH WATERMARK t 5": (2, 22, "not 'WITH'", "how time moves is said in CREATE STREAM"),
    "SELECT max(v) FROM N GROUP BY TUMBLE(t, 5)": (2, 8, "could never close", "TUMBLE is not known here: write FROM N"),
    "SELECT max(v) FROM TABLE(HOP(TABLE N, DESCRIPTOR(t), 1, 5))": (2, 36, "expected )", "HOP is not known here"),
    "SELECT avrg(v) FROM N [RANGE 5]": (2, 24, "no aggregate", "'avrg' is no aggregate: did you mean avg?"),
    "CREATE VIEW a AS SELECT max(v) FROM N [RANGE 5]": (2, 8, "not 'VIEW'", "a view is a query here"),
    "CREATE TABLE a (t BIGINT)": (2, 8, "not 'TABLE'", "CREATE STREAM name"),
    "INSERT INTO a SELECT v FROM N": (2, 1, "not 'INSERT'", "CREATE QUERY name AS SELECT .. INTO 'dir'"),
    "SELECT v - lag(v) OVER (ORDER BY t) AS d FROM N": (
        2,
        12,
        "OVER cannot be run yet",
        "to meet rows before it, join the stream with itself: ON a.ts BETWEEN b.ts AND b.ts + INTERVAL 1 MINUTE",
    ),
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
