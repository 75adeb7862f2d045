"""A folder of input that moved while Spark's engine was down is the same folder: each of its files is read once."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eventide.errors import CheckpointError
from eventide.plan.declared.program import Program
from eventide.sinks.sink import Memory
from eventide.sources.moved_files import NOTED, MovedInputs
from eventide.storage.storage import Storage
from tests.choice import slow
from tests.engine.small_streams import made, put, stream, tumbling, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = 24 * 3600


class Times(dict[str, int]):
    """The times of the files there are."""

    def modified(self, uri: str) -> int | None:
        return self.get(uri)


def log_of(folder: Path, *entries: list[tuple[str, int]]) -> Storage:
    """What Spark writes of files: an entry for each batch."""
    for number, files in enumerate(entries):
        place = folder / f"spark/sources/0/{number}"
        place.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"path": path, "timestamp": at, "batchId": number}) for path, at in files]
        place.write_text("\n".join(["v1", *lines]))
        (place.parent / f".{number}.crc").write_text("a sum of what was")
    return Storage.at(folder)


def names_in(folder: Path) -> list[str]:
    found = sorted((folder / "spark/sources/0").glob("[0-9]*"))
    return [json.loads(line)["path"] for entry in found for line in entry.read_text().splitlines()[1:]]


def follow(storage: Storage, folder: str, times: Times, *streams: str) -> None:
    MovedInputs(storage, times, streams or ("s",)).follow({"0": folder})


def test_files_that_moved_have_the_names_of_now_and_those_that_are_gone_have_none_that_could_come_again(
    tmp_path: Path,
) -> None:
    storage = log_of(tmp_path, [("file:///in/a.json", 1)], [("file:///in/x%20y/b.json", 2), ("file:///in/c.json", 3)])
    follow(storage, "file:/in", Times())
    assert "/".join(names_in(tmp_path)).count("/in/") == 3
    follow(storage, "file:///in2", Times({"file:///in2/a.json": 1, "file:///in2/x%20y/b.json": 2}))
    moved = ["file:///in2/a.json", "file:///in2/x%20y/b.json", "file:///in2/_gone/c.json"]
    assert names_in(tmp_path) == moved
    assert not list((tmp_path / "spark/sources/0").glob(".*.crc"))
    follow(storage, "file:///in3", Times({"file:///in3/a.json": 1, "file:///in3/c.json": 9}))
    assert names_in(tmp_path)[2] == "file:///in3/_gone/c.json", "the file of that name is a new one"


def test_a_crash_in_the_middle_of_the_names_is_mended_by_the_next_start(tmp_path: Path) -> None:
    storage = log_of(tmp_path, [("file:///in/a.json", 1)], [("file:///in/b.json", 2)])
    follow(storage, "file:///in", Times())
    noted = storage.read(NOTED)
    now = Times({"file:///in2/a.json": 1, "file:///in2/b.json": 2})
    follow(storage, "file:///in2", now)
    log_of(tmp_path, [("file:///in/a.json", 1)])
    storage.write(NOTED, noted)
    follow(storage, "file:///in2", now)
    assert names_in(tmp_path) == ["file:///in2/a.json", "file:///in2/b.json"]


def test_another_file_under_the_name_of_one_that_was_read_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    storage = log_of(tmp_path, [("file:///in/a.json", 1)], [("file:///in/b.json", 2)])
    follow(storage, "file:///in", Times())
    with pytest.raises(CheckpointError, match=r"stream 's': /in2 is another folder .*, /in, and b.json in it .* cp -p"):
        follow(storage, "file:///in2", Times({"file:///in2/a.json": 1, "file:///in2/b.json": 7}))
    assert names_in(tmp_path) == ["file:///in/a.json", "file:///in/b.json"]


def test_where_it_is_not_noted_what_was_read_a_move_is_refused(tmp_path: Path) -> None:
    storage = log_of(tmp_path, [("file:///in/a.json", 1)])
    for noted in (None, b"{", b"[]"):
        if noted is not None:
            storage.write(NOTED, noted)
        with pytest.raises(CheckpointError, match=r"/in/a.json was read, and is not in /in2; .* Move it back"):
            follow(storage, "file:///in2", Times({"file:///in2/a.json": 1}))
    follow(storage, "file:///in", Times())
    assert names_in(tmp_path) == ["file:///in/a.json"]


def test_streams_in_another_order_are_refused(tmp_path: Path) -> None:
    """Spark read on in the files of the one as far as those of the other had been read."""
    storage = log_of(tmp_path, [("file:///in/a.json", 1)])
    follow(storage, "file:///in", Times(), "s", "r")
    with pytest.raises(CheckpointError, match="was begun with s, r: declare them in that order, not as r, s"):
        follow(storage, "file:///in", Times(), "r", "s")


@pytest.mark.spark
@pytest.mark.parametrize("way", ["a folder", slow("a pattern")])
def test_a_moved_folder_is_counted_once_by_spark(way: str, spark: SparkSession, tmp_path: Path) -> None:
    """Spark said "Wrong basePath", and of a pattern it counted all files again."""
    of = {"a folder": "{}", "a pattern": "{}/*.parquet"}[way]
    here, there, sink = tmp_path / "in put", tmp_path / "there", Memory()

    def counted(folder: Path, window: int) -> int:
        """The rows of a window that closes in this run; of one that was read twice it has too many."""
        program = Program((stream(Path(of.format(folder))),), (tumbling("q"),))
        running = made(spark, program, tmp_path / "checkpoint", {"q": sink}).start()
        try:
            wait_until(lambda: any(row["window_start"] == window for row in sink.rows("q")), running)
        finally:
            running.stop()
        return sum(row["n"] for row in sink.rows("q") if row["window_start"] == window)

    put(here, 1, [1, 2, 3, 11])
    if way == "a folder":
        # By another's clock in the future: files that came later were passed over for ever.
        os.utime(here / "0001.parquet", (time.time() + 400 * DAY,) * 2)
    assert counted(here, 0) == 3
    here.rename(there)
    put(there, 2, [12, 21])
    assert counted(there, 10) == 2
    put(there, 3, [22, 31])
    assert counted(tmp_path / "other" / ".." / "there", 20) == 2
    # Without their times, copies may be other files.
    shutil.copytree(there, tmp_path / "copy", copy_function=shutil.copyfile)
    with pytest.raises(CheckpointError, match=re.escape(str(tmp_path / "copy"))):
        counted(tmp_path / "copy", 30)
