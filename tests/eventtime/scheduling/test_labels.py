"""Labels of operators against the words of the STREAM paper, section 7."""

from __future__ import annotations

from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from eventide.eventtime.scheduling.expensive import Selectivity
from eventide.eventtime.scheduling.labels import HeartbeatScope, Node, Shape, held_to, labels, memory_links
from tests.eventtime.scheduling.plan_shapes import shapes

FIGURE_5 = Shape(("S1", "S2", "S3"), (Node("O1", ("S1", "S2")), Node("O2", ("O1", "S3"))))

Ratios = dict[str, float]


@st.composite
def measured(draw: st.DrawFn, trees: bool = False) -> tuple[Shape, Ratios]:
    shape = draw(shapes(trees))
    ratio = st.sampled_from((0.1, 0.25, 0.5, 1.0, 2.0, 4.0))
    return shape, {node.name: draw(ratio) for node in shape.operators}


def figure_6(shape: Shape, ratios: Ratios) -> dict[str, frozenset[str]]:
    """The labels, word by word: from the root down, over all links of the plan."""
    parent = {read: node.name for node in shape.operators for read in node.inputs}
    (root,) = shape.roots

    def ancestors(name: str) -> list[str]:
        return [parent[name], *ancestors(parent[name])] if name in parent else []

    def lowest(name: str) -> str:
        """The lowest one at or above it up to which the chain is selective; the output node has selectivity 0."""
        product = 1.0
        for one in (name, *ancestors(name)):
            product *= 0.0 if one == root else ratios[one]
            if product <= 1:
                return one
        raise AssertionError("the output node ends every chain")

    def within(name: str) -> list[str]:
        return [name, *(one for read in shape.inputs(name) if not shape.is_source(read) for one in within(read))]

    found: dict[str, frozenset[str]] = {}

    def assign(name: str) -> None:
        linked = any(lowest(one) in ancestors(name) for one in within(name))
        found[name] = found[parent[name]] if linked else shape.below(name)
        for read in shape.inputs(name):
            if not shape.is_source(read):
                assign(read)

    assign(root)
    return found


def test_figure_5_with_a_proliferating_join_falls_back_to_the_heartbeat_of_the_query() -> None:
    every = frozenset(("S1", "S2", "S3"))
    assert labels(FIGURE_5, HeartbeatScope.MEMORY, {"O1": 3.0}) == {"O1": every, "O2": every}
    assert labels(FIGURE_5, HeartbeatScope.MEMORY, {"O1": 3.0}) == labels(FIGURE_5, HeartbeatScope.QUERY)


def test_figure_5_with_a_selective_join_runs_ahead_of_the_stream_that_lags() -> None:
    label = labels(FIGURE_5, HeartbeatScope.MEMORY, {"O1": 0.5})["O1"]
    heartbeats = {"S1": 90, "S2": 80, "S3": 10}
    assert (held_to(label, heartbeats), held_to(labels(FIGURE_5, HeartbeatScope.QUERY)["O1"], heartbeats)) == (80, 10)


def test_rows_that_are_many_below_and_few_again_above_wait_only_for_the_operator_that_makes_them_few() -> None:
    nodes = (Node("many", ("S1",)), Node("few", ("many", "S2")), Node("last", ("few", "S3")))
    plan = Shape(("S1", "S2", "S3"), nodes)
    found = labels(plan, HeartbeatScope.MEMORY, {"many": 4.0, "few": 0.25})
    assert memory_links(plan, {"many": 4.0, "few": 0.25}) == {("many", "few")}
    assert found["many"] == found["few"] == frozenset(("S1", "S2"))


@limits(max_examples=200)
@given(measured(trees=True))
def test_labels_of_a_tree_are_those_of_figure_6(case: tuple[Shape, Ratios]) -> None:
    shape, ratios = case
    assert labels(shape, HeartbeatScope.MEMORY, ratios) == figure_6(shape, ratios)


@limits(max_examples=200)
@given(measured())
def test_memory_lies_between_operator_and_query(case: tuple[Shape, Ratios]) -> None:
    shape, ratios = case
    operator, memory, query = (
        labels(shape, level, ratios) for level in (HeartbeatScope.OPERATOR, HeartbeatScope.MEMORY, HeartbeatScope.QUERY)
    )
    for node in shape.operators:
        assert operator[node.name] <= memory[node.name] <= query[node.name]
        assert operator[node.name] == shape.below(node.name)
        for root in {node.name, *shape.above(node.name)}.intersection(shape.roots):
            assert shape.below(root) <= query[node.name]


@limits(max_examples=200)
@given(measured())
def test_no_reader_is_behind_an_operator_that_proliferates(case: tuple[Shape, Ratios]) -> None:
    shape, ratios = case
    found = labels(shape, HeartbeatScope.MEMORY, ratios)
    for node in shape.operators:
        if ratios[node.name] > 1:
            for reader in shape.readers(node.name):
                assert found[reader] <= found[node.name]


@given(st.integers(1, 10), st.integers(0, 50), st.lists(st.integers(1, 200), min_size=1, max_size=20))
def test_a_steady_selectivity_is_found_whatever_the_rounds(per_ten: int, out: int, rounds: list[int]) -> None:
    measured = Selectivity(forget=100)
    for size in rounds:
        measured.count(size * per_ten, size * out)
    assert abs(measured.ratio - out / per_ten) < 1e-9 * max(1.0, measured.ratio)


def test_a_selectivity_that_changes_is_followed() -> None:
    measured = Selectivity(forget=100)
    for _ in range(100):
        measured.count(10, 100)
    for _ in range(100):
        measured.count(10, 1)
    assert 0.1 <= measured.ratio < 0.2
