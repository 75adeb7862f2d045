"""A real Spark cluster of a master and two workers, one of which is killed while the program runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.crash.differences import Differences, calm, differences
from benchmarks.crash.program import CHECKPOINT
from benchmarks.crash.recording import record
from benchmarks.harness import REPOSITORY
from eventide.testing.cluster import standalone_cluster
from tests.commands.processes import ANSWERS, doors, eventide
from tests.engine.small_streams import wait_until

FILES = 8
QUERIES = ("sliding", "by_rows", "paired")


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.spark
def test_a_worker_killed_while_the_program_runs_changes_no_result_and_commands_run_on_the_other(tmp_path: Path) -> None:
    expected = calm(tmp_path / "calm", FILES, QUERIES)
    folder = tmp_path / "cluster"
    record(folder, FILES)
    with standalone_cluster(workers=2) as cluster:
        command = [sys.executable, "-m", "benchmarks.crash.program", str(folder), "--engine", "spark", "--tell"]
        command += [part for query in QUERIES for part in ("--query", query)]
        command += ["--master", cluster.url, "--conf", "spark.executor.memory=512m", "--driver-memory", "0"]
        with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(2):
                process.stdout.readline()
            wait_until(lambda: cluster.used_cores() == 2)
            cluster.kill_worker(0)
            rounds = max(int(path.stem) for path in (folder / CHECKPOINT / "rounds").glob("*.json"))
            process.communicate()
        assert process.returncode == 0
        assert rounds < FILES - 1, "the worker was killed too late to matter"
        wait_until(lambda: cluster.alive_workers() == 1)
        master = ("--master", cluster.url, "--conf", "spark.executor.memory=512m")
        assert eventide(doors(tmp_path), "run", "doors.sql", "--bounded", "--json", *master).answers == ANSWERS
    assert not any(map(alive, cluster.workers))
    assert differences(folder, expected) == Differences()
