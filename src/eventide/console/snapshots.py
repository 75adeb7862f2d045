"""What viewers are sent: a JSON object for each page and choice, made once for all who look at the same.

Laws. A snapshot is of one committed round; there is a new one only after a new round, and at most `PER_SECOND` of them.
Making them takes at most the share `SHARE` of one core, whatever they cost: after one that took t seconds the next one
of the same kind is due t / SHARE seconds later, and later still where others are looked at too. What nobody looks at is
not made. Who has seen the last one is sent what is new since; who has not is sent all.

>>> Pace(0.001).seconds(kinds=1), round(Pace(0.1).seconds(kinds=2), 6)
(0.25, 10.0)
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eventide.console.engine_view import engine_view
from eventide.console.losses_view import losses_view
from eventide.console.plan_view import plan_view
from eventide.console.results_view import results_view
from eventide.console.subject import Look, Standing, Subject
from eventide.console.time_view import time_view
from eventide.endpoint.auth import as_json

PER_SECOND = 4
SHARE = 0.02
MOST_KINDS = 48
"""Pages with choices that are remembered: there are no more viewers than that."""

ALERTS = 5
"""So many of those that stand are told on every page."""

View = Callable[[Look], dict[str, Any]]
PAGES: Mapping[str, View] = {
    "time": time_view,
    "plan": plan_view,
    "results": results_view,
    "losses": losses_view,
    "engine": engine_view,
}
CHOICES = ("stream", "query", "node", "find", "sort", "show")
"""What a viewer may choose on a page."""

Kind = tuple[str, tuple[tuple[str, str], ...]]
"""A page, and what was chosen on it."""


@dataclass(frozen=True)
class Pace:
    """How long the last snapshot of a kind took, in seconds of a processor."""

    cost: float

    def seconds(self, kinds: int) -> float:
        """How long after the start of the last one the next one is due, where so many kinds are looked at."""
        return max(1.0 / PER_SECOND, self.cost / SHARE * max(1, kinds))


@dataclass
class Kept:
    """The last snapshot of a kind: its number, and what was new in it."""

    number: int = 0
    version: tuple[int, bool] | None = None
    news: bytes = b""
    whole: bytes | None = None
    due: float = 0.0
    looked: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class Sent:
    """What goes to a viewer, and the number under which it is known."""

    number: int
    body: bytes


class Snapshots:
    """Makes snapshots, and keeps the last of each kind; safe to use from several threads."""

    def __init__(self, subject: Subject, clock: Callable[[], float] = time.monotonic) -> None:
        self._subject, self._clock = subject, clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[Kind, Kept] = OrderedDict()
        self.made = 0
        """How many there have been."""

    def is_due(self, kind: Kind, seen: int | None) -> bool:
        """Whether there is something to send to a viewer who has seen the snapshot with this number; quick."""
        kept = self._of(kind)
        kept.looked = self._clock()
        if seen is None or kept.number != seen:
            return True
        return kept.version != self._subject.version and self._clock() >= kept.due

    def next(self, kind: Kind, seen: int | None) -> Sent | None:
        """What a viewer has not seen yet; None if that is nothing. Called in a thread: it may take a while."""
        kept = self._of(kind)
        with kept.lock:
            if kept.version != self._subject.version and self._clock() >= kept.due:
                self._make(kind, kept)
            if seen == kept.number:
                return None
            if seen is not None and seen == kept.number - 1:
                return Sent(kept.number, kept.news)
            if kept.whole is None:
                kept.whole = self._told(kind, -1)
            return Sent(kept.number, kept.whole)

    def _make(self, kind: Kind, kept: Kept) -> None:
        started, used = self._clock(), time.thread_time()
        version = self._subject.version
        since = -1 if kept.version is None else kept.version[0]
        kept.news, kept.whole = self._told(kind, since), None
        if kept.version is None:
            kept.whole = kept.news
        kept.version, kept.number = version, kept.number + 1
        kept.due = started + Pace(time.thread_time() - used).seconds(self._looked_at(started))

    def _told(self, kind: Kind, since: int) -> bytes:
        page, chosen = kind
        standing, asked = self._subject.standing(), dict(chosen)
        look = Look(standing, self._subject.history, tuple(self._subject.log.last()), asked, since)
        self.made += 1
        return as_json({"page": page, "whole": since < 0, **_head(standing), **PAGES[page](look)})

    def _looked_at(self, now: float) -> int:
        with self._lock:
            return sum(now - one.looked < 5.0 for one in self._kept.values())

    def _of(self, kind: Kind) -> Kept:
        with self._lock:
            kept = self._kept.setdefault(kind, Kept())
            self._kept.move_to_end(kind)
            while len(self._kept) > MOST_KINDS:
                self._kept.popitem(last=False)
            return kept


def _head(standing: Standing) -> dict[str, Any]:
    """What every page shows: is it running?"""
    status = standing.status
    return {
        "round": status.round,
        "clock": status.clock,
        "ended": status.ended or not standing.about.running,
        "stopped": status.engine == "stopped",
        "alerts": [[one.words(), one.raised] for one in standing.alerts[:ALERTS]],
        "more_alerts": max(0, len(standing.alerts) - ALERTS),
        "failure": standing.about.failure,
        "engine": status.engine,
        "rows_per_second": status.rows_per_second,
        "now": time.time(),
    }
