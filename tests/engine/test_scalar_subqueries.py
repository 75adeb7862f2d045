"""Queries inside expressions give in each window what plain Python gives, however rows come; others are refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.errors import LanguageError
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.language.script import read_script
from tests.engine.scenarios import trial_of

STREAM = "CREATE STREAM s (t BIGINT, k STRING, v INT) TIMESTAMP BY t;\n"
SCRIPT = (
    STREAM
    + """
CREATE QUERY above AS SELECT k, max(v) AS most FROM s [RANGE 10 SLIDE 5] GROUP BY k
    HAVING max(v) > (SELECT avg(v) FROM s [RANGE 10 SLIDE 5]) AND count(*) < 4;
CREATE QUERY missing AS SELECT k, sum(v) - (SELECT count(v) + 1 FROM s [RANGE 10 SLIDE 5] WHERE v > 3) AS d,
    (SELECT max(v) FROM s [RANGE 10 SLIDE 5] WHERE v > 3) AS m FROM s [RANGE 10 SLIDE 5] GROUP BY k;
CREATE QUERY greatest AS SELECT t, k FROM s [RANGE 10 SLIDE 5] WHERE v = (SELECT max(v) FROM s [RANGE 10 SLIDE 5]);
CREATE QUERY own AS SELECT v, k, count(*) AS n FROM s [RANGE 10 SLIDE 5] a GROUP BY v, k
    HAVING v < (SELECT max(b.v) FROM s [RANGE 10 SLIDE 5] b WHERE b.k = a.k AND b.v <> 2);
"""
)
ROWS = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int32())])

rows = st.tuples(st.integers(0, 14), st.sampled_from(["x", "y", None]), st.one_of(st.none(), st.integers(0, 6)))
rounds = st.lists(st.tuples(st.lists(rows, max_size=6), st.integers(0, 9), st.booleans()), min_size=1, max_size=6)


def mean(values: list[int]) -> float | None:
    return sum(values) / len(values) if values else None


def expected(given_rows: list[tuple[int, str | None, int | None]]) -> Counter[tuple[Any, ...]]:
    """What the four queries say of all rows, window by window."""
    found: Counter[tuple[Any, ...]] = Counter()
    for end in range(5, 200, 5):
        window = [row for row in given_rows if end - 10 <= row[0] < end]
        values = [v for _, _, v in window if v is not None]
        large = [v for v in values if v > 3]
        for k in {row[1] for row in window}:
            mine = [row for row in window if row[1] == k]
            own = [v for _, _, v in mine if v is not None]
            if own and max(own) > (mean(values) or 0) and len(mine) < 4:
                found["above", end, k, max(own)] += 1
            found["missing", end, k, sum(own) - len(large) - 1 if own else None, max(large, default=None)] += 1
            others = [v for v in own if v != 2]
            for one in {one for one in own if k is not None and others and one < max(others)}:
                found["own", end, one, k, own.count(one)] += 1
        for t, k, v in window:
            if v is not None and v == max(values):
                found["greatest", end, t, k] += 1
    return found


SHOWN = {"above": ("k", "most"), "missing": ("k", "d", "m"), "own": ("v", "k", "n"), "greatest": ("t", "k")}


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(rounds=rounds)
def test_a_value_of_the_same_window_is_that_of_brute_force(
    duckdb_executor: DuckDBExecutor, rounds: list[tuple[list[tuple[int, str | None, int | None]], int, bool]]
) -> None:
    program = read_script(SCRIPT).program
    program = replace(program, streams=tuple(replace(one, policy=Punctuated()) for one in program.streams))
    given_rows, found, heartbeat = [], Counter[tuple[Any, ...]](), -1
    with trial_of(program, duckdb_executor=duckdb_executor) as trial:
        for number, (some, further, restart) in enumerate([*rounds, ([], 300, False)]):
            came = [(heartbeat + 1 + ahead, k, v) for ahead, k, v in some]
            given_rows += came
            heartbeat += further
            table = pa.Table.from_pylist([dict(zip(ROWS.names, row, strict=True)) for row in came], ROWS)
            trial.round({"s": table}, clock=number, heartbeats={"s": heartbeat})
            told = [row for final in trial.output().final for row in final.to_pylist() if row["query"] in SHOWN]
            for row in told:
                found[(row["query"], row["window_end"], *(row[name] for name in SHOWN[row["query"]]))] += 1
            if restart:
                trial.restart()
    assert found == expected(given_rows)


AVERAGE = "(SELECT avg(v) FROM s [RANGE 10])"
REFUSED = {
    "SELECT k, max(v) FROM s [RANGE 10] GROUP BY k HAVING max(v) > (SELECT avg(v) FROM s [RANGE 20])": (
        "has the windows of what stands around it",
        "write the same window",
    ),
    f"SELECT v FROM s WHERE v > {AVERAGE}": ("these rows are in none", "give both the same window"),
    "SELECT v FROM s [RANGE 10] WHERE v > (SELECT avg(v) FROM s [RANGE 20])": ("the same window", "s [RANGE 10]"),
    "SELECT v FROM s [RANGE 10] WHERE v > (SELECT v FROM s [RANGE 10])": ("has one aggregate", "select one aggregate"),
    "SELECT v FROM s [RANGE 10] WHERE v > (SELECT max(v) FROM s [RANGE 10] GROUP BY k)": ("one value in each", "join"),
    f"SELECT max(v) FROM s [RANGE 10] WHERE v > {AVERAGE}": ("before their windows are known", "put this into HAVING"),
    f"SELECT k, max(v) AS m FROM s [RANGE 10] GROUP BY k HAVING m > {AVERAGE} LIMIT 3": (
        "LIMIT beside",
        "put it around",
    ),
    f"SELECT max(v) FROM s [RANGE 10] HAVING 1 > {AVERAGE} AND 2 < (SELECT avg(v) FROM s [RANGE 10] WHERE v > 1)": (
        "read different rows",
        "a sub-query in FROM",
    ),
    "SELECT v FROM s [RANGE 10] WHERE v > (SELECT count(*) FROM s [RANGE 10] WHERE v > 1)": (
        "a count",
        "leave its WHERE",
    ),
    f"SELECT max(v) AS m FROM s [RANGE 10] ORDER BY {AVERAGE}": ("ORDER BY sees no queries", "order around"),
    "SELECT max(v) m FROM s [RANGE 10] a GROUP BY k HAVING m > (SELECT avg(v) FROM s [RANGE 10] b WHERE b.k < a.k)": (
        "is no equality",
        "join them",
    ),
    "SELECT k, max(v) AS m FROM s [RANGE 10] GROUP BY k HAVING m > ALL (SELECT v FROM s [RANGE 10])": (
        "one aggregate",
        "",
    ),
    "SELECT max(v) AS m FROM s [RANGE 10] HAVING m = ALL (SELECT count(*) FROM s [RANGE 10] GROUP BY k)": (
        "ALL stands behind a comparison",
        "max(..)",
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_query_without_one_value_in_the_same_window_is_refused(text: str) -> None:
    message, hint = REFUSED[text]
    with pytest.raises(LanguageError) as caught:
        read_script(STREAM + text)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
