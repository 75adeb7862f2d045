"""Where a run can be asked: the address and certificate that its options name, its endpoint, and its console."""

from __future__ import annotations

import shlex
import sys

from eventide.endpoint.certificate import Certificate
from eventide.endpoint.discovery import EXPOSED, LOOPBACK, Address
from eventide.endpoint.lifecycle import Endpoint, listen, listen_not
from eventide.engine.running import Running
from eventide.errors import DeclarationError, EngineError
from eventide.launch.logs import say
from eventide.report.why import window_words


def listening(
    engine: Running, given: str | None, certificate: Certificate | None, wanted: bool, quiet: bool
) -> Endpoint | None:
    """Open the endpoint of an engine and print its address, unless `quiet`."""
    if not wanted:
        listen_not(engine)
        return None
    address = None if given is None else Address.read(given)
    try:
        endpoint = listen(engine, address, window_words, certificate=certificate)
    except EngineError as error:
        if given is not None:
            raise
        listen_not(engine)
        say(f"it cannot be asked while it runs: {error}")
        return None
    if not endpoint.address.is_loopback and not endpoint.address.secure:
        say(f"warning: {endpoint.address.shown}: {EXPOSED} (--console-cert FILE encrypts it; a tunnel is safer)")
    if given is not None or (not quiet and sys.stderr.isatty()):
        folder = shlex.quote(str(endpoint.folder))
        say(f"listening at {endpoint.url}; to ask: eventide prod QUERY --checkpoint {folder}")
    return endpoint


def listening_at(listen: str | None, console: str | None, cert: str | None, no_listen: bool) -> str | None:
    """The address that was named, for questions or the console; what cannot be is refused before anything is started.

    >>> listening_at(None, "8080", None, no_listen=False)
    '8080'
    >>> listening_at(None, "", None, no_listen=True)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: --console and --no-listen contradict each other: give one of them
    """
    for option, given in (("--listen", listen), ("--console", console), ("--console-cert", cert)):
        if given is not None and no_listen:
            raise DeclarationError(f"{option} and --no-listen contradict each other: give one of them")
    for address in filter(None, (listen, console)):
        Address.read(address)
    if console and listen and Address.read(console) != Address.read(listen):
        raise DeclarationError(
            "--console and --listen name two addresses, and the console is at that of the engine: name one"
        )
    # Who asks for a console wants it, or an error that says why there is none.
    return listen or console or (None if console is None else LOOPBACK)


def show_console(engine: Running, endpoint: Endpoint | None) -> None:
    """Open the console of an engine that listens, and say where."""
    from eventide.console.lifecycle import open_console

    assert endpoint is not None
    say(f"console: {open_console(engine, endpoint).link()}")
    say(f"the link opens once; another one: eventide console --checkpoint {shlex.quote(str(endpoint.folder))}")
