"""An engine that listens: server, token and the files that tell of them, from `listen` to the engine's end.

Law: an engine has at most one endpoint. It is closed with the engine, in whatever way that ends, and its files go with
it. Without an address it is reached from this machine alone.

*Socket*: connections are taken from the moment at which the server exists. What serves them (uvicorn, Starlette) is
loaded when the first one comes: a run that nobody asks pays for a socket and for a thread that sleeps. `close` lets
answers under way be finished and sent where somebody takes them, and leaves neither thread nor connection.
"""

from __future__ import annotations

import logging
import selectors
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from eventide.endpoint.auth import Gate, Limits
from eventide.endpoint.certificate import Certificate
from eventide.endpoint.discovery import Address, Published, clear, new_token
from eventide.endpoint.questions import Questions, Words
from eventide.endpoint.round_counts import RoundCounts
from eventide.engine.running import Running
from eventide.errors import EngineError
from eventide.storage.local import LocalStorage

if TYPE_CHECKING:
    from starlette.types import ASGIApp

log = logging.getLogger(__name__)

Mounts = dict[str, "Callable[[Gate], ASGIApp]"]
"""By the path below which it serves: what makes an application, from the gate of the endpoint."""


class Endpoint:
    """Where a running engine can be asked. Made by `listen`; as a context it is closed in the end."""

    def __init__(
        self, server: Server, questions: Questions, published: Published, temporary: Path | None, mounts: Mounts
    ) -> None:
        self._server, self._published, self._temporary = server, published, temporary
        self.questions = questions
        """What is asked there."""
        self._mounts = mounts
        self._closing: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self.closed = False

    @property
    def url(self) -> str:
        """Where to send requests, such as `http://127.0.0.1:41234`."""
        return self._published.url

    @property
    def address(self) -> Address:
        """The address it listens at."""
        return self._server.address

    @property
    def token_file(self) -> Path:
        """The file with the token, which only this user can read."""
        return self._published.token_file

    @property
    def folder(self) -> Path:
        """Where the address is written: `eventide prod --checkpoint` finds it there."""
        return self.token_file.parent

    def mount(self, mounts: Mounts, on_close: Callable[[], None]) -> None:
        """Serve more below these paths, from the next request on; `on_close` ends what would keep connections open."""
        self._mounts.update(mounts)
        self._closing.append(on_close)

    def close(self) -> None:
        """Answer nobody any more. Safe to call again, and from any thread."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
            for function in self._closing:
                function()
            # First nobody is sent here, then nobody is let in.
            self._published.withdraw()
            self._server.close()
            self.questions.close()
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def listen(
    running: Running,
    address: Address | None = None,
    words: Words | None = None,
    limits: Limits | None = None,
    certificate: Certificate | None = None,
) -> Endpoint:
    """Let a running engine be asked over HTTP; `words` tells an open window in a sentence.

    With a certificate all that is asked and answered is encrypted.
    """
    if running.ended.is_set():
        raise EngineError("the engine has ended, and can be asked nothing: let it listen while it runs")
    asked = replace(address or Address(), secure=certificate is not None)
    token = new_token()
    questions, counts = Questions(running, words), RoundCounts()
    permitted = limits or Limits()
    mounts: Mounts = {}

    def application(at: Address) -> ASGIApp:
        # Loaded by whoever asks first.
        from eventide.endpoint.metrics import Metrics
        from eventide.endpoint.serving import Mounted, application_of, endpoint_routes

        gate = Gate(at, token, permitted, time.monotonic)
        own = application_of(endpoint_routes(questions, Metrics(running, counts)), gate, permitted)
        return Mounted(own, mounts, gate)

    try:
        server = Server(asked, application, permitted, certificate)
    except OSError as error:
        raise EngineError(
            f"cannot listen at {asked.shown}: {error.strerror or error}. Name another address, or port 0 for a free one"
        ) from error
    folder, temporary = _folder(running)
    try:
        published = Published.write(folder, server.address.url, token, certificate.own if certificate else None)
    except BaseException:
        server.close()
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        raise
    running.on_round(counts)
    endpoint = Endpoint(server, questions, published, temporary, mounts)
    running.on_end(endpoint.close)
    log.info("listening", extra={"url": endpoint.url, "token_file": str(endpoint.token_file)})
    return endpoint


def listen_not(running: Running) -> None:
    """An engine that does not listen: what a killed one wrote into its checkpoint is not true any more."""
    storage = running.engine.checkpoint.storage
    if isinstance(storage, LocalStorage):
        clear(Path(storage.where))


def _folder(running: Running) -> tuple[Path, Path | None]:
    """Beside the checkpoint; where that is in an object store, in a private folder of its own, as a token must be."""
    storage = running.engine.checkpoint.storage
    if isinstance(storage, LocalStorage):
        return Path(storage.where), None
    temporary = Path(tempfile.mkdtemp(prefix="eventide-endpoint-"))
    return temporary, temporary


BACKLOG = 128


class Server:
    """Listens at an address until it is closed.

    `application` is called in the server's thread, with the address that has the port which was found.
    """

    def __init__(
        self,
        address: Address,
        application: Callable[[Address], ASGIApp],
        limits: Limits,
        certificate: Certificate | None = None,
    ) -> None:
        self._context = None if certificate is None else certificate.for_server()
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        self._listening = socket.create_server((address.host, address.port), family=family, backlog=BACKLOG)
        self.address = replace(address, port=self._listening.getsockname()[1], secure=certificate is not None)
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
            from eventide.endpoint.connections import serve

            try:
                serve(self._application(self.address), self._listening, self._woken, self._limits, self._context)
            except Exception as error:
                log.error("endpoint failed", extra={"why": f"{type(error).__name__}: {error}"})
