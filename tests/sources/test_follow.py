"""A growing file: half-written lines wait, rotation and truncation lose nothing and repeat nothing."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import DeclarationError, InputError
from eventide.plan.declared.stream import Input, Stream, columns
from eventide.sources.files.follow import Follow
from eventide.sources.local_input import LocalInput, open_input
from tests.sources.input_contract import continues_from_every_position, drained


def followed(path: Path, kind: str = "json") -> Follow:
    given = Input("follow", str(path), (("format", kind),))
    found = open_input(Stream("s", columns("n BIGINT"), time="n", input=given))
    assert isinstance(found, Follow)
    assert isinstance(found, LocalInput)
    return found


def numbers(given: LocalInput) -> list[int | None]:
    return [row["n"] for row in drained(given)]


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_a_half_written_line_waits_for_its_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    given = followed(log)
    assert numbers(given) == []
    append(log, '{"n": 1}\n{"n"')
    assert numbers(given) == [1]
    append(log, ": 2")
    assert numbers(given) == []
    append(log, '}\n\n{"n": 3}\r')
    assert numbers(given) == [2]
    append(log, '\n{"n": 4}\n')
    assert numbers(given) == [3, 4]
    assert not given.ended


def test_what_is_malformed_comes_out_as_text(tmp_path: Path) -> None:
    append(tmp_path / "log", '{"n": 1}\n{"n": x}\n')
    assert [row["_malformed"] for row in drained(followed(tmp_path / "log"))] == [None, '{"n": x}']


def test_a_renamed_file_is_read_to_its_end_before_the_new_one(tmp_path: Path) -> None:
    log = tmp_path / "log"
    append(log, '{"n": 1}\n')
    given = followed(log)
    assert numbers(given) == [1]
    append(log, '{"n": 2}\n{"n": 3}')
    log.rename(tmp_path / "log.1")
    append(log, '{"n": 4}\n')
    assert numbers(given) == [2, 3, 4]


def test_a_file_emptied_and_written_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "log"
    append(log, '{"n": 1}\n{"n": 2}\n')
    given = followed(log)
    assert numbers(given) == [1, 2]
    log.write_text('{"n": 3}\n')
    assert numbers(given) == [3]
    log.write_text('{"n": 4}\n{"n": 5}\n')  # longer than what was read: only its first bytes tell
    assert numbers(given) == [4, 5]


def test_every_new_file_of_csv_has_its_own_header(tmp_path: Path) -> None:
    log = tmp_path / "log"
    append(log, "n,x\n1,a\n")
    given = followed(log, "csv")
    assert numbers(given) == [1]
    log.rename(tmp_path / "old")
    append(log, "x,n\nb,2\n")
    assert numbers(given) == [2]


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_it_continues_from_every_position(tmp_path: Path, kind: str) -> None:
    lines = ["n,x\n", *(f"{n},x\n" for n in range(7))] if kind == "csv" else [f'{{"n": {n}}}\n' for n in range(7)]
    append(tmp_path / "log", "".join(lines))
    found = continues_from_every_position(lambda: followed(tmp_path / "log", kind), 2)
    assert [row["n"] for row in found] == list(range(7))


def test_after_a_restart_a_renamed_file_is_found_and_read_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    append(log, '{"n": 1}\n')
    given = followed(log)
    assert numbers(given) == [1]
    position = json.loads(json.dumps(given.position()))
    given.close()
    append(log, '{"n": 2}\n')
    log.rename(tmp_path / "log.1")
    append(log, '{"n": 3}\n')
    again = followed(log)
    again.seek(position)
    assert numbers(again) == [2, 3]


def test_after_a_restart_another_file_is_read_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "log"
    append(log, '{"n": 1}\n{"n": 2}\n')
    given = followed(log)
    assert numbers(given) == [1, 2]
    position = given.position()
    given.close()
    log.unlink()
    append(log, '{"n": 9}\n{"n": 2}\n{"n": 3}\n')
    again = followed(log)
    again.seek(position)
    assert numbers(again) == [9, 2, 3]


def test_after_a_restart_a_copy_of_the_file_is_read_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    append(log, '{"n": 1}\n')
    given = followed(log)
    assert numbers(given) == [1]
    position = given.position()
    given.close()
    text = log.read_text()
    log.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").unlink()
    append(log, text + '{"n": 2}\n')
    again = followed(log)
    again.seek(position)
    assert numbers(again) == [2]


def test_a_wait_ends_as_soon_as_a_line_is_written(tmp_path: Path) -> None:
    log = tmp_path / "log"
    given = followed(log)
    writer = threading.Timer(0.1, append, (log, '{"n": 1}\n'))
    writer.start()
    table = given.take(10, 60.0)
    writer.join()
    assert table is not None
    assert table["n"].to_pylist() == [1]


STEPS = st.lists(st.sampled_from(["write", "half", "rename", "empty", "take", "restart"]), max_size=25)


@settings(max_examples=60)
@given(STEPS)
def test_whatever_happens_to_the_file_every_line_comes_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str]
) -> None:
    """Lines are only lost when a file is emptied before they were read, which nobody could prevent."""
    log = tmp_path_factory.mktemp("log") / "log"
    given = followed(log)
    found: list[int | None] = []
    written: list[int] = []
    half = ""
    for step in steps:
        if step == "write":
            number = len(written)
            append(log, (f'{{"n": {number}' if not half else "") + "}\n")
            if not half:
                written.append(number)
            half = ""
        elif step == "half" and not half:
            half = f'{{"n": {len(written)}'
            append(log, half)
            written.append(len(written))
        elif step == "rename" and log.exists():
            if half:
                append(log, "}")
                half = ""
            found += numbers(given)  # one renaming at a time: two in a row without a look lose the one between
            os.rename(log, log.with_name(f"log.{len(list(log.parent.iterdir()))}"))
        elif step == "empty" and log.exists() and not half:
            found += numbers(given)
            log.write_text("")
            found += numbers(given)
        elif step == "take":
            found += numbers(given)
        elif step == "restart":
            position = json.loads(json.dumps(given.position()))
            given.close()
            given = followed(log)
            given.seek(position)
    # Without a new file the old one, whatever its name, may still be written to.
    append(log, "}\n" if half else "")
    found += numbers(given)
    assert found == written
    given.close()


def test_what_cannot_be_followed_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        followed(tmp_path)
    with pytest.raises(DeclarationError, match="cannot follow parquet"):
        followed(tmp_path / "log", "parquet")


def test_a_file_that_is_not_there_yet_is_told_with_where_it_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    followed = open_input(Stream("s", columns("t BIGINT"), time="t", input=Input("follow", "log")))
    assert followed.take(9, 0.0) is None
    assert followed.take(9, 0.0) is None
    said = f"stream 's': there is nothing at log ({tmp_path / 'log'}) yet: it is waited for"
    assert caplog.messages == [said]
