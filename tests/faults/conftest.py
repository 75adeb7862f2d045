"""The shim between the program and its files, compiled where there is a compiler of C; and an undisturbed run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.crash.outcome import Outcome
from tests.faults.lives import Life, lived
from tests.faults.program import record

NEVER_MET = "d:1000000"
SOURCE = Path(__file__).with_name("shim.c")


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled shim."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no compiler of C on this machine")
    made = tmp_path_factory.mktemp("shim") / "shim.so"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(made), str(SOURCE), "-ldl"], check=True)
    return made


@pytest.fixture(scope="session")
def calm(shim: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run in which nothing goes wrong; its operations are in a file beside it."""
    folder = tmp_path_factory.mktemp("calm") / "run"
    record(folder)
    assert lived(shim, folder, [NEVER_MET]) == [Life(NEVER_MET, "ended")]
    return folder


@pytest.fixture(scope="session")
def undisturbed(calm: Path) -> Outcome:
    """What a run shows in which nothing goes wrong."""
    return Outcome.of(calm)
