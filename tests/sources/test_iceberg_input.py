"""Iceberg tables as streams of the local engine: every snapshot once, and nothing that was changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import Table

from eventide.engine.local.engine import LocalEngine
from eventide.errors import DeclarationError, InputError
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.plan.declared.evolution import Consent
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Input, Stream, columns
from eventide.plan.declared.window import Window
from eventide.sinks.sink import Memory
from eventide.sources.iceberg.local import IcebergInput
from eventide.storage.iceberg import catalog_of, table_at
from tests.choice import chosen
from tests.sources.input_contract import continues_from_every_position, drained

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string())])


def table_in(place: Path) -> Table:
    catalog = catalog_of({"warehouse": str(place)})
    catalog.create_namespace_if_not_exists("lake")
    return catalog.create_table_if_not_exists("lake.t", SCHEMA)


def declared(place: Path, *options: tuple[str, str], table: str = "lake.t") -> Stream:
    given = Input("iceberg", table, options=(("warehouse", str(place)), *options))
    return Stream("s", columns("t BIGINT, k STRING"), time="t", policy=FixedDelay(0), input=given)


def append(place: Path, *times: int) -> None:
    table_in(place).append(pa.table({"t": times, "k": [f"k{time % 3}" for time in times]}, SCHEMA))


@pytest.mark.parametrize("max_rows", chosen([1, 2, 100], lambda rows: rows == 2))
def test_it_continues_exactly_from_every_position(tmp_path: Path, max_rows: int) -> None:
    for times in ((1, 2, 3), (4,), (5, 6, 7, 8)):
        append(tmp_path, *times)
    rows = continues_from_every_position(lambda: IcebergInput(declared(tmp_path)), max_rows)
    assert [row["t"] for row in rows] == list(range(1, 9))
    assert all(row["k"] == f"k{row['t'] % 3}" for row in rows)


def test_an_empty_table_begins_with_what_is_appended_first(tmp_path: Path) -> None:
    table_in(tmp_path)
    given = IcebergInput(declared(tmp_path))
    assert drained(given) == []
    append(tmp_path, 1)
    assert [row["t"] for row in drained(given)] == [1]


def test_a_snapshot_that_changes_rows_is_refused_unless_it_is_to_be_passed_over(tmp_path: Path) -> None:
    append(tmp_path, 1, 2)
    careful = IcebergInput(declared(tmp_path))
    passing = IcebergInput(declared(tmp_path, ("skipChangeCommits", "true")))
    for given in (careful, passing):
        drained(given)
    table_in(tmp_path).delete("t = 1")
    append(tmp_path, 3)
    with pytest.raises(InputError, match=r"snapshot 2 of lake\.t deletes or changes rows"):
        drained(careful)
    assert [row["t"] for row in drained(passing)] == [3]
    assert [row["t"] for row in drained(IcebergInput(declared(tmp_path)))] == [2, 3], "it begins with what is there now"


def test_a_column_that_was_renamed_is_found_in_older_files(tmp_path: Path) -> None:
    append(tmp_path, 1)
    with table_in(tmp_path).update_schema() as change:
        change.rename_column("k", "kind")
    given = Input("iceberg", "lake.t", options=(("warehouse", str(tmp_path)),))
    rows = drained(IcebergInput(Stream("s", columns("t BIGINT, kind STRING"), time="t", input=given)))
    assert [(row["t"], row["kind"]) for row in rows] == [(1, "k1")]


def test_what_expired_before_it_was_read_is_an_error(tmp_path: Path) -> None:
    append(tmp_path, 1)
    given = IcebergInput(declared(tmp_path))
    drained(given)
    for time in (2, 3):
        append(tmp_path, time)
    table = table_in(tmp_path)
    older = [one.snapshot_id for one in table.snapshots()][:-1]
    table.maintenance.expire_snapshots().by_ids(older).commit()
    with pytest.raises(InputError, match=r"a snapshot of lake\.t after 1 expired before it was read"):
        drained(given)


def test_a_table_may_be_named_by_its_folder(tmp_path: Path) -> None:
    append(tmp_path, 1, 2)
    table = table_in(tmp_path)
    metadata = Path(table.metadata_location.removeprefix("file://"))
    shutil.copy(metadata, metadata.parent / "v1.metadata.json")
    (metadata.parent / "version-hint.text").write_text("1")
    folder = str(metadata.parent.parent)
    assert table_at(folder, {}) is not None
    given = Input("iceberg", folder)
    rows = drained(IcebergInput(Stream("s", columns("t BIGINT"), time="t", input=given)))
    assert [row["t"] for row in rows] == [1, 2]


def test_what_is_no_table_or_no_catalog_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no Iceberg table lake\.t: check its name and its catalog"):
        IcebergInput(declared(tmp_path))
    with pytest.raises(DeclarationError, match="where is the catalog of Iceberg"):
        IcebergInput(Stream("s", columns("t BIGINT"), time="t", input=Input("iceberg", "lake.t")))


def test_an_engine_reads_a_table_round_by_round_and_a_new_query_reads_its_past(tmp_path: Path) -> None:
    sink, stream = Memory(), declared(tmp_path)
    first, second = (Query(name, "s", Window(10), named_as(n="count(*)")) for name in ("first", "second"))
    append(tmp_path, 1, 5, 12)
    with LocalEngine(Program((stream,), (first,)), str(tmp_path / "c"), {"first": sink}) as engine:
        engine.recover()
        engine.step(bounded=True)
    append(tmp_path, 25, 26)
    consent, sinks = Consent(backfill=("second",)), {"first": sink, "second": sink}
    with LocalEngine(Program((stream,), (first, second)), str(tmp_path / "c"), sinks, consent=consent) as engine:
        engine.run(bounded=True)
    for name in ("first", "second"):
        assert sorted((row["window_start"], row["n"]) for row in sink.rows(name)) == [(0, 2), (10, 1), (20, 2)]
