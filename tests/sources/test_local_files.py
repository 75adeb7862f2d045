"""Files of the local engine: order, new files, positions, packed files, and what is told when they cannot be read."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet
import pytest

from eventide.errors import DeclarationError, InputError
from eventide.plan.declared.stream import Input, Stream, columns
from eventide.sources.files.files import Files
from eventide.sources.local_input import LocalInput, open_input
from tests.sources.input_contract import columns_of, continues_from_every_position, drained

ROWS = pa.table({"n": pa.array(range(10), pa.int32()), "s": [None if n == 3 else f"r{n}" for n in range(10)]})


def numbers(kind: str, path: Path | str, declared: str = "n BIGINT, s STRING", **more: object) -> Stream:
    return Stream("numbers", columns(declared), time="n", input=Input(kind, str(path), **more))  # type: ignore[arg-type]


def write(kind: str, path: Path, rows: pa.Table = ROWS) -> None:
    if kind == "parquet":
        pa.parquet.write_table(rows, path, row_group_size=4)
    elif kind == "orc":
        pa.orc.write_table(rows, path)
    elif kind == "arrow file":
        pa.feather.write_feather(rows, str(path), chunksize=3, compression="uncompressed")
    elif kind == "arrow stream":
        with pa.ipc.new_stream(path, rows.schema) as writer:
            writer.write_table(rows, max_chunksize=3)
    elif kind == "json":
        lines = (f'{{"n": {n}}}' if s is None else f'{{"n": {n}, "s": "{s}"}}' for n, s in pairs(rows))
        path.write_text("\n".join(lines))
    else:
        path.write_text("n,s\n" + "".join(f"{n},{s or ''}\n" for n, s in pairs(rows)))


def pairs(rows: pa.Table) -> list[tuple[int, str | None]]:
    return list(zip(rows["n"].to_pylist(), rows["s"].to_pylist(), strict=True))


KINDS = ["parquet", "orc", "arrow file", "arrow stream", "json", "csv"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("max_rows", [1, 3, 100])
def test_every_kind_of_file_continues_from_every_position(tmp_path: Path, kind: str, max_rows: int) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write(kind, folder / "a", ROWS.slice(0, 7))
    write(kind, folder / "b", ROWS.slice(7))
    stream = numbers(kind.split()[0], folder)
    found = continues_from_every_position(lambda: open_input(stream), max_rows)
    assert [(row["n"], row["s"]) for row in found] == pairs(ROWS)
    assert {row["_malformed"] for row in found} == {None}


@pytest.mark.parametrize("kind", KINDS)
def test_one_file_ends_and_a_folder_never_does(tmp_path: Path, kind: str) -> None:
    write(kind, tmp_path / "a")
    for path, ends in ((tmp_path / "a", True), (tmp_path, False), (tmp_path / "*", False)):
        given = Files(numbers(kind.split()[0], path))
        assert not given.caught_up
        assert len(drained(given)) == 10
        assert given.ended == ends


def test_the_oldest_file_comes_first_then_the_first_name(tmp_path: Path) -> None:
    for name, age in (("c", 300), ("a", 100), ("b", 100)):
        (tmp_path / name).write_text(f'{{"s": "{name}"}}')
        os.utime(tmp_path / name, (1_600_000_000 - age, 1_600_000_000 - age))
    assert [row["s"] for row in drained(Files(numbers("json", tmp_path)))] == ["c", "a", "b"]


def test_new_files_are_found_and_none_is_read_twice(tmp_path: Path) -> None:
    given = Files(numbers("json", tmp_path))
    assert given.take(10, 0.0) is None
    (tmp_path / "b").write_text('{"n": 1}')
    assert [row["n"] for row in drained(given)] == [1]
    (tmp_path / "b").write_text('{"n": 1}\n{"n": 9}')  # what is added to a file that was read is not read
    (tmp_path / "a").write_text('{"n": 2}')
    os.utime(tmp_path / "a", (1_600_000_000, 1_600_000_000))  # long before the newest one: passed over
    (tmp_path / "_c").write_text('{"n": 3}')
    (tmp_path / ".d").write_text('{"n": 4}')
    (tmp_path / "e").write_text('{"n": 5}')
    assert [row["n"] for row in drained(given)] == [5]


def test_a_file_that_turns_up_a_little_late_is_read(tmp_path: Path) -> None:
    """A file moved into the folder keeps its time, which may be before that of a file already read."""
    given = Files(numbers("json", tmp_path))
    (tmp_path / "new").write_text('{"n": 1}')
    assert len(drained(given)) == 1
    (tmp_path / "moved").write_text('{"n": 2}')
    earlier = (tmp_path / "new").stat().st_mtime - 3600
    os.utime(tmp_path / "moved", (earlier, earlier))
    assert [row["n"] for row in drained(given)] == [2]


def test_a_wait_ends_as_soon_as_a_file_appears(tmp_path: Path) -> None:
    import threading

    (tmp_path / "in").mkdir()
    given = Files(numbers("json", tmp_path / "in"))
    # Moved there as a whole: one that is still being written may be seen before its first row.
    (tmp_path / "a").write_text('{"n": 1}\n')
    writer = threading.Timer(0.1, lambda: (tmp_path / "a").rename(tmp_path / "in" / "a"))
    writer.start()
    table = given.take(10, 60.0)
    writer.join()
    assert table is not None
    assert columns_of(table) == {"n": [1], "s": [None]}


def test_a_round_takes_no_more_files_than_it_may(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}").write_text(f'{{"n": {number}}}')
        os.utime(tmp_path / f"{number}", (1_600_000_000, 1_600_000_000))
    given = Files(numbers("json", tmp_path, max_files=2))
    taken = [given.take(100, 0.0) for _ in range(4)]
    assert [None if table is None else table["n"].to_pylist() for table in taken] == [[0, 1], [2, 3], [4], None]


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)])
def test_packed_files_continue_from_every_position(tmp_path: Path, ending: str, pack: object) -> None:
    text = "s,n\n" + "".join(f"r{n},{n}\n" for n in range(7))
    (tmp_path / f"a.csv.{ending}").write_bytes(pack(text.encode()))  # type: ignore[operator]
    found = continues_from_every_position(lambda: Files(numbers("csv", tmp_path)), 2)
    assert [(row["n"], row["s"]) for row in found] == [(n, f"r{n}") for n in range(7)]


def test_each_file_may_have_its_columns_in_another_order(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\ufeffn,s\n1,x\n")
    (tmp_path / "b.csv").write_text("\n  \nextra;S;N\n".replace(";", ",") + "?,y,2\n3,z\n")
    os.utime(tmp_path / "a.csv", (1_600_000_000, 1_600_000_000))
    found = drained(Files(numbers("csv", tmp_path)))
    assert [tuple(row.values()) for row in found] == [(1, "x", None), (2, "y", None), (None, None, "3,z")]


def test_lines_of_text_keep_blank_ones(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n\n two \r\nthree")
    stream = Stream("s", columns("line STRING, n INT"), time="n", input=Input("text", str(tmp_path)))
    with pytest.raises(DeclarationError, match="declare one column, of type STRING"):
        Files(stream)
    from eventide.plan.declared.stream import Timestamps

    stream = Stream("s", columns("line STRING"), timestamps=Timestamps.INTERNAL, input=stream.input)
    assert [row["line"] for row in drained(Files(stream))] == ["one", "", " two ", "three"]


def test_columns_not_in_the_file_or_of_another_type_are_told(tmp_path: Path) -> None:
    write("parquet", tmp_path / "a")
    with pytest.raises(InputError, match=r"declares m INT, but .*a has only n INT"):
        drained(Files(numbers("parquet", tmp_path, "n INT, m INT")))
    with pytest.raises(InputError, match=r"declares n SMALLINT, but .*a has n INT: declare it as it is there"):
        drained(Files(numbers("parquet", tmp_path, "n SMALLINT")))
    write("csv", tmp_path / "b")
    with pytest.raises(InputError, match=r"declares m, but the first line of .*b names n, s"):
        drained(Files(numbers("csv", tmp_path / "b", "n INT, m INT")))


@pytest.mark.parametrize("kind", ["parquet", "orc", "arrow"])
def test_a_file_of_another_format_is_told(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a").write_text("this is only text, of some length, and nothing else")
    with pytest.raises(InputError, match=f"a cannot be read as {kind}"):
        drained(Files(numbers(kind, tmp_path)))


def test_a_broken_packed_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b'{"n": 1}\n' * 1000)[:-20])
    with pytest.raises(InputError, match=r"a\.json\.gz cannot be read as json"):
        drained(Files(numbers("json", tmp_path)))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (Input("csv"), "has no path"),
        (Input("csv", ".", max_offsets=3), "files have no offsets"),
        (Input("csv", ".", (("timestampFormat", "dd"),)), "no option timestampformat=dd for csv"),
        (Input("csv", ".", (("sep", "||"),)), "is not one plain character"),
        (Input("csv", ".", (("escape", "\\"),)), "a quote is one plain character"),
        (Input("parquet", ".", (("mergeSchema", "true"),)), "no option mergeschema=true for parquet"),
        (Input("csv", "."), "csv cannot hold the column a ARRAY<INT>"),
    ],
)
def test_what_cannot_be_kept_is_refused(given: Input, told: str) -> None:
    declared = "n BIGINT, a ARRAY<INT>" if "ARRAY" in told else "n BIGINT"
    options = given.options if given.options or "ARRAY" not in told else ()
    given = given if "ARRAY" not in told else Input("csv", ".", (*options, ("header", "false")))
    with pytest.raises(DeclarationError) as failure:
        open_input(Stream("s", columns(declared), time="n", input=given))
    assert told in str(failure.value)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (Input("csv", "no/such"), "nothing at no/such"),
        (Input("rate"), "the local engine cannot read rate: use the Spark engine"),
        (Input("parqet", "."), "no format 'parqet': did you mean parquet?"),
    ],
)
def test_what_cannot_be_opened_is_told(given: Input, told: str) -> None:
    with pytest.raises(InputError) as failure:
        open_input(Stream("s", columns("n BIGINT"), time="n", input=given))
    assert told in str(failure.value)


def test_files_are_a_local_input(tmp_path: Path) -> None:
    assert isinstance(Files(numbers("json", tmp_path)), LocalInput)


def test_a_round_takes_a_thousand_files_at_most_so_that_commits_come_between(tmp_path: Path) -> None:
    """20,000 small files were one round of minutes, and a crash in it began anew."""
    for number in range(1003):
        (tmp_path / f"{number:04d}.json").write_text('{"t": 1}\n')
    given = Files(Stream("s", columns("t BIGINT"), time="t", input=Input("json", str(tmp_path))))
    taken = [table.num_rows for _ in range(2) if (table := given.take(1_000_000, 0.0)) is not None]
    assert taken == [1000, 3]
    assert len(given.portion()["files"]) == 1003
