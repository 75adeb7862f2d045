"""The servers that tests and people start: they keep their data, are reached on loopback alone, and end with us."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts.kafka_server import KafkaServer, classes_in
from scripts.postgres_server import PostgresServer
from scripts.servers import UnavailableError, listens

ROOT = Path(__file__).resolve().parent.parent
STARTED = (
    "from scripts.postgres_server import postgres\nwith postgres() as it:\n    print(it.port, flush=True)\n    input()"
)


def query(server: PostgresServer, sql: str) -> str:
    done = subprocess.run(["psql", server.url, "-qAtc", sql], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.slow
def test_a_postgres_that_was_killed_comes_back_with_its_data(postgres_server: PostgresServer) -> None:
    query(postgres_server, "CREATE TABLE kept AS SELECT 7 AS n")
    postgres_server.process.kill()
    assert not listens(postgres_server.port)
    postgres_server.process.start()
    assert query(postgres_server, "SELECT n FROM kept") == "7"


@pytest.mark.slow
def test_nobody_gets_in_without_the_password(postgres_server: PostgresServer) -> None:
    address = postgres_server.address.replace("@", ":wrong@")
    done = subprocess.run(["psql", address, "-c", "SELECT 1"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "password authentication failed" in done.stderr


@pytest.mark.slow
def test_a_server_ends_when_whoever_started_it_is_killed(postgres_server: PostgresServer) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    with starter:
        assert starter.stdout is not None
        port = int(starter.stdout.readline())
        assert listens(port)
        os.kill(starter.pid, signal.SIGKILL)
    while listens(port):
        time.sleep(0.05)


@pytest.mark.slow
def test_a_broker_answers_on_loopback_alone_and_again_after_it_was_killed(kafka_server: KafkaServer) -> None:
    kafka_server.process.kill()
    kafka_server.process.start()
    assert listens(kafka_server.port)
    others = {address[4][0] for address in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for other in others - {"127.0.0.1"}:
        if not str(other).startswith("127."):
            with socket.socket() as probe:
                assert probe.connect_ex((other, kafka_server.port)) != 0


def test_without_maven_the_way_out_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for tool in ("bash", "uname"):
        found = shutil.which(tool)
        assert found is not None
        (tmp_path / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match=r"Maven \(mvn\) .* to install it: .*maven"):
        classes_in(tmp_path / "none")
