"""Commands in this process, for tests that need no other: a start costs a second."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from eventide.cli import main
from tests.commands.processes import Ran

Here = Callable[..., Ran]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Here:
    """Runs a command in the test's own folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["eventide", *arguments])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        sys.stdout.flush()
        printed = capfd.readouterr()
        code = ended.value.code
        return Ran(code if isinstance(code, int) else 0, printed.out, printed.err)

    return run
