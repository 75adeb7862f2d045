"""What can be asked over HTTP, as an ASGI application.

Laws. `endpoint_routes` is all there is; every other path is refused, and every other method. Nothing is looked
at for a request that the gate does not let pass. Every refusal is an object of JSON with `error` and `hint`; no
traceback leaves the process. What an engine needs time for is done in a thread, so that nobody waits for somebody
else's question.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

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
