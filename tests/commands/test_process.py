"""How commands end, whatever happens to them: the code, one sentence, no traceback, nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eventide.commands.process import prepare, run_to_its_end, was_closed
from eventide.errors import EngineError
from eventide.launch.engines import remove_all, temporary_folder
from tests.commands.processes import ANSWERS, COMMAND, ENVIRONMENT, Ran, doors


def left(command: Callable[[], Any]) -> int | str | None:
    with pytest.raises(SystemExit) as leaving:
        run_to_its_end(command, debug=False)
    return leaving.value.code


def test_output_that_a_full_disk_does_not_take_is_told_with_code_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert left(lambda: print("a result")) == 3
    assert capsys.readouterr().err == "eventide: what there is to say cannot be written: No space left on device\n"


def test_an_error_that_cannot_be_told_still_has_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise EngineError("the disk is full")

    with open("/dev/full", "w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stderr", full)
        assert left(fails) == 3


def test_a_reader_that_went_away_has_code_141_whatever_was_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert left(lambda: print("a result")) == 141


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_is_interrupted_ends_as_interrupted_whatever_it_makes_of_that(
    number: signal.Signals, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """DuckDB raised an error of its own, and the command called it a fault of Eventide's."""

    def swallows() -> None:
        try:
            signal.raise_signal(number)
        except BaseException:
            raise RuntimeError("Query interrupted") from None

    before = signal.getsignal(number)
    assert left(swallows) == code
    assert capsys.readouterr().err == ""
    assert signal.getsignal(number) is before


def test_a_letter_that_the_output_does_not_know_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(tmp_path / "out", "w", encoding="ascii") as ascii_only:
        monkeypatch.setattr(sys, "stdout", ascii_only)
        assert left(lambda: print("größe")) is None
    assert (tmp_path / "out").read_text() == "gr??e\n"


def test_what_is_written_to_a_closed_output_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    prepare()
    found = sys.stdout
    assert was_closed(found)
    print("nobody hears this")
    monkeypatch.undo()
    found.close()


def test_nothing_is_said_on_standard_output_because_standard_error_is_closed(tmp_path: Path) -> None:
    """Python prints there what is meant for a standard error that is not open: a line that is no JSON."""
    command = [*COMMAND, "run", "doors.sql", "--engine", "local", "--json"]
    closed = ["sh", "-c", 'exec "$@" 2>&-', "sh", *command]
    found = subprocess.run(closed, cwd=doors(tmp_path), env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True)
    assert Ran(0, found.stdout, "").answers == ANSWERS


def test_without_a_place_for_temporary_files_that_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(EngineError, match=r"No such file or directory\. Set TMPDIR"):
        temporary_folder("eventide-test-").__enter__()


def test_who_leaves_at_once_leaves_no_temporary_folder() -> None:
    with temporary_folder("eventide-test-") as folder:
        assert folder.is_dir()
        remove_all()
        assert not folder.exists()


def test_control_c_while_it_loads_what_it_needs_ends_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a traceback of imports."""
    from eventide.__main__ import main

    found: list[object] = []
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr("eventide.cli.main", lambda: found.append(signal.getsignal(signal.SIGINT)))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
    signal.signal(signal.SIGINT, before)
    assert found == [signal.SIG_DFL]
