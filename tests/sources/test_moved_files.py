"""Files are known by what they are: moved, renamed, copied, touched or replaced, each row comes once, or it is told."""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
from pathlib import Path

import pytest

from eventide.errors import InputError
from eventide.plan.declared.stream import Input, Stream, columns
from eventide.sources.files.files import Files
from tests.commands.processes import Here

DAY = 24 * 3600


def put(file: Path, *times: int) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f'{{"t": {t}}}\n' for t in times))
    return file


def files(path: Path | str) -> Files:
    return Files(Stream("s", columns("t BIGINT"), time="t", input=Input("json", str(path))))


def rest(given: Files, at_most: int = 100) -> list[int]:
    taken = given.take(at_most, 0)
    return [] if taken is None else taken["t"].to_pylist()


def position_after(path: Path | str) -> dict[str, object]:
    given = files(path)
    rest(given)
    assert rest(given) == []
    # As the checkpoint keeps it.
    found: dict[str, object] = json.loads(json.dumps(given.position()))
    given.close()
    return found


def resumed(path: Path | str, position: dict[str, object]) -> Files:
    given = files(path)
    given.seek(position)
    return given


def test_a_folder_that_moved_is_not_read_again_and_what_is_new_in_it_is(tmp_path: Path) -> None:
    put(tmp_path / "in" / "a.json", 1, 2, 3)
    position = position_after(tmp_path / "in")
    (tmp_path / "in").rename(tmp_path / "in2")
    put(tmp_path / "in2" / "b.json", 4)
    assert rest(resumed(tmp_path / "in2", position)) == [4]


@pytest.mark.parametrize("written", ["./in", "in/", "../here/in", "in/*.json"])
def test_a_path_that_is_written_in_another_way_is_the_same_folder(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    put(Path("in/a.json"), 1, 2)
    assert rest(resumed(written, position_after("in"))) == []


def test_a_copied_folder_is_known_by_its_content_and_other_files_of_the_same_names_are_read(
    tmp_path: Path,
) -> None:
    put(tmp_path / "in" / "a.json", 1, 2)
    put(tmp_path / "in" / "b.json", 3)
    position = position_after(tmp_path / "in")
    shutil.copytree(tmp_path / "in", tmp_path / "copy")
    put(tmp_path / "copy" / "b.json", 7)
    assert rest(resumed(tmp_path / "copy", position)) == [7]


def test_a_file_that_was_renamed_after_it_was_read_is_not_read_again(tmp_path: Path) -> None:
    first = put(tmp_path / "in" / "a.json", 1)
    given = files(tmp_path / "in")
    assert rest(given) == [1]
    first.rename(tmp_path / "in" / "a-done.json")
    assert rest(given) == []


def test_two_files_with_the_same_rows_are_two_files(tmp_path: Path) -> None:
    put(tmp_path / "in" / "a.json", 1)
    put(tmp_path / "in" / "b.json", 1)
    assert rest(files(tmp_path / "in")) == [1, 1]


def test_a_file_from_the_future_does_not_hide_those_that_come_later(tmp_path: Path) -> None:
    given = files(put(tmp_path / "in" / "a.json", 1).parent)
    os.utime(tmp_path / "in" / "a.json", (time.time() + 400 * DAY,) * 2)
    assert rest(given) == [1]
    put(tmp_path / "in" / "b.json", 2)
    assert rest(given) == [2]


def test_a_file_that_is_too_old_to_be_read_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    given = files(put(tmp_path / "in" / "a.json", 1).parent)
    assert rest(given) == [1]
    os.utime(put(tmp_path / "in" / "old.json", 0), (time.time() - 30 * DAY,) * 2)
    with caplog.at_level(logging.WARNING):
        assert (rest(given), rest(given)) == ([], [])
    [told] = caplog.messages
    assert "old.json is more than 7 days older than what was read, and is passed over" in told


@pytest.mark.parametrize("other", [(9,), (9, 8, 7, 6, 5)], ids=["shorter", "longer"])
def test_a_file_that_was_read_in_part_and_replaced_is_refused(other: tuple[int, ...], tmp_path: Path) -> None:
    given = files(put(tmp_path / "in" / "a.json", 1, 2, 3).parent)
    assert rest(given, 2) == [1, 2]
    position = given.position()
    given.close()
    put(tmp_path / "in" / "new", *other).replace(tmp_path / "in" / "a.json")
    with pytest.raises(InputError, match=r"read in part and cannot be read on: it is another file now .* Put"):
        resumed(tmp_path / "in", position)


def test_a_file_that_was_read_in_part_and_has_grown_is_read_on_also_where_it_moved(tmp_path: Path) -> None:
    given = files(put(tmp_path / "in" / "a.json", 1, 2, 3).parent)
    assert rest(given, 2) == [1, 2]
    position = given.position()
    given.close()
    put(tmp_path / "in" / "a.json", 1, 2, 3, 4)
    (tmp_path / "in").rename(tmp_path / "in2")
    assert rest(resumed(tmp_path / "in2", position)) == [3, 4]


def test_a_position_of_an_earlier_version_still_tells_what_was_read(tmp_path: Path) -> None:
    file = put(tmp_path / "in" / "a.json", 1)
    old = {"read": {str(file): file.stat().st_mtime_ns}, "newest": file.stat().st_mtime_ns, "open": None}
    put(tmp_path / "in" / "b.json", 2)
    assert rest(resumed(tmp_path / "in", old)) == [2]


def test_a_moved_folder_is_counted_once_by_the_engine(tmp_path: Path, here: Here) -> None:
    """FROM json 'in', the folder moved to in2, the script edited: the count was 6 for 3 rows."""
    put(tmp_path / "in" / "a.json", 1, 2, 3)
    script = "CREATE STREAM s (t BIGINT) FROM json '{}' TIMESTAMP BY t DELAY 100;\n" + (
        "CREATE QUERY q AS SELECT count(*) AS n FROM s [RANGE 1000] INTO 'out' FORMAT json;\n"
    )
    (tmp_path / "q.sql").write_text(script.format("in"))
    assert here("run", "q.sql", "--engine", "local", "--bounded", "--checkpoint", "state").code == 0
    (tmp_path / "in").rename(tmp_path / "in2")
    (tmp_path / "q.sql").write_text(script.format("in2"))
    ran = here("run", "q.sql", "--engine", "local", "--bounded", "--checkpoint", "state")
    assert ran.code == 0, ran.err
    told = [json.loads(line) for file in (tmp_path / "out").rglob("*.json") for line in file.read_text().splitlines()]
    assert [row["n"] for row in told if "n" in row] == [3]
