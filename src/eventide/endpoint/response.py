"""An answer as bytes.

Law: every answer is JSON, is kept by nobody on the way, and ends its connection. No header invites the page of another
server to read it (CORS).

>>> print(Response(200, b"{}").sent().decode().replace(chr(13), ""))  # doctest: +NORMALIZE_WHITESPACE
HTTP/1.1 200 OK
Content-Type: application/json; charset=utf-8
Content-Length: 2
Cache-Control: no-store
X-Content-Type-Options: nosniff
Connection: close
<BLANKLINE>
{}
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from eventide.endpoint.refusal import Refusal


@dataclass(frozen=True)
class Response:
    """A status, a text of JSON, and headers beside the usual ones."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Any) -> Response:
        """Plain data; numbers that JSON does not have are null.

        >>> Response.of({"lag": float("nan"), "rows": 3}).body
        b'{"lag":null,"rows":3}\\n'
        """
        return cls(200, as_json(data))

    @classmethod
    def refusing(cls, refusal: Refusal) -> Response:
        """Why there is no answer."""
        return cls(refusal.status, as_json(refusal.body()), refusal.headers)

    def sent(self) -> bytes:
        """All of it, as it goes through the socket."""
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "Content-Length": str(len(self.body)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Connection": "close",
            **self.headers,
        }
        lines = [f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}", *(f"{k}: {v}" for k, v in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.body


def as_json(data: Any) -> bytes:
    """Plain data as one line."""
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
