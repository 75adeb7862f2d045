"""Early answers of random plans are what brute force says of the rows that have arrived; prods change no final one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.operators.placement import DRIVER_MEMORY
from eventide.errors import DeclarationError
from eventide.eventtime.early.prod import Prod, Timing
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import RowWindow, SameWindow, Window
from eventide.testing.oracle import Round
from eventide.testing.trial import Trial
from tests.engine.level_scenarios import Plan, brute_force, in_order, plans, shown
from tests.engine.scenarios import play_round, trial_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def early_by_brute_force(plan: Plan, number: int, up_to: int) -> list[tuple[Any, ...]]:
    """What would be told after a round if time came to `up_to`; if it came to an end, all that is open."""
    rounds = plan.story.rounds[: number + 1]
    last = Round(end=True) if up_to == FOREVER else Round((), up_to)
    cut = replace(plan, story=replace(plan.story, rounds=(*rounds, last), restarts=frozenset()))
    return in_order(plan, [brute_force(cut)[0][-1]])[0]


def played(plan: Plan, trial: Trial, prods: dict[int, int]) -> None:
    """Play a plan, ask every level after some rounds, and compare both kinds of answers with brute force."""
    expected = in_order(plan, brute_force(plan)[0])
    ended = False
    for number, one in enumerate(plan.story.rounds):
        play_round(plan.story, number, trial)
        assert in_order(plan, [told(plan, trial.output().final)])[0] == expected[number], f"final of round {number}"
        ended = ended or one.end
        if number in prods:
            for question in plan.levels:
                answer = trial.prod(question.name, Prod(prods[number]))
                assert (answer.timing in (Timing.TIMELY, Timing.REPEATED)) == (answer.rows > 0)
            wanted = [] if ended else early_by_brute_force(plan, number, prods[number])
            found = in_order(plan, [told(plan, trial.output().early)])[0]
            assert found == wanted, f"early after round {number}, up to {prods[number]}"


def told(plan: Plan, tables: tuple[pa.Table, ...]) -> list[tuple[Any, ...]]:
    of = {table.column("query")[0].as_py(): table for table in tables}
    return [row for question in plan.levels for row in shown(question, of.get(question.name))]


@st.composite
def prodded_plans(draw: st.DrawFn) -> tuple[Plan, dict[int, int]]:
    """A plan, and after which rounds it is asked, up to where: windows over counts of rows are asked for all."""
    plan = draw(plans())
    of_time = not any(isinstance(question.window, RowWindow) for question in plan.levels)
    up_to = st.just(FOREVER) | st.integers(-25, 60) if of_time else st.just(FOREVER)
    return plan, draw(st.dictionaries(st.integers(0, len(plan.story.rounds) - 1), up_to, max_size=4))


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(prodded_plans())
def test_early_answers_are_those_of_the_rows_that_have_arrived(
    duckdb_executor: DuckDBExecutor, asked: tuple[Plan, dict[int, int]]
) -> None:
    plan, prods = asked
    with trial_of(plan.program, duckdb_executor=duckdb_executor) as trial:
        played(plan, trial, prods)


@pytest.mark.spark
@settings(max_examples=3, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck))
@given(prodded_plans(), st.booleans())
def test_early_answers_on_spark_are_those_of_the_rows_that_have_arrived(
    spark: SparkSession, asked: tuple[Plan, dict[int, int]], on_the_cluster: bool
) -> None:
    plan, prods = asked
    driver_memory = 0 if on_the_cluster else DRIVER_MEMORY
    with trial_of(plan.program, "spark", spark, driver_memory=driver_memory) as trial:
        played(plan, trial, prods)


def test_a_prod_for_a_query_that_is_not_there_is_refused(duckdb_executor: DuckDBExecutor) -> None:
    stream = Stream("s", columns("t BIGINT, k STRING, v INT"), time="t")
    sums = Query("sums", "s", Window(10), named_as(total="sum(v)"), named_as("k"))
    program = Program((stream,), (sums, Query("most", "sums", SameWindow(), named_as(most="max(total)"))))
    with trial_of(program, duckdb_executor=duckdb_executor) as trial:
        with pytest.raises(DeclarationError, match="there is no query 'summs'"):
            trial.prod("summs")
        with pytest.raises(DeclarationError, match="no group 'v' to prod: it has k"):
            trial.prod("sums", Prod(groups={"v": 1}))
        assert trial.prod("most", Prod(up_to=NEVER + 1)).rows == 0
