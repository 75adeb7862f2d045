r"""Who may ask a running engine, how often, and how much: the token, rates, limits, and refused requests.

Laws. Nothing is looked at or computed for a request that does not have the token, whatever it asks for; the time that
the comparison takes tells nothing of the token. Guessing is slowed down without slowing down those who know it. A page
in a browser cannot ask: it would have to call the server by an address, come from that address, and have the token.
*Rates*: in any stretch of t seconds at most `burst + rate * t` requests pass, by the clock that was given. One that
does not pass says after how many seconds it would. *Limits* are of bytes, seconds, connections and requests. A
request that is not answered says why, as JSON.

>>> now = [0.0]
>>> bucket = TokenBucket(rate=2, burst=1, clock=lambda: now[0])
>>> bucket.take(), bucket.take()
(0.0, 0.5)
>>> now[0] = 0.5
>>> bucket.take()
0.0

>>> Limits().body
65536

>>> HttpError(404, "there is no query 'sped'", "did you mean 'speed'?").body()
{'error': "there is no query 'sped'", 'hint': "did you mean 'speed'?"}

>>> as_json({"lag": float("nan"), "rows": 3})
b'{"lag":null,"rows":3}\n'
"""

from __future__ import annotations

import hmac
import json
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from eventide.endpoint.discovery import Address, same_origin
from eventide.errors import DeclarationError


class TokenBucket:
    """Holds up to `burst`, and gains `rate` a second; safe to use from several threads."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        if not rate > 0 or not burst >= 1:
            raise DeclarationError(f"a rate of {rate} with bursts of {burst} lets nobody pass: give more than 0, and 1")
        self._rate, self._burst, self._clock = rate, burst, clock
        self._lock = threading.Lock()
        self._held, self._since = float(burst), clock()

    def take(self) -> float:
        """0 when one could be taken; otherwise the seconds until one can be."""
        with self._lock:
            now = self._clock()
            # A clock that was set back gives nothing.
            self._held = min(self._burst, self._held + max(0.0, now - self._since) * self._rate)
            self._since = now
            if self._held >= 1.0:
                self._held -= 1.0
                return 0.0
            return (1.0 - self._held) / self._rate


class Checking(Protocol):
    """Lets requests pass, or refuses them."""

    def check(self, headers: Mapping[str, str]) -> None:
        """Raise a refusal unless a request with these headers may be answered."""
        ...


class Gate:
    """Lets requests pass, or refuses them.

    >>> import time
    >>> gate = Gate(Address(), "secret", Limits(), time.monotonic)
    >>> gate.check({"host": "localhost", "authorization": "Bearer secret"})
    >>> gate.check({"host": "localhost"})
    Traceback (most recent call last):
        ...
    eventide.endpoint.auth.HttpError: the token is missing or wrong
    """

    def __init__(self, address: Address, token: str, limits: Limits, clock: Callable[[], float]) -> None:
        self._address = address
        self._token = token.encode()
        self._requests = TokenBucket(limits.rate, limits.burst, clock)
        self._guesses = TokenBucket(limits.guesses, limits.guesses_at_once, clock)

    def check(self, headers: Mapping[str, str]) -> None:
        """Raise a refusal unless a request with these headers may be answered."""
        self.check_place(headers)
        self.check_permission(headers.get("authorization", ""))
        limit(self._requests, "too many requests")

    def check_place(self, headers: Mapping[str, str]) -> None:
        """Refuse who calls the server by a strange name, and pages of other servers."""
        # Only HTTP/1.0 may leave the host out, and no browser speaks that.
        host = headers.get("host", "localhost")
        if not self._address.is_called(host):
            raise HttpError(403, "the engine is not known by this name", f"ask it at {self._address.url}")
        if "origin" in headers and not same_origin(headers["origin"], host):
            raise HttpError(403, "pages of other servers may not ask", "ask from a program, with the token")

    def check_permission(self, authorization: str) -> None:
        """Refuse who does not have the token; guesses are slowed down."""
        if not self.knows_the_token(authorization):
            limit(self._guesses, "too many wrong tokens")
            raise HttpError(
                401,
                "the token is missing or wrong",
                "send the header Authorization: Bearer TOKEN, with the text of the engine's token file",
                WWW_Authenticate="Bearer",
            )

    def knows_the_token(self, authorization: str) -> bool:
        """Whether the header holds the token of the engine."""
        scheme, _, token = authorization.partition(" ")
        # Headers were read as Latin-1; so the bytes are those that came.
        same = hmac.compare_digest(token.strip().encode("latin-1", "replace"), self._token)
        return same and scheme.lower() == "bearer"


def limit(bucket: TokenBucket, error: str) -> None:
    """Take one out of a bucket, or refuse with the time to wait."""
    if wait := bucket.take():
        raise HttpError(429, error, f"wait {wait:.2f} seconds", Retry_After=str(math.ceil(wait)))


@dataclass(frozen=True)
class Limits:
    """How large one request may be and how long it may take to come; how many may come at once, and in a second.

    `rate` and `burst` are for those who have the token; `guesses` a second, and `guesses_at_once`, for all others.
    """

    head: int = 16 * 1024
    headers: int = 64
    body: int = 64 * 1024
    seconds: float = 5.0
    connections: int = 32
    rate: float = 50.0
    burst: float = 100.0
    guesses: float = 5.0
    guesses_at_once: float = 20.0


class HttpError(Exception):
    """The status of the answer, a sentence, and perhaps the way out; `headers` go with it."""

    def __init__(self, status: int, error: str, hint: str | None = None, **headers: str) -> None:
        super().__init__(error)
        self.status, self.error, self.hint = status, error, hint
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def body(self) -> dict[str, str | None]:
        """What the client reads, as JSON."""
        return {"error": self.error, "hint": self.hint}


def as_json(data: Any) -> bytes:
    """Plain data as one line of JSON."""
    return json.dumps(_plain(data), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def _plain(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {str(name): _plain(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    if data is None or isinstance(data, str | bool | int | float):
        return data
    # Numbers of NumPy's.
    return _plain(data.item()) if hasattr(data, "item") else str(data)
