"""PROD behind a query: what it compiles to, and what is refused, where."""

from __future__ import annotations

import re

import pytest

from eventide.errors import LanguageError
from eventide.eventtime.early.triggers import Earliness
from eventide.language.script import read_script
from eventide.plan.declared.query import Prods

STREAM = "CREATE STREAM s (ts TIMESTAMP, k STRING, v INT) TIMESTAMP BY ts;\n"
NUMBERS = "CREATE STREAM s (t BIGINT, v INT) TIMESTAMP BY t;\n"


def prods(clauses: str, stream: str = STREAM, window: str = "[RANGE 5 min SLIDE 1 min]") -> Prods | None:
    script = read_script(f"{stream}CREATE QUERY q AS SELECT sum(v) AS total FROM s {window} {clauses}")
    return script.program.query("q").prods


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("", None),
        ("PROD EVERY 1 SECOND", Prods(every=1_000_000)),
        ("PROD EVERY 100 ROWS", Prods(every_rows=100)),
        ("PROD EVERY 1 s DISCARDING", Prods(every=1_000_000, discarding=True)),
        ("prod at 75 %, 90%", Prods(points=(0.75, 0.9))),
        ("PROD AT 120 % ESTIMATE", Prods(points=(1.2,), estimate=True)),
        ("PROD WITHIN 2 % ERROR", Prods(within=Earliness(0.02))),
        (
            "PROD BETWEEN 50% AND 110% PROD WITHIN 2 % ERROR PROD SPEED 5% PROD CONFIDENCE 99% PROD EVERY 10 s",
            Prods(every=10_000_000, within=Earliness(0.02, earliest=0.5, latest=1.1, speed=0.05, confidence=0.99)),
        ),
    ],
)
def test_prods_compile(clauses: str, expected: Prods | None) -> None:
    assert prods(clauses) == expected


@pytest.mark.parametrize(
    ("condition", "where"),
    [
        ("K IN ('a', 'b')", {"k": ["a", "b"]}),
        ("k >= 'b' AND 'x' >= k", {"k": {"between": ["b", "x"]}}),
        ("(k = 'a' OR k IS NULL OR k BETWEEN 'x' AND 'z')", {"k": ["a", None, {"between": ["x", "z"]}]}),
        ("k = 'a' AND lane = -1", {"k": "a", "lane": "-1"}),
    ],
)
def test_prods_of_some_groups_compile(condition: str, where: dict[str, object]) -> None:
    asked = prods(f"GROUP BY k, v AS lane PROD AT 75 % PROD WHERE {condition} ESTIMATE")
    assert asked == Prods(points=(0.75,), estimate=True, where=where)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("kk = 'a'", "there is no group 'kk'"),
        ("k > 'a'", "is no pattern of a group"),
        ("k = 'a' OR lane = 1", "has OR between different groups"),
        ("k = 'a' AND k = 'b'", "has two patterns for 'k'"),
        ("k = lane", "is no pattern of a group"),
        ("upper(k) = 'A'", "is no pattern of a group"),
        ("k IN (SELECT 1)", "is no pattern of a group"),
        ("k = 'a' PROD WITHIN 2 % ERROR", "learns from the answers of all groups"),
    ],
)
def test_conditions_that_are_no_patterns_are_refused_where_they_stand(condition: str, message: str) -> None:
    with pytest.raises(LanguageError, match=message):
        prods(f"GROUP BY k, v AS lane PROD AT 75 % PROD WHERE {condition}")


def test_of_a_sequence_prods_are_by_its_numbers() -> None:
    assert prods("PROD EVERY 100", NUMBERS, "[RANGE 50]") == Prods(every=100)


def test_a_query_over_a_query_can_be_prodded_without_a_window_of_its_own() -> None:
    text = f"{STREAM}CREATE QUERY q AS SELECT k, sum(v) AS total FROM s [RANGE 5 min] GROUP BY k;"
    script = read_script(f"{text}\nCREATE QUERY most AS SELECT max(total) AS most FROM q PROD EVERY 1 s")
    assert script.program.query("most").prods == Prods(every=1_000_000)
    assert script.program.query("q").prods is None


def test_prod_is_still_a_name() -> None:
    text = f"{STREAM}CREATE QUERY q AS SELECT max(prod.v) AS prod FROM s AS prod [RANGE 5 min]"
    assert read_script(text).program.query("q").prods is None


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ("PROD EVERY 0 ROWS", "PROD EVERY 0 ROWS has no rows between two prods: give 1 or more"),
        ("DISCARDING", "DISCARDING without PROD"),
        ("PROD AT 50 % DISCARDING", "DISCARDING goes with PROD EVERY alone"),
        ("PROD AT 75", "PROD AT cannot be 75: write a share of the slide such as 75 %"),
        ("PROD AT 5 min", "PROD AT cannot be 5 min"),
        ("PROD EVERY 0 s", "PROD EVERY 0 has no pause between two prods"),
        ("PROD WITHIN 200 % ERROR", "is no share"),
        ("PROD SPEED 5%", "PROD SPEED without PROD WITHIN"),
        ("PROD CONFIDENCE 99%", "PROD CONFIDENCE without PROD WITHIN"),
        ("PROD WITHIN 5 % ERROR PROD CONFIDENCE 40%", "PROD CONFIDENCE 40 %: give 50 % or more"),
        ("PROD WITHIN 2% ERROR PROD BETWEEN 90% AND 50%", "cannot stay between 90 % and 50 %"),
        ("PROD WITHIN 2%", "expected ERROR"),
        ("PROD AT 75% PROD AT 80%", "PROD AT is given twice"),
    ],
)
def test_what_makes_no_sense_is_refused_where_it_stands(clauses: str, message: str) -> None:
    with pytest.raises(LanguageError, match=message):
        prods(clauses)


