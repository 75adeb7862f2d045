"""Relations and segments against brute force over plain lists; files against the rows that were written."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import log
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engine.relations.executor import Executor, Statement
from eventide.engine.relations.relation import Layout, Relation, Summary
from eventide.engine.relations.segments import MOST_SEGMENTS, Segments
from eventide.errors import DataFaultError
from eventide.eventtime.instant import NEVER
from eventide.plan.bound.rows import IDENTITY
from eventide.plan.expressions.columns import Column, columns
from eventide.sources.arrow_types import arrow_type
from tests.engine.operators_alone import executing
from tests.engine.test_arrow_types import TYPES

LAYOUT = Layout(columns("__t BIGINT, __pane BIGINT, __n BIGINT"), ("__t",), "__pane", "__n")

Row = tuple[int | None, int, int]
times = st.none() | st.integers(-20, 20)
parts = st.lists(st.lists(st.tuples(times, st.integers(-3, 3), st.integers(1, 5)), min_size=1, max_size=6), max_size=8)


@pytest.fixture(scope="module", params=[False, True], ids=["arrow", "parquet"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    """An executor of each kind of files."""
    with executing(shared=request.param) as found:
        yield found


def relation(rows: list[Row]) -> Relation:
    names = LAYOUT.schema.names
    return Relation.of_table(
        LAYOUT, pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], LAYOUT.schema)
    )


def segments(parts: list[list[Row]]) -> Segments:
    found = Segments(LAYOUT)
    for rows in parts:
        found = found.add(relation(rows))
    return found


def rows_of(found: Segments) -> list[Row]:
    return [tuple(row.values()) for row in found.table().to_pylist()]


@given(parts=parts, last=st.lists(st.nothing()))
def test_a_summary_says_what_the_rows_are(parts: list[list[Row]], last: list[Row]) -> None:
    found = segments(parts).add(relation(last))
    every = [row for rows in parts for row in rows]
    known = [t for t, _, _ in every if t is not None]
    assert found.parts == tuple(part for part in found.parts if part.rows), "none of them is empty"
    assert (found.rows, found.weight, found.least("__t")) == (
        len(every), sum(n for _, _, n in every), min(known, default=None),
    )  # fmt: skip
    assert found.panes.tolist() == sorted({pane for _, pane, _ in every})
    assert found.place == "driver"
    for part, rows in zip(found.parts, parts, strict=True):
        known = [t for t, _, _ in rows if t is not None]
        assert (part.least("__t"), part.greatest("__t")) == (min(known, default=None), max(known, default=None))
        assert Summary.restored(json.loads(json.dumps(part.summary.saved()))) == part.summary


@given(parts=parts, first=st.integers(-25, 25) | st.just(NEVER), panes=st.sets(st.integers(-3, 3)))
def test_relations_go_whole_once_no_value_of_them_counts(parts: list[list[Row]], first: int, panes: set[int]) -> None:
    found = segments(parts)
    live = [rows for rows in parts if first == NEVER or any(t is not None and t >= first for t, _, _ in rows)]
    assert rows_of(found.since("__t", first)) == [row for rows in live for row in rows]
    holding = [rows for rows in parts if panes & {pane for _, pane, _ in rows}]
    wanted = pa.array(sorted(panes), pa.int64()).to_numpy()
    assert rows_of(found.holding(wanted)) == [row for rows in holding for row in rows]


@given(parts=parts, low=st.integers(-25, 25), width=st.integers(0, 10))
def test_no_value_of_a_stretch_is_missing_from_the_relations_within_it(
    parts: list[list[Row]], low: int, width: int
) -> None:
    high = low + width
    inside = segments(parts).within("__t", low, high)
    expected = [row for rows in parts for row in rows if row[0] is not None and low <= row[0] <= high]
    assert [row for row in rows_of(inside) if row[0] is not None and low <= row[0] <= high] == expected
    for part in inside.parts:
        first, last = part.least("__t"), part.greatest("__t")
        assert first is not None
        assert last is not None
        assert first <= high
        assert last >= low


@settings(max_examples=40)
@given(parts=parts, first=st.integers(-25, 25) | st.just(NEVER), away=st.sets(st.integers(0, 7)))
def test_what_is_done_with_is_let_go_row_by_row_on_the_driver_and_file_by_file_elsewhere(
    executor: Executor, parts: list[list[Row]], first: int, away: set[int]
) -> None:
    executor.files.begin(0)
    found = segments(parts)
    # The same in files, some of them without a copy on the driver.
    persisted = [executor.persisted(part) for part in found.parts]
    placed = Segments(
        LAYOUT, tuple(part.without_table() if number in away else part for number, part in enumerate(persisted))
    )
    trimmed = placed.trimmed("__t", first)
    loaded = Segments(LAYOUT, tuple(executor.loaded(part) for part in trimmed.parts))
    expected = []
    for number, rows in enumerate(parts):
        live = [row for row in rows if first == NEVER or (row[0] is not None and row[0] >= first)]
        expected += rows if live and number in away else live
    assert rows_of(loaded) == expected
    assert all(part.rows for part in trimmed.parts)
    # Who trims it again finds the same, wherever the rows were.
    live = [row for row in rows_of(found) if first == NEVER or (row[0] is not None and row[0] >= first)]
    assert rows_of(loaded.trimmed("__t", first)) == live


@settings(max_examples=40)
@given(parts=parts, most=st.integers(1, 6))
def test_merging_keeps_every_row_in_its_order_and_few_relations(
    executor: Executor, parts: list[list[Row]], most: int
) -> None:
    found = segments(parts)
    merged = found.merged(executor.merged, most)
    assert rows_of(merged) == rows_of(found)
    assert len(merged.parts) <= max(most, 1)
    assert (merged.parts == found.parts) == (len(parts) <= most)


@pytest.mark.parametrize("sizes", [(1,), (1, 50), (7, 7, 1000)], ids=["alike", "mixed", "one large"])
def test_a_row_is_written_again_a_logarithmic_number_of_times(sizes: tuple[int, ...]) -> None:
    written = 0

    def merge(some: Segments) -> Relation:
        nonlocal written
        written += some.rows
        return Relation.of_table(some.layout, some.table())

    found = Segments(LAYOUT)
    for number in range(600):
        found = found.add(relation([(number, 0, 1)] * sizes[number % len(sizes)])).merged(merge)
        assert len(found.parts) <= MOST_SEGMENTS
    assert written <= found.rows * log(found.rows, 1.5)


def test_several_relations_become_one_by_a_statement(executor: Executor) -> None:
    found = segments([[(1, 0, 2)], [(2, 0, 3), (3, 5, 1)]])
    text = "SELECT max(__t) AS __t, __pane, sum(__n) AS __n FROM segments GROUP BY __pane"
    one = executor.merged(found, Statement(text))
    assert Counter(rows_of(Segments(LAYOUT).add(one))) == Counter([(2, 0, 5), (3, 5, 1)])


def test_rows_are_numbered_where_the_layout_says_so_and_keep_their_numbers(executor: Executor) -> None:
    layout = Layout((*IDENTITY, *columns("v INT")))
    executor.files.begin(3)
    one, two = (executor.of_table(layout, pa.table({"v": values})) for values in ([5, 6], [7]))
    numbers = [(row["__seq"], row["__id"]) for part in (one, two) for row in part.table.to_pylist()]  # type: ignore[union-attr]
    assert len(set(numbers)) == 3
    both = Segments(layout).add(one, two)
    kept = executor.relation(Statement("SELECT * FROM found WHERE v > 5", identified=True), {"found": both}, layout)
    # Statements without an order give rows in any.
    assert sorted((row["__seq"], row["__id"]) for row in kept.table.to_pylist()) == numbers[1:]  # type: ignore[union-attr]
    anew = executor.relation(Statement("SELECT v FROM found"), {"found": both}, layout)
    assert not {(row["__seq"], row["__id"]) for row in anew.table.to_pylist()} & set(numbers)  # type: ignore[union-attr]
    executor.files.begin(4)
    later = executor.of_table(layout, pa.table({"v": [1]}))
    assert later.table.column("__seq")[0].as_py() > max(numbers)[0]  # type: ignore[union-attr]


def test_a_statement_that_fails_for_a_row_is_run_in_its_fail_safe_form_and_says_so(executor: Executor) -> None:
    layout = Layout(columns("v INT"))
    rows = Relation.of_table(Layout(columns("s STRING")), pa.table({"s": ["1", "x"]}))
    whole = Statement("SELECT CAST(s AS INT) AS v FROM found")
    fail_safe = Statement(whole.sql, fail_safe=lambda: "SELECT try_cast(s AS INT) AS v FROM found")
    found = executor.relation(fail_safe, {"found": rows}, layout)
    assert found.lossy
    assert found.table.column("v").to_pylist() == [1, None]  # type: ignore[union-attr]
    with pytest.raises(DataFaultError):
        executor.relation(whole, {"found": rows}, layout)


# Files

EPOCH = datetime(1970, 1, 1)
INSTANTS = st.integers(-(10**15), 10**15)


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of an Arrow type, as Arrow takes them; not NaN, which is not equal to itself."""
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_integer(kind):
        half = 2 ** (kind.bit_width - 1)
        return st.integers(-half, half - 1)
    if pa.types.is_floating(kind):
        return st.floats(allow_nan=False, width=32)
    if pa.types.is_decimal(kind):
        most = 10**kind.precision - 1
        return st.integers(-most, most).map(lambda digits: Decimal(digits).scaleb(-kind.scale))
    if pa.types.is_string(kind):
        return st.text(max_size=5)
    if pa.types.is_binary(kind):
        return st.binary(max_size=5)
    if pa.types.is_date(kind):
        return st.dates(date(1700, 1, 1), date(2200, 1, 1))
    if pa.types.is_timestamp(kind):
        zone = UTC if kind.tz else None
        return INSTANTS.map(lambda at: (EPOCH + timedelta(microseconds=at)).replace(tzinfo=zone))
    if pa.types.is_map(kind):
        return st.dictionaries(values(kind.key_type), some(kind.item_type), max_size=2).map(lambda one: [*one.items()])
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({field.name: some(field.type) for field in kind})
    return st.lists(some(kind.value_type), max_size=3)


