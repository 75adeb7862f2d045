"""A console from its first link to its end: beside a running engine, or for a record alone.

Laws. A console beside an engine is part of the engine's endpoint, and ends with it. An engine without one pays nothing:
nothing of it is loaded. A console of a record changes nothing in the checkpoint.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from eventide.console.sessions import EVERYTHING, Permission, Sessions, key_in, new_key
from eventide.endpoint.auth import Gate, Limits
from eventide.endpoint.certificate import Certificate
from eventide.endpoint.discovery import Address, new_token
from eventide.endpoint.lifecycle import Endpoint, Server
from eventide.engine.running import Running
from eventide.errors import EngineError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from eventide.console.application import ConsoleServer
    from eventide.console.subject import Subject

CONSOLE_LIMITS = Limits()
READ_ONLY = frozenset({Permission.READ})


class Console:
    """The console of a running engine; made by `open_console`."""

    def __init__(self, server: ConsoleServer) -> None:
        self._server = server

    def link(self, read_only: bool = False) -> str:
        """An address that opens the console in a browser, once; `read_only`: without the right to prod."""
        if self._server.closed:
            raise EngineError("the engine has ended, and its console with it: eventide console shows the checkpoint")
        return self._server.link(READ_ONLY if read_only else EVERYTHING)

    @property
    def viewers(self) -> int:
        """How many look at it now."""
        return self._server.viewers

    @property
    def made(self) -> int:
        """How many snapshots were made for viewers."""
        return self._server.snapshots.made


def open_console(running: Running, endpoint: Endpoint) -> Console:
    """Serve the console of an engine where it listens."""
    from eventide.console.application import ConsoleServer
    from eventide.console.subject import LiveSubject

    subject = LiveSubject(running)
    server = ConsoleServer(subject, Sessions(key_in(endpoint.folder)), endpoint.questions, endpoint.url)

    def close() -> None:
        server.close()
        subject.end()

    endpoint.mount(server.mounts(CONSOLE_LIMITS), close)
    subject.begin()
    return Console(server)


class RecordConsole:
    """The console of a run that has stopped, at an address of its own; as a context it is closed in the end."""

    def __init__(self, subject: Subject, address: Address, certificate: Certificate | None = None) -> None:
        from eventide.console.application import ConsoleServer, standing_alone

        self._server = ConsoleServer(subject, Sessions(new_key()), None, "")

        def application(at: Address) -> ASGIApp:
            gate = Gate(at, new_token(), CONSOLE_LIMITS, time.monotonic)
            return standing_alone(self._server, gate, CONSOLE_LIMITS)

        try:
            self._listening = Server(address, application, CONSOLE_LIMITS, certificate)
        except OSError as error:
            raise EngineError(f"cannot listen at {address.shown}: {error.strerror or error}. Name another") from error
        self._server.url = self._listening.address.url

    def link(self) -> str:
        """An address that opens it, once."""
        return self._server.link(READ_ONLY)

    def close(self) -> None:
        """Serve nobody any more."""
        self._server.close()
        self._listening.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
