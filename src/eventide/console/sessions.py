"""Who may look, and who may ask for early answers: links that work once, and the sessions that they become.

Laws. A link has a token that is good for one exchange; whoever comes second gets nothing. A session says what it may
do, and until when; nobody can make one, or change one, without the key. *Read* is to see, *prod* is to ask for early
answers; a session of one kind is none of the other. The key is kept beside the checkpoint, in a file that only this
user can read: a page that is open finds the engine again after a restart.

>>> sessions = Sessions(b"k" * 32, now=lambda: 1000.0)
>>> token = sessions.link({Permission.READ})
>>> session = sessions.exchange(token)
>>> sessions.exchange(token) is None
True
>>> [str(one) for one in sessions.permissions(session)], sessions.permissions(session + "x")
(['read'], frozenset())
>>> Sessions(b"k" * 32, now=lambda: 1000.0 + HOURS * 3600).permissions(session)
frozenset()
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from contextlib import suppress
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

from eventide.endpoint.discovery import write_whole

KEY_FILE = "console.key"
KEY_BYTES = 32
HOURS = 12.0
"""How long a session lasts."""
MOST_LINKS = 64
"""Links that were given and not used; the oldest ones are forgotten."""


class Permission(StrEnum):
    """What a session may do."""

    READ = "read"
    PROD = "prod"


EVERYTHING = frozenset(Permission)


class Sessions:
    """Gives links, exchanges each for a session, and knows sessions again; safe to use from several threads."""

    def __init__(self, key: bytes, now: Callable[[], float] = time.time) -> None:
        self._key, self._now = key, now
        self._lock = threading.Lock()
        self._links: OrderedDict[bytes, frozenset[Permission]] = OrderedDict()

    def link(self, may: Collection[Permission] = EVERYTHING) -> str:
        """A token that can be exchanged once."""
        token = secrets.token_urlsafe(KEY_BYTES)
        with self._lock:
            # By what cannot be turned back: the comparison is one of hashes, and takes the same time for all guesses.
            self._links[sha256(token.encode()).digest()] = frozenset(may)
            while len(self._links) > MOST_LINKS:
                self._links.popitem(last=False)
        return token

    def exchange(self, token: str) -> str | None:
        """The session for a token that nobody has used before; None for every other text."""
        with self._lock:
            may = self._links.pop(sha256(token.encode("utf-8", "replace")).digest(), None)
        if may is None:
            return None
        said = {"may": sorted(may), "until": self._now() + HOURS * 3600, "id": secrets.token_hex(8)}
        body = base64.urlsafe_b64encode(json.dumps(said).encode()).decode()
        return f"{body}.{self._sign(body)}"

    def permissions(self, session: str) -> frozenset[Permission]:
        """What a session may do now: nothing, if we have not made it or its time is over."""
        body, _, signature = session.partition(".")
        if not hmac.compare_digest(self._sign(body).encode(), signature.encode("utf-8", "replace")):
            return frozenset()
        with suppress(ValueError, KeyError, TypeError, binascii.Error):
            said = json.loads(base64.urlsafe_b64decode(body))
            if self._now() < float(said["until"]):
                return frozenset(Permission(one) for one in said["may"])
        return frozenset()

    def _sign(self, body: str) -> str:
        return hmac.new(self._key, body.encode("utf-8", "replace"), sha256).hexdigest()


def new_key() -> bytes:
    """A key that nobody can guess."""
    return secrets.token_bytes(KEY_BYTES)


def key_in(folder: Path) -> bytes:
    """The key of a checkpoint, made where there is none yet; one that others could have read is not used again.

    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp())
    >>> key_in(folder) == key_in(folder)
    True
    >>> key_in(folder) != (folder / KEY_FILE).chmod(0o644) and key_in(folder) == key_in(folder)
    True
    """
    file = folder / KEY_FILE
    with suppress(OSError, ValueError):
        about = file.lstat()
        if about.st_uid == os.getuid() and not about.st_mode & 0o077:
            key = bytes.fromhex(file.read_text(encoding="ascii"))
            if len(key) == KEY_BYTES:
                return key
    key = new_key()
    write_whole(file, key.hex(), private=True)
    return key
