"""Delta tables as streams of the local engine: every commit once, and nothing that was changed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from eventide.engine.local.engine import LocalEngine
from eventide.errors import DeclarationError, InputError
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.plan.declared.evolution import Consent
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Input, Stream, columns
from eventide.plan.declared.window import Window
from eventide.sinks.sink import Memory
from eventide.sources.delta import DeltaInput
from tests.sources.input_contract import continues_from_every_position, drained


def declared(place: Path, *options: tuple[str, str]) -> Stream:
    given = Input("delta", str(place), options=options)
    return Stream("s", columns("t BIGINT, k STRING"), time="t", policy=FixedDelay(0), input=given)


def append(place: Path, *times: int, by: list[str] | None = None) -> None:
    rows = pa.table({"t": pa.array(times, pa.int64()), "k": [f"k{time % 3}" for time in times]})
    write_deltalake(place, rows, mode="append", partition_by=by)


@pytest.mark.parametrize("by", [None, ["k"]], ids=["whole", "parted"])
@pytest.mark.parametrize("max_rows", [1, 2, 100])
def test_it_continues_exactly_from_every_position(tmp_path: Path, max_rows: int, by: list[str] | None) -> None:
    for times in ((1, 2, 3), (4,), (5, 6, 7, 8)):
        append(tmp_path / "t", *times, by=by)
    rows = continues_from_every_position(lambda: DeltaInput(declared(tmp_path / "t")), max_rows)
    assert sorted(row["t"] for row in rows) == list(range(1, 9))
    assert all(row["k"] == f"k{row['t'] % 3}" for row in rows)


def test_what_is_appended_comes_and_what_is_rewritten_does_not(tmp_path: Path) -> None:
    append(tmp_path / "t", 1, 2)
    given = DeltaInput(declared(tmp_path / "t"))
    assert [row["t"] for row in drained(given)] == [1, 2]
    append(tmp_path / "t", 3)
    append(tmp_path / "t", 4)
    DeltaTable(tmp_path / "t").optimize.compact()
    append(tmp_path / "t", 5)
    assert [row["t"] for row in drained(given)] == [3, 4, 5]


def test_a_portion_is_read_again_whatever_has_come_since(tmp_path: Path) -> None:
    append(tmp_path / "t", 1, 2, 3)
    given = DeltaInput(declared(tmp_path / "t"))
    given.take(2, 0.0)
    given.portion()
    position = given.position()
    taken = given.take(100, 0.0)
    portion = given.portion()
    append(tmp_path / "t", 4)
    again = DeltaInput(declared(tmp_path / "t"))
    again.seek(position)
    rows, exact = again.repeat(portion)
    assert exact
    assert rows == taken
    assert [row["t"] for row in drained(again)] == [4]


def test_a_commit_that_changes_rows_is_refused_unless_it_is_to_be_passed_over(tmp_path: Path) -> None:
    append(tmp_path / "t", 1, 2)
    careful = DeltaInput(declared(tmp_path / "t"))
    passing = DeltaInput(declared(tmp_path / "t", ("skipChangeCommits", "true")))
    for given in (careful, passing):
        drained(given)
    DeltaTable(tmp_path / "t").delete("t = 1")
    append(tmp_path / "t", 3)
    with pytest.raises(InputError, match=r"version 1 of .* deletes or changes rows"):
        drained(careful)
    assert [row["t"] for row in drained(passing)] == [3]


def test_what_is_no_table_or_no_option_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no Delta table at"):
        DeltaInput(declared(tmp_path / "t"))
    append(tmp_path / "t", 1)
    with pytest.raises(DeclarationError, match="no option 'ignorechanges' for delta"):
        DeltaInput(declared(tmp_path / "t", ("ignoreChanges", "true")))


def test_an_engine_reads_a_table_round_by_round_and_a_new_query_reads_its_past(tmp_path: Path) -> None:
    sink, stream = Memory(), declared(tmp_path / "t")
    first, second = (Query(name, "s", Window(10), named_as(n="count(*)")) for name in ("first", "second"))
    append(tmp_path / "t", 1, 5, 12)
    with LocalEngine(Program((stream,), (first,)), str(tmp_path / "c"), {"first": sink}) as engine:
        engine.recover()
        engine.step(bounded=True)
    append(tmp_path / "t", 25, 26)
    consent, sinks = Consent(backfill=("second",)), {"first": sink, "second": sink}
    with LocalEngine(Program((stream,), (first, second)), str(tmp_path / "c"), sinks, consent=consent) as engine:
        engine.run(bounded=True)
    for name in ("first", "second"):
        assert sorted((row["window_start"], row["n"]) for row in sink.rows(name)) == [(0, 2), (10, 1), (20, 2)]
