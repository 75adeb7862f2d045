"""The local engine: the same rounds on one machine, with DuckDB doing the reduce. No JVM.

Law: a round takes what its inputs have, up to a number of rows; how far they were read is part of the round's record,
so that a restart continues exactly there. When no input has anything, the clock alone may close windows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from eventide.engine.local_backend import LocalBackend
from eventide.engine.rounds import Engine, Observer
from eventide.engine.running import Running
from eventide.plan.program import Program
from eventide.sinks.sink import Sink
from eventide.sources.local_input import LocalInput, open_input

ROUND_ROWS = 1_000_000
"""Rows of one stream that a round takes at most, unless its input says otherwise."""

WAIT = 0.05
"""Seconds to wait for rows before the next input is looked at."""


class LocalEngine(Running):
    """A program on this machine. `inputs` are given for streams without a declared input, or instead of it."""

    def __init__(
        self,
        program: Program,
        checkpoint: str,
        sinks: Mapping[str, Sink] | None = None,
        inputs: Mapping[str, LocalInput] | None = None,
        every: float = 0.0,
        tick: float = 1.0,
        observer: Observer | None = None,
    ) -> None:
        given = dict(inputs or {})
        self._inputs = {s.name: given[s.name] if s.name in given else open_input(s) for s in program.streams}
        super().__init__(Engine(program, LocalBackend(), checkpoint, sinks, observer))
        self._every = every
        self._tick = tick
        self._limits = {s.name: (s.input and s.input.max_rows) or ROUND_ROWS for s in program.streams}
        for name, position in self.engine.committed.positions.items():
            self._inputs[name].seek(position)

    def start(self, bounded: bool = False) -> LocalEngine:
        """Begin, in a thread of its own. `bounded`: when all inputs are read, close everything, and end."""
        threading.Thread(target=self._work, args=(bounded,), name="eventide", daemon=True).start()
        return self

    def run(self, bounded: bool = True) -> None:
        """Work in this thread until the end."""
        self._work(bounded)
        self.await_end()

    def stop(self) -> None:
        """Finish the round under way, commit it, and end."""
        self.stopping.set()
        self.ended.wait()

    def _work(self, bounded: bool) -> None:
        try:
            with self.lock:
                self.noted(self.engine.resume())
            ticked = time.monotonic()
            while not self.stopping.is_set():
                started = time.monotonic()
                rows = self._taken(bounded)
                if rows:
                    positions = {name: one.position() for name, one in self._inputs.items()}
                    with self.lock:
                        self.noted(self.engine.round(rows, batch=self.engine.next_round, positions=positions))
                    ticked = time.monotonic()
                elif all(one.ended for one in self._inputs.values()):
                    break
                elif time.monotonic() - ticked >= self._tick:
                    with self.lock:
                        self.noted(self.engine.tick())
                    ticked = time.monotonic()
                self.stopping.wait(max(0.0, self._every - (time.monotonic() - started)) if rows else 0.0)
            if bounded and not self.stopping.is_set() and not self.engine.ended:
                with self.lock:
                    self.noted(self.engine.end())
        except BaseException as failure:
            self.failure = failure
        finally:
            self.engine.close()
            self.ended.set()

    def _taken(self, bounded: bool) -> dict[str, pa.Table]:
        """What the inputs have now; the first of them is waited for a little."""
        found: dict[str, Any] = {}
        for number, (name, one) in enumerate(self._inputs.items()):
            if one.ended:
                continue
            rows = one.take(self._limits[name], WAIT if number == 0 and not bounded else 0.0)
            if rows is not None and rows.num_rows:
                found[name] = rows
        return found
