"""Random stories: the local engine answers as brute force does, and the Spark engine as the local one."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.engine.scenarios import Scenario, expected, run, scenarios

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def agree(scenario: Scenario, spark: Any = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = run(scenario, Path(folder), spark)
    for number, (engine, oracle) in enumerate(zip(found, expected(scenario), strict=True)):
        assert engine == oracle, f"round {number}"


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(scenarios())
def test_local_engine_answers_as_brute_force_does(scenario: Scenario) -> None:
    agree(scenario)


@pytest.mark.spark
# Shrinking on Spark takes minutes; the local engine finds the same faults and shrinks them.
@settings(max_examples=15, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck))
@given(scenario=scenarios())
def test_spark_engine_answers_as_brute_force_does(spark: SparkSession, scenario: Scenario) -> None:
    agree(scenario, spark)
