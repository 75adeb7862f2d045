"""Queries over queries: as brute force says, through restarts and deaths, and while queries come and go."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from eventide.engine.placement import DRIVER_BYTES
from eventide.engine.workbench import Workbench
from eventide.testing.trial import Trial
from tests.engine.level_scenarios import Plan, brute_force, in_order, plans, played
from tests.engine.scenarios import SharedWorkbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def workbench() -> Iterator[Workbench]:
    shared = SharedWorkbench()
    yield shared
    shared.connection.close()


def agree(plan: Plan, trial: Trial) -> None:
    expected = in_order(plan, brute_force(plan)[0])
    for number, (engine, oracle) in enumerate(zip(in_order(plan, played(plan, trial)), expected, strict=True)):
        assert engine == oracle, f"round {number}"


@settings(max_examples=300)
@given(plan=plans())
def test_a_result_is_never_late_for_the_query_above(plan: Plan) -> None:
    assert brute_force(plan)[1] == 0


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(plan=plans())
def test_local_engine_answers_plans_as_brute_force_does(workbench: Workbench, plan: Plan) -> None:
    with tempfile.TemporaryDirectory() as folder, Trial(plan.program, Path(folder), workbench=workbench) as trial:
        agree(plan, trial)


@pytest.mark.spark
@settings(max_examples=8, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck))
@given(plan=plans(), on_the_cluster=st.booleans())
def test_spark_engine_answers_plans_as_brute_force_does(spark: SparkSession, plan: Plan, on_the_cluster: bool) -> None:
    driver_bytes = 0 if on_the_cluster else DRIVER_BYTES
    with (
        tempfile.TemporaryDirectory() as folder,
        Trial(plan.program, Path(folder), "spark", spark, driver_bytes=driver_bytes) as trial,
    ):
        agree(plan, trial)
