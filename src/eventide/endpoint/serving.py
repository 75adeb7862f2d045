"""Serve what can be asked over HTTP: an ASGI application, and its connections within limits.

*Application.* `endpoint_routes` is all there is; every other path is refused, and every other method. Nothing is looked
at for a request that the gate does not let pass. Every refusal is an object of JSON with `error` and `hint`; no
traceback leaves the process. What an engine needs time for is done in a thread, so that nobody waits for somebody
else's question.

*Connections* are bounded in what uvicorn does not bound by itself. There are at most so many connections. When one more
comes, the slowest is cut off of those that have their answer, or had a second to send their request; where there is
none the new one is refused. A connection brings one request, has so many seconds to send it in all, however it dawdles,
and so many to take the answer, and is closed. What is no request is refused in words. A client that still sends when
its answer is there can read it: so much more is taken, and dropped.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import sys
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, cast

import h11
import uvicorn
from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from eventide.endpoint.auth import Checking, Gate, HttpError, Limits, as_json
from eventide.endpoint.metrics import CONTENT_TYPE, Metrics
from eventide.endpoint.prod_request import PROD_KEYS, asked_of, parameters_of
from eventide.endpoint.questions import Questions

log = logging.getLogger(__name__)

JSON = "application/json; charset=utf-8"
Answer = Callable[[Mapping[str, str], bytes], bytes]
"""From the parameters and the body of a request to the body of its answer, by default a line of JSON."""


class Guard:
    """Lets requests through to an application that are well formed, within limits, and pass the gate."""

    def __init__(self, application: ASGIApp, gate: Checking, limits: Limits) -> None:
        self._application, self._gate, self._limits = application, gate, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        try:
            self._gate.check(headers_of(scope, self._limits))
            if scope["raw_path"].decode("ascii") != scope["path"]:
                # Ours need no other spelling.
                raise HttpError(404, "there is no such path", "write it without %")
        except HttpError as error:
            await refusing(error)(scope, receive, send)
            return
        try:
            await self._application(scope, receive, send)
        except ClientDisconnect:
            pass
        except Exception as error:
            # One request that goes wrong is no reason to fall silent; what it was is for our eyes.
            log.warning("request failed", extra={"why": f"{type(error).__name__}: {error}"})


def headers_of(scope: Scope, limits: Limits) -> dict[str, str]:
    """The headers of a request, each once; `HttpError` where its head cannot be taken.

    >>> scope = {"method": "GET", "http_version": "1.1", "raw_path": b"/", "query_string": b"", "headers": []}
    >>> headers_of(scope | {"headers": [(b"host", b"localhost")]}, Limits())
    {'host': 'localhost'}
    >>> headers_of(scope | {"headers": [(b"host", b"a"), (b"host", b"b")]}, Limits())
    Traceback (most recent call last):
        ...
    eventide.endpoint.auth.HttpError: the header host stands there twice
    """
    came: list[tuple[bytes, bytes]] = scope["headers"]
    if not re.fullmatch("[A-Z]{1,16}", scope["method"]) or scope["http_version"] not in ("1.0", "1.1"):
        raise HttpError(400, "this is no request of HTTP/1.1", "begin with a line such as: GET /status HTTP/1.1")
    size = len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(name) + len(value) + 4 for name, value in came)
    if size > limits.head:
        raise HttpError(431, f"the head of a request may have {limits.head:,} bytes", "send fewer headers")
    if len(came) > limits.headers:
        raise HttpError(431, f"a request may have {limits.headers} headers", "send fewer of them")
    headers: dict[str, str] = {}
    for raw, value in came:
        name = raw.decode("ascii")
        if name in headers:
            # Whom we believe must not depend on which of two we look at.
            raise HttpError(400, f"the header {name} stands there twice", "send it once")
        headers[name] = value.decode("latin-1").strip()
    if "transfer-encoding" in headers:
        raise HttpError(411, "a body must say how long it is", "send Content-Length, not Transfer-Encoding")
    if int(headers.get("content-length", "0")) > limits.body:
        raise HttpError(413, f"a body may have {limits.body:,} bytes", "ask for less at once")
    return headers


def endpoint_routes(questions: Questions, metrics: Metrics) -> list[Route]:
    """Early results, status, why, alerts, traces of heartbeats, the names of queries, and metrics."""
    return [
        route("POST", "/prod", (), lambda _, body: questions.prod(asked_of(body, PROD_KEYS))),
        route("GET", "/status", (), lambda _, __: as_json(questions.status())),
        route("GET", "/why", ("query",), lambda asked, _: as_json(questions.why(asked.get("query")))),
        route("GET", "/alerts", (), lambda _, __: as_json(questions.alerts())),
        route("GET", "/traces", (), lambda _, __: as_json(questions.traces())),
        route("GET", "/queries", (), lambda _, __: as_json(questions.queries())),
        route("GET", "/metrics", (), lambda _, __: metrics.text(), CONTENT_TYPE),
    ]


def application_of(routes: Iterable[Route], gate: Checking, limits: Limits) -> ASGIApp:
    """An application that has these routes and no others, behind a gate."""
    known = list(routes)
    paths = ", ".join(route.path for route in known)

    def refuse(request: Request, error: Exception) -> Response:
        if isinstance(error, HttpError):
            return refusing(error)
        status = error.status_code if isinstance(error, HTTPException) else 500
        if status == 404:
            return refusing(HttpError(404, "there is no such path", f"there are: {paths}"))
        if status == 405:
            allowed = (error.headers or {}).get("Allow", "") if isinstance(error, HTTPException) else ""
            path = request.url.path
            return refusing(HttpError(405, f"{path} takes {allowed}", f"send {allowed} {path}", Allow=allowed))
        return refusing(HttpError(500, "the engine could not answer this", "its log says more"))

    handlers: dict[Any, Any] = {HttpError: refuse, HTTPException: refuse, Exception: refuse}
    application = Starlette(routes=known, exception_handlers=handlers)
    application.router.redirect_slashes = False
    return Guard(application, gate, limits)


class Mounted:
    """An application, and others below paths of their own: each with a gate of its own, and made when it is asked."""

    def __init__(self, application: ASGIApp, others: Mapping[str, Callable[[Gate], ASGIApp]], gate: Gate) -> None:
        self._application, self._others, self._gate = application, others, gate
        self._made: dict[str, ASGIApp] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, by the application with the longest path that it is below."""
        path: str = scope.get("path", "")
        below = [one for one in list(self._others) if path == one or path.startswith(f"{one}/")]
        if not below:
            await self._application(scope, receive, send)
            return
        found = max(below, key=len)
        if found not in self._made:
            self._made[found] = self._others[found](self._gate)
        await self._made[found](scope, receive, send)


