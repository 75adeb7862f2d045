"""Where Java is missing, that is said, and the local engine is offered."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.commands.processes import COMMAND, ENVIRONMENT, QUERY, STREAM, doors


@pytest.mark.spark
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"JAVA_HOME": "no/such/place"}, "JAVA_HOME is no/such/place, where there is no bin/java"),
        ({"JAVA_HOME": "", "PATH": "/usr/sbin"}, "there is no Java: install Java 17, or set JAVA_HOME to one"),
    ],
)
def test_a_missing_java_is_told_in_words(tmp_path: Path, changed: dict[str, str], said: str) -> None:
    doors(tmp_path, STREAM + QUERY)
    environment = {**os.environ, **ENVIRONMENT, **changed}
    command = [*COMMAND, "run", "doors.sql", "--engine", "spark"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 3
    assert said in ran.stderr
    assert "--engine local" in ran.stderr
    assert "Traceback" not in ran.stderr
