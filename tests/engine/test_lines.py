"""Lines of rows: the first go first, wherever the rows are, and nothing is written twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engine.operators import time_range
from eventide.engine.operators.line import MOST_CUTS, Line
from eventide.engine.relations.executor import Executor, Statement
from eventide.engine.relations.relation import Layout, Relation
from eventide.engine.relations.segments import MOST_SEGMENTS
from eventide.engine.spark import state_tasks
from eventide.engine.spark.backend import SparkBackend
from eventide.plan.bound.rows import IDENTITY
from eventide.plan.expressions.columns import columns
from tests.engine.cluster_here import ClusterHere, on_cluster
from tests.engine.operators_alone import executing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = Layout((*IDENTITY, *columns("__t BIGINT")), ("__t",))
ORDER = ("__t", "__seq", "__id")
EMPTY = Line.of(ROWS, ORDER, "__seq")

Took = list[tuple[int, ...]]


@pytest.fixture(scope="module")
def backend() -> Iterator[ClusterHere]:
    """One for all examples: a worker is started once."""
    backend = ClusterHere()
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def executor(backend: ClusterHere) -> Iterator[Executor]:
    """It may place rows elsewhere."""
    with executing(backend, shared=True) as found:
        yield found


def joined(executor: Executor, line: Line, times: list[int]) -> Line:
    return line.add(executor, executor.of_table(line.held.layout, pa.table({"__t": pa.array(times, pa.int64())})))


def taken(executor: Executor, line: Line, count: int) -> tuple[Line, Took]:
    """The first so many rows, in any order."""

    def shown(rows: str) -> Statement:
        return Statement(f"SELECT * FROM {rows}", identified=True)

    line, found = line.take(executor, count, shown, ROWS)
    return line, sorted(tuple(row[name] for name in ORDER) for row in rows_of(executor, found))


def rows_of(executor: Executor, found: Relation) -> list[dict[str, int]]:
    return [row for table in executor.batches(found) for row in table.to_pylist()]


def restarted(executor: Executor, line: Line, cluster: bool) -> Line:
    """The same line, from its files and its plain data."""
    saved, files = json.loads(json.dumps(line.saved())), on_cluster(executor, line.held)
    if not cluster:
        files = replace(files, parts=tuple(executor.loaded(part) for part in files.parts))
    return EMPTY.restored(saved, files)


STEPS = st.lists(
    st.tuples(st.just("join"), st.lists(st.integers(-9, 9), max_size=6))
    | st.tuples(st.sampled_from(["take", "leave", "restart", "move"]), st.integers(0, 7)),
    max_size=14,
)


@settings(max_examples=60)
@given(STEPS)
def test_a_line_is_a_sorted_list_wherever_its_rows_are(
    executor: Executor, steps: list[tuple[str, int | list[int]]]
) -> None:
    line, cluster = EMPTY, False
    model: Took = []
    for what, how in steps:
        if isinstance(how, list):
            line = joined(executor, line, how)
            sequence = executor.files.sequence() - 1
            model = sorted([*model, *((time, sequence, place) for place, time in enumerate(how))])
        elif what == "take":
            line, found = taken(executor, line, how)
            assert found == model[:how]
            model = model[how:]
        elif what == "leave" and model:
            up_to = model[0][0] + how
            gone = sum(row[0] <= up_to for row in model)
            line, model = line.without(executor, up_to, gone), model[gone:]
        elif what == "restart":
            line = restarted(executor, line, cluster)
        else:
            cluster = True
        if cluster:
            line = replace(line, held=on_cluster(executor, line.held))
        assert (line.count, line.first) == (len(model), model[0][0] if model else None)
        if line.held.place == "driver":
            assert line.held.rows == line.count, "the driver keeps nothing that has gone"
    assert taken(executor, line, len(model) + 1)[1] == model


def test_on_the_cluster_rows_are_written_once_and_forgotten_with_their_segment(
    executor: Executor, backend: ClusterHere
) -> None:
    line = EMPTY
    for first in range(0, 50, 10):
        line = joined(executor, line, list(range(first, first + 10)))
        line = replace(line, held=on_cluster(executor, line.held))
    parts = line.held.parts
    texts = set()
    for went in range(1, 50):
        before = len(backend.said)
        line, found = taken(executor, line, 1)
        assert [time for time, *_ in found] == [went - 1]
        assert line.held.parts == parts[(went - 1) // 10 :], "the same relations, but for those that are done with"
        assert len(line.cuts) == 1
        texts.add(tuple(backend.said[before:]))
    [said] = texts
    assert len(said) == len(set(said)) == 3, "each statement once, and the same texts every time"


def test_segments_and_cuts_stay_few(executor: Executor) -> None:
    """Each round, those come who are before all that have gone, more than can go: no cut is about them too."""
    line = EMPTY
    for time in range(3 * MOST_SEGMENTS, 0, -1):
        line = joined(executor, line, [time, time])
        line = replace(line, held=on_cluster(executor, line.held))
        line, found = taken(executor, line, 1)
        assert [one for one, *_ in found] == [time]
        assert len(line.held.parts) <= MOST_SEGMENTS + 1
        assert len(line.cuts) <= MOST_CUTS + 1
    assert [time for time, *_ in taken(executor, line, 10**6)[1]] == list(range(1, 3 * MOST_SEGMENTS + 1))


@pytest.mark.spark
def test_spark_sql_says_the_same_of_rows_that_are_too_many_for_one_task(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_tasks, "TASK_BYTES", -1)
    monkeypatch.setattr(time_range, "ROWS_A_STRETCH", 2)
    with executing(SparkBackend(spark), shared=True) as executor:
        line = EMPTY
        for times in ([5, 1, 9], [3, 7], [2, 2, 8]):
            line = joined(executor, line, times)
        line = replace(line, held=on_cluster(executor, line.held))
        line, first = taken(executor, line, 3)
        assert ([time for time, *_ in first], line.first) == ([1, 2, 2], 3)
        line = line.without(executor, 5, 2)
        assert line.first == 7
        assert [time for time, *_ in taken(executor, line, 9)[1]] == [7, 8, 9]
