"""A real engine that listens on loopback, and clients that speak to it in bytes."""

from __future__ import annotations

import json
import queue
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from eventide.api.inputs import ArrowRows
from eventide.endpoint.auth import Limits
from eventide.endpoint.certificate import Certificate
from eventide.endpoint.discovery import Address
from eventide.endpoint.lifecycle import Endpoint, listen
from eventide.engine.local.engine import LocalEngine
from eventide.language.script import read_script
from eventide.report.why import window_words

SCRIPT = """
CREATE STREAM doors (at BIGINT, door STRING, floor INT, people INT) TIMESTAMP BY at DELAY 100;
CREATE QUERY people AS SELECT door, floor, sum(people) AS people FROM doors [RANGE 10] GROUP BY door, floor;
CREATE QUERY most AS SELECT max(people) AS most FROM people [RANGE 20] PROD AT 90 % ESTIMATE;
"""
ROWS = pa.table(
    {
        "at": pa.array([1, 4, 12, 15], pa.int64()),
        "door": ["north", "south", "north", None],
        "floor": pa.array([0, 1, 0, 1], pa.int32()),
        "people": pa.array([1, 2, 3, 4], pa.int32()),
    }
)


@dataclass
class Answer:
    """What a server said."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        """The body, which must be JSON."""
        return json.loads(self.body)


@dataclass
class Asked:
    """An engine at work, its endpoint, and how to reach it."""

    engine: LocalEngine
    endpoint: Endpoint
    coming: queue.Queue[pa.RecordBatch | None]

    @property
    def token(self) -> str:
        return self.endpoint.token_file.read_text()

    def connect(self) -> socket.socket:
        return socket.create_connection((self.endpoint.address.host, self.endpoint.address.port), timeout=30)

    def send(self, request: bytes) -> Answer:
        """Bytes over a connection of their own, and all that comes back."""
        with self.connect() as connection:
            connection.sendall(request)
            return answer_on(connection, request.startswith(b"HEAD "))

    def head(self, line: str, *headers: str, token: str | None = None) -> str:
        lines = [line, "Host: localhost", f"Authorization: Bearer {token or self.token}", *headers]
        return "\r\n".join([*lines, "", ""])

    def get(self, target: str) -> Answer:
        return self.send(self.head(f"GET {target} HTTP/1.1").encode())

    def post(self, body: Any, target: str = "/prod") -> Answer:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.send(self.head(f"POST {target} HTTP/1.1", f"Content-Length: {len(sent)}").encode() + sent)


def answer_on(connection: socket.socket, head_only: bool = False) -> Answer:
    """What comes back until the server closes."""
    came = b""
    while piece := connection.recv(65536):
        came += piece
    head, _, body = came.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    assert first.startswith("HTTP/1.1 "), came
    answer = Answer(int(first.split()[1]), headers, body)
    if head_only:
        # An answer to HEAD is that of GET without its body.
        assert not body
        return answer
    assert int(headers["content-length"]) == len(body)
    assert isinstance(answer.data, dict)
    assert b"Traceback" not in body
    if answer.status != 200:
        assert set(answer.data) == {"error", "hint"}, answer
    return answer


@contextmanager
def asked(folder: Path, limits: Limits | None = None, certificate: Certificate | None = None) -> Iterator[Asked]:
    """An engine that has taken the rows, and listens."""
    coming: queue.Queue[pa.RecordBatch | None] = queue.Queue()
    coming.put(ROWS.to_batches()[0])
    script = read_script(SCRIPT)
    inputs = {"doors": ArrowRows(script.program.stream("doors"), iter(coming.get, None), waits=True)}
    with LocalEngine(script.program, str(folder / "state"), inputs=inputs) as engine:
        engine.start()
        while engine.status().round < 0:
            assert not engine.ended.is_set(), engine.failure
            time.sleep(0.01)
        yield Asked(engine, listen(engine, Address(), window_words, limits, certificate), coming)
        coming.put(None)
