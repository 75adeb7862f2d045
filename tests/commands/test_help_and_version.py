"""Every command explains itself, completes itself in a shell, and starts without loading what it does not need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.processes import COMMAND, ENVIRONMENT, Here


@pytest.mark.parametrize("command", ["run", "check", "explain", "why", "prod", "init", "profile"])
def test_help_has_examples_and_exit_codes(command: str, here: Here) -> None:
    ran = here(command, "-h")
    assert ran.code == 0
    assert f"eventide {command}" in ran.out
    assert "Examples" in ran.out
    assert "Exit codes" in ran.out


def test_version_is_one_line_or_json(here: Here) -> None:
    plain, told = here("version"), json.loads(here("version", "--json").out)
    assert here("--version") == plain
    assert plain.out.count("\n") == 1
    assert here("--version") == plain
    assert told["eventide"] in (plain.out.strip(), None)
    assert {"duckdb", "pyspark", "python"} <= set(told)


def test_shells_can_complete_commands(tmp_path: Path) -> None:
    # Which shell it is, is asked of the processes around; a test may have none.
    asked = {**ENVIRONMENT, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [*COMMAND, "--show-completion", "bash"]
    found = subprocess.run(command, cwd=tmp_path, env=asked, capture_output=True, text=True, check=True)
    assert "complete -o default -F" in found.stdout


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("rnu",), "Did you mean 'run'?"),
        (("run", "x.sql", "--jsno"), "--json"),
        (("run",), "Missing argument 'FILE.sql'"),
        (("run", "x.sql", "--engine", "flink"), "'spark', 'local'"),
    ],
)
def test_what_was_mistyped_is_told_with_what_was_meant_and_code_2(
    typed: tuple[str, ...], said: str, here: Here
) -> None:
    ran = here(*typed)
    assert ran.code == 2
    assert said in ran.err


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("eventide.cli", ("duckdb", "pyarrow", "pyspark", "sqlglot", "matplotlib")),
        ("eventide.commands.run", ("pyspark", "matplotlib", "pandas.core")),
        ("eventide.commands.check", ("pyspark", "matplotlib", "pandas.core")),
    ],
)
def test_start_up_loads_nothing_that_is_not_needed(module: str, heavy: tuple[str, ...]) -> None:
    loaded = f"import sys, {module}; print([name for name in {heavy!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", loaded], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
