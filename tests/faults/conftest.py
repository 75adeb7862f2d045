"""The shim between the program and its files, compiled where there is a compiler of C; and undisturbed runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.calm import Calm
from tests.faults.program import EVERY, FEW, ON_CLUSTER

SOURCE = Path(__file__).with_name("shim.c")


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled shim."""
    compiler = shutil.which("cc")
    if sys.platform != "linux":
        pytest.skip("the shim between a program and its files is one for Linux")
    if compiler is None:
        pytest.skip("there is no compiler of C (`cc`) on this machine")
    made = tmp_path_factory.mktemp("shim") / "shim.so"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(made), str(SOURCE), "-ldl"], check=True)
    return made


@pytest.fixture(scope="session")
def whole(shim: Path, tmp_path_factory: pytest.TempPathFactory) -> Calm:
    """A run of all queries."""
    return Calm.of(shim, tmp_path_factory.mktemp("whole") / "run", EVERY)


@pytest.fixture(scope="session")
def small(shim: Path, tmp_path_factory: pytest.TempPathFactory) -> Calm:
    """A run of a few queries."""
    return Calm.of(shim, tmp_path_factory.mktemp("small") / "run", FEW)


@pytest.fixture(scope="session")
def far(shim: Path, tmp_path_factory: pytest.TempPathFactory) -> Calm:
    """A run of all queries, with all state in files of a cluster."""
    return Calm.of(shim, tmp_path_factory.mktemp("far") / "run", (*EVERY, ON_CLUSTER))
