"""A registry of schemas, as Confluent's and those that speak like it: a message says by number what it was written by.

Laws. A message is a byte 0, the number of its schema in four bytes (the first is the most significant), and the value.
What a number stands for never changes, so each is asked for once in a process. A registry that does not answer is asked
again for a minute; one that refuses is an error at once. A number that it does not know is none of its messages.

>>> framed(7, b"value")
b'\\x00\\x00\\x00\\x00\\x07value'
>>> unframed(framed(7, b"value")), unframed(b"{}")
((7, b'value'), None)
"""

from __future__ import annotations

import base64
import http.client
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from eventide.errors import EngineError, InputError
from eventide.masking import masked_text

PATIENCE = 60.0
"""So many seconds a registry is asked again that does not answer."""
ANSWER_SECONDS = 10.0
MEDIA = "application/vnd.schemaregistry.v1+json"
HEAD = 5
_schemas: dict[tuple[str, int], str] = {}


def framed(number: int, value: bytes) -> bytes:
    """A value with the number of its schema before it."""
    return b"\0" + number.to_bytes(4, "big") + value


def unframed(message: bytes) -> tuple[int, bytes] | None:
    """The number of a message's schema, and its value; None where it is no such message."""
    if len(message) < HEAD or message[0] != 0:
        return None
    return int.from_bytes(message[1:HEAD], "big"), message[HEAD:]


@dataclass(frozen=True)
class Registry:
    """A registry by its address, with a user and a password where it asks for them."""

    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    patience: float = PATIENCE

    @property
    def where(self) -> str:
        """The registry, for messages."""
        return f"the schema registry at {masked_text(self.url)}"

    def check(self, owner: str) -> None:
        """Refuse to begin where nobody answers, or does not let us in."""
        try:
            self._ask("/schemas/types", patience=0.0)
        except EngineError as error:
            raise InputError(f"{owner}: {error}") from None

    def schema(self, number: int) -> str | None:
        """The schema of that number, as JSON; None where the registry knows none."""
        known = _schemas.get((self.url, number))
        if known is not None:
            return known
        status, answer = self._ask(f"/schemas/ids/{number}")
        if status == http.HTTPStatus.NOT_FOUND:
            return None
        self._expect(status, answer, f"the schema {number}")
        if answer.get("schemaType", "AVRO") != "AVRO":
            return None
        if answer.get("references"):
            raise EngineError(f"the schema {number} of {self.where} refers to others, which cannot be read here")
        return _schemas.setdefault((self.url, number), str(answer["schema"]))

    def register(self, subject: str, schema: Any) -> int:
        """The number of a schema, which the subject has from now on."""
        body = {"schema": json.dumps(schema)}
        status, answer = self._ask(f"/subjects/{quote(subject, safe='')}/versions", body)
        if status == http.HTTPStatus.CONFLICT:
            raise EngineError(
                f"{self.where} refuses the schema for {subject!r}, which does not go with those before it: "
                f"{answer.get('message', '')}. Write into another topic, or allow it there"
            )
        self._expect(status, answer, f"a place for {subject!r}")
        return int(answer["id"])

    def _expect(self, status: int, answer: dict[str, Any], what: str) -> None:
        if status != http.HTTPStatus.OK:
            raise EngineError(f"{self.where} does not give {what}: {status} {masked_text(answer.get('message', ''))}")

    def _ask(self, path: str, body: Any = None, patience: float | None = None) -> tuple[int, dict[str, Any]]:
        """What is answered; asked again while nobody does."""
        deadline = time.monotonic() + (self.patience if patience is None else patience)
        pause = 0.1
        while True:
            try:
                status, text = self._once(path, body)
                reason = f"it answers {status}"
            except (OSError, http.client.HTTPException) as error:
                status, text, reason = 0, "", masked_text(str(getattr(error, "reason", error)))
            if status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
                raise EngineError(f"{self.where} does not let us in: are its user and its password right?")
            if 0 < status < 500 and status != http.HTTPStatus.TOO_MANY_REQUESTS:
                return status, _answer(text)
            if time.monotonic() > deadline:
                raise EngineError(f"{self.where} does not answer: {reason}. Does it run, and is this its address?")
            time.sleep(pause)
            pause = min(2 * pause, 2.0)

    def _once(self, path: str, body: Any) -> tuple[int, str]:
        parts = urlsplit(self.url)
        place = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(place.rstrip("/") + path, data, {"Content-Type": MEDIA, "Accept": MEDIA})
        user, password = self.user or parts.username, self.password or parts.password
        if user is not None:
            given = base64.b64encode(f"{user}:{password or ''}".encode()).decode()
            request.add_header("Authorization", f"Basic {given}")
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode("utf-8", "replace")


def _answer(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
