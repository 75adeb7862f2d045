"""Connections over HTTP, plain or encrypted, within limits.

Laws. They are bounded in what uvicorn does not bound by itself. There are at most so many connections. When one more
comes, the slowest is cut off of those that have their answer, or had a second to send their request; where there is
none the new one is refused. A connection brings one request, has so many seconds to send it in all, however it dawdles,
and so many to take the answer, and is closed. What is no request is refused in words. A client that still sends when
its answer is there can read it: so much more is taken, and dropped.

*Encrypted.* A connection counts from its first moment, before it has shown that it can speak TLS; it has as many
seconds for that as for its request. Nothing is sent before.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import sys
from http import HTTPStatus
from typing import Any, cast

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from eventide.endpoint.auth import HttpError, Limits, as_json

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

    def __init__(self, application: ASGIApp, limits: Limits, context: ssl.SSLContext | None) -> None:
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
        self.limits, self.context = limits, context


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
            if self._transport.can_write_eof():
                self._transport.write_eof()
            else:
                # An encrypted one says so by closing.
                self._transport.close()


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
        self._limits, self._context = cast(LimitedConfig, config).limits, cast(LimitedConfig, config).context
        self._securing: asyncio.Task[None] | None = None
        # What came at once with the last step of the agreement.
        self._early = bytearray()
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
        refused = len(self.connections) > self._limits.connections and not self._make_room()
        if self._context is not None:
            # What comes before both sides agree on a cipher is not for us.
            transport.pause_reading()
            self._securing = self.loop.create_task(self._secured(transport, self._context))
        if refused:
            self._refuse(HttpError(503, "too many are asking", "ask again"))

    async def _secured(self, plain: asyncio.Transport, context: ssl.SSLContext) -> None:
        """Agree with the client on how to encrypt; go on as if nothing had been before."""
        seconds = self._limits.seconds
        try:
            found = await self.loop.start_tls(
                plain, self, context, server_side=True, ssl_handshake_timeout=seconds, ssl_shutdown_timeout=LEFT_SECONDS
            )
        except (OSError, asyncio.CancelledError):
            found = None
        # One that is lost meanwhile comes back as if nothing had been.
        if found is None or plain.is_closing():
            plain.abort()
            self.connection_lost(None)
            return
        self.transport = cast(asyncio.Transport, LingeringTransport(found, self.loop))
        self.flow, self.scheme, self._securing = FlowControl(self.transport), "https", None
        if self._early:
            self.data_received(bytes(self._early))

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers of a connection that is gone."""
        if self._securing is not None:
            self._securing.cancel()
            self._securing = None
        for timer in (self._deadline, self._patience):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a piece of the request; what comes after its answer is dropped."""
        if self._securing is not None:
            self._early += data
            return
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
        """Answer in the place of the application; one with whom nothing is agreed would not understand it."""
        if self._securing is not None:
            self.transport.abort()
            return
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


def serve(
    application: ASGIApp,
    listening: socket.socket,
    woken: socket.socket,
    limits: Limits,
    context: ssl.SSLContext | None,
) -> None:
    """Serve connections of a socket, in this thread, until `woken` can be read; encrypted, where there is a context."""
    _Server(LimitedConfig(application, limits, context), woken).run([listening])
