"""How `eventide run` lets itself be asked: an address where one was named, otherwise a free port of this machine.

Law: what was asked for by name and cannot be had is an error; what is only a convenience is left out with a word.
"""

from __future__ import annotations

import shlex
import sys

from eventide.commands.notes import say
from eventide.commands.why_words import window_words
from eventide.endpoint.address import EXPOSED, Address
from eventide.endpoint.listening import Endpoint, listen, listen_not
from eventide.engine.running import Running
from eventide.errors import DeclarationError, EngineError


def listening(engine: Running, given: str | None, wanted: bool, quiet: bool) -> Endpoint | None:
    """Let an engine be asked, and say how; `quiet` where nobody would have the time to."""
    if not wanted:
        listen_not(engine)
        return None
    address = None if given is None else Address.read(given)
    try:
        endpoint = listen(engine, address, window_words)
    except EngineError as error:
        if given is not None:
            raise
        listen_not(engine)
        say(f"it cannot be asked while it runs: {error}")
        return None
    if not endpoint.address.is_loopback:
        say(f"warning: {endpoint.address.shown}: {EXPOSED} (--listen 127.0.0.1:PORT and a tunnel are safer)")
    if given is not None or (not quiet and sys.stderr.isatty()):
        folder = shlex.quote(str(endpoint.folder))
        say(f"listening at {endpoint.url}; to ask: eventide prod QUERY --checkpoint {folder}")
    return endpoint


def checked_listening(given: str | None, wanted: bool) -> None:
    """Refuse, before anything is started, what cannot be listened on."""
    if given is not None and not wanted:
        raise DeclarationError("--listen and --no-listen contradict each other: give one of them")
    if given is not None:
        Address.read(given)
