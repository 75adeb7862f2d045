"""Where state is: all of it in files after a round, on the driver what fits there, the largest elsewhere.

The cluster's files are written and read by the driver here; jobs over them are Spark's, and tested there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engine.local.backend import LocalBackend
from eventide.engine.operators.join import JoinOperator
from eventide.engine.operators.operator import Operator
from eventide.engine.operators.placement import place, placed, state_bytes, state_rows
from eventide.engine.relations.executor import Executor
from eventide.engine.relations.relation import Relation
from eventide.engine.relations.segments import Segments
from eventide.plan.declared.join import JoinKind
from tests.engine.operators_alone import executing
from tests.engine.test_joins import BANDS, bound_join

BOUND = bound_join(BANDS["around"], kind=JoinKind.LEFT)


class WithCluster(LocalBackend):
    """As if files could be read elsewhere too."""

    has_cluster = True


@pytest.fixture(scope="module")
def cluster() -> Iterator[Executor]:
    """An executor that may place state elsewhere."""
    backend = WithCluster()
    with executing(backend, shared=True) as found:
        yield found
    backend.close()


def operator(executor: Executor, sizes: tuple[int, int]) -> Operator:
    """A join with so many rows of each side, in two segments where that goes."""
    run = JoinOperator.start(BOUND, executor)
    state = dict(run.state)
    for side, size in zip(("left", "right"), sizes, strict=True):
        for count in (size // 2, size - size // 2):
            state[side] = state[side].add(_rows(state[side], count))
    return run.with_state(state)


def _rows(like: Segments, count: int) -> Relation:
    schema = like.layout.schema
    table = pa.table([pa.array(range(count)).cast(field.type) for field in schema], schema=schema)
    return Relation.of_table(like.layout, table)


def tables(executor: Executor, run: Operator) -> dict[str, pa.Table]:
    return {
        kind: Segments(rows.layout, tuple(executor.loaded(part) for part in rows.parts)).table()
        for kind, rows in run.state.items()
    }


def assert_in_files(found: Mapping[str, Operator]) -> None:
    for run in found.values():
        parts = [part for rows in run.state.values() for part in rows.parts]
        assert all(part.files for part in parts)
        assert len({part.place for part in parts}) <= 1, "the state of one operator is in one place"


plans = st.dictionaries(st.sampled_from("abcde"), st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1)


@settings(max_examples=40)
@given(sizes=plans, share=st.floats(0, 1.2))
def test_the_largest_go_to_the_cluster_until_the_rest_fits(
    cluster: Executor, sizes: dict[str, tuple[int, int]], share: float
) -> None:
    cluster.files.begin(0)
    given_ones = {name: operator(cluster, size) for name, size in sizes.items()}
    before = {name: state_bytes(run) for name, run in given_ones.items()}
    cluster.driver_memory = int(share * sum(before.values()))
    found = placed(given_ones, cluster)
    assert_in_files(found)
    here = {name for name, run in found.items() if place(run) == "driver"}
    away = found.keys() - here
    assert sum(before[name] for name in here) <= cluster.driver_memory
    if away:
        smallest = min(before[name] for name in away)
        assert smallest >= max((before[name] for name in here), default=0)
        assert sum(before[name] for name in here) + smallest > cluster.driver_memory, "no more went than had to"
    for name, run in given_ones.items():
        assert tables(cluster, found[name]) == tables(cluster, run)
    # State near the edge stays where it is, and nothing that is in files is written again.
    again = placed(found, cluster)
    assert all(again[name] is run for name, run in found.items())


def test_with_a_budget_of_nothing_nothing_stays(cluster: Executor) -> None:
    cluster.files.begin(0)
    cluster.driver_memory = 0
    found = placed({"a": operator(cluster, (3, 0)), "none": operator(cluster, (0, 0))}, cluster)
    assert [(place(run), state_rows(run)) for run in found.values()] == [("cluster", 3), ("driver", 0)]


@settings(max_examples=25)
@given(size=st.integers(1, 60), kept=st.integers(0, 60), budget=st.integers(0, 400_000))
def test_state_comes_back_once_it_would_take_a_small_part_of_what_is_free(
    cluster: Executor, size: int, kept: int, budget: int
) -> None:
    cluster.files.begin(0)
    cluster.driver_memory = 0
    found = placed({"away": operator(cluster, (size, 0)), "here": operator(cluster, (0, 0))}, cluster)
    found["here"] = operator(cluster, (kept, kept))
    memory, other = state_bytes(operator(cluster, (size, 0))), state_bytes(found["here"])
    cluster.driver_memory = budget
    after = placed(found, cluster)
    if place(after["here"]) == "driver":
        assert (place(after["away"]) == "driver") == (16 * memory <= budget - other)
    assert sum(state_bytes(run) for run in after.values() if place(run) == "driver") <= budget
    assert tables(cluster, after["away"]) == tables(cluster, operator(cluster, (size, 0)))


def test_a_file_that_packs_well_counts_as_what_it_would_take_in_memory(cluster: Executor) -> None:
    """Else it would go, come back, and go again: of equal values a file holds next to nothing."""
    cluster.files.begin(0)
    run = JoinOperator.start(BOUND, cluster)
    layout = run.state["left"].layout
    table = pa.table([pa.repeat(pa.scalar(1, field.type), 20_000) for field in layout.schema], schema=layout.schema)
    written = cluster.files.persisted(Relation.of_table(layout, table))
    # As Spark leaves it: its summary knows the size of the file.
    restored = cluster.files.restored(
        layout, {**written.saved(), "bytes": written.files[0].bytes}, {file.name: file for file in written.files}
    )
    assert written.files[0].bytes * 100 < table.nbytes
    cluster.driver_memory = table.nbytes - 1
    found = placed({"a": run.with_state({**run.state, "left": Segments(layout, (restored,))})}, cluster)
    assert place(found["a"]) == "cluster"


def test_without_a_cluster_everything_stays_and_is_in_files() -> None:
    with executing() as executor:
        executor.driver_memory = 0
        found = placed({name: operator(executor, (size, size)) for name, size in (("a", 9), ("b", 2))}, executor)
        assert_in_files(found)
        assert [place(run) for run in found.values()] == ["driver", "driver"]
        assert placed(found, executor) == found
