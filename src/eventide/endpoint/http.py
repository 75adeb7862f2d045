"""Requests read from a socket within limits, and answers as bytes.

A request, read from a socket within limits.

Law: whatever is sent, and however slowly, reading ends: after so many seconds in all, after so many bytes of head,
after so many of body. What is no request of HTTP/1.0 or 1.1, word for word, is refused. One connection brings one
request, so nothing that follows it is ever looked at.

An answer as bytes.

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
import re
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from eventide.endpoint.limits import HttpError, Limits

LINE = re.compile(rb"([A-Z]{1,16}) (/[\x21-\x7e]*) HTTP/1\.([01])")
HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}):[ \t]*([\x09\x20-\x7e\x80-\xff]*)")
PIECE = 8192


@dataclass(frozen=True)
class Request:
    """What came: `target` is the path with its query, headers have names in small letters."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""


class GoneError(Exception):
    """The client has closed, or was cut off; there is nobody to answer."""


def read_request(connection: socket.socket, limits: Limits) -> Request:
    """The one request of a connection; `HttpError` where it cannot be taken."""
    deadline = time.monotonic() + limits.seconds
    came = b""
    while (end := came.find(b"\r\n\r\n")) < 0:
        if len(came) > limits.head:
            raise HttpError(431, f"the head of a request may have {limits.head:,} bytes", "send fewer headers")
        came += _piece(connection, deadline, limits)
    if end > limits.head:
        raise HttpError(431, f"the head of a request may have {limits.head:,} bytes", "send fewer headers")
    method, target, headers = read_head(came[:end], limits)
    body, length = came[end + 4 :], length_of(headers, limits)
    if length > len(body) and headers.get("expect", "").lower() == "100-continue":
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    while len(body) < length:
        body += _piece(connection, deadline, limits)
    return Request(method, target, headers, body[:length])


def read_head(head: bytes, limits: Limits) -> tuple[str, str, dict[str, str]]:
    r"""Method, target and headers.

    >>> read_head(b"GET /status HTTP/1.1\r\nHost: localhost", Limits())
    ('GET', '/status', {'host': 'localhost'})
    """
    first, *lines = head.split(b"\r\n")
    found = LINE.fullmatch(first)
    if found is None:
        raise HttpError(400, "this is no request of HTTP/1.1", "begin with a line such as: GET /status HTTP/1.1")
    if len(lines) > limits.headers:
        raise HttpError(431, f"a request may have {limits.headers} headers", "send fewer of them")
    headers: dict[str, str] = {}
    for line in lines:
        header = HEADER.fullmatch(line)
        if header is None:
            raise HttpError(400, "a header of the request cannot be read", "write each as Name: value")
        name = header[1].decode("ascii").lower()
        if name in headers:
            # Whom we believe must not depend on which of two we look at.
            raise HttpError(400, f"the header {name} stands there twice", "send it once")
        headers[name] = header[2].decode("latin-1").strip()
    if found[3] == b"1" and "host" not in headers:
        raise HttpError(400, "the header host is missing", "send it, as HTTP/1.1 asks for")
    return found[1].decode("ascii"), found[2].decode("ascii"), headers


def length_of(headers: Mapping[str, str], limits: Limits) -> int:
    """How long the body is.

    >>> length_of({"content-length": "12"}, Limits()), length_of({}, Limits())
    (12, 0)
    """
    if "transfer-encoding" in headers:
        raise HttpError(411, "a body must say how long it is", "send Content-Length, not Transfer-Encoding")
    given = headers.get("content-length", "0")
    if not re.fullmatch("[0-9]{1,20}", given):
        raise HttpError(400, "Content-Length is no number", "give the number of bytes of the body")
    if int(given) > limits.body:
        raise HttpError(413, f"a body may have {limits.body:,} bytes", "ask for less at once")
    return int(given)


def _piece(connection: socket.socket, deadline: float, limits: Limits) -> bytes:
    left = deadline - time.monotonic()
    try:
        connection.settimeout(max(left, 0.001))
        piece = connection.recv(PIECE) if left > 0 else None
    except TimeoutError:
        piece = None
    except OSError as error:
        raise GoneError from error
    if piece is None:
        raise HttpError(408, f"the request did not come within {limits.seconds:g} seconds", "send it at once")
    if not piece:
        raise GoneError
    return piece


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
    def refusing(cls, refusal: HttpError) -> Response:
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
