"""EXPENSIVE functions and SIDELINE: which queries get a queue, what goes before it, and what is refused, where."""

from __future__ import annotations

import pytest

from eventide.errors import LanguageError
from eventide.language.script import read_script
from eventide.plan.declared.program import Program
from eventide.plan.declared.rows import Queue, Sideline

DECLARED = """CREATE FUNCTION foundIn FROM 'f.py' RETURNS BOOLEAN EXPENSIVE;
CREATE FUNCTION cheap FROM 'f.py' RETURNS INT;
CREATE STREAM words (ts TIMESTAMP, word STRING, n INT) TIMESTAMP BY ts;
CREATE STREAM others (ts TIMESTAMP, word STRING, n INT) TIMESTAMP BY ts;
"""
FOUND = "SELECT count(*) AS c FROM words [RANGE 5 min] WHERE n > 1 AND word foundIn('abc') AND n < 9"


def program(text: str) -> Program:
    return read_script(DECLARED + text).program


def queue(text: str) -> Queue:
    [found] = (one for one in program(text).operators if isinstance(one, Queue))
    return found


def test_cheap_conditions_are_looked_at_before_the_queue_and_dear_ones_after_it() -> None:
    [query] = program(FOUND).queries
    found = queue(FOUND)
    assert (found.inputs, found.where, found.window) == (("words",), "n > 1 AND n < 9", query.window)
    assert (query.stream, query.where) == (found.name, "FOUNDIN(word, 'abc')")
    assert found.sideline is None


@pytest.mark.parametrize(
    "select",
    [
        "SELECT sum(CASE WHEN foundIn(word, 'a') THEN 1 END) AS c FROM words [RANGE 5 min]",
        "SELECT foundIn(word, 'a') AS f, count(*) AS c FROM words [RANGE 5 min] GROUP BY foundIn(word, 'a')",
        "SELECT max(c) AS m FROM (SELECT count(*) AS c FROM words [RANGE 5 min] WHERE word foundIn('a'))",
    ],
)
def test_values_groups_and_sub_queries_get_a_queue_too(select: str) -> None:
    assert queue(select).inputs == ("words",)


def test_a_union_is_read_through_by_the_queue() -> None:
    both = "(SELECT * FROM words UNION ALL SELECT * FROM others) AS both [RANGE 5 min]"
    assert queue(f"SELECT count(*) AS c FROM {both} WHERE word foundIn('a')").inputs == ("words", "others")


@pytest.mark.parametrize(
    "select",
    [
        "SELECT sum(cheap(n)) AS c FROM words [RANGE 5 min]",
        "SELECT count(*) AS foundIn FROM words [RANGE 5 min] HAVING foundIn > 1",
        "SELECT max(foundIn(word, 'a')) AS m FROM (SELECT word, count(*) AS c FROM words [RANGE 5 min] GROUP BY word)",
    ],
)
def test_other_queries_get_none(select: str) -> None:
    assert not [one for one in program(select).operators if isinstance(one, Queue)]


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("SIDELINE BURSTS", Sideline()),
        ("PROD EVERY 1 s SIDELINE ONE IN 3", Sideline(one_in=3)),
        ("sideline within 10 minutes SIDELINE ONE IN 4 rows", Sideline(4, 600_000_000)),
    ],
)
def test_sideline_compiles(clauses: str, expected: Sideline) -> None:
    assert queue(f"{FOUND} {clauses}").sideline == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT count(*) AS c FROM words [RANGE 5 min] SIDELINE BURSTS", "query 'query_1' calls none"),
        ("SELECT * FROM words SIDELINE BURSTS", "SIDELINE is for windows, and these are rows"),
        (f"{FOUND} SIDELINE ONE IN 0", "SIDELINE 1 IN 0 would let no new row go first"),
        (f"{FOUND} SIDELINE WITHIN 0 s", "SIDELINE WITHIN 0 sets nothing aside"),
        (f"{FOUND} SIDELINE ONE IN 2 minutes", "write a number of rows"),
        (f"{FOUND.replace('RANGE 5 min', 'RANGE 5 rows')} SIDELINE BURSTS", "only windows of time can be set aside"),
        (f"{FOUND.replace('5 min', '5 min RETAIN 10 min')} SIDELINE BURSTS", "windows that are revised"),
    ],
)
def test_what_cannot_be_set_aside_is_refused_where_it_stands(text: str, message: str) -> None:
    with pytest.raises(LanguageError, match=message) as refused:
        program(text)
    assert refused.value.line > 4


def test_dropping_a_query_takes_its_queue_along() -> None:
    assert program(f"CREATE QUERY q AS {FOUND}; DROP QUERY q").operators == ()


def test_sideline_and_prod_are_still_names() -> None:
    text = "SELECT max(sideline.n) AS sideline FROM words AS sideline [RANGE 5 min]"
    assert program(text).queries[0].select[0].name == "sideline"