def route(method: str, path: str, parameters: tuple[str, ...], answer: Answer, content: str = JSON) -> Route:
    """A path that takes one method and these parameters."""

    async def respond(request: Request) -> Response:
        asked = parameters_of(request.scope["query_string"].decode("latin-1"), parameters)
        body = await request.body()
        answered = await to_thread.run_sync(answer, asked, body, abandon_on_cancel=True)
        return Response(answered, media_type=content)

    made = Route(path, respond, methods=[method])
    # Starlette answers HEAD where it answers GET.
    made.methods = {method}
    return made


def refusing(error: HttpError) -> Response:
    """The response that says why there is no answer."""
    return Response(as_json(error.body()), error.status, error.headers, JSON)


FAIR = 1.0
"""Seconds for a request that nobody is cut off before."""
ANSWER_SECONDS = 20.0
"""Seconds for a client to take what is sent to it."""
TAKING, ANSWERING = 1.0, 10.0
"""When the server closes: seconds for a client to take its answer, and for the engine to find it."""
LEFT_BYTES, LEFT_SECONDS = 1_000_000, 1.0
"""So much of what a client still sends is taken before its connection is closed, so that it can read why."""

HEADERS = [("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"), ("Connection", "close")]
"""With every answer. No header invites the page of another server to read it (CORS)."""


class LimitedConfig(uvicorn.Config):
    """Uvicorn's settings, and our limits."""

    def __init__(self, application: ASGIApp, limits: Limits) -> None:
        super().__init__(
            application,
            http=LimitedProtocol,
            loop="asyncio",
            ws="none",
            lifespan="off",
            # The logging of the process is its user's.
            log_config=None,
            headers=HEADERS,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            h11_max_incomplete_event_size=limits.head,
        )
        self.limits = limits


