"""Every sink keeps the contract, and the contract finds sinks that do not."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rich.console
from pyarrow import fs

from eventide.errors import DeclarationError
from eventide.results.results import Results
from eventide.sinks import Console, Directory, Memory
from eventide.sinks.sink import FORMATS
from eventide.testing.sink_contract import Make, Read, check_sink
from eventide.testing.sink_kill import check_sink_killed
from tests.sinks.object_store import ObjectStore, object_store
from tests.sinks.readers import directory_rows, sqlite_rows, sqlite_sink


@dataclass(frozen=True)
class Place:
    make: Make
    read: Read


def directory(format: str, folder: Path) -> Place:
    return Place(partial(Directory, folder / "out", format), partial(directory_rows, folder / "out", format))


def subtree(folder: Path) -> Place:
    filesystem = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
    return Place(lambda: Directory("out", filesystem=filesystem), partial(directory_rows, folder / "out", "parquet"))


def renaming(folder: Path) -> Place:
    """A file system of which nothing is known but that it can rename: here, Arrow's own in memory."""
    filesystem = fs._MockFileSystem()

    def read(query: str) -> list[dict[str, object]]:
        found = filesystem.get_file_info(fs.FileSelector("out"))
        files = [info.path for info in found if not info.base_name.startswith(".")]
        rows = [row for path in files for row in pq.read_table(filesystem.open_input_file(path)).to_pylist()]
        return [row for row in rows if row["query"] == query]

    return Place(lambda: Directory("out", filesystem=filesystem), read)


def memory(folder: Path) -> Place:
    sink = Memory()
    return Place(lambda: sink, sink.rows)


def console(folder: Path) -> Place:
    sink = Console(rows=100_000, console=rich.console.Console(file=io.StringIO()))
    return Place(lambda: sink, lambda query: sink.newest(query).to_pylist())


def live_console(folder: Path) -> Place:
    sink = Console(rows=100_000, console=rich.console.Console(file=io.StringIO(), force_terminal=True))
    return Place(lambda: sink, lambda query: sink.newest(query).to_pylist())


def callback(folder: Path) -> Place:
    database = str(folder / "results.db")
    return Place(partial(sqlite_sink, database), partial(sqlite_rows, database))


PLACES: dict[str, Callable[[Path], Place]] = {
    **{format: partial(directory, format) for format in FORMATS},
    "subtree": subtree,
    "renaming": renaming,
    "memory": memory,
    "console": console,
    "live_console": live_console,
    "callback": callback,
}


@pytest.fixture
def store() -> Iterator[ObjectStore]:
    with object_store() as opened:
        yield opened


def in_store(store: ObjectStore) -> Place:
    def read(query: str) -> list[dict[str, object]]:
        rows = [
            row for name in store.names() for row in pq.read_table(pa.BufferReader(store.objects[name])).to_pylist()
        ]
        return [row for row in rows if row["query"] == query]

    return Place(partial(Directory, store.uri("some/where")), read)


@pytest.mark.parametrize("name", PLACES)
def test_every_sink_keeps_the_contract(name: str, tmp_path: Path) -> None:
    place = PLACES[name](tmp_path)
    check_sink(place.make, place.read)


def test_a_directory_in_an_object_store_keeps_the_contract(store: ObjectStore) -> None:
    place = in_store(store)
    check_sink(place.make, place.read)


# Parquet is killed by the session in docs/sinks.md.
@pytest.mark.parametrize("name", ["json", "csv", "callback"])
def test_a_sink_stands_being_killed_and_leaves_nothing_unfinished(name: str, tmp_path: Path) -> None:
    place = PLACES[name](tmp_path)
    check_sink_killed(place.make, place.read)
    assert not [file for file in tmp_path.rglob("*") if file.name.startswith(".")]


@pytest.mark.slow
def test_a_directory_in_an_object_store_stands_that_its_writer_is_killed(store: ObjectStore) -> None:
    place = in_store(store)
    check_sink_killed(place.make, place.read)


class Appending(Memory):
    """Forgets that a round may come again."""

    def emit(self, results: Results) -> None:
        super().emit(replace(results, round=len(self.rows(results.query))))


class Forgetful(Memory):
    """Takes a round without rows for no round at all."""

    def emit(self, results: Results) -> None:
        if results.rows:
            super().emit(results)


class OneQuery(Memory):
    """Rewinds all queries when one is to be rewound."""

    def rewind(self, query: str, last: int) -> None:
        for each in self.queries:
            super().rewind(each, last)


class FirstBatch(Memory):
    """Reads what comes first, and no more."""

    def emit(self, results: Results) -> None:
        first = next(results.batches(), pa.RecordBatch.from_pylist([], results.schema))
        super().emit(Results.of_table(results.query, results.round, pa.Table.from_batches([first])))


class Hasty(Memory):
    """Shows batches as they come."""

    def emit(self, results: Results) -> None:
        super().emit(replace(results, batches=lambda: iter(())))
        shown: list[pa.RecordBatch] = []
        for batch in results.batches():
            shown.append(batch)
            super().emit(Results.of_table(results.query, results.round, pa.Table.from_batches(shown)))


class NoWayBack(Memory):
    """Does not know that rounds may come again with fewer rows."""

    def rewind(self, query: str, last: int) -> None:
        raise KeyError(query)


@pytest.mark.parametrize("wrong", [Appending, Forgetful, OneQuery, FirstBatch, Hasty])
def test_a_sink_that_breaks_the_law_is_found_out(wrong: type[Memory]) -> None:
    sink = wrong()
    with pytest.raises(AssertionError, match="there should be"):
        check_sink(lambda: sink, sink.rows)


def test_what_a_sink_raises_comes_through() -> None:
    sink = NoWayBack()
    with pytest.raises(KeyError):
        check_sink(lambda: sink, sink.rows)


def test_what_is_no_sink_is_told_apart() -> None:
    with pytest.raises(AssertionError, match="a sink has `emit`, `rewind` and `close`: PosixPath has not"):
        check_sink(Path, lambda query: [])  # type: ignore[arg-type]


def in_place(folder: Path) -> Directory:
    return Growing(folder)


class Growing(Directory):
    """Writes under the name that readers look at."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "csv")
        path.mkdir(exist_ok=True)
        self.path = path

    def emit(self, results: Results) -> None:
        with (self.path / f"{results.query}-{results.round:010d}.csv").open("w", buffering=1) as file:
            file.write(",".join(results.schema.names) + "\n")
            for batch in results.batches():
                file.writelines(",".join(map(str, row.values())) + "\n" for row in batch.to_pylist())


def test_a_sink_that_writes_in_place_is_found_out_when_killed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="nothing can be read of a round in which the process was killed"):
        check_sink_killed(partial(in_place, tmp_path / "out"), partial(directory_rows, tmp_path / "out", "csv"))


def test_a_sink_that_reads_nothing_is_found_out_when_killed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="without having read all batches"):
        check_sink_killed(Deaf, lambda query: [])


class Deaf(Memory):
    """Lets everything pass."""

    def emit(self, results: Results) -> None:
        pass


def test_a_sink_that_cannot_be_made_in_another_process_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError, match="it ended; see its standard error"):
        check_sink_killed(partial(Directory, tmp_path, "avro"), lambda query: [])
    assert "results are not written as 'avro'" in capfd.readouterr().err


def test_a_make_that_no_other_process_can_import_is_refused() -> None:
    with pytest.raises(DeclarationError, match="another process cannot make this sink"):
        check_sink_killed(lambda: Memory(), lambda query: [])
