"""Alerts to an address of the user's, as JSON, one request for each.

Law: rounds never wait for it. Alerts go out one after the other from a thread of their own; of those that wait at most
`WAITING` are kept, and how many were left out is logged. One that is not taken is tried again, up to `TIMES`.

>>> checked_url("ftp://example.org")
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: --webhook 'ftp://example.org' is no address: write http://HOST/PATH or https://HOST/PATH
"""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
import urllib.error
import urllib.request
from urllib.parse import urlsplit

from eventide.errors import DeclarationError
from eventide.masking import masked_text
from eventide.watch.alert import Alert

log = logging.getLogger(__name__)

WAITING = 100
TIMES = 3
SECONDS = 5.0


class Webhook:
    """Sends alerts to a URL."""

    def __init__(self, url: str, wait: float = 1.0) -> None:
        self._url, self._wait = checked_url(url), wait
        self._waiting: queue.Queue[bytes] = queue.Queue(WAITING)
        threading.Thread(target=self._work, name="eventide-webhook", daemon=True).start()

    def tell(self, alert: Alert) -> None:
        """Send an alert when its turn comes."""
        try:
            self._waiting.put_nowait(json.dumps(alert.as_json()).encode())
        except queue.Full:
            log.warning("an alert was not sent: %d others wait already", WAITING, extra={"event": "alert dropped"})

    def _work(self) -> None:
        while True:
            body = self._waiting.get()
            for attempt in range(TIMES):
                try:
                    self._send(body)
                    break
                except (OSError, ValueError) as error:
                    if attempt == TIMES - 1:
                        log.warning(
                            "an alert was not taken by %s: %s",
                            masked_text(self._url),
                            error,
                            extra={"event": "alert not taken"},
                        )
                    time.sleep(self._wait * (attempt + 1))

    def _send(self, body: bytes) -> None:
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"}, method="POST")
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            answer.read(1024)


def checked_url(url: str) -> str:
    """An address that can be sent to."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise DeclarationError(
            f"--webhook {masked_text(url)!r} is no address: write http://HOST/PATH or https://HOST/PATH"
        )
    return url