def test_windows_of_rows_have_no_points() -> None:
    with pytest.raises(LanguageError, match="have no points in time"):
        prods("PROD AT 75 %", window="[RANGE 100 rows]")


ASKS = "CREATE STREAM asks (at TIMESTAMP, k STRING) TIMESTAMP BY at;\n"
PRODDED = "CREATE STREAM s (ts TIMESTAMP, k STRING, v INT, Ask BOOLEAN) TIMESTAMP BY ts PRODDED BY ask;\n"
FUNCTION = "CREATE FUNCTION Off_by FROM 'mine.py';\n"


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("PROD BY asks", Prods(by="asks")),
        ("PROD EVERY 1 s PROD BY ASKS ESTIMATE", Prods(every=1_000_000, by="asks", estimate=True)),
        ("PROD BY s", Prods(by="s")),
        ("PROD BY asks COMPARE TOTAL WITH off_by", Prods(by="asks", compare=(("total", "Off_by"),))),
    ],
)
def test_prods_by_a_stream_compile(clauses: str, expected: Prods) -> None:
    assert prods(clauses, STREAM + ASKS + FUNCTION) == expected


def test_a_stream_with_prods_among_its_rows_prods_all_that_reads_it() -> None:
    text = f"""{PRODDED}
        CREATE QUERY sums AS SELECT k, sum(v) AS total FROM s [RANGE 5 min] GROUP BY k;
        CREATE QUERY most AS SELECT max(total) AS most FROM sums ESTIMATE;
        CREATE QUERY late AS SELECT count(*) AS n FROM (SELECT * FROM s WHERE v > 1) [RANGE 5 min] PROD AT 90 %;"""
    program = read_script(text).program
    assert program.stream("s").prods == "Ask"
    assert [program.query(name).prods for name in ("sums", "most", "late")] == [
        Prods(in_stream=True),
        Prods(in_stream=True, estimate=True),
        Prods(in_stream=True, points=(0.9,)),
    ]


def test_a_stream_that_prods_counts_as_read_and_cannot_go() -> None:
    text = f"{STREAM}{ASKS}CREATE QUERY q AS SELECT sum(v) AS total FROM s [RANGE 5 min] PROD BY asks"
    assert not any(
        "asks" in warning.message and "no query" in warning.message for warning in read_script(text).warnings
    )
    with pytest.raises(LanguageError, match="the query 'q' reads it"):
        read_script(f"{text}; DROP STREAM asks")


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("SELECT sum(v) AS total FROM s [RANGE 5 min] PROD BY ask", 52, "no stream 'ask'.*did you mean 'asks'"),
        ("SELECT sum(v) AS total FROM s [RANGE 5 min] PROD BY numbers", 44, "times are numbers, those of the query"),
        ("SELECT sum(v) AS total FROM s [RANGE 5 min] COMPARE total WITH off_by", 44, "COMPARE without PROD"),
        ("SELECT sum(v) AS total FROM s [RANGE 5 min] ESTIMATE", 44, "ESTIMATE without PROD"),
        (
            "SELECT sum(v) AS total FROM s [RANGE 5 min] PROD BY asks COMPARE totl WITH off_by",
            65,
            "did you mean 'total'",
        ),
        ("SELECT sum(v) AS total FROM s [RANGE 5 min] PROD BY asks COMPARE total WITH ofby", 76, "mean 'Off_by'"),
        ("SELECT sum(v) AS total FROM s [RANGE 5 min] PROD BY asks COMPARE total", 70, "expected WITH"),
        ("SELECT v FROM s PROD BY asks", 16, "PROD is for windows"),
    ],
)
def test_a_prod_that_cannot_be_is_refused_where_it_stands(text: str, place: int, message: str) -> None:
    numbers = "CREATE STREAM numbers (n BIGINT) TIMESTAMP BY n;\n"
    with pytest.raises(LanguageError) as refused:
        read_script(f"{STREAM}{ASKS}{FUNCTION}{numbers}{text}")
    assert re.search(message, str(refused.value), re.DOTALL)
    assert (refused.value.line, refused.value.column) == (5, place + 1)


@pytest.mark.parametrize(
    ("columns", "clauses", "message"),
    [
        ("ts TIMESTAMP, ask INT", "PRODDED BY ask", "'ask' is INT"),
        ("ts TIMESTAMP, ask BOOLEAN", "PRODDED BY asks", "no column 'asks'.*did you mean 'ask'"),
        ("ask BOOLEAN", "TIMESTAMP BY ARRIVAL PRODDED BY ask", "rows have no time of their own"),
    ],
)
def test_a_column_that_cannot_tell_prods_is_refused(columns: str, clauses: str, message: str) -> None:
    with pytest.raises(LanguageError) as refused:
        read_script(f"CREATE STREAM s ({columns}) {clauses}")
    assert re.search(message, str(refused.value), re.DOTALL)


def test_a_column_of_early_answers_is_refused_under_a_stream_with_prods() -> None:
    with pytest.raises(LanguageError, match="'point' is a column of early answers"):
        read_script(f"{PRODDED}CREATE QUERY q AS SELECT max(v) AS point FROM s [RANGE 5 min]")


def test_the_kind_of_time_is_that_of_the_streams_a_query_reads() -> None:
    """A stream of the same script whose times are timestamps made plain numbers of a sequence into seconds."""
    other = "CREATE STREAM other (ts TIMESTAMP, v INT) TIMESTAMP BY ts;\n"
    assert prods("PROD EVERY 100", NUMBERS + other, "[RANGE 50]") == Prods(every=100)