def some(kind: pa.DataType) -> st.SearchStrategy[Any]:
    return st.none() | values(kind)


tables = TYPES.flatmap(
    lambda kind: st.tuples(st.just(kind), st.lists(some(arrow_type(kind)), min_size=1, max_size=5), st.integers(1, 3))
)


@settings(max_examples=100)
@given(written=tables)
def test_rows_of_every_type_come_back_from_files_as_they_were(
    executor: Executor, written: tuple[str, list[Any], int]
) -> None:
    kind, chosen, cut = written
    layout = Layout((Column("__t", "BIGINT"), Column("x y", kind)), ("__t",))
    table = pa.table(
        [pa.array(range(len(chosen)), pa.int64()), pa.array(chosen, arrow_type(kind))], schema=layout.schema
    )
    executor.files.begin(0)
    rows = Relation.of_table(layout, pa.concat_tables([table.slice(0, cut), table.slice(cut)]))
    persisted = executor.persisted(rows)
    assert executor.persisted(persisted) is persisted, "a file is written once"
    [file] = persisted.files
    assert file.name.endswith(".parquet" if executor.files.shared else ".arrow")
    away = persisted.without_table()
    assert (away.place, away.rows, away.least("__t"), away.weight) == ("cluster", len(chosen), 0, len(chosen))
    assert executor.loaded(away).table.equals(table)  # type: ignore[union-attr]
    saved = json.loads(json.dumps(persisted.saved()))
    restored = executor.files.restored(layout, saved, {file.name: file})
    assert restored.summary == persisted.summary
    assert executor.loaded(restored).table.equals(table)  # type: ignore[union-attr]
    if executor.files.shared:
        assert pa.concat_tables(executor.batches(restored)).equals(table)


EDGES: dict[str, tuple[str, list[Any], tuple[int, int] | None]] = {
    "numbers": ("INT", [5, None, -2], (-2, 5)),
    "dates": ("DATE", [date(1970, 1, 3), date(1969, 12, 31)], (-86_400_000_000, 2 * 86_400_000_000)),
    "instants": ("TIMESTAMP", [datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), None], (1_000_000, 1_000_000)),
    "wall clocks": ("TIMESTAMP_NTZ", [datetime(1970, 1, 1, 0, 0, 1)], (1_000_000, 1_000_000)),
    "nothing": ("BIGINT", [None], None),
}


@pytest.mark.parametrize("name", EDGES)
def test_the_edges_of_a_column_with_time_are_in_microseconds(name: str) -> None:
    kind, chosen, edges = EDGES[name]
    layout = Layout((Column("x", kind),), ("x",))
    rows = Relation.of_table(layout, pa.table({"x": pa.array(chosen, arrow_type(kind))}))
    assert (rows.least("x"), rows.greatest("x")) == (edges or (None, None))


@given(kind=TYPES)
def test_every_layout_knows_about_how_wide_its_rows_are(kind: str) -> None:
    assert Layout((Column("x", kind),)).row_bytes >= 1
