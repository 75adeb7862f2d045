"""Everything a file can do to a reader: formats, units, rows to set aside, and files that cannot be used at all."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import DeclarationError, InputError
from eventide.profile.files import ColumnNames
from eventide.profile.reading import LoadedRecording, read

Write = Callable[[str, str], str]
"""Writes a text into a file of a name and returns its path."""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def into(name: str, text: str) -> str:
        path = tmp_path / name
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text)
        return str(path)

    return into


def read_one(path: str, columns: ColumnNames, unit: str | None = None) -> LoadedRecording:
    [reading] = read([path], columns, unit)
    return reading


def parquet(directory: Path, **columns: pa.Array) -> str:
    path = directory / "rows.parquet"
    pq.write_table(pa.table(columns), path)
    return str(path)


CSV = "t,a,s\n30,31,x\n10,32,y\n20,33,x\n"
LINES = '{"t": 30, "a": 31, "s": "x"}\n{"t": 10, "a": 32, "s": "y"}\n{"t": 20, "a": 33, "s": "x"}\n'
ARRAY = "[" + ",".join(LINES.strip().splitlines()) + "]"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("r.csv", CSV),
        ("r.csv.gz", CSV),
        ("r.tsv", CSV.replace(",", "\t")),
        ("r.jsonl", LINES),
        ("r.ndjson", LINES),
        ("r.jsonl.gz", LINES),
        ("r.json", ARRAY),
        ("r.json", LINES),
    ],
)
def test_every_text_format_gives_the_same_recording(write: Write, name: str, text: str) -> None:
    reading = read_one(write(name, text), ColumnNames("t", "a", ("s",)), "none")
    assert reading.recording.time.tolist() == [30, 10, 20]
    assert reading.recording.arrival.tolist() == [31, 32, 33]
    assert reading.recording.source.tolist() == [0, 1, 0]
    assert reading.recording.source_names == ("x", "y")


def test_parquet_with_timestamps_needs_no_unit(tmp_path: Path) -> None:
    times = pa.array([1_000_001, 2_000_000], pa.timestamp("us"))
    path = parquet(tmp_path, t=times, s=pa.array([7, 8]))
    reading = read_one(path, ColumnNames("t", source=("s",)))
    assert reading.recording.time.tolist() == [1_000_001, 2_000_000]
    assert reading.recording.source_names == ("7", "8")
    assert reading.unit is None


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.timestamp("s"), 5, 5_000_000),
        (pa.timestamp("ms"), 5_001, 5_001_000),
        (pa.timestamp("ns"), 5_999, 5),
        (pa.timestamp("us", tz="Europe/Vienna"), 5, 5),
        (pa.date32(), 2, 2 * 86_400_000_000),
    ],
)
def test_every_kind_of_timestamp_becomes_microseconds(
    tmp_path: Path, kind: pa.DataType, value: int, expected: int
) -> None:
    path = parquet(tmp_path, t=pa.array([value], kind))
    assert read_one(path, ColumnNames("t")).recording.time.tolist() == [expected]


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("1970-01-01 00:00:01", 1_000_000),
        ("1970-01-01T00:00:01.5Z", 1_500_000),
        ("1970-01-01T02:00:01+02:00", 1_000_000),
        ("1969-12-31", -86_400_000_000),
    ],
)
def test_iso_text_is_utc_unless_it_names_a_zone(write: Write, text: str, microseconds: int) -> None:
    reading = read_one(write("r.csv", f"t\n{text}\n"), ColumnNames("t"))
    assert reading.recording.time.tolist() == [microseconds]
    assert reading.unit == "text"


@pytest.mark.parametrize(
    ("unit", "value", "microseconds"),
    [
        ("s", "-3", -3_000_000),
        ("s", "1.5", 1_500_000),
        ("ms", "-3", -3_000),
        ("us", "-3", -3),
        ("ns", "1999", 1),
        ("ns", "-1", -1),
        ("ns", "2500.5", 2),
        ("none", "-3", -3),
        ("none", "4.0", 4),
    ],
)
def test_numbers_are_scaled_by_their_unit_and_never_made_later(
    write: Write, unit: str, value: str, microseconds: int
) -> None:
    assert read_one(write("r.csv", f"t\n{value}\n"), ColumnNames("t"), unit).recording.time.tolist() == [microseconds]


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        ("1415624019", "s"),
        ("1415624019.25", "s"),
        ("1415624019862", "ms"),
        ("1415624019862000", "us"),
        ("1723161254087896568", "ns"),
        ("412", "none"),
        ("412.5", "s"),
    ],
)
def test_a_unit_that_is_not_given_is_guessed_from_the_magnitude_and_said(write: Write, value: str, unit: str) -> None:
    reading = read_one(write("r.csv", f"when\n{value}\n"), ColumnNames("when"))
    assert reading.unit == unit
    assert any("'when' is taken to be" in note and "--unit" in note for note in reading.notes)


def test_time_and_arrival_may_have_different_units(write: Write) -> None:
    path = write("r.csv", "t,a\n1000,1500000000\n")
    guessed = write("g.csv", "t,a\n1723161255342,1723161254087896568\n")
    assert read_one(path, ColumnNames("t", "a"), "ms,ns").recording.arrival.tolist() == [1_500_000]
    assert read_one(guessed, ColumnNames("t", "a")).recording.arrival.tolist() == [1_723_161_254_087_896]


@settings(max_examples=25)
@given(st.lists(st.integers(-(2**61), 2**61), min_size=1, max_size=20))
def test_plain_numbers_come_through_exactly(tmp_path_factory: pytest.TempPathFactory, numbers: list[int]) -> None:
    path = tmp_path_factory.mktemp("plain") / "r.csv"
    path.write_text("t\n" + "\n".join(map(str, numbers)) + "\n")
    assert read_one(str(path), ColumnNames("t"), "none").recording.time.tolist() == numbers


def test_without_arrival_the_clock_is_the_largest_time_seen(write: Write) -> None:
    reading = read_one(write("r.csv", "t\n5\n3\n9\n"), ColumnNames("t"), "none")
    assert reading.recording.arrival.tolist() == [5, 5, 9]
    assert any("no arrival column" in note for note in reading.notes)


def test_rows_out_of_arrival_order_are_sorted_stably_and_counted(write: Write) -> None:
    reading = read_one(write("r.csv", "t,a,s\n1,20,x\n2,10,y\n3,20,z\n4,10,w\n"), ColumnNames("t", "a", ("s",)), "none")
    assert reading.recording.time.tolist() == [2, 4, 1, 3]
    assert reading.recording.source_names == ("y", "w", "x", "z")
    assert any(note.startswith("2 rows were not in order of arrival") for note in reading.notes)


def test_runs_are_never_mixed(write: Write) -> None:
    path = write("r.csv", "t,a,s,run\n1,1,x,mon\n9,9,y,tue\n2,2,y,mon\n8,10,y,tue\n")
    monday, tuesday = read([path], ColumnNames("t", "a", ("s",), "run"), "none")
    assert (monday.run, tuesday.run) == ("mon", "tue")
    assert monday.recording.time.tolist() == [1, 2]
    assert monday.recording.source_names == ("x", "y")
    assert tuesday.recording.time.tolist() == [9, 8]
    assert tuesday.recording.source_names == ("y",)


def test_several_columns_together_name_a_source(write: Write) -> None:
    path = write("r.csv", "t,host,channel\n1,a,x\n2,a,y\n3,,y\n4,a,x\n")
    recording = read_one(path, ColumnNames("t", source=("host", "channel")), "none").recording
    assert recording.source_names == ("a|x", "a|y", "NULL|y")
    assert recording.source.tolist() == [0, 1, 2, 0]


def test_a_directory_and_a_glob_are_one_recording_in_the_order_of_their_parts(write: Write, tmp_path: Path) -> None:
    write("part-1.csv", "t\n3\n4\n")
    write("part-0.csv", "t\n1\n2\n")
    write("_SUCCESS", "")
    for argument in (str(tmp_path), str(tmp_path / "part-*.csv")):
        assert read_one(argument, ColumnNames("t"), "none").recording.time.tolist() == [1, 2, 3, 4]


def test_several_files_are_several_recordings(write: Write) -> None:
    paths = [write("a.csv", "t\n1\n"), write("b.csv", "t\n2\n")]
    assert [reading.file for reading in read(paths, ColumnNames("t"), "none")] == paths


def test_rows_without_a_usable_time_are_set_aside_with_the_reason(write: Write) -> None:
    text = "t,a\n5,6\n,7\nNaN,8\nsoon,9\n99999999999999999999,10\n4611686018427387904,11\n6,\n7,13\n"
    reading = read_one(write("r.csv", text), ColumnNames("t", "a"), "none")
    assert reading.recording.time.tolist() == [5, 7]
    assert reading.rejects == {"time missing": 2, "time not a time": 1, "time out of range": 2, "arrival missing": 1}
    assert any(note.startswith("rows set aside: ") for note in reading.notes)


def test_null_and_nan_in_typed_columns_are_missing_times(tmp_path: Path) -> None:
    path = parquet(tmp_path, t=pa.array([1.5, None, float("nan"), float("inf")]))
    reading = read_one(path, ColumnNames("t"), "s")
    assert reading.recording.time.tolist() == [1_500_000]
    assert reading.rejects == {"time missing": 2, "time out of range": 1}


def test_the_edges_of_int64_are_out_of_range_and_do_not_wrap(tmp_path: Path) -> None:
    edges = pa.array([2**63 - 1, -(2**63), 0], pa.int64())
    for unit in ("s", "ms", "us", "none"):
        reading = read_one(parquet(tmp_path, t=edges), ColumnNames("t"), unit)
        assert reading.recording.time.tolist() == [0]
        assert reading.rejects == {"time out of range": 2}


def test_lines_that_are_no_rows_are_counted(write: Write) -> None:
    csv = read_one(write("r.csv", "t,s\n1,a\n2\n3,c\n4,d,e\n"), ColumnNames("t", source=("s",)), "none")
    assert csv.recording.time.tolist() == [1, 3]
    assert any("2 lines" in note for note in csv.notes)
    lines = read_one(write("r.jsonl", '{"t": 1}\nnot json\n{"t": 2}\n'), ColumnNames("t"), "none")
    assert lines.recording.time.tolist() == [1, 2]
    assert lines.rejects == {"time missing": 1}


def test_a_run_without_a_usable_row_is_left_out_and_named(write: Write) -> None:
    reading = read_one(write("r.csv", "t,run\n1,a\n,b\n"), ColumnNames("t", run="run"), "none")
    assert reading.run == "a"
    assert any("left out: b" in note for note in reading.notes)


def test_one_row_and_equal_times_are_recordings_too(write: Write) -> None:
    assert read_one(write("one.csv", "t\n7\n"), ColumnNames("t"), "none").recording.rows == 1
    assert read_one(write("equal.csv", "t\n7\n7\n"), ColumnNames("t"), "none").recording.time.tolist() == [7, 7]


def test_column_names_are_found_in_any_case_and_with_any_character(write: Write) -> None:
    assert read_one(
        write("r.csv", 'Event "Time"\n7\n'.replace('"', "'")), ColumnNames("event 'time'"), "none"
    ).recording.rows


@pytest.mark.parametrize(
    ("name", "text", "columns", "message"),
    [
        ("r.csv", "", ColumnNames("t"), "empty"),
        ("r.csv", "t,a\n", ColumnNames("t"), "no rows"),
        ("r.csv", "event_time\n1\n", ColumnNames("event_tme"), "did you mean 'event_time'"),
        ("r.csv", "t\nhello\nworld\n", ColumnNames("t"), "holds mostly no times, but for example 'hello'"),
        ("r.csv", "t\n\n\n", ColumnNames("t"), "no row"),
        ("r.csv", "t,a\n,1\n,2\n", ColumnNames("t", "a"), "no row has a usable time .*2 with time missing"),
        ("r.csv", "t,a\n7,2024-01-01\n", ColumnNames("t", "a"), "'t' holds plain numbers but 'a' holds times"),
        ("r.docx", "t\n1\n", ColumnNames("t"), "unknown ending"),
        ("r.parquet", "this is no parquet", ColumnNames("t"), "cannot be read as parquet"),
        ("r.csv.gz", "", ColumnNames("t"), "no rows|no column|empty"),
        ("r.json", "{", ColumnNames("t"), "cannot be read as json"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_way_out(
    write: Write, name: str, text: str, columns: ColumnNames, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        list(read([write(name, text)], columns))


def test_a_missing_file_is_named() -> None:
    with pytest.raises(InputError, match=r"nowhere\.csv \(.*/nowhere\.csv\): no such file"):
        list(read(["nowhere.csv"], ColumnNames("t")))


def test_parts_of_different_formats_are_refused(write: Write, tmp_path: Path) -> None:
    write("a.csv", "t\n1\n")
    write("b.jsonl", '{"t": 1}\n')
    with pytest.raises(InputError, match="mixes csv and json"):
        list(read([str(tmp_path)], ColumnNames("t")))


@pytest.mark.parametrize("kind", [pa.array([True]), pa.array([None]), pa.array([[1]]), pa.array([5], pa.time64("us"))])
def test_a_column_that_cannot_hold_times_is_refused(tmp_path: Path, kind: pa.Array) -> None:
    with pytest.raises(InputError, match=r"column 't' holds .* not times"):
        read_one(parquet(tmp_path, t=kind), ColumnNames("t"))


def test_sequence_numbers_have_no_fractions(write: Write) -> None:
    with pytest.raises(InputError, match="has fractions"):
        read_one(write("r.csv", "t\n1.5\n"), ColumnNames("t"), "none")


@pytest.mark.parametrize("unit", ["hours", "ms,ns,us", ""])
def test_an_unknown_unit_is_refused(unit: str) -> None:
    with pytest.raises(DeclarationError, match="use one of s, ms, us, ns, none"):
        list(read([], ColumnNames("t"), unit))


def test_ten_thousand_sources_are_numbered_by_first_sight(tmp_path: Path) -> None:
    labels = np.random.default_rng(5).integers(0, 10_000, 50_000)
    path = parquet(tmp_path, t=pa.array(np.arange(50_000)), s=pa.array(labels))
    recording = read_one(path, ColumnNames("t", source=("s",)), "none").recording
    assert [int(recording.source_names[number]) for number in recording.source] == labels.tolist()
    first_sights = np.unique(recording.source, return_index=True)[1]
    assert (np.diff(first_sights) > 0).all()
