"""What clients may take of an engine, and requests that are refused.

What clients may take of an engine: bytes, seconds, connections, requests.

>>> Limits().body
65536

A request that is not answered, and why.

>>> HttpError(404, "there is no query 'sped'", "did you mean 'speed'?").body()
{'error': "there is no query 'sped'", 'hint': "did you mean 'speed'?"}
"""

from __future__ import annotations

from dataclasses import dataclass


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
        """What the client reads."""
        return {"error": self.error, "hint": self.hint}
