"""A socket that listens from the start, and a server behind it from the first connection on.

Law: connections are taken from the moment at which the server exists. What serves them (uvicorn, Starlette) is loaded
when the first one comes: a run that nobody asks pays for a socket and for a thread that sleeps. `close` lets answers
under way be finished and sent where somebody takes them, and leaves neither thread nor connection.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from eventide.endpoint.address import Address
from eventide.endpoint.limits import Limits

if TYPE_CHECKING:
    from starlette.types import ASGIApp

log = logging.getLogger(__name__)

BACKLOG = 128


class Server:
    """Listens at an address until it is closed.

    `application` is called in the server's thread, with the address that has the port which was found.
    """

    def __init__(self, address: Address, application: Callable[[Address], ASGIApp], limits: Limits) -> None:
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        self._listening = socket.create_server((address.host, address.port), family=family, backlog=BACKLOG)
        self.address = Address(address.host, self._listening.getsockname()[1])
        self._application, self._limits = application, limits
        self._closing = threading.Event()
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="eventide-endpoint", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more requests; answers under way are finished. Safe to call again, and from any thread."""
        if not self._closing.is_set():
            self._closing.set()
            self._wake.close()
            self._thread.join()

    def _serve(self) -> None:
        with self._listening, self._woken:
            with selectors.DefaultSelector() as selector:
                for one in (self._listening, self._woken):
                    selector.register(one, selectors.EVENT_READ)
                selector.select()
            if self._closing.is_set():
                return
            # Only now: these libraries take longer to load than a short run takes.
            from eventide.endpoint.serving import serve

            try:
                serve(self._application(self.address), self._listening, self._woken, self._limits)
            except Exception as error:
                log.error("endpoint failed", extra={"why": f"{type(error).__name__}: {error}"})
