"""Alerts: what they say, which of them stand now, and who hears of them.

Laws. Of one kind about one thing there is one alert at a time. Listeners hear of it when it is raised and when it
clears, in this order. At most `MOST` stand for each kind and stream; of more it is said how many there are. A listener
cannot stop the engine: what it raises is logged.

>>> board = AlertBoard()
>>> heard = []
>>> board.listen(heard.append)
>>> found = Finding("silence", "traffic", "det_7", "a row every 10 s at least", "none for 50 s")
>>> board.settle([found], at=7.0)
>>> board.settle([found], at=8.0)
>>> board.settle([], at=9.0)
>>> [(alert.words(), alert.cleared) for alert in heard]
[('silence of det_7 of traffic: expected a row every 10 s at least, seen none for 50 s', None), ('silence of det_7 of \
traffic: expected a row every 10 s at least, seen none for 50 s', 9.0)]
>>> board.standing, board.raised["silence"]
((), 1)
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

log = logging.getLogger(__name__)

MOST = 20
REMEMBERED = 200


@dataclass(frozen=True)
class Finding:
    """Something that is not as expected now: `of` is a stream or query, `who` a source of it, or empty."""

    kind: str
    of: str
    who: str
    expected: str
    seen: str
    others: int = 0
    """Not about one: so many other sources are found the same."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is about."""
        return self.kind, self.of, self.who


@dataclass(frozen=True)
class Alert:
    """A finding, when it was raised and when it cleared, in seconds since 1970; None while it stands."""

    kind: str
    of: str
    who: str
    expected: str
    seen: str
    raised: float
    cleared: float | None = None

    def words(self) -> str:
        """The alert as a sentence."""
        about = f"{self.who} of {self.of}" if self.who else self.of
        return f"{self.kind} of {about}: expected {self.expected}, seen {self.seen}"

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "words": self.words()}


Listener = Callable[[Alert], object]


class AlertBoard:
    """The alerts of an engine; settled by the thread of its rounds, read by any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._standing: dict[tuple[str, str, str], Alert] = {}
        self._listeners: list[Listener] = []
        self.recent: deque[Alert] = deque(maxlen=REMEMBERED)
        """The last that were raised or have cleared."""
        self.raised: Counter[str] = Counter()
        """How many were raised, by kind."""

    def listen(self, listener: Listener) -> None:
        """Call a function with every alert when it is raised, and when it has cleared."""
        self._listeners.append(listener)

    @property
    def standing(self) -> tuple[Alert, ...]:
        """The alerts that stand now, the oldest first."""
        with self._lock:
            return tuple(self._standing.values())

    def settle(self, found: Iterable[Finding], at: float) -> None:
        """All that is not as expected now: what is new is raised, what is not among it any more clears."""
        now = {one.key: one for one in few(found)}
        changed: list[Alert] = []
        with self._lock:
            for key in [key for key in self._standing if key not in now]:
                changed.append(replace(self._standing.pop(key), cleared=at))
            for key, one in now.items():
                if key not in self._standing:
                    self._standing[key] = Alert(one.kind, one.of, one.who, one.expected, one.seen, at)
                    self.raised[one.kind] += 1
                    changed.append(self._standing[key])
                else:
                    self._standing[key] = replace(self._standing[key], seen=one.seen)
        for alert in changed:
            self._tell(alert)

    def _tell(self, alert: Alert) -> None:
        self.recent.append(alert)
        figures = {"kind": alert.kind, "of": alert.of, "source": alert.who}
        if alert.cleared is None:
            log.warning("alert: %s", alert.words(), extra={"event": "alert", **figures})
        else:
            log.info("alert cleared: %s", alert.words(), extra={"event": "alert cleared", **figures})
        for listener in self._listeners:
            try:
                listener(alert)
            except Exception as error:
                log.warning(
                    "an alert could not be passed on: %s: %s",
                    type(error).__name__,
                    error,
                    extra={"event": "alert not passed on"},
                )


def few(found: Iterable[Finding]) -> list[Finding]:
    """The first `MOST` of each kind and stream, and one that counts the others.

    >>> many = [Finding("silence", "s", f"d{n}", "rows", "none") for n in range(MOST + 2)]
    >>> len(few(many)), few(many)[-1].who, few(many)[-1].seen
    (21, '', '2 more sources')
    >>> [one.seen for one in few([*many, Finding("silence", "s", "", "none", "", others=7)])][-1]
    '9 more sources'
    """
    kept: list[Finding] = []
    more: Counter[tuple[str, str]] = Counter()
    counts: Counter[tuple[str, str]] = Counter()
    for one in found:
        if one.others:
            more[one.kind, one.of] += one.others
            continue
        counts[one.kind, one.of] += 1
        if counts[one.kind, one.of] <= MOST:
            kept.append(one)
        else:
            more[one.kind, one.of] += 1
    return kept + [
        Finding(kind, of, "", "none", f"{number} more source{'' if number == 1 else 's'}")
        for (kind, of), number in more.items()
    ]
