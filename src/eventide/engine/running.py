"""An engine at work, seen from outside: its status, its end, how to stop it, queries that come and go.

Law: `stop` lets the round that is under way finish and commit; then nothing runs any more. What made an engine fail is
raised to whoever waits for it, once, as one of our own errors. A query is added or removed between two rounds, and that
is committed when `add` or `remove` returns. Prods do not wait for rounds, and rounds do not wait for prods; the end
waits for those that are being answered.
"""

from __future__ import annotations

import atexit
import logging
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import FrameType
from typing import Self

from eventide.engine.early.prodding import EarlyResults
from eventide.engine.introspection.status import StateGrowth, Status
from eventide.engine.introspection.why import OpenWindow
from eventide.engine.round.engine import Engine
from eventide.engine.round.report import RoundReport
from eventide.errors import EngineError, EventideError
from eventide.eventtime.early.prod import Prod
from eventide.plan.declared.query import Query
from eventide.results.accuracy import AccuracySummary
from eventide.sinks.sink import Sink


class ShutdownGate:
    """Counts the threads that are inside; once it is shut, nobody gets in."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._shut = False

    @contextmanager
    def let_in(self, what: str) -> Iterator[None]:
        """Inside until the block ends; the error names `what` someone wanted if the gate is shut."""
        with self._changed:
            if self._shut:
                raise EngineError(f"cannot {what}: the engine has ended")
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def shut(self) -> None:
        """Let nobody in any more, and wait until all have left; safe to call again."""
        with self._changed:
            self._shut = True
            self._changed.wait_for(lambda: self._inside == 0)


log = logging.getLogger(__name__)

REMEMBERED = 32
"""Rounds over which the rate of rows is averaged."""

SILENCE = 5.0
"""Seconds without a round after which the rate is 0, unless rounds are rarer than that."""


class Running(ABC):
    """What both engines share: a lock around rounds, the rate of rows, stopping and waiting.

    As a context it is stopped in the end, whether it was started or not.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.lock = threading.RLock()
        self.gate = ShutdownGate()
        self.stopping = threading.Event()
        self.ended = threading.Event()
        self.failure: BaseException | None = None
        self._pace: deque[tuple[float, int]] = deque(maxlen=REMEMBERED)
        self._listeners: list[Callable[[RoundReport], None]] = []
        self._ending = threading.Lock()
        self._last_calls: list[Callable[[], None]] | None = []
        self.begun = False
        self._holder: int | None = None
        self._handlers: dict[int, object] = {}
        self._threads: list[threading.Thread] = []
        self.growth = StateGrowth()
        self._last_status: Status | None = None

    @abstractmethod
    def start(self, bounded: bool = False) -> Running:
        """Begin. `bounded`: take what is there now, close everything, and end."""

    def on_round(self, function: Callable[[RoundReport], None]) -> None:
        """Call a function after every committed round."""
        self._listeners.append(function)

    def on_end(self, function: Callable[[], None]) -> None:
        """Call a function when the last round is over, before `ended` is set; at once if it is over already."""
        with self._ending:
            if self._last_calls is not None:
                self._last_calls.append(function)
                return
        function()

    def status(self) -> Status:
        """The status after the last round; never waits for the round under way."""
        if self._last_status is not None:
            return self._last_status
        warnings = tuple(self.engine.checkpoint.warnings)
        return replace(self.engine.status(), rows_per_second=self._rows_per_second(), warnings=warnings)

    def why(self, query: str) -> list[OpenWindow]:
        """Why the open windows of a query are open, as of the last round; never waits for the one under way."""
        progress = self.engine.state.progress(self.engine.program, self.engine.scheduling)
        self.engine.program.query(query)
        return [] if progress is None else progress.windows(query)

    def prod(self, query: str, prod: Prod | None = None) -> EarlyResults:
        """Ask a query for early results, of the last committed round: at once, whatever is under way, in any thread."""
        with self.gate.let_in(what := f"prod query {query!r}"):
            self._going_on(what)
            return self.engine.prod(query, prod)

    def accuracy(self, query: str) -> AccuracySummary | None:
        """How the early results of a query have done, as of the last round; None if nobody has asked for any."""
        self.engine.program.query(query)
        state = self.engine.early.states.get(query)
        return None if state is None else state.accuracy.summary()

    def end_source(self, stream: str, source: str) -> None:
        """A source of a stream is over: time does not wait for it, until it speaks again.

        Waits for the round under way; it is committed when this returns.
        """
        with self.exclusively():
            self._going_on(f"end source {source!r}")
            engine = self.engine
            if engine.pending is not None:
                raise EngineError(f"cannot end source {source!r} while a round is run again: try after the next round")
            log.info("source is over", extra={"stream": stream, "source": source})
            self.noted(engine.round({}, positions=engine.state.positions, over={stream: [source]}))

    def add(self, query: Query, sink: Sink | None = None) -> None:
        """Run one more query from now on, over the rows that come from now on; waits for the round under way."""
        with self.exclusively():
            self._going_on(f"add query {query.name!r}")
            self.engine.add(query, sink)
            log.info("query added", extra={"query": query.name})
            self._commit_change()

    def remove(self, name: str) -> None:
        """Forget a query; windows that it has open are not answered. Waits for the round under way."""
        with self.exclusively():
            self._going_on(f"remove query {name!r}")
            self.engine.remove(name)
            log.info("query removed", extra={"query": name})
            self._commit_change()

    def stop(self) -> None:
        """Finish the round under way, commit it, and end. Safe to call again, and from any thread.

        From a function that is called after a round it only asks for the end, which comes when that returns.
        """
        self.stopping.set()
        if not self.begun:
            self.begun = True
            self._close()
            self.finish()
        elif self._holder != threading.get_ident():
            self._stop()
            self.ended.wait()
            self._let_threads_end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def await_end(self, timeout: float | None = None) -> bool:
        """Wait until it has ended; False if it has not in `timeout` seconds. Raises what made it fail."""
        # In short steps, so that Ctrl-C is heard.
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.ended.wait(0.1):
            if deadline is not None and time.monotonic() >= deadline:
                return False
        self._give_back_signals()
        self._let_threads_end()
        if self.failure is not None:
            failure, self.failure = self.failure, None
            if isinstance(failure, EventideError) or not isinstance(failure, Exception):
                raise failure
            message = str(failure).strip().partition("\n")[0]
            raise EngineError(f"the engine failed: {type(failure).__name__}: {message}") from failure
        return True

    def stop_on_signals(self) -> None:
        """From now on SIGINT and SIGTERM stop the engine cleanly.

        A second one does what it did before, and so does the first if the engine has not begun.
        """

        def stop(number: int, frame: FrameType | None) -> None:
            self._give_back_signals()
            if not self.begun:
                signal.raise_signal(number)
                return
            log.info("stopping", extra={"signal": signal.Signals(number).name})
            self.in_thread("eventide-stop", self._stop_in_words)

        for number in (signal.SIGINT, signal.SIGTERM):
            self._handlers[number] = signal.signal(number, stop)

    def _stop_in_words(self) -> None:
        """Stop; where that fails, Spark being busy with a broker that does not answer, say so without a traceback."""
        try:
            self.stop()
        except Exception as failure:
            message = str(failure).strip().partition("\n")[0]
            log.warning(
                "the engine could not be stopped at once: %s: %s",
                type(failure).__name__,
                message,
                extra={"event": "not stopped at once"},
            )

    def begin(self) -> None:
        """Prepare for the first round."""
        if self.begun:
            raise EngineError("this engine was started before: make a new one, it continues from the checkpoint")
        self.begun = True
        log.info("starting", extra={"engine": self.engine.backend.name, "after_round": self.engine.state.round})
        # An interpreter that ends freezes threads wherever they are; ours end their round first.
        atexit.register(self.stop)

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """One at a time: a round, or a change between two rounds."""
        with self.lock:
            before, self._holder = self._holder, threading.get_ident()
            try:
                yield
            finally:
                self._holder = before

    def in_thread(self, name: str, work: Callable[[], None]) -> None:
        """Run something in a new thread; `await_end` waits until that thread has released everything."""
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def noted(self, work: RoundReport | None) -> None:
        """Take a committed round into the statistics, and tell it on."""
        if work is None:
            return
        rows = sum(self.engine.streams[one.name].losses.rows for one in self.engine.program.inputs)
        self._pace.append((time.monotonic(), rows))
        log.debug(
            "round",
            extra={
                "round": work.number,
                "rows": sum(work.rows_in.values()),
                "results": sum(results.rows for results in work.results.values()),
                "late": work.late_rows(),
                **{f"{step}_ms": round(1000 * seconds, 1) for step, seconds in work.seconds.items()},
            },
        )
        engine = self.engine
        progress = engine.state.progress(engine.program, engine.scheduling)
        self.growth.look(engine.state.operators, progress, engine.backend.has_cluster)
        for function in self._listeners:
            function(work)

    def finish(self) -> None:
        """Clean up after the last round."""
        atexit.unregister(self.stop)
        if self.failure is None:
            log.info("ended", extra={"round": self.engine.state.round})
        else:
            log.error("failed", extra={"round": self.engine.state.round, "why": str(self.failure)})
        with self._ending:
            last_calls, self._last_calls = self._last_calls or [], None
        try:
            # None is kept: once the end is known the interpreter may end too, and nothing can be let go of any more.
            while last_calls:
                last_calls.pop()()
        finally:
            self.ended.set()

    @abstractmethod
    def _stop(self) -> None:
        """Have the engine end after the round under way; `stopping` is set."""

    def _shut(self) -> None:
        """Let nobody in any more, and keep the status: which sessions are open cannot be computed after the end."""
        self.gate.shut()
        with suppress(Exception):
            self._last_status = Running.status(self)

    @abstractmethod
    def _close(self) -> None:
        """Let go of the checkpoint, the sinks and the inputs."""

    def _going_on(self, what: str) -> None:
        if self.stopping.is_set() or self.ended.is_set() or self.engine.ended:
            raise EngineError(f"cannot {what}: the engine has ended, or is about to. Declare it before the next start")

    def _commit_change(self) -> None:
        """A round without rows, so that a restart knows of the change."""
        # Before the first round there is nothing to say; and rows that are about to come again take it with them.
        if self.engine.state.record is not None and self.engine.pending is None:
            self.noted(self.engine.round({}, positions=self.engine.state.positions))

    def commit_evolution(self) -> None:
        """Let what a changed program did to the checkpoint happen at once: a later start knows that program."""
        if not self.engine.evolution.is_nothing:
            self._commit_change()

    def _give_back_signals(self) -> None:
        if threading.current_thread() is threading.main_thread():
            while self._handlers:
                number, handler = self._handlers.popitem()
                signal.signal(number, handler)  # type: ignore[arg-type]

    def _let_threads_end(self) -> None:
        """Wait for our threads, which are at their last words, before the interpreter ends.

        It would freeze them with what they hold, and DuckDB prints a page about objects that nobody let go of.
        """
        if threading.current_thread() not in self._threads:
            for thread in self._threads:
                thread.join()

    def _rows_per_second(self) -> float:
        pace = tuple(self._pace)
        if len(pace) < 2:
            return 0.0
        (start, before), (end, after) = pace[0], pace[-1]
        # Of rounds that come once a minute a minute is no silence.
        usual = (end - start) / (len(pace) - 1)
        if end <= start or time.monotonic() - end > max(SILENCE, 3 * usual):
            return 0.0
        return (after - before) / (end - start)
