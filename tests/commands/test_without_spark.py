"""Installed without PySpark, everything but the Spark engine works, and that one says what to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.commands.processes import ENVIRONMENT, QUERY, ROWS, STREAM, doors

HIDING = "import sys; sys.modules['pyspark'] = None; from eventide.cli import main; main()"
"""As Python finds it where PySpark is not installed."""


def eventide(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", HIDING, *arguments]
    return subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_spark_engine_says_what_to_install_and_what_runs_without_it(tmp_path: Path) -> None:
    doors(tmp_path, STREAM + QUERY)
    ran = eventide(tmp_path, "run", "doors.sql", "--bounded")
    assert ran.returncode == 3
    assert "Spark is not installed: `pip install 'eventide[spark]'` adds it" in ran.stderr
    assert "--engine local" in ran.stderr


def test_a_script_is_proposed_checked_and_run_without_it(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(ROWS)
    for arguments in (
        ("init", "rows.csv", "-o", "first.sql"),
        ("check", "first.sql"),
        ("explain", "first.sql"),
        ("run", "first.sql", "--engine", "local"),
        ("profile", "rows.csv", "--time", "at"),
    ):
        ran = eventide(tmp_path, *arguments)
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout or arguments[0] == "init"
