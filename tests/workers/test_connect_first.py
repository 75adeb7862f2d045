"""A worker that loads for long has been connected for as long."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

PYTHON = str(Path(__file__).parent / "python")
WORKER = """
import sys
sys.stdin.readline()
from pyspark.worker_util import get_sock_file_to_executor
with get_sock_file_to_executor() as file:
    file.write(file.readline().upper())
"""


def test_a_worker_is_connected_before_it_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The path of a socket may not be long.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow.py").write_text(WORKER, encoding="utf-8")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as spark:
        spark.bind("spark")
        spark.listen()
        environment = {**os.environ, "PYTHON_WORKER_FACTORY_SOCK_PATH": "spark"}
        with subprocess.Popen([PYTHON, "-m", "slow"], env=environment, stdin=subprocess.PIPE) as worker:
            connection, _ = spark.accept()
            assert worker.stdin is not None
            worker.stdin.write(b"now load\n")
            worker.stdin.flush()
            with connection, connection.makefile("rwb") as file:
                assert int.from_bytes(file.read(4), "big") == worker.pid
                file.write(b"a line\n")
                file.flush()
                assert file.readline() == b"A LINE\n"
        assert worker.returncode == 0


def test_a_worker_that_is_not_started_alone_has_the_python_of_the_tests() -> None:
    asking = [PYTHON, "-c", "import sys; print(sys.executable)"]
    assert subprocess.run(asking, capture_output=True, text=True, check=True).stdout.strip() == sys.executable
