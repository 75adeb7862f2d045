"""Random stories: both engines answer as brute force does, wherever the slices are."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.round.placement import DRIVER_MEMORY
from eventide.testing.trial import Trial
from tests.engine.scenarios import Scenario, expected, played, scenarios

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def agree(scenario: Scenario, trial: Trial) -> None:
    for number, (engine, oracle) in enumerate(zip(played(scenario, trial), expected(scenario), strict=True)):
        assert engine == oracle, f"round {number}"


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(scenario=scenarios())
def test_local_engine_answers_as_brute_force_does(duckdb_executor: DuckDBExecutor, scenario: Scenario) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        Trial(scenario.program, Path(folder), duckdb_executor=duckdb_executor) as trial,
    ):
        agree(scenario, trial)


@pytest.mark.spark
# Shrinking on Spark takes minutes; the local engine finds most faults, and shrinks them.
@settings(max_examples=4, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck))
@given(scenario=scenarios(), on_the_cluster=st.booleans())
def test_spark_engine_answers_as_brute_force_does(
    spark: SparkSession, scenario: Scenario, on_the_cluster: bool
) -> None:
    driver_memory = 0 if on_the_cluster else DRIVER_MEMORY
    with (
        tempfile.TemporaryDirectory() as folder,
        Trial(scenario.program, Path(folder), "spark", spark, driver_memory=driver_memory) as trial,
    ):
        agree(scenario, trial)
