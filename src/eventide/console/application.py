"""The console over HTTP: its static page, sessions for links, snapshots as server-sent events, and answers to prods.

Laws. The page may load its own files and nothing else, and runs no code that is not in one of them (Content Security
Policy). A viewer gets at most four events a second, and none while nothing has happened; one that is gone costs
nothing. There are at most `VIEWERS` of them, so that others can ask the engine too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from eventide.console.gates import OpenGate, SessionGate, static_limits
from eventide.console.losses_view import losses_sample, what_if
from eventide.console.plan_view import plan_texts
from eventide.console.sessions import EVERYTHING, Permission, Sessions
from eventide.console.snapshots import CHOICES, PAGES, PER_SECOND, Kind, Snapshots
from eventide.console.subject import Subject
from eventide.endpoint.auth import Gate, HttpError, Limits, as_json
from eventide.endpoint.prod_request import PROD_KEYS, asked_of, parameters_of
from eventide.endpoint.questions import Questions
from eventide.endpoint.serving import application_of, route

ROOT = "/console"
VIEWERS = 24
ALIVE = 15.0
"""Seconds of silence after which a viewer is told that the engine is still there."""
LONGEST_CHOICE = 200

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
SECURITY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}


@dataclass
class ConsoleServer:
    """Everything that the routes need; `questions` is None where nobody is there to be prodded."""

    subject: Subject
    sessions: Sessions
    questions: Questions | None
    url: str
    closed: bool = False
    viewers: int = 0

    def __post_init__(self) -> None:
        self.snapshots = Snapshots(self.subject)
        self._plan: tuple[object, bytes] | None = None

    def close(self) -> None:
        """Let every viewer go, so that the server need not wait for them."""
        self.closed = True

    def link(self, may: frozenset[Permission]) -> str:
        """An address that opens the page once."""
        return f"{self.url}{ROOT}/#token={self.sessions.link(may)}"

    def mounts(self, limits: Limits) -> dict[str, Callable[[Gate], ASGIApp]]:
        """The applications by their paths, each with its own gate."""
        fixed = static_limits(limits)

        def open_to_all(routes: list[Route]) -> Callable[[Gate], ASGIApp]:
            return lambda gate: application_of(routes, OpenGate(gate, fixed), limits)

        def behind(needed: Permission, routes: list[Route]) -> Callable[[Gate], ASGIApp]:
            return lambda gate: application_of(routes, SessionGate(gate, self.sessions, needed, limits), limits)

        # Guesses of a link's token are as rare as those of the engine's own.
        guessing = replace(limits, rate=limits.guesses, burst=limits.guesses_at_once)
        return {
            ROOT: open_to_all(static_routes()),
            f"{ROOT}/session": lambda gate: application_of([self._exchange()], OpenGate(gate, guessing), limits),
            f"{ROOT}/link": lambda gate: application_of([self._new_link()], gate, limits),
            f"{ROOT}/api": behind(Permission.READ, self._reading()),
            f"{ROOT}/api/prod": behind(Permission.PROD, [self._prodding()]),
        }

    # What is answered

    def _exchange(self) -> Route:
        def exchanged(_: Mapping[str, str], body: bytes) -> bytes:
            token = asked_of(body, ("token",)).get("token")
            session = self.sessions.exchange(token) if isinstance(token, str) else None
            if session is None:
                raise HttpError(401, "this link was used before, or never was one", "eventide console prints a new one")
            may = self.sessions.permissions(session)
            return as_json({"session": session, "may": sorted(may) if self.questions is not None else ["read"]})

        return route("POST", f"{ROOT}/session", (), exchanged)

    def _new_link(self) -> Route:
        def linked(_: Mapping[str, str], body: bytes) -> bytes:
            read_only = asked_of(body, ("read_only",)).get("read_only", False)
            return as_json({"url": self.link(frozenset({Permission.READ}) if read_only is True else EVERYTHING)})

        return route("POST", f"{ROOT}/link", (), linked)

    def _prodding(self) -> Route:
        def prodded(_: Mapping[str, str], body: bytes) -> bytes:
            if self.questions is None:
                raise HttpError(503, "the run has stopped, and cannot be asked", "start it again")
            return self.questions.prod(asked_of(body, PROD_KEYS))

        return route("POST", f"{ROOT}/api/prod", (), prodded)

    def _reading(self) -> list[Route]:
        return [
            Route(f"{ROOT}/api/events", self._events, methods=["GET"]),
            route("GET", f"{ROOT}/api/plan", (), lambda _, __: self._plan_texts()),
            route("GET", f"{ROOT}/api/sample", ("stream", "kind"), lambda asked, _: self._sample(asked)),
            route("GET", f"{ROOT}/api/what-if", ("stream",), lambda asked, _: self._what_if(asked)),
        ]

    def _plan_texts(self) -> bytes:
        plan = self.subject.plan()
        known = self._plan
        if known is None or known[0] is not plan:
            known = self._plan = (plan, as_json(plan_texts(self.subject.standing())))
        return known[1]

    def _sample(self, asked: Mapping[str, str]) -> bytes:
        program, storage = self.subject.standing().program, self.subject.storage
        return as_json(losses_sample(program, storage, asked.get("stream", ""), asked.get("kind", "")))

    def _what_if(self, asked: Mapping[str, str]) -> bytes:
        rounds = self.subject.history.cells_of(asked.get("stream", ""))
        return as_json({"rounds": len(rounds), "ratios": what_if(rounds)})

    async def _events(self, request: Request) -> Response:
        kind = kind_of(request.scope["query_string"].decode("latin-1"))
        if self.viewers >= VIEWERS:
            raise HttpError(503, "too many are looking", "close another page of this console", Retry_After="5")
        return StreamingResponse(self._stream(kind), media_type="text/event-stream")

    async def _stream(self, kind: Kind) -> AsyncIterator[bytes]:
        """An event for every new snapshot of a kind; Starlette ends it when the viewer is gone."""
        self.viewers += 1
        seen: int | None = None
        loop = asyncio.get_running_loop()
        said = loop.time()
        try:
            while True:
                if self.snapshots.is_due(kind, seen):
                    found = await to_thread.run_sync(self.snapshots.next, kind, seen, abandon_on_cancel=True)
                    if found is not None:
                        seen, said = found.number, loop.time()
                        yield b"data: " + found.body.rstrip(b"\n") + b"\n\n"
                elif self.closed:
                    yield b"event: end\ndata: {}\n\n"
                    return
                elif loop.time() - said > ALIVE:
                    said = loop.time()
                    yield b": still here\n\n"
                await asyncio.sleep(1.0 / PER_SECOND)
        finally:
            self.viewers -= 1


def kind_of(query: str) -> Kind:
    """The page that is asked for, and what is chosen on it.

    >>> kind_of("page=time&find=det")
    ('time', (('find', 'det'),))
    """
    asked = parameters_of(query, ("page", *CHOICES))
    page = asked.pop("page", "")
    if page not in PAGES:
        raise HttpError(404, "there is no such page", f"there are: {', '.join(PAGES)}")
    if any(len(value) > LONGEST_CHOICE for value in asked.values()):
        raise HttpError(400, "a choice is too long", f"it may have {LONGEST_CHOICE} letters")
    return page, tuple(sorted(asked.items()))


def static_routes() -> list[Route]:
    """A route for every file of the page: what is no file of it is no path."""
    root = files("eventide.console") / "static"
    found = []
    for folder in ("", "vendor/"):
        for file in root.joinpath(folder).iterdir() if folder else root.iterdir():
            content = next((TYPES[end] for end in TYPES if file.name.endswith(end)), None)
            if file.is_file() and content is not None:
                path = f"{ROOT}/" if file.name == "index.html" else f"{ROOT}/{folder}{file.name}"
                found.append(Route(path, partial(_static, file.read_bytes(), content), methods=["GET"]))
    found.append(Route(ROOT, lambda _: RedirectResponse(f"{ROOT}/"), methods=["GET"]))
    return found


async def _static(body: bytes, content: str, request: Request) -> Response:
    return Response(body, media_type=content, headers=SECURITY)


def standing_alone(server: ConsoleServer, gate: Gate, limits: Limits) -> ASGIApp:
    """The console where no engine runs: nothing else is served."""
    from eventide.endpoint.serving import Mounted

    nothing: list[Any] = []
    return Mounted(application_of(nothing, gate, limits), server.mounts(limits), gate)
