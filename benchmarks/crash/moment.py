"""Moments at which the program kills itself.

Law: a moment comes at most once in a life, and the process is gone when it has come: SIGKILL, from itself, so that it
is exactly there.

>>> Moment.of("step:3:emit")
Moment(kind='step', number=3, name='emit')
>>> Moment.of("tomorrow")
Traceback (most recent call last):
    ...
argparse.ArgumentTypeError: 'tomorrow' is none of step:ROUND:STEP, sink:ROUND:QUERY, change:NUMBER
"""

from __future__ import annotations

import argparse
import os
import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

from eventide.results.results import Results
from eventide.sinks.sink import Sink
from eventide.storage.storage import Storage

STEPS = ("reduce", "heartbeats", "advance", "prod", "emit", "commit")
OPERATORS = ("paired", "in_order", "known")
QUERIES = ("sliding", "revised", "distinct", "by_rows", "by_clock", "by_device", "levels", *OPERATORS)


@dataclass(frozen=True)
class Moment:
    """After a step of a round, after the sink took one query's results, or before a change to the checkpoint."""

    FORMS: ClassVar[str] = "step:ROUND:STEP, sink:ROUND:QUERY, change:NUMBER"

    kind: str
    number: int
    name: str = ""

    @classmethod
    def of(cls, text: str) -> Moment:
        """Read one of the forms."""
        found = re.fullmatch(rf"(step|sink):(\d+):({'|'.join((*STEPS, *QUERIES))})|(change):(\d+)", text)
        if found is None:
            raise argparse.ArgumentTypeError(f"{text!r} is none of {cls.FORMS}")
        return cls(found[1], int(found[2]), found[3]) if found[1] else cls(found[4], int(found[5]))

    def __str__(self) -> str:
        return ":".join(filter(None, (self.kind, str(self.number), self.name)))

    def after_step(self, round: int, step: str) -> None:
        """What an engine calls after every step."""
        if self == Moment("step", round, step):
            die()

    def watching(self, sink: Sink, query: str) -> Sink:
        """The same sink; after it took the results of this query, the moment may have come."""
        return Watched(sink, query, self)

    def watch(self, storage: Storage) -> None:
        """Count the changes to a checkpoint, and die before the one that is meant."""
        if self.kind != "change":
            return
        changes = count()

        def counted(change: Callable[..., Any]) -> Callable[..., Any]:
            def changing(*arguments: Any, **named: Any) -> Any:
                if next(changes) == self.number:
                    die()
                return change(*arguments, **named)

            return changing

        for name in ("write", "remove", "remove_folder"):
            setattr(storage, name, counted(getattr(storage, name)))


class Watched:
    """A sink beside which someone waits for his moment."""

    def __init__(self, sink: Sink, query: str, moment: Moment) -> None:
        self._sink = sink
        self._query = query
        self._moment = moment

    def emit(self, results: Results) -> None:
        """Pass it on; then, perhaps, die."""
        self._sink.emit(results)
        if self._moment == Moment("sink", results.round, self._query):
            die()

    def rewind(self, query: str, last: int) -> None:
        """Pass it on."""
        self._sink.rewind(query, last)

    def close(self) -> None:
        """Pass it on."""
        self._sink.close()


def die() -> None:
    """As if the power had failed, for this process."""
    os.kill(os.getpid(), signal.SIGKILL)
