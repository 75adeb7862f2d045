"""Functions that look across rows are refused wherever they stand, before anything runs."""

import pytest

from eventide.errors import DeclarationError, LanguageError
from eventide.language.script import read_script
from eventide.plan.bound.query import bind
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Stream
from eventide.plan.declared.window import Window
from eventide.plan.expressions.columns import columns
from eventide.plan.expressions.parse import REFUSED

STREAM = "CREATE STREAM s (ts TIMESTAMP, k STRING, v INT, xs ARRAY<INT>) TIMESTAMP BY ts FROM json 'in'; "
VALUES = Stream("s", columns("ts BIGINT, v INT, xs ARRAY<INT>"), time="ts")

REFUSED_QUERIES = {
    "SELECT k, session_window(ts, '2 seconds') AS w FROM s": "SESSION_WINDOW",
    "SELECT explode(xs) AS x FROM s": "EXPLODE",
    "SELECT explode(xs) AS x, count(*) AS n FROM s [RANGE 10 seconds] GROUP BY explode(xs)": "EXPLODE",
    "SELECT sum(monotonically_increasing_id()) AS n FROM s [RANGE 10 seconds]": "MONOTONICALLY_INCREASING_ID",
    "SELECT max(v) AS m FROM s [RANGE 10 seconds] HAVING max(spark_partition_id()) > 0": "SPARK_PARTITION_ID",
    "SELECT k, lag(v) AS before FROM s": "LAG",
    "SELECT a.k FROM s a JOIN s b ON a.ts BETWEEN b.ts AND b.ts + INTERVAL 1 SECOND AND a.v = lead(b.v)": "LEAD",
    "SELECT stack(2, v, v) AS x FROM s UNION ALL SELECT v AS x FROM s": "STACK",
    "SELECT n FROM (SELECT rank() AS n FROM s)": "RANK",
    "SELECT k, row_number() OVER (ORDER BY v) AS n FROM s": "row_number",
}


@pytest.mark.parametrize(("sql", "function"), REFUSED_QUERIES.items())
def test_a_function_that_looks_across_rows_is_refused_at_its_place(sql: str, function: str) -> None:
    with pytest.raises(LanguageError, match=f"{function} .*(\n.*)+") as caught:
        read_script(STREAM + sql)
    assert function.lower() in str(caught.value).split("\n")[1].lower()


@pytest.mark.parametrize("function", REFUSED)
def test_no_value_condition_or_group_of_a_query_in_python_may_call_one(function: str) -> None:
    call = f"{function}({'v, 1' if function in ('nth_value', 'stack') else 'v'})"
    for query in (
        Query("q", "s", Window(10), named_as(x=f"max({call})")),
        Query("q", "s", Window(10), named_as(x="max(v)"), where=f"{call} = 1"),
        Query("q", "s", Window(10), named_as(x="max(v)"), groups=named_as(k=call)),
        Query("q", "s", Window(10), named_as(x="max(v)"), having=f"max({call}) = 1"),
    ):
        with pytest.raises(DeclarationError, match=function.upper()):
            bind(query, VALUES, lambda _: "BOOLEAN")


def test_the_window_of_a_query_is_still_written_as_in_spark() -> None:
    script = read_script(STREAM + "SELECT k, count(*) AS n FROM s GROUP BY k, window(ts, '10 seconds')")
    assert script.program.queries[0].window == Window(10_000_000)
