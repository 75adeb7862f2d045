"""The numbered examples in Python run and end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def said_by(*command: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_queries_over_arrow_data() -> None:
    said = said_by("examples.python_1_arrow")
    assert "every_minute: the last of 65 results" in said
    assert "1 % is permitted" in said


@pytest.mark.spark
def test_a_query_over_a_streaming_dataframe(tmp_path: Path) -> None:
    said = said_by("examples.python_2_spark", str(tmp_path / "out"))
    assert "|2025-03-01 08:10:00|" in said


@pytest.mark.spark
def test_heartbeats_for_a_query_of_spark(tmp_path: Path) -> None:
    said = said_by("examples.python_3_heartbeats", str(tmp_path / "out"))
    assert "eventide.heartbeats: closed up to 2026-01-01T00:06:59" in said
    assert said.rstrip().endswith(" 0 lost")
    assert " 0 lost" not in said.splitlines()[0], "a watermark for all loses the devices that trail"
