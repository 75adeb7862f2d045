"""CLOSE BY SOURCE and PUNCTUATED BY: what they make of a program, and what is refused, where and with which way out."""

from __future__ import annotations

import pytest

from eventide.errors import DeclarationError, LanguageError
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.language.script import read_script
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Stream, Timestamps, columns
from eventide.plan.declared.window import RowWindow, Window

FLEET = """CREATE STREAM fleet (ts TIMESTAMP, Device STRING, load DOUBLE, done BOOLEAN) SOURCE BY device
    OWN PROGRESS PUNCTUATED BY Done;
"""
QUERY = "SELECT device AS d, max(load) FROM fleet [RANGE 60 s SLIDE 10 s] GROUP BY device"
REFUSED = {
    "SELECT max(load) FROM fleet [RANGE 5]\nCLOSE BY SOURCE": "group by Device, as a plain column",
    "SELECT upper(device) AS u, max(load) FROM fleet [RANGE 5] GROUP BY u\nCLOSE BY SOURCE": "group by Device",
    "SELECT device, max(load) FROM fleet [RANGE 5 ROWS] GROUP BY device\nCLOSE BY SOURCE": "windows of time",
    "SELECT device, max(load) FROM fleet [RANGE 5 RETAIN 5] GROUP BY device\nCLOSE BY SOURCE": "drop RETAIN",
    "SELECT device, max(load) FROM fleet [RANGE 5] GROUP BY device LIMIT 1\nCLOSE BY SOURCE": "drop them",
    "SELECT max(max_load) FROM q\nCLOSE BY SOURCE": "it reads the query 'q'",
}


RANGED = (
    "CREATE STREAM s (ts TIMESTAMP, since TIMESTAMP, k INT, x DOUBLE, v INT, a INT, b INT, p BOOLEAN) TIMESTAMP BY ts "
    "SOURCE BY k, x PUNCTUATED BY p"
)


def test_promises_of_ranges_compile() -> None:
    [stream] = read_script(f"{RANGED} FOR k BETWEEN a AND b AND TS BETWEEN since AND ts").program.streams
    assert stream.promised == (("k", "a", "b"), ("ts", "since", "ts"))


def test_a_query_closes_by_source_where_it_says_so() -> None:
    program = read_script(f"{FLEET}{QUERY} CLOSE BY SOURCE INTO csv 'out';\n{QUERY};").program
    assert [query.by_source for query in program.queries] == [True, False]
    assert program.streams[0].punctuation == "done"
    assert program.streams[0].policy == Punctuated(OwnProgress())


def test_a_query_may_read_one_that_closes_by_source() -> None:
    program = read_script(f"{FLEET}CREATE QUERY q AS {QUERY} CLOSE BY SOURCE; SELECT max(max_load) FROM q").program
    assert [query.by_source for query in program.queries] == [True, False]


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_close_by_source_is_told_at_the_clause(text: str) -> None:
    with pytest.raises(LanguageError) as told:
        read_script(f"{FLEET}CREATE QUERY q AS {QUERY};\n{text}")
    assert REFUSED[text] in told.value.message
    assert told.value.text == "CLOSE BY SOURCE"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("CREATE STREAM s (p BOOLEAN) TIMESTAMP BY ARRIVAL PUNCTUATED BY p", "rows have no time of their own"),
        ("CREATE STREAM s (ts TIMESTAMP, p INT) PUNCTUATED BY p", "'p' is INT"),
        ("CREATE STREAM s (ts TIMESTAMP) PUNCTUATED BY p", "no column 'p'"),
        (f"{RANGED} FOR ts BETWEEN a AND ts", "cannot promise 'ts' by 'a': it is INT; make it TIMESTAMP"),
        (f"{RANGED} FOR ts BETWEEN since AND since", "a range of time ends with that of the promise: 'ts'"),
        (f"{RANGED} FOR v BETWEEN a AND b", "ranges are of its time or of columns of its source"),
        (f"{RANGED} FOR x BETWEEN a AND b", "it is DOUBLE; make it STRING or a number"),
        (f"{RANGED} FOR k BETWEEN a AND b AND k BETWEEN a AND b", "two ranges of 'k'"),
        (f"{RANGED} FOR k BETWEEN 3 AND 7", "is no range of which promises speak"),
        (f"{RANGED} FOR k BETWEEN a AND nobody", "no column 'nobody'"),
    ],
)
def test_a_column_that_cannot_promise_is_refused(written: str, message: str) -> None:
    with pytest.raises(LanguageError, match=message):
        read_script(written)


S = Stream("s", columns("t BIGINT, who STRING, done BOOLEAN"), time="t", source=("who",), policy=Punctuated())
Q = Query("q", "s", Window(5), named_as(n="count(*)"), named_as("who"), by_source=True)


def test_a_stream_whose_policy_takes_no_promises_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"use Punctuated\(OwnProgress"):
        Stream("s", S.columns, time="t", policy=OwnProgress(), punctuation="done")


@pytest.mark.parametrize(
    ("stream", "query", "message"),
    [
        (Stream("s", S.columns, time="t"), Q, "'s' is one source"),
        (Stream("s", S.columns, source=("who",), timestamps=Timestamps.INTERNAL), Q, "stamped by the clock"),
        (S, Query("q", "s", RowWindow(5), Q.select, Q.groups, by_source=True), "windows of time"),
        (S, Query("q", "s", Window(5, empty=True), Q.select, by_source=True), "empty windows"),
    ],
)
def test_a_program_says_why_a_query_cannot_close_by_source(stream: Stream, query: Query, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        Program((stream,), (query,))


@pytest.mark.parametrize("clauses", ["", "IDLE AFTER 9", "TIMEOUT 9", "DELAY 0"])
def test_promises_alone_do_not_close_the_last_rows_in_silence(clauses: str) -> None:
    columns = "(t BIGINT, who STRING, done BOOLEAN)"
    stream = f"CREATE STREAM s {columns} FROM json 'in' SOURCE BY who PUNCTUATED BY done {clauses};"
    script = read_script(f"{stream} SELECT count(*) FROM s [RANGE 10];")
    warned = any("promises alone" in warning.message for warning in script.warnings)
    assert warned == (clauses in ("", "IDLE AFTER 9"))
