"""What is said of a join that cannot be: in the user's own words, at its place, with a way out."""

from __future__ import annotations

import pytest

from eventide.errors import LanguageError
from eventide.language.script import read_script

STREAMS = """CREATE STREAM a (ts TIMESTAMP, k STRING, v INT, till TIMESTAMP) TIMESTAMP BY ts;
CREATE STREAM b (ts TIMESTAMP, k STRING, v INT);
CREATE STREAM c (ts TIMESTAMP, k STRING, v INT);
CREATE STREAM n (t BIGINT, k STRING);
"""
PAIRS = "SELECT a.v FROM a JOIN b ON a.ts = b.ts JOIN c "

REFUSED = {
    # Inputs that are joined already are an operator below, whose name the user never gave.
    PAIRS + "ON a.k = c.k": ("time of 'a' or 'b' to that of 'c'", "add a.ts = c.ts, or a.ts BETWEEN c.ts - INTERVAL"),
    PAIRS + "ON b.ts < c.ts": ("c.ts may be any time after b.ts", "add c.ts <= b.ts + INTERVAL 5 SECONDS"),
    PAIRS + "FOR SYSTEM_TIME AS OF a.k AS p ON a.k = p.k": ("of the pairs of 'a' and 'b'", "pairs.window_end"),
    PAIRS + "FOR SYSTEM_TIME AS OF a.ts AS p ON a.k > p.k": ("has no equal keys", "add ON a.key = p.key"),
    PAIRS + "[RANGE 5 s] ON a.k = c.k": ("what is joined already has none", "leave this window out"),
    "SELECT a.v FROM a JOIN (SELECT ts + INTERVAL 1 SECOND AS u FROM b) AS x ON a.ts < x.u": (
        "x.u may be any time after a.ts",
        "add x.u <= a.ts + INTERVAL 5 SECONDS",
    ),
    "SELECT a.v FROM a AS `my a` JOIN b ON `my a`.ts < b.ts": ("after `my a`.ts", "b.ts <= `my a`.ts + INTERVAL"),
    "SELECT a.v FROM a JOIN n ON a.ts = n.t": ("a.ts is a time and n.t is a number", "declare the time of both"),
    "SELECT a.v FROM a JOIN b ON a.ts BETWEEN b.ts - INTERVAL 1 MONTH AND b.ts": ("has no fixed length", "one unit"),
    "SELECT a.v FROM a FOR SYSTEM_TIME AS OF a.ts": ("for the right side of a join", "JOIN table FOR SYSTEM_TIME"),
    "SELECT b.v FROM a SEMI JOIN b ON a.ts = b.ts": ("no input of this join is called 'b'", "there are: a"),
    "SELECT a.v FROM a RIGHT SEMI JOIN b ON a.ts = b.ts": ("RIGHT SEMI JOIN cannot be run yet", "write JOIN"),
    PAIRS + "ON a.ts = c.ts LEFT ANTI JOIN n ON n.k = a.k": ("a ANTI JOIN among several joins", "a sub-query"),
    "SELECT v FROM a WHERE k NOT IN (SELECT k FROM b WHERE b.ts = a.ts)": ("beside a NULL", "write NOT EXISTS"),
    "SELECT v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)": ("nothing relates the time", "a.ts = b.ts"),
    "SELECT v FROM a WHERE k IN (SELECT max(k) AS k FROM b GROUP BY ts)": ("more than FROM and WHERE", "in FROM"),
    "SELECT v FROM a WHERE k IN (SELECT k, v FROM b WHERE b.ts = a.ts)": ("IN takes a query of one column", ""),
    "SELECT v FROM a WHERE v > (SELECT max(v) FROM b)": ("this aggregate could never close", "FROM b [RANGE 5 minutes"),
    "SELECT v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.ts = a.ts) AND k IN (SELECT k FROM b WHERE b.ts = a.ts)": (
        "several sub-queries",
        "put one into a sub-query in FROM",
    ),
    "SELECT a.v FROM a JOIN b ON a.k = b.k AND b.ts <= a.till": ("come for those of 'b'", "add a.ts <= b.ts"),
    "SELECT a.v FROM a JOIN b ON b.ts BETWEEN a.ts AND a.v": ("b.ts may be any time after a.ts", "add b.ts <= a.ts +"),
    "SELECT a.v FROM a JOIN b ON b.ts >= a.till": ("nothing relates the time", "add a.ts = b.ts"),
    PAIRS + "ON c.ts <= a.till": ("come for those of 'c'", "add a.ts <= c.ts"),
    "SELECT x.v FROM a JOIN b ON a.ts = b.ts": ("no input of this join is called 'x'", "there are: a, b"),
    "SELECT w FROM a JOIN b ON a.ts = b.ts": ("there is no column 'w'", "a.v"),
    "SELECT a.v AS x, b.v AS x FROM a JOIN b ON a.ts = b.ts": ("query 'query_1': two columns are named 'x'", ""),
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_join_is_refused_in_the_words_of_the_user(text: str) -> None:
    message, hint = REFUSED[text]
    with pytest.raises(LanguageError) as caught:
        read_script(STREAMS + text)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert "_below" not in str(caught.value)