class LingeringTransport:
    """A transport that closes in two steps: nothing more is sent; then, once the client has heard, it is gone."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self.leaving = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        """Whether nothing more is sent."""
        return self.leaving or self._transport.is_closing()

    def close(self) -> None:
        """Send what is left, and wait a while for the client to close."""
        if self.leaving:
            return
        self.leaving = True
        patience = ANSWER_SECONDS if self._transport.get_write_buffer_size() else LEFT_SECONDS
        self._loop.call_later(patience, self._transport.abort)
        if not self._transport.is_closing():
            self._transport.resume_reading()
            self._transport.write_eof()


class LimitedProtocol(H11Protocol):
    """One HTTP connection, within the limits."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = cast(LimitedConfig, config).limits
        self._patience: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._left = LEFT_BYTES
        # What a client does wrong is answered to the client; what goes wrong here is logged by the application.
        self.logger = logging.Logger("eventide.endpoint.http", logging.CRITICAL)
        self.access_log = False

    @property
    def reading(self) -> bool:
        """Whether the request has not come as a whole, and is not refused either."""
        return self.cycle is None or (self.cycle.more_body and not self.cycle.response_started)

    @property
    def leaving(self) -> bool:
        """Whether the answer is sent, or as much of it as there will be."""
        return self.transport.is_closing()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a new connection, or refuse it."""
        self.since = self.loop.time()
        super().connection_made(cast(asyncio.Transport, LingeringTransport(transport, self.loop)))
        self._deadline = self.loop.call_later(self._limits.seconds, self._too_slow)
        if len(self.connections) > self._limits.connections and not self._make_room():
            self._refuse(HttpError(503, "too many are asking", "ask again"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers of a connection that is gone."""
        for timer in (self._deadline, self._patience):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a piece of the request; what comes after its answer is dropped."""
        if not self.leaving:
            super().data_received(data)
            return
        self._left -= len(data)
        if self._left < 0:
            self.transport.abort()

    def pause_writing(self) -> None:
        """The client does not take what was sent."""
        super().pause_writing()
        self._patience = self.loop.call_later(ANSWER_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has taken it."""
        super().resume_writing()
        if self._patience is not None:
            self._patience.cancel()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request; called while the error that says so is handled."""
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        if status == 431:
            refusal = HttpError(
                431, f"the head of a request may have {self._limits.head:,} bytes", "send fewer headers"
            )
        else:
            refusal = HttpError(400, f"this is no request of HTTP/1.1: {error}", "write it as GET /status HTTP/1.1")
        self._refuse(refusal)

    def may_be_cut(self, waited: float) -> bool:
        """Whether it can be ended, when the server has been closing for so many seconds."""
        if self.reading or (self.leaving and not self.transport.get_write_buffer_size()):
            return True
        answering = not self.leaving and not self.cycle.response_started
        return waited >= (ANSWERING if answering else TAKING)

    def _make_room(self) -> bool:
        """Cut off the slowest of those that have had their chance, or their answer."""
        late = self.loop.time() - FAIR
        others = [one for one in self.connections if isinstance(one, LimitedProtocol) and one is not self]
        cut = [one for one in others if one.leaving or (one.reading and one.since <= late)]
        if cut:
            slowest = min(cut, key=lambda one: one.since)
            self.connections.discard(slowest)
            slowest.transport.abort()
        return bool(cut)

    def _too_slow(self) -> None:
        if self.reading and not self.leaving:
            seconds = f"{self._limits.seconds:g}"
            self._refuse(HttpError(408, f"the request did not come within {seconds} seconds", "send it at once"))

    def _refuse(self, refusal: HttpError) -> None:
        """Answer in the place of the application."""
        body = as_json(refusal.body())
        own = [("Content-Type", "application/json; charset=utf-8"), ("Content-Length", str(len(body)))]
        lines = [f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in (*own, *HEADERS)]
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        self.transport.close()


class _Server(uvicorn.Server):
    """Serves until somebody wakes it, and then ends at once where nobody waits for an answer."""

    def __init__(self, config: uvicorn.Config, woken: socket.socket) -> None:
        super().__init__(config)
        self._woken = woken

    async def main_loop(self) -> None:
        """Wait for the end, without looking up in between."""
        self.server_state.default_headers = self.config.encoded_headers
        loop, closing = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._woken, closing.set)
        await closing.wait()
        loop.remove_reader(self._woken)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End every connection; those under way have some seconds."""
        for server in self.servers:
            server.close()
        loop = asyncio.get_running_loop()
        started = loop.time()
        while connections := [one for one in self.server_state.connections if isinstance(one, LimitedProtocol)]:
            for connection in connections:
                if connection.may_be_cut(loop.time() - started):
                    connection.transport.abort()
            await asyncio.sleep(0.005)


def serve(application: ASGIApp, listening: socket.socket, woken: socket.socket, limits: Limits) -> None:
    """Serve connections of a socket, in this thread, until `woken` can be read."""
    _Server(LimitedConfig(application, limits), woken).run([listening])
