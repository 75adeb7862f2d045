"""A registry of schemas over HTTP for tests: subjects, numbers, and who may ask."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class SchemaRegistry(ThreadingHTTPServer):
    """Keeps schemas in memory. A subject takes a schema whose fields have the types that they had before."""

    daemon_threads = True

    def __init__(self, user: str | None = None, password: str | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.wanted = None if user is None else base64.b64encode(f"{user}:{password}".encode()).decode()
        self.schemas: list[str] = []
        self.subjects: dict[str, list[int]] = {}
        self.asked: list[str] = []
        self.failing = 0
        """So many questions are answered by 503."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def keep(self, subject: str, text: str) -> int | None:
        """The number of a schema; None where it does not go with those before it."""
        fields = {one["name"]: one["type"] for one in json.loads(text)["fields"]}
        for number in self.subjects.get(subject, []):
            before = {one["name"]: one["type"] for one in json.loads(self.schemas[number - 1])["fields"]}
            if any(fields.get(name, kind) != kind for name, kind in before.items()):
                return None
        if text not in self.schemas:
            self.schemas.append(text)
        number = self.schemas.index(text) + 1
        self.subjects.setdefault(subject, []).append(number)
        return number


class Answers(BaseHTTPRequestHandler):
    server: SchemaRegistry

    def do_GET(self) -> None:
        if not self.may_ask():
            return
        last = self.path.rsplit("/", 1)[-1]
        if self.path == "/schemas/types":
            self.answer(200, ["AVRO"])
        elif self.path.startswith("/schemas/ids/") and 0 < int(last) <= len(self.server.schemas):
            self.answer(200, {"schema": self.server.schemas[int(last) - 1]})
        else:
            self.answer(404, {"error_code": 40403, "message": "Schema not found"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.may_ask():
            number = self.server.keep(self.path.split("/")[2], body["schema"])
            self.answer(*((409, {"message": "incompatible"}) if number is None else (200, {"id": number})))

    def may_ask(self) -> bool:
        self.server.asked.append(self.path)
        if self.server.failing:
            self.server.failing -= 1
            self.answer(503, {})
            return False
        if self.server.wanted is not None and self.headers["Authorization"] != f"Basic {self.server.wanted}":
            self.answer(401, {"message": "Unauthorized"})
            return False
        return True

    def answer(self, status: int, body: Any) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def schema_registry(user: str | None = None, password: str | None = None) -> Iterator[SchemaRegistry]:
    """A registry of one's own, until the end of the block."""
    with SchemaRegistry(user, password) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
