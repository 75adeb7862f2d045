"""Where DuckDB would not give Spark's answer, Spark itself joins: the same statements, the same rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from eventide.engine.join_run import JoinRun
from eventide.engine.lookup_run import LookupRun
from eventide.engine.operators.frontier import Frontier
from eventide.engine.spark_backend import SparkBench
from eventide.plan.join import JoinKind
from eventide.plan.join_text import driver_exact
from eventide.plan.query import named_as
from tests.engine import test_joins, test_lookups
from tests.engine.join_oracle import Row
from tests.engine.test_joins import BACKEND, BANDS, bound_join

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS: dict[str, Callable[[Any], Any]] = {
    "band": lambda bench: JoinRun.start(
        bound_join(BANDS["around"], True, kind=JoinKind.FULL, condition="10 div a.v >= b.v", select=test_joins.SELECT),
        bench,
    ),
    "epochs": lambda bench: JoinRun.start(
        bound_join(BANDS["several"], kind=JoinKind.LEFT, select=named_as(ratio="a.v div b.v", at="a.t")), bench
    ),
    "lookup": lambda bench: LookupRun.start(test_lookups.bound_lookup(True, "v IS NULL"), bench),
}


@pytest.mark.spark
@pytest.mark.parametrize("name", RUNS)
def test_spark_joins_as_duckdb_does(name: str, spark: SparkSession) -> None:
    told = []
    for bench in (BACKEND.workbench, SparkBench(spark)):
        run, chosen = RUNS[name](bench), random.Random(7)
        answers = []
        for number in range(2):
            rows = [
                Row(
                    side,
                    10 * number + chosen.randrange(12),
                    chosen.choice([None, 1, 2]),
                    chosen.choice([None, 0, 1, 2]),
                )
                for side in (0, 1)
                for _ in range(8)
            ]
            for side, port in enumerate(run.bound.ports):
                chunk_of: Any = test_lookups.chunk_of if name == "lookup" else test_joins.chunk_of
                run, _ = run.take(port.query.name, chunk_of(run.bound, side, rows))
            run, answer = run.advance({port.query.name: Frontier(10 * number + 4) for port in run.bound.ports})
            answers += answer.parts()
        told.append(pa.concat_tables(answers).to_pylist())
    assert told[0] == told[1]
    assert len(told[0]) > 5


def test_what_only_spark_computes_is_left_to_spark() -> None:
    assert driver_exact(bound_join(BANDS["equal"], select=named_as(v="a.v + b.v")))
    assert not driver_exact(replace(bound_join(BANDS["equal"]), condition="hash(l_v) = hash(r_v)"))
