"""The local engine: the same rounds on one machine, with DuckDB doing the reduce. No JVM.

Law: a round takes what its inputs have, up to a number of rows; how far they were read is part of the round's record,
so that a restart continues exactly there. Which rows these are is part of its intent: a round that a crash broke off is
run again with the same rows at the same clock, and what has come since is in the next one. Where the rows cannot be had
again (from a pipe, or a file that somebody removed), what comes is another round, at the clock of now.

When no input has anything, the clock alone may close windows. A bounded run ends when all that is there has been read;
any other when all its inputs have ended, or when it is stopped.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from eventide.engine.introspection.status import Status
from eventide.engine.local.backend import LocalBackend
from eventide.engine.round.engine import Engine, Observer
from eventide.engine.running import Running
from eventide.engine.scheduling.queue_pace import QueuePace
from eventide.engine.scheduling.trace import Trace
from eventide.engine.tables import TableReads
from eventide.errors import CheckpointError, DeclarationError
from eventide.eventtime.scheduling.options import Scheduling
from eventide.plan.declared.evolution import QUERY, STREAM, Begin, Consent
from eventide.plan.declared.program import Program
from eventide.plan.declared.stream import Stream
from eventide.sinks.sink import Sink, SparkSink
from eventide.sources.captured import CapturedInput
from eventide.sources.local_input import LocalInput, PartitionedInput, RereadableInput, open_input
from eventide.sources.tables import read_table
from eventide.storage.storage import Storage

log = logging.getLogger(__name__)

ROUND_ROWS = 1_000_000
"""Rows of one stream that a round takes at most, unless its input says otherwise."""

WAIT = 0.05
"""Seconds to wait for rows before the next input is looked at."""


class LocalEngine(Running):
    """A program on this machine. `inputs` are given for streams without a declared input, or instead of it.

    `every`: seconds from the start of a round to that of the next, at least. `tick`: seconds after which the clock
    alone may close windows. `backend`: one that knows more functions than DuckDB. `flush_rows`: about so many results
    of a query are emitted in one round. `scheduling`: when silent streams are asked, and by which heartbeats operators
    go; `trace` is called with every decision about that. `pace`: how much goes through queues in a round. `now`: the
    wall clock in microseconds. `consent`: what a changed program may do to the state of the checkpoint.

    `start` and `run` do all that a run needs. Who steers by hand, as a simulation does, begins with `recover`, and then
    calls `step`, `tick` and `end`.
    """

    def __init__(
        self,
        program: Program,
        checkpoint: str | Storage,
        sinks: Mapping[str, Sink] | None = None,
        inputs: Mapping[str, LocalInput] | None = None,
        every: float = 0.0,
        tick: float = 1.0,
        observer: Observer | None = None,
        backend: LocalBackend | None = None,
        flush_rows: int | None = None,
        scheduling: Scheduling | None = None,
        trace: Trace | None = None,
        pace: QueuePace | None = None,
        now: Callable[[], int] | None = None,
        consent: Consent | None = None,
    ) -> None:
        for sink in (sinks or {}).values():
            if isinstance(sink, SparkSink):
                raise DeclarationError(sink.way_out)
        given = dict(inputs or {})
        # What is given instead of a table are rows that come, each time all of it.
        tables = [one for one in program.streams if one.table is not None and one.name not in given]
        streams = [one for one in program.inputs if one not in tables]
        self._inputs = {s.name: given[s.name] if s.name in given else _opened(s, checkpoint) for s in streams}
        self._every = every
        self._tick = tick
        self._limits = {s.name: (s.input and s.input.max_rows) or ROUND_ROWS for s in streams}
        super().__init__(
            Engine(
                program,
                backend or LocalBackend(),
                checkpoint,
                sinks,
                observer,
                now,
                flush_rows=flush_rows,
                scheduling=scheduling,
                trace=trace,
                pace=pace,
                consent=consent,
            )
        )
        self._tables = TableReads(self.engine, tables, read_table)
        try:
            positions, evolution = self.engine.state.positions, self.engine.evolution
            known = self._inputs.keys() - set(evolution.of(STREAM, Begin.BEGINNING, Begin.OTHER_INPUT))
            if self.engine.last_batch >= 0 and positions.keys() != known:
                where = self.engine.checkpoint.storage.where
                raise CheckpointError(
                    f"the checkpoint {where} does not tell how far its inputs were read: it was made by the Spark "
                    "engine. Continue with that, or start anew with another checkpoint"
                )
            for name in evolution.history_of:
                self._check_history(name)
            for name, position in positions.items():
                self._inputs[name].seek(position)
        except BaseException:
            self._close()
            raise

    def start(self, bounded: bool = False) -> LocalEngine:
        """Start in a new thread. `bounded`: take what is there now, close everything, and end."""
        self.begin()
        self.in_thread("eventide", lambda: self._work(bounded))
        return self

    def run(self, bounded: bool = True) -> None:
        """Work in this thread until the end."""
        self.begin()
        self._work(bounded)
        self.await_end()

    def status(self) -> Status:
        """How the engine stands after its last round, and what waits in the partitions of topics."""
        status = super().status()
        lags = {name: dict(one.lag) for name, one in self._inputs.items() if isinstance(one, PartitionedInput)}
        return replace(status, streams=tuple(replace(one, backlog=lags.get(one.name, {})) for one in status.streams))

    def _stop(self) -> None:
        """Nothing more to do than to say so: the thread looks after every round."""

    def _work(self, bounded: bool) -> None:
        try:
            self.recover()
            self._rounds(bounded)
            if bounded and not self.stopping.is_set() and not self.engine.ended:
                self.end()
        except BaseException as failure:
            self.failure = failure
        finally:
            self._close()
            self.finish()

    def recover(self) -> None:
        """Run the round that was meant, and not committed, when the engine died; let a change of the program happen."""
        self._recover()
        self._refresh()

    def _refresh(self) -> None:
        """Read the tables that are due."""
        with self.exclusively():
            self.noted(self._tables.refresh())

    def _recover(self) -> None:
        with self.exclusively():
            if self.engine.evolution.history_of:
                self.engine.backfill(self._history())
            self.noted(self.engine.resume())
        meant = self.engine.pending
        if meant is None or meant.batch is None:
            with self.exclusively():
                self.commit_evolution()
            return
        found: dict[str, pa.Table] = {}
        changed = []
        added = self.engine.evolution.of(STREAM, Begin.BEGINNING)
        for name, one in self._inputs.items():
            rows, exact = one.repeat(meant.portions[name]) if name in meant.portions else (None, name in added)
            if rows is not None and rows.num_rows:
                found[name] = rows
            if not exact:
                changed.append(name)
        if changed:
            log.warning(
                "round %d was broken off, and its rows are not all there any more (%s): it is run with those that are, "
                "and at the clock of now",
                meant.round,
                ", ".join(changed),
                extra={"event": "rows of a round are gone"},
            )
            with self.exclusively():
                self.engine.forget_intent()
        if found:
            self._run_round(found, {} if changed else meant.portions)

    def _history(self) -> Iterator[dict[str, pa.Table]]:
        """All rows that were read before the last round, of the streams whose past is wanted."""
        for name in self.engine.evolution.history_of:
            position = self.engine.state.positions.get(name)
            given = self._inputs[name]
            if position is not None and isinstance(given, RereadableInput):
                for table in given.history(position):
                    yield {name: table}

    def _check_history(self, name: str) -> None:
        if not isinstance(self._inputs[name], RereadableInput):
            wanted = ", ".join(self.engine.evolution.of(QUERY, Begin.BEGINNING))
            raise DeclarationError(
                f"stream {name!r} cannot be read again from its beginning, as a backfill of {wanted} would have to: "
                "only files and topics of Kafka can. Let it begin at the present"
            )

    def step(self, bounded: bool) -> bool:
        """Run a round over what the inputs have now; False, and no round, if that is nothing."""
        rows = self._read(bounded)
        if rows:
            self._refresh()
            self._run_round(rows, {name: one.portion() for name, one in self._inputs.items()})
        return bool(rows)

    def tick(self) -> None:
        """Let the clock alone close what it can."""
        with self.exclusively():
            self.noted(self.engine.tick())

    def end(self) -> None:
        """Close everything: the last round of a bounded run."""
        with self.exclusively():
            self.noted(self.engine.end())

    def _run_round(self, rows: dict[str, pa.Table], portions: dict[str, dict[str, Any]]) -> None:
        positions = {name: one.position() for name, one in self._inputs.items()}
        with self.exclusively():
            batch = self.engine.next_round
            self.noted(self.engine.round(rows, batch=batch, positions=positions, portions=portions))

    def _rounds(self, bounded: bool) -> None:
        """Round after round, until there is nothing more to take."""
        ticked = time.monotonic()
        while not self.stopping.is_set():
            started = time.monotonic()
            if self.step(bounded):
                ticked = time.monotonic()
                self.stopping.wait(max(0.0, self._every - (ticked - started)))
            elif self._is_done(bounded):
                return
            elif self._is_silent() and (self.engine.is_behind or time.monotonic() - ticked >= self._tick):
                self.tick()
                ticked = time.monotonic()
            elif bounded:
                # A pipe or a replay that has nothing now is not at its end.
                self.stopping.wait(WAIT / 10)

    def _is_silent(self) -> bool:
        """Whether the clock may go on by itself: that of Kafka does where no record waits."""
        return not self.engine.by_clock_of_kafka or all(
            self._inputs[name].caught_up
            for name, stream in self.engine.streams.items()
            if stream.stream.stamped_by_broker
        )

    def _is_done(self, bounded: bool) -> bool:
        """Whether there is nothing more to read, and no row waits in a queue."""
        read = all(one.caught_up if bounded else one.ended for one in self._inputs.values())
        return read and not self.engine.is_behind

    def _read(self, bounded: bool) -> dict[str, pa.Table]:
        """What the inputs have now; the first that has not ended is waited for a little."""
        found: dict[str, Any] = {}
        wait = 0.0 if bounded or self.engine.is_behind else WAIT
        for name, one in self._inputs.items():
            if one.ended:
                continue
            rows = one.take(self._limits[name], wait)
            wait = 0.0
            if rows is not None and rows.num_rows:
                found[name] = rows
        return found

    def _close(self) -> None:
        self._shut()
        self.engine.close()
        self.engine.backend.close()
        for one in self._inputs.values():
            one.close()


def _opened(stream: Stream, checkpoint: str | Storage) -> LocalInput:
    if not stream.is_captured:
        return open_input(stream)
    storage = Storage.at(checkpoint)
    if not storage.near:
        raise DeclarationError(
            f"stream {stream.name!r}: the local engine keeps changes of a table in the checkpoint, which has to be on "
            f"this machine then, and {storage.where} is not"
        )
    return CapturedInput(stream.as_read, storage)
