"""The gates of the console: the page is for everybody on this machine, and says nothing; what it shows is not.

Law: whatever path is asked, it is asked at an address of ours and by no page of another server. Static files, and the
exchange of a link, need no token. What is shown needs a session that may read, or the engine's own token; a prod needs
one that may prod.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from eventide.console.sessions import Permission, Sessions
from eventide.endpoint.auth import Gate, HttpError, Limits, TokenBucket, limit

STATIC_LIMITS = Limits(rate=200.0, burst=1000.0)
"""Of the page and its parts, a dozen small files for each viewer."""


class OpenGate:
    """Lets everybody through who calls us by our own name, at a limited rate."""

    def __init__(self, gate: Gate, limits: Limits) -> None:
        self._place = gate
        self._bucket = TokenBucket(limits.rate, limits.burst, time.monotonic)

    def check(self, headers: Mapping[str, str]) -> None:
        """Raise a refusal unless a request with these headers may be answered."""
        self._place.check_place(headers)
        limit(self._bucket, "too many requests")


class SessionGate:
    """Lets sessions through that have a permission, and who has the token of the engine."""

    def __init__(self, gate: Gate, sessions: Sessions, needed: Permission, limits: Limits) -> None:
        self._place, self._sessions, self._needed = gate, sessions, needed
        self._bucket = TokenBucket(limits.rate, limits.burst, time.monotonic)
        self._guessed = TokenBucket(limits.guesses, limits.guesses_at_once, time.monotonic)

    def check(self, headers: Mapping[str, str]) -> None:
        """Raise a refusal unless a request with these headers may be answered."""
        self._place.check_place(headers)
        authorization = headers.get("authorization", "")
        scheme, _, session = authorization.partition(" ")
        may = self._sessions.permissions(session.strip()) if scheme.lower() == "bearer" else frozenset()
        if not may and not self._place.knows_the_token(authorization):
            limit(self._guessed, "too many wrong sessions")
            raise HttpError(
                401, "this page has no session, or its session is over", "open a new link: eventide console"
            )
        if may and self._needed not in may:
            raise HttpError(403, f"this session may not {self._needed}", "open a link that may: eventide console")
        limit(self._bucket, "too many requests")


def static_limits(limits: Limits) -> Limits:
    """The limits of a request, with the rates of the page."""
    return replace(limits, rate=STATIC_LIMITS.rate, burst=STATIC_LIMITS.burst)
