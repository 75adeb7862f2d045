"""Prods through several levels, some with their state on the driver and some on the cluster: the same early answers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engine.local.backend import LocalBackend
from eventide.engine.operators.placement import place, state_rows
from eventide.engine.round.engine import Engine
from eventide.engine.spark.backend import SparkBackend
from eventide.eventtime.early.prod import Prod
from eventide.language.script import read_script
from eventide.sinks.sink import Memory
from tests.engine.cluster_here import ClusterHere, on_cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = read_script("""
CREATE STREAM s (t BIGINT, k STRING, v INT) FROM csv 's' TIMESTAMP BY t DELAY 25;
CREATE STREAM r (t BIGINT, k STRING, w INT) FROM csv 'r' TIMESTAMP BY t DELAY 25;
CREATE QUERY sums AS SELECT k, sum(v) AS total FROM s [RANGE 10] GROUP BY k;
CREATE QUERY near AS SELECT s.t, s.k, v, w FROM s LEFT JOIN r ON abs(s.t - r.t) <= 1 AND s.k = r.k;
CREATE QUERY pairs AS SELECT k, count(*) AS n, max(w) AS w FROM near [RANGE 20] GROUP BY k;
CREATE QUERY most AS SELECT max(total) AS most, count(*) AS n FROM sums [RANGE 20] PROD EVERY 1;
CREATE QUERY last AS SELECT max(most) AS most, sum(n) AS n FROM most [RANGE 40] PROD EVERY 1;
""").program
NAMES = ("sums", "near", "pairs", "most", "last")
ROUNDS = 3


def rows(round: int) -> dict[str, pa.Table]:
    steps = range(12)

    def table(value: str, later: int) -> pa.Table:
        times = [20 * round + (7 * step) % 23 + later for step in steps]
        values = [(round + 3 * step) % 11 for step in steps]
        keys = ["ab"[step % 2] for step in steps]
        return pa.table({"t": pa.array(times, pa.int64()), "k": keys, value: pa.array(values, pa.int32())})

    return {"s": table("v", 0), "r": table("w", 3)}


def told(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


def answers(backend: Any, there: list[frozenset[str]]) -> Iterator[dict[str, list[str]]]:
    """What every query says early after each round, and what came out in it; the state of some is `there` meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        sinks = {name: Memory() for name in ("most", "last", "pairs")}
        engine = Engine(PROGRAM, backend, folder, sinks)
        for round, names in enumerate(there):
            engine.round(rows(round), clock=round)
            _move(engine, names)
            found = {name: told(engine.prod(name, Prod()).table()) for name in NAMES}
            found |= {f"{name} of {key}": told(engine.prod(name, Prod(groups={"k": key})).table())
                      for name in ("sums", "pairs") for key in "ab"}  # fmt: skip
            yield found | {f"out {name}": told(sink.table(name)) for name, sink in sinks.items() if sink.rows(name)}
        engine.end(clock=ROUNDS)
        yield {name: told(sink.table(name)) for name, sink in sinks.items()}
        engine.close()


def _move(engine: Engine, names: frozenset[str]) -> None:
    """State of these goes to files alone; after the next round it is back, since all of it is small."""
    operators = dict(engine.state.operators)
    for name in names:
        state = {kind: on_cluster(engine.executor, held) for kind, held in operators[name].state.items()}
        operators[name] = operators[name].with_state(state)
        assert place(operators[name]) == "cluster" or not state_rows(operators[name])
    engine.state.operators = operators
    engine.early.publish()


@pytest.fixture(scope="module")
def expected() -> list[dict[str, list[str]]]:
    return list(answers(LocalBackend(), [frozenset()] * ROUNDS))


@pytest.fixture(scope="module")
def backend() -> Iterator[ClusterHere]:
    backend = ClusterHere()
    yield backend
    backend.close()


def test_what_is_compared_is_something(expected: list[dict[str, list[str]]]) -> None:
    assert all(expected[-2][name] for name in NAMES)
    assert any("early" in line for line in expected[-1]["last"])


@settings(max_examples=12)
@given(st.lists(st.frozensets(st.sampled_from(NAMES)), min_size=ROUNDS, max_size=ROUNDS))
def test_early_answers_are_the_same_wherever_the_state_of_each_level_is(
    backend: ClusterHere, expected: list[dict[str, list[str]]], there: list[frozenset[str]]
) -> None:
    assert list(answers(backend, there)) == expected


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("there", [{"sums", "near"}, {"pairs", "most"}], ids=["below", "above"])
def test_early_answers_are_the_same_on_spark(
    spark: SparkSession, expected: list[dict[str, list[str]]], there: set[str]
) -> None:
    assert list(answers(SparkBackend(spark), [frozenset(there)] * ROUNDS)) == expected
