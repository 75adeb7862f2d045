"""An engine at work, seen from outside: its status, its end, and how to stop it.

Law: `stop` lets the round that is under way finish and commit; then nothing runs any more. What made an engine fail is
told to whoever waits for it, once, as one of our own errors.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from types import FrameType

from eventide.engine.rounds import Engine, Round
from eventide.engine.status import Status
from eventide.errors import EngineError, EventideError

log = logging.getLogger(__name__)

REMEMBERED = 32
"""Rounds over which the rate of rows is told."""


class Running:
    """What both engines share: a lock around rounds, the rate of rows, stopping and waiting."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.ended = threading.Event()
        self.failure: BaseException | None = None
        self._pace: deque[tuple[float, int]] = deque(maxlen=REMEMBERED)
        self._told: list[Callable[[Round], None]] = []

    def on_round(self, function: Callable[[Round], None]) -> None:
        """Call a function after every committed round."""
        self._told.append(function)

    def status(self) -> Status:
        """How the engine stands after its last round; never waits for the one under way."""
        return replace(self.engine.status(), rows_per_second=self._rows_per_second())

    def stop(self) -> None:
        """Finish the round under way, commit it, and end."""
        raise NotImplementedError

    def await_end(self, timeout: float | None = None) -> bool:
        """Wait until it has ended; False if it has not in `timeout` seconds. Raises what made it fail."""
        # In short steps, so that Ctrl-C is heard.
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.ended.wait(0.1):
            if deadline is not None and time.monotonic() >= deadline:
                return False
        if self.failure is not None:
            failure, self.failure = self.failure, None
            if isinstance(failure, EventideError):
                raise failure
            raise EngineError(f"the engine failed: {type(failure).__name__}: {failure}") from failure
        return True

    def stop_on_signals(self) -> None:
        """From now on SIGINT and SIGTERM stop the engine cleanly."""

        def stop(number: int, frame: FrameType | None) -> None:
            log.info("stopping on %s", signal.Signals(number).name)
            threading.Thread(target=self.stop, name="eventide-stop", daemon=True).start()

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)

    def noted(self, work: Round | None) -> None:
        """Take a committed round into the statistics, and tell it on."""
        if work is None:
            return
        rows = sum(stream.losses.rows for stream in self.engine.streams.values())
        self._pace.append((time.monotonic(), rows))
        log.debug("round %d: %s", work.number, {name: round(1000 * s, 1) for name, s in work.seconds.items()})
        for function in self._told:
            function(work)

    def _rows_per_second(self) -> float:
        if len(self._pace) < 2:
            return 0.0
        (start, before), (end, after) = self._pace[0], self._pace[-1]
        return (after - before) / (end - start) if end > start else 0.0
