"""A real Spark cluster on this machine: a master and workers as processes of their own, from the PySpark package.

Law: when the block under `standalone_cluster` is entered, every worker has registered with the master; when it is
left, however that happens, none of the processes is alive, and their files are gone. A worker that is killed goes as
a machine does: with kill -9, and with every executor on it.

    with standalone_cluster(workers=2) as cluster:
        spark = local_session(cluster.url)
        ...
        cluster.kill_worker(0)
        cluster.add_worker()

>>> one, other = _free_ports(2)
>>> one != other
True
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eventide.errors import EngineError

HOST = "127.0.0.1"
PATIENCE = 120.0
"""Seconds in which a master or a worker has to come up, on however busy a machine."""


@dataclass(frozen=True)
class StandaloneCluster:
    """A running cluster: `url` is what Spark calls its master; `workers` are the processes of all it has had."""

    url: str
    workers: list[int]
    status_url: str
    start_worker: Callable[[int], int]

    def add_worker(self) -> int:
        """Start one more worker; gives its number. It registers in its own time: see `alive_workers`."""
        self.workers.append(self.start_worker(len(self.workers)))
        return len(self.workers) - 1

    def kill_worker(self, number: int) -> None:
        """Kill -9 a worker and everything that runs on it."""
        with suppress(ProcessLookupError):
            os.killpg(self.workers[number], signal.SIGKILL)

    def alive_workers(self) -> int:
        """How many workers the master takes for alive."""
        return int(self._status().get("aliveworkers", 0))

    def used_cores(self) -> int:
        """How many cores of living workers have an executor on them."""
        return int(self._status().get("coresused", 0))

    def _status(self) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(f"{self.status_url}/json/", timeout=5) as answer:
                status: dict[str, Any] = json.load(answer)
        except OSError:
            return {}
        return status


@contextmanager
def standalone_cluster(workers: int = 2, cores: int = 1, memory: str = "1g") -> Iterator[StandaloneCluster]:
    """A master and so many workers, each with `cores` and `memory` for executors, on ports that are free."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="eventide-cluster-")))
        port, status_port = _free_ports(2)
        url, status_url = f"spark://{HOST}:{port}", f"http://{HOST}:{status_port}"
        master = ["master.Master", "--host", HOST, "--port", str(port), "--webui-port", str(status_port)]
        started = [_start(stack, folder / "master", *master)]
        _until(lambda: _listens(port), "the master of the Spark cluster", folder, started)

        def start_worker(number: int) -> int:
            place = folder / f"worker-{number}"
            options = ["--host", HOST, "--webui-port", "0", "--cores", str(cores), "--memory", memory]
            started.append(_start(stack, place, "worker.Worker", *options, "--work-dir", str(place), url))
            return started[-1].pid

        cluster = StandaloneCluster(url, [], status_url, start_worker)
        for _ in range(workers):
            cluster.add_worker()
        _until(lambda: cluster.alive_workers() == workers, f"{workers} workers of the Spark cluster", folder, started)
        yield cluster


def _start(stack: ExitStack, place: Path, role: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a part of the cluster in a process group of its own; the stack ends all of the group."""
    try:
        import pyspark
    except ImportError as missing:
        raise EngineError("Spark is not installed here: `pip install pyspark`") from missing
    home = Path(pyspark.__file__).parent
    place.mkdir()
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{role}", *arguments]
    settings = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": HOST, "SPARK_LOCAL_DIRS": str(place)}
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ | settings, start_new_session=True
        )
    stack.callback(_end, process)
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _free_ports(number: int) -> list[int]:
    """Ports that nobody uses now; held together until all are chosen, so that they differ."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind((HOST, 0))
        return [int(one.getsockname()[1]) for one in sockets]


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex((HOST, port)) == 0


def _until(ready: Any, what: str, folder: Path, processes: list[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > deadline or any(process.poll() is not None for process in processes):
            words = "\n".join(log.read_text(errors="replace")[-2000:] for log in sorted(folder.glob("*/log")))
            raise EngineError(f"{what} did not come up; it said:\n{words}")
        time.sleep(0.1)
