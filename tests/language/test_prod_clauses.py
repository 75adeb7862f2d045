"""PROD behind a query: what it compiles to, and what is refused, where."""

from __future__ import annotations

import pytest

from eventide.errors import LanguageError
from eventide.eventtime.earliness import Earliness
from eventide.language.script import read_script
from eventide.plan.prods import Prods

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
        ("prod at 75 %, 90%", Prods(points=(0.75, 0.9))),
        ("PROD AT 120 % ESTIMATE", Prods(points=(1.2,), estimate=True)),
        ("PROD WITHIN 2 % ERROR", Prods(within=Earliness(0.02))),
        (
            "PROD BETWEEN 50% AND 110% PROD WITHIN 2 % ERROR PROD SPEED 5% PROD EVERY 10 s INTO CONSOLE",
            Prods(every=10_000_000, within=Earliness(0.02, earliest=0.5, latest=1.1, speed=0.05)),
        ),
    ],
)
def test_prods_compile(clauses: str, expected: Prods | None) -> None:
    assert prods(clauses) == expected


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
        ("PROD AT 75", "PROD AT cannot be 75: write a share of the slide such as 75 %"),
        ("PROD AT 5 min", "PROD AT cannot be 5 min"),
        ("PROD EVERY 0 s", "PROD EVERY 0 has no pause between two prods"),
        ("PROD WITHIN 200 % ERROR", "is not between 0 and 1"),
        ("PROD SPEED 5%", "PROD SPEED without PROD WITHIN"),
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
