"""A followed file that is rotated, while we read it, are slow, or are down: every row comes once, or it is told."""

from __future__ import annotations

import gzip
import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from eventide.plan.declared.stream import Input, Stream, columns
from eventide.sources.files.follow import Follow


class Log:
    """A file that a program writes to and that is rotated; times go on by a second with each write."""

    def __init__(self, folder: Path, name: str = "app.log") -> None:
        self.path = folder / name
        self._clock = 1_700_000_000

    def write(self, *times: int) -> None:
        with self.path.open("a") as file:
            file.writelines(f'{{"t": {t}}}\n' for t in times)
        self._clock += 1
        os.utime(self.path, (self._clock,) * 2)

    def rotate(self, keep: int = 9) -> None:
        """As logrotate does: .1 is the last one."""
        for number in range(keep, 0, -1):
            before = self.path.with_name(f"{self.path.name}.{number}")
            if before.exists():
                before.rename(self.path.with_name(f"{self.path.name}.{number + 1}"))
        self.path.rename(self.path.with_name(f"{self.path.name}.1"))


def followed(log: Log) -> Follow:
    return Follow(Stream("s", columns("t BIGINT"), time="t", input=Input("follow", str(log.path))))


def rest(given: Follow) -> list[int]:
    found: list[int] = []
    while (taken := given.take(2, 0)) is not None:
        found += taken["t"].to_pylist()
    return found


def stopped(given: Follow) -> dict[str, Any]:
    position: dict[str, Any] = json.loads(json.dumps(given.position()))
    given.close()
    return position


def resumed(log: Log, position: dict[str, Any]) -> Follow:
    given = followed(log)
    given.seek(position)
    return given


@pytest.fixture
def log(tmp_path: Path) -> Log:
    made = Log(tmp_path)
    made.write(1, 2)
    return made


@pytest.mark.parametrize("down", [True, False])
def test_every_file_that_bore_the_name_meanwhile_is_read_in_order(log: Log, down: bool) -> None:
    """Rotated thrice while nobody looked: all rows of the two files between were lost, and nothing was said."""
    given = followed(log)
    assert rest(given) == [1, 2]
    position = stopped(given) if down else None
    log.write(3)
    for first in (4, 6, 8):
        log.rotate()
        log.write(first, first + 1)
    given = resumed(log, position) if position is not None else given
    assert rest(given) == [3, 4, 5, 6, 7, 8, 9]
    log.write(10)
    assert rest(given) == [10]


def test_it_goes_on_with_the_next_file_after_a_stop_in_the_middle_of_the_rotated_ones(log: Log) -> None:
    given = followed(log)
    assert rest(given) == [1, 2]
    for first in (3, 5):
        log.rotate()
        log.write(first, first + 1)
    taken = given.take(2, 0)
    assert taken is not None
    assert taken["t"].to_pylist() == [3, 4]
    assert rest(resumed(log, stopped(given))) == [5, 6]


def test_dates_in_the_names_of_rotated_files_are_known_too(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.write(1)
    given = followed(log)
    assert rest(given) == [1]
    for number, day in enumerate(("2026-01-30", "2026-01-31")):
        log.path.rename(tmp_path / f"app-{day}.log")
        log.write(number + 2)
    assert rest(given) == [2, 3]


def test_a_copy_of_what_was_read_is_not_read_again(log: Log) -> None:
    given = followed(log)
    assert rest(given) == [1, 2]
    log.rotate()
    saved = log.path.with_name("app.log.bak")
    saved.write_bytes(log.path.with_name("app.log.1").read_bytes())
    log.write(3)
    assert rest(given) == [3]


@pytest.mark.parametrize("down", [True, False])
def test_the_rest_of_a_file_that_was_copied_and_emptied_is_read_from_its_copy(log: Log, down: bool) -> None:
    given = followed(log)
    assert rest(given) == [1, 2]
    position = stopped(given) if down else None
    log.write(3)
    log.path.with_name("app.log.1").write_bytes(log.path.read_bytes())
    log.path.write_bytes(b"")
    log.write(4)
    given = resumed(log, position) if position is not None else given
    assert rest(given) == [3, 4]


def test_what_is_gone_or_compressed_is_told(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    given = followed(log)
    assert rest(given) == [1, 2]
    position = stopped(given)
    log.write(3)
    log.rotate()
    log.write(4)
    log.rotate()
    log.path.with_name("app.log.2").unlink()
    packed = log.path.with_name("app.log.1.gz")
    packed.write_bytes(gzip.compress(log.path.with_name("app.log.1").read_bytes()))
    log.path.with_name("app.log.1").unlink()
    log.write(5)
    with caplog.at_level(logging.WARNING):
        assert rest(resumed(log, position)) == [5]
    gone, compressed = caplog.messages
    assert "is gone: what was written to it behind byte 18 is missing" in gone
    assert "app.log.1.gz was compressed before it was read: its rows are missing" in compressed
