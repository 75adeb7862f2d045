"""The server: connections, each in a thread of its own, none of which can hold up the others.

Law: there are at most so many connections. When one more comes, the slowest is cut off of those that have their answer,
or had a second to send their request; where there is none the new one is refused. A connection brings one request, has
so many seconds to send it and to take the answer, and is closed. What goes wrong with one ends that one.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto

from eventide.endpoint.address import Address
from eventide.endpoint.auth import Gate
from eventide.endpoint.http import GoneError, Request, Response, read_request
from eventide.endpoint.limits import HttpError, Limits

log = logging.getLogger(__name__)

BACKLOG = 128
FAIR = 1.0
"""Seconds for a request that nobody is cut off before."""
ANSWER_SECONDS = 20.0
TAKING, ANSWERING = 1.0, 10.0
"""When the server closes: seconds for a client to take its answer, and for the engine to find it."""
LEFT_BYTES, LEFT_SECONDS = 1_000_000, 1.0
"""So much of what a client still sends is taken before its connection is closed, so that it can read why."""


class _Phase(Enum):
    READING = auto()
    ANSWERING = auto()
    SENDING = auto()
    LEAVING = auto()


@dataclass(eq=False)
class _Connection:
    socket: socket.socket
    since: float
    phase: _Phase = _Phase.READING


class Server:
    """Listens at an address, answers what passes the gate, until it is closed.

    `gate` is made for the address with the port that was found.
    """

    def __init__(
        self,
        address: Address,
        gate: Callable[[Address], Gate],
        answer: Callable[[Request], Response],
        limits: Limits,
    ) -> None:
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        self._listening = socket.create_server((address.host, address.port), family=family, backlog=BACKLOG)
        self.address = Address(address.host, self._listening.getsockname()[1])
        self._gate, self._answer, self._limits = gate(self.address), answer, limits
        self._connections: dict[_Connection, threading.Thread] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._wake, self._woken = socket.socketpair()
        self._listening.setblocking(False)
        self._thread = threading.Thread(target=self._accept_all, name="eventide-endpoint", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more requests; answers under way are finished, and sent where somebody takes them."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._wake.close()
        self._thread.join()
        with self._lock:
            left = dict(self._connections)
        for connection in left:
            if connection.phase in (_Phase.READING, _Phase.LEAVING):
                _cut(connection.socket)
        started = time.monotonic()
        for patience, phases in (
            (TAKING, (_Phase.READING, _Phase.SENDING, _Phase.LEAVING)),
            (ANSWERING, tuple(_Phase)),
        ):
            for connection, thread in left.items():
                if thread is not threading.current_thread():
                    thread.join(max(0.0, started + patience - time.monotonic()))
                if connection.phase in phases:
                    _cut(connection.socket)

    def _accept_all(self) -> None:
        with selectors.DefaultSelector() as selector, self._listening, self._woken:
            for one in (self._listening, self._woken):
                selector.register(one, selectors.EVENT_READ)
            while not self._closing.is_set():
                selector.select()
                try:
                    connection, _ = self._listening.accept()
                except BlockingIOError:
                    continue
                except OSError as error:
                    # No more files may be opened, or the client is gone again: others may come through.
                    log.debug("connection failed", extra={"why": str(error)})
                    self._closing.wait(0.1)
                    continue
                self._begin(connection)

    def _begin(self, accepted: socket.socket) -> None:
        connection = _Connection(accepted, time.monotonic())
        thread = threading.Thread(target=self._serve, args=(connection,), name="eventide-asked", daemon=True)
        with self._lock:
            room = len(self._connections) < self._limits.connections or self._make_room()
            if room:
                self._connections[connection] = thread
        try:
            if room:
                thread.start()
            else:
                accepted.settimeout(0.0)
                with accepted, suppress(OSError):
                    accepted.sendall(Response.refusing(HttpError(503, "too many are asking", "ask again")).sent())
        except RuntimeError:
            # The machine has no thread left.
            self._end(connection)

    def _make_room(self) -> bool:
        """Cut off the slowest of those that have had their chance, or their answer; with the lock held."""
        late = time.monotonic() - FAIR
        cut = [
            connection
            for connection in self._connections
            if connection.phase is _Phase.LEAVING or (connection.phase is _Phase.READING and connection.since <= late)
        ]
        if cut:
            slowest = min(cut, key=lambda connection: connection.since)
            del self._connections[slowest]
            _cut(slowest.socket)
        return bool(cut)

    def _serve(self, connection: _Connection) -> None:
        try:
            try:
                request = read_request(connection.socket, self._limits)
                connection.phase = _Phase.ANSWERING
                self._gate.check(request.headers)
                response = self._answer(request)
            except HttpError as refusal:
                response = Response.refusing(refusal)
            connection.phase = _Phase.SENDING
            connection.socket.settimeout(ANSWER_SECONDS)
            connection.socket.sendall(response.sent())
            connection.phase = _Phase.LEAVING
            self._leave(connection.socket)
        except (GoneError, OSError):
            # It has closed, or was cut off.
            pass
        except Exception as error:
            log.warning("connection failed", extra={"why": f"{type(error).__name__}: {error}"})
        finally:
            self._end(connection)

    def _leave(self, left: socket.socket) -> None:
        """A client that is still sending would not see the answer if we closed now."""
        left.shutdown(socket.SHUT_WR)
        deadline, taken = time.monotonic() + LEFT_SECONDS, 0
        while taken < LEFT_BYTES and (wait := deadline - time.monotonic()) > 0:
            left.settimeout(wait)
            piece = left.recv(65536)
            if not piece:
                return
            taken += len(piece)

    def _end(self, connection: _Connection) -> None:
        with self._lock:
            self._connections.pop(connection, None)
        connection.socket.close()


def _cut(connection: socket.socket) -> None:
    """Wake whoever reads or writes; the thread that has it closes it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
