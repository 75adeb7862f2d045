"""Random stories: both engines answer as brute force does, wherever the slices are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.operators.placement import DRIVER_MEMORY
from tests.engine.scenarios import Scenario, agree, expected, played, scenarios, trial_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(scenario=scenarios())
def test_local_engine_answers_as_brute_force_does(duckdb_executor: DuckDBExecutor, scenario: Scenario) -> None:
    with trial_of(scenario.program, duckdb_executor=duckdb_executor) as trial:
        agree(played(scenario, trial), expected(scenario))


@pytest.mark.spark
# Shrinking on Spark takes minutes; the local engine finds most faults, and shrinks them.
@settings(max_examples=4, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck))
@given(scenario=scenarios(), on_the_cluster=st.booleans())
def test_spark_engine_answers_as_brute_force_does(
    spark: SparkSession, scenario: Scenario, on_the_cluster: bool
) -> None:
    driver_memory = 0 if on_the_cluster else DRIVER_MEMORY
    with trial_of(scenario.program, "spark", spark, driver_memory=driver_memory) as trial:
        agree(played(scenario, trial), expected(scenario))
