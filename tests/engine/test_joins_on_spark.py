"""Where DuckDB would not give Spark's answer, Spark itself joins: the same statements, the same rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from eventide.engine.operators.frontier import OperatorFrontier
from eventide.engine.operators.join import JoinOperator
from eventide.engine.operators.lookup import LookupOperator
from eventide.engine.operators.operator import InputProgress
from eventide.engine.relations.executor import Executor
from eventide.engine.spark.backend import SparkBackend, SparkExecutor
from eventide.plan.declared.join import JoinKind
from eventide.plan.declared.query import named_as
from eventide.plan.sql.join import driver_exact
from tests.choice import chosen
from tests.engine import test_joins, test_lookups
from tests.engine.join_oracle import Row
from tests.engine.operators_alone import BACKEND, emitted, executing
from tests.engine.test_joins import BANDS, bound_join

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STARTS: dict[str, Callable[[Executor], Any]] = {
    "band": lambda executor: JoinOperator.start(
        bound_join(BANDS["around"], True, kind=JoinKind.FULL, condition="10 div a.v >= b.v", select=test_joins.SELECT),
        executor,
    ),
    "epochs": lambda executor: JoinOperator.start(
        bound_join(BANDS["several"], kind=JoinKind.LEFT, select=named_as(ratio="a.v div b.v", at="a.t")), executor
    ),
    "lookup": lambda executor: LookupOperator.start(test_lookups.bound_lookup(True, "v IS NULL"), executor),
}


class SparkAlone(SparkBackend):
    """Spark, also for what DuckDB would compute as well."""

    def sql(self, portable: bool) -> SparkExecutor:
        """Spark's own answer."""
        return super().sql(False)  # type: ignore[return-value]


@pytest.mark.spark
@pytest.mark.parametrize("name", chosen(STARTS, lambda name: name != "band"))
def test_spark_joins_as_duckdb_does(name: str, spark: SparkSession) -> None:
    told = []
    for backend in (BACKEND, SparkAlone(spark)):
        with executing(backend) as executor:
            run, pick = STARTS[name](executor), random.Random(7)
            tables = []
            for number in range(2):
                executor.files.begin(number)
                rows = [
                    Row(
                        side,
                        10 * number + pick.randrange(12),
                        pick.choice([None, 1, 2]),
                        pick.choice([None, 0, 1, 2]),
                    )
                    for side in (0, 1)
                    for _ in range(8)
                ]
                for side, port in enumerate(run.bound.ports):
                    came_to: Any = test_lookups.came_to if name == "lookup" else test_joins.came_to
                    run, _ = run.ingest(port.query.name, came_to(run, side, rows))
                reached = [
                    InputProgress(port.query.name, OperatorFrontier(10 * number + 4)) for port in run.bound.ports
                ]
                run, output = run.advance(reached)
                tables.append(emitted(output))
            told.append(pa.concat_tables(tables).to_pylist())
    assert told[0] == told[1]
    assert len(told[0]) > 5


def test_what_only_spark_computes_is_left_to_spark() -> None:
    assert driver_exact(bound_join(BANDS["equal"], select=named_as(v="a.v + b.v")))
    assert not driver_exact(replace(bound_join(BANDS["equal"]), condition="hash(l_v) = hash(r_v)"))
