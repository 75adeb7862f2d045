"""Numbers given stretch by stretch are those of one sort over all."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engine.operators.time_range import NUMBER, numbered_text, span_of
from eventide.engine.relations.executor import Executor, Inputs, Statement
from eventide.engine.relations.relation import Layout, Relation
from eventide.engine.relations.segments import Segments
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.plan.expressions.columns import columns

# Columns of a user may have any name that has no two underscores before it.
READY = Layout(columns("__t BIGINT, first INT, low STRING"), ("__t",))
NUMBERED = Layout((*READY.columns, *columns(f"{NUMBER} BIGINT")))

Row = tuple[int, int | None, str]
rows = st.tuples(
    st.integers(-9, 9) | st.sampled_from([-(10**15), 10**15]),
    st.none() | st.integers(0, 2),
    st.sampled_from(["", "a", "b"]),
)
edges = st.integers(-12, 12)


def numbered(
    executor: Executor, parts: list[list[Row]], low: int, high: int, first: int, rows_a_stretch: int
) -> list[tuple[int, Row]]:
    """The rows in a span of time, each with its number, in the order of the numbers."""
    ready = Segments(READY)
    for part in parts:
        table = pa.table([list(column) for column in zip(*part, strict=True)], schema=READY.schema)
        ready = ready.add(Relation.of_table(READY, table))
    inputs: Inputs = {"ready": ready, "span": span_of(ready, "__t", low, high, first, rows_a_stretch)}
    found = executor.relation(Statement(numbered_text("__t", ("__t", "`first`", "`low`"))), inputs, NUMBERED).table
    assert found is not None
    told = [(row.pop(NUMBER), tuple(row.values())) for row in found.to_pylist()]
    return sorted(told, key=lambda one: one[0])


def in_order(row: Row) -> tuple[int, bool, int, str]:
    """As Spark sorts: NULL is before all numbers."""
    t, v, s = row
    return t, v is not None, v or 0, s


@settings(max_examples=60)
@given(
    parts=st.lists(st.lists(rows, min_size=1, max_size=8), min_size=1, max_size=5),
    span=st.tuples(edges | st.just(NEVER), edges | st.just(FOREVER)).map(sorted),
    first=st.integers(0, 1000),
    rows_a_stretch=st.integers(1, 50),
)
def test_the_number_of_a_row_is_its_place_in_one_sort_over_all_rows_of_the_span(
    executor: Executor, parts: list[list[Row]], span: list[int], first: int, rows_a_stretch: int
) -> None:
    low, high = span
    every = sorted((row for part in parts for row in part if low <= row[0] < high), key=in_order)
    found = numbered(executor, parts, low, high, first, rows_a_stretch)
    assert found == [(first + place, row) for place, row in enumerate(every)]


@settings(max_examples=20)
@given(part=st.lists(rows, min_size=1, max_size=20), cut=edges, rows_a_stretch=st.integers(1, 9))
def test_two_spans_one_after_the_other_are_numbered_as_one(
    executor: Executor, part: list[Row], cut: int, rows_a_stretch: int
) -> None:
    before = numbered(executor, [part], NEVER, cut, 0, rows_a_stretch)
    after = numbered(executor, [part], cut, FOREVER, len(before), rows_a_stretch)
    whole = numbered(executor, [part], NEVER, FOREVER, 0, 10**6)
    assert before + after == whole
    assert Counter(row for _, row in whole) == Counter(part)
