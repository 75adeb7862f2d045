"""Asks an engine that listens.

Law: the token goes to the engine's own address and nowhere else: no proxy and no redirection is followed. What the
engine refuses becomes an error of our own: of the user's, where something else has to be asked, and of the machine's,
where nobody answers.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from eventide.endpoint.certificate import trusting
from eventide.endpoint.discovery import Published, folder_of, nobody_at
from eventide.errors import DeclarationError, EngineError, InputError

SECONDS = 60.0
"""An answer waits for a round at most, but a round may be long."""
MOST_BYTES = 1 << 30
USERS = (400, 401, 403, 404, 405, 413)
"""Refusals after which something else has to be asked."""


@dataclass(frozen=True)
class Client:
    """Asks at one address; `folder` is the checkpoint by which it was found."""

    url: str
    token: str
    folder: Path | None = None
    seconds: float = SECONDS
    certificate: str | None = None
    """The one that the engine has written down; None: those that this machine trusts."""

    @classmethod
    def of_checkpoint(cls, checkpoint: str | Path) -> Client:
        """The engine that works on a checkpoint."""
        folder = folder_of(checkpoint)
        found = Published.read(folder)
        return cls(found.url, read_token(found.token_file), folder, certificate=found.certificate)

    @classmethod
    def of_url(cls, url: str, token_file: str | Path) -> Client:
        """The engine at an address, with the token from a file.

        >>> Client.of_url("127.0.0.1:80", "endpoint.token")
        Traceback (most recent call last):
            ...
        eventide.errors.DeclarationError: '127.0.0.1:80' is no address of an engine: write http://HOST:PORT
        """
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise DeclarationError(f"{url!r} is no address of an engine: write http://HOST:PORT")
        return cls(url, read_token(Path(token_file)))

    def prod(
        self,
        query: str,
        groups: Mapping[str, Any] | None = None,
        up_to: int | str | None = None,
        after: int | str | None = None,
    ) -> dict[str, Any]:
        """Early results: `query`, `round`, `timing` and `rows`."""
        asked = {"query": query, "groups": dict(groups or {}), "up_to": up_to, "after": after}
        found = self.ask("POST", "/prod", {key: value for key, value in asked.items() if value is not None})
        if not isinstance(found.get("rows"), list):
            raise self._stranger()
        return found

    def ask(self, method: str, path: str, asked: Any = None) -> dict[str, Any]:
        """One request, and the object that answers it."""
        body = None if asked is None else json.dumps(asked).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            trusted = None if self.certificate is None else trusting(self.certificate)
            connection = http.client.HTTPSConnection(host, parts.port, timeout=self.seconds, context=trusted)
        else:
            connection = http.client.HTTPConnection(host, parts.port, timeout=self.seconds)
        try:
            connection.request(method, parts.path.rstrip("/") + path, body, headers)
            answer = connection.getresponse()
            text = answer.read(MOST_BYTES)
        except ConnectionRefusedError:
            raise self._nobody() from None
        except TimeoutError:
            raise EngineError(f"the engine at {self.url} did not answer within {self.seconds:g} seconds") from None
        except socket.gaierror as error:
            raise EngineError(f"cannot reach {self.url}: {error.strerror}") from error
        except (OSError, http.client.HTTPException) as error:
            raise EngineError(f"cannot ask the engine at {self.url}: {str(error) or type(error).__name__}") from error
        finally:
            connection.close()
        return self._read(answer.status, text)

    def _read(self, status: int, text: bytes) -> dict[str, Any]:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            raise self._stranger() from None
        if not isinstance(found, dict):
            raise self._stranger()
        if status == 200:
            return found
        if not isinstance(found.get("error"), str):
            raise self._stranger()
        said = found["error"] + (f"; {found['hint']}" if isinstance(found.get("hint"), str) else "")
        raise DeclarationError(said) if status in USERS else EngineError(f"the engine at {self.url}: {said}")

    def _nobody(self) -> EngineError:
        if self.folder is None:
            return EngineError(f"nobody listens at {self.url}: is the engine running?")
        return nobody_at(self.folder, f" any more: nobody listens at {self.url}, where its last one did")

    def _stranger(self) -> EngineError:
        return EngineError(f"what answers at {self.url} is no engine of Eventide's")


def read_token(file: Path) -> str:
    """Read the token from a file."""
    try:
        token = file.read_text(encoding="ascii").strip()
    except OSError as error:
        raise InputError(f"cannot read the token in {file}: {error.strerror}") from error
    except ValueError:
        token = ""
    if not token or not token.isprintable() or " " in token:
        raise InputError(f"{file} holds no token")
    return token
