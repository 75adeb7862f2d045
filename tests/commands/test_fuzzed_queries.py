"""Whatever a query says: it is refused with a place, only Spark's, or it runs. Never a fault of our own.

A few hundred scripts every time; `--hypothesis-profile=search` makes up thousands of new ones.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

from eventide.commands.check import ONLY_SPARK, findings_of
from eventide.engine.local.engine import LocalEngine
from eventide.errors import EngineError
from eventide.sinks.sink import Memory
from tests.choice import chosen
from tests.commands.fuzz import shortened, wrong_with
from tests.commands.query_mill import ROWS, STREAM, QueryMill
from tests.commands.script_mill import script_of

PARTS = 4
"""In so many tests, for the workers of the suite to share."""

SCRIPTS = 40
SEARCHED = 1500


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with rows of every type, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


def outcome(text: str, folder: Path) -> str:
    """What becomes of a script; any error but one of ours comes out."""
    findings, script = findings_of(text, "q.sql")
    if script is None or any(finding.severity == "error" for finding in findings):
        return "refused"
    if any(finding.message.startswith(ONLY_SPARK) for finding in findings):
        return "only Spark"
    try:
        engine = LocalEngine(script.program, str(folder), {output.query: Memory() for output in script.outputs})
        engine.run(bounded=True)
    except EngineError as error:
        if "the engine failed" in str(error):
            raise
        # The values of a row broke an expression.
        return "broken by values"
    return "ran"


@pytest.mark.parametrize("part", chosen(range(PARTS), lambda part: part == 1))
def test_a_query_that_was_made_up_is_refused_or_runs(part: int, rows: Path) -> None:
    search = not settings().derandomize
    seed = random.randrange(2**32) if search else part
    mill, found = QueryMill(seed), Counter[str]()
    for number in range(SEARCHED if search else SCRIPTS):
        text = mill.script()
        try:
            found[outcome(text, rows / f"checkpoint-{number}")] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}, script {number}: {type(error).__name__}: {error}\n{text}") from error
    assert found["refused"]
    assert found["ran"]


@pytest.mark.parametrize("part", chosen(range(8), lambda part: part == 0))
def test_a_script_that_was_made_up_is_answered_in_words_at_a_place(part: int) -> None:
    first = part * SCRIPTS if settings().derandomize else random.randrange(2**32)
    for seed in range(first, first + SCRIPTS):
        text = script_of(seed)
        # How long it takes is for `make search` to judge, on a machine that does nothing else.
        assert wrong_with(text, only_read=part == 0, seconds=1e9) is None, f"seed {seed}\n{text}"


def test_a_text_that_fails_is_shortened_to_the_words_that_matter() -> None:
    assert shortened("SELECT a + 1 AS x FROM s", lambda text: "a" in text and "x" in text) == "ax"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT count(regexp_replace(k, 'a')) AS x FROM S [RANGE 10 s]", "regexp_replace takes 3 or 4 arguments, and"),
        ("SELECT sum(CAST(v AS DECIMAL(38, x 10))) AS x FROM S [RANGE 10 s]", "digits of a type are whole numbers"),
        (f"SELECT sum({'9' * 5000}) AS x FROM S [RANGE 10 s]", "a number of 5000 digits"),
        ("SELECT sum(if(v > 1)) AS x FROM S [RANGE 10 s]", "unexpected ')'"),
        ("SELECT corr(d) AS x FROM S [RANGE 10 s]", "corr takes 2 arguments, and here is 1"),
        ("SELECT sum(isnull(v, d, o)) AS x FROM S [RANGE 10 s]", "isnull takes 1 argument, and here are 3"),
        ("SELECT ts, abs(x -> x + 1) AS x FROM S", "abs takes no lambda"),
        ("SELECT ts, * AS x FROM S", "* stands for all columns"),
        ("SELECT count_if(ys) AS x FROM S [RANGE 10 s]", "count_if takes a condition, and ys is ARRAY<STRING>"),
        ("SELECT sum(v) FILTER (WHERE day) AS x FROM S [RANGE 10 s]", "FILTER takes a condition, and day is DATE"),
        ("SELECT count(*) AS n FROM S [RANGE 365 days SLIDE 1 us]", "31,536,000,000,000 windows, and at most"),
    ],
)  # fmt: skip
def test_a_short_statement_is_refused_in_words_where_it_was_a_fault_of_ours(
    query: str, message: str, rows: Path
) -> None:
    [finding], _ = findings_of(STREAM + query, "q.sql")
    assert finding.severity == "error"
    assert message in finding.message
    assert finding.line == 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("sum(DISTINCT v) FILTER (WHERE v > 0)", sum(range(1, 25))),
        ("avg(DISTINCT v) FILTER (WHERE v > 0)", 12.5),
        ("count(DISTINCT v) FILTER (WHERE v > 0)", 24),
        ("sum(negative(-v))", sum(range(-5, 25))),
        ("percentile_approx(v, 0.5)", 9),
        ("count_if(DISTINCT v > 0)", 1),
        ("approx_count_distinct(DISTINCT o)", 2),
        ("stddev(DISTINCT v) + percentile_approx(v, 0.5) > 0", True),
        ("mode() WITHIN GROUP (ORDER BY day)", "2024-01-01"),
    ],
)
@pytest.mark.parametrize("window", ["[RANGE 30 s]", "[RANGE 30 ROWS]"])
def test_an_aggregate_runs_where_its_statement_could_not_be_written(
    value: str, expected: object, window: str, rows: Path
) -> None:
    findings, script = findings_of(f"{STREAM}SELECT {value} AS x FROM S {window}", "q.sql")
    assert (findings, script is not None) == ([], True)
    assert script is not None
    told = Memory()
    LocalEngine(script.program, str(rows / "checkpoint"), {"query_1": told}).run(bounded=True)
    [row] = told.rows("query_1")
    assert (str(row["x"]) if isinstance(expected, str) else row["x"]) == expected


@pytest.mark.parametrize("column", ["xs", "s", "m"])
def test_sources_that_no_plain_value_tells_are_refused_by_check(column: str, rows: Path) -> None:
    text = STREAM.replace("SOURCE BY k", f"SOURCE BY {column}") + "SELECT count(*) AS n FROM S [RANGE 10 s];"
    [finding], _ = findings_of(text, "q.sql")
    assert f"cannot tell its sources by '{column}'" in finding.message


def test_check_tells_what_only_the_statement_of_a_later_step_would_refuse(rows: Path) -> None:
    """A sketch of maps was bound without a word, and the first round ended with an error of DuckDB."""
    text = STREAM + (
        "CREATE QUERY good AS SELECT count(*) AS n FROM S [RANGE 10 s];\n"
        "CREATE QUERY bad AS SELECT kll_merge_agg_double(k, m) AS x FROM S [RANGE 10 s];\n"
    )
    [finding], _ = findings_of(text, "q.sql")
    assert (finding.severity, finding.line) == ("warning", 4)
    assert finding.message.startswith(ONLY_SPARK)
