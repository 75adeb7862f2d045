"""Spark's log is brought in line with our last round: what lies beyond goes, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventide.engine.spark.log import SparkLog
from eventide.errors import CheckpointError
from eventide.storage.storage import Storage

FOUND = 'v1\n{"path":"file:///in/a.parquet","timestamp":1,"batchId":%d}'


def write(folder: Path, name: str, text: str = "v1\n{}") -> None:
    path = folder / "spark" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def left(folder: Path) -> set[str]:
    return {str(path.relative_to(folder / "spark")) for path in (folder / "spark").rglob("*") if path.is_file()}


@pytest.fixture
def log(tmp_path: Path) -> SparkLog:
    """Four batches, the last of them begun: files of one source, and a source of another kind."""
    for batch in range(4):
        write(tmp_path, f"offsets/{batch}", f'v1\n{{}}\n{{"logOffset":{batch}}}\n{{"topic":{{"0":{batch}}}}}')
        write(tmp_path, f"sources/0/{batch}", FOUND % batch)
    for batch in range(3):
        write(tmp_path, f"commits/{batch}")
    write(tmp_path, "metadata")
    write(tmp_path, "sources/1/0", 'v1\n{"topic":{"0":0}}')
    return SparkLog(Storage.at(tmp_path))


@pytest.mark.parametrize("last", [2, 3], ids=["it runs again", "Spark had not heard of it"])
def test_a_log_that_is_in_line_stays_as_it_is(last: int, log: SparkLog, tmp_path: Path) -> None:
    before = left(tmp_path)
    log.take_back(last)
    assert left(tmp_path) == before


def test_what_lies_beyond_the_batch_that_runs_again_goes(log: SparkLog, tmp_path: Path) -> None:
    before = left(tmp_path)
    log.take_back(0)
    assert before - left(tmp_path) == {
        *(f"commits/{batch}" for batch in (1, 2)),
        *(f"offsets/{batch}" for batch in (2, 3)),
        *(f"sources/0/{batch}" for batch in (2, 3)),
    }


def test_before_the_first_round_only_the_first_batch_stays(log: SparkLog, tmp_path: Path) -> None:
    log.take_back(-1)
    assert left(tmp_path) == {"offsets/0", "sources/0/0", "sources/1/0", "metadata"}


def test_files_that_were_found_for_no_batch_are_forgotten(log: SparkLog, tmp_path: Path) -> None:
    write(tmp_path, "sources/0/4", FOUND % 4)
    log.take_back(3)
    assert "sources/0/4" not in left(tmp_path)
    assert "sources/0/3" in left(tmp_path)


def test_an_entry_that_holds_all_before_it_is_kept(log: SparkLog, tmp_path: Path) -> None:
    write(tmp_path, "sources/0/4.compact", FOUND % 4)
    log.take_back(3)
    assert "sources/0/4.compact" in left(tmp_path)


def test_halves_of_files_are_removed_everywhere(log: SparkLog, tmp_path: Path) -> None:
    before = left(tmp_path)
    for name in (".metadata.x.tmp", "offsets/.4.x.tmp", "sources/0/.4.x.tmp"):
        write(tmp_path, name, "")
    log.take_back(3)
    assert left(tmp_path) == before


def test_a_log_that_does_not_know_our_last_batch_is_refused(log: SparkLog) -> None:
    with pytest.raises(CheckpointError, match=r"has no batch 7 in .*spark/offsets: .* or files of it are gone"):
        log.take_back(7)


def test_a_new_checkpoint_has_nothing_to_take_back(tmp_path: Path) -> None:
    SparkLog(Storage.at(tmp_path)).take_back(-1)
    assert not (tmp_path / "spark").exists()


def test_the_files_of_a_batch_are_those_found_since_the_batch_before(tmp_path: Path) -> None:
    entry = '{"path":"file:///in/%s.parquet","timestamp":1,"batchId":%d}'
    write(tmp_path, "offsets/0", 'v1\n{}\n{"logOffset":0}\n-')
    write(tmp_path, "offsets/1", 'v1\n{}\n{"logOffset":2}\n{"logOffset":0}')
    write(tmp_path, "offsets/2", 'v1\n{}\n{"logOffset":2}\n{"topic":{"0":7}}')
    write(tmp_path, "sources/0/0", "v1\n" + entry % ("a", 0))
    write(tmp_path, "sources/0/1", "v1\n" + entry % ("b", 1) + "\n" + entry % ("c", 1))
    # Every tenth entry or so holds all before it again.
    write(tmp_path, "sources/0/2.compact", "v1\n" + "\n".join(entry % one for one in (("a", 0), ("b", 1), ("d", 2))))
    write(tmp_path, "sources/1/0", "v1\n" + entry % ("x", 0))
    log = SparkLog(Storage.at(tmp_path))
    named = [[uris and tuple(uri[11:12] for uri in uris) for uris in log.files_of(batch)] for batch in range(3)]
    assert named == [[("a",), ()], [("b", "c", "d"), ("x",)], [(), None]]


def test_files_whose_entry_is_gone_are_not_known(log: SparkLog, tmp_path: Path) -> None:
    (tmp_path / "spark/sources/0/2").unlink()
    assert log.files_of(2) == [None, None]


@pytest.mark.parametrize("written", ["", "v1\n{}", "v1\nno line of files"])
def test_a_log_of_files_that_cannot_be_read_tells_nothing(written: str, log: SparkLog, tmp_path: Path) -> None:
    write(tmp_path, "sources/0/2", written)
    assert log.files_of(2) == []
    assert log.files_of(1)[0] == ("file:///in/a.parquet",)
    assert log.files_of(17) == []
