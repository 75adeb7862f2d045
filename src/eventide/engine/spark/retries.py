"""What is tried again on Spark: rounds that failed, and sources that do not answer.

Laws. A round that failed before it was committed has not happened: the engine stands where it stood, and the same rows
can be taken again. So it is tried again, four times in all, and for as long as a source does not answer. What would
fail in the same way is not: a fault of rows or of the declaration, a damaged checkpoint, a Spark that is gone. Each
time it is said once what is wrong. A run to the end of what is there does not wait for sources.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from eventide.engine.round.engine import Engine
from eventide.errors import EngineError, EventideError, first_line
from eventide.sources.spark_errors import is_gone, missing_topics, outage, unreachable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
log = logging.getLogger(__name__)

WAITS = (0.1, 1.0, 4.0)
"""Seconds before a round that failed is tried again: once, twice, three times."""

RETRY_SECONDS, REPEAT_SECONDS = 10.0, 60.0
"""Seconds before a source that did not answer is tried again, and before the same is said of it again."""


class StoppedError(Exception):
    """A batch came, or was to be tried again, after the engine was stopped."""


class Retries:
    """Of one engine; `stopping` ends every wait."""

    def __init__(self, spark: SparkSession, engine: Engine, stopping: threading.Event) -> None:
        self._spark, self._engine, self._stopping = spark, engine, stopping
        self._said = "", 0.0
        """What was said of sources that do not answer, and when."""
        self.bounded = False
        """Whether the run is one to the end of what is there."""

    def not_answering(self) -> list[str]:
        """A sentence for each source that does not answer."""
        streams = [stream for stream in self._engine.program.inputs if stream.input is not None]
        found = (unreachable(stream) or missing_topics(self._spark, stream) for stream in streams)
        return [sentence for sentence in found if sentence is not None]

    def tell(self, reason: str) -> None:
        """Say that a source does not answer, unless that was said a moment ago."""
        last, at = self._said
        if reason != last or time.monotonic() > at + REPEAT_SECONDS:
            self._said = reason, time.monotonic()
            log.warning("%s; it goes on being tried", reason, extra={"event": "source not answering"})

    def missing(self, failure: BaseException) -> str | None:
        """What to say of a source that did not answer; None if that was not the reason of a failure."""
        reason = outage(failure, self._engine.program.inputs)
        return None if reason is None else next(iter(self.not_answering()), reason)

    def carried_out(self, round: Callable[[], T]) -> T:
        """What a round gives; where it fails and nothing of it was committed, it is tried again."""
        number, failed = self._engine.next_round, 0
        while True:
            try:
                return round()
            except Exception as failure:
                if self._engine.next_round != number or not _may_pass(failure):
                    raise
                missing = None if self.bounded else self.missing(failure.__cause__ or failure)
                if missing is not None:
                    self.tell(missing)
                elif failed == len(WAITS):
                    raise
                else:
                    what = f"round {number} failed, and nothing of it was committed; it is tried again"
                    log.warning("%s: %s", what, first_line(failure), extra={"event": "round tried again"})
                if self._stopping.wait(WAITS[failed] if missing is None else RETRY_SECONDS):
                    raise StoppedError from failure
                failed += missing is None


def _may_pass(failure: Exception) -> bool:
    is_said = isinstance(failure, EventideError) and type(failure) is not EngineError
    return not (is_said or is_gone(failure) or is_gone(failure.__cause__ or failure))
