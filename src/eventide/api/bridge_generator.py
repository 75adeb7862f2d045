"""The heartbeat generator of a bridge, on the driver: cells of a Spark query in, heartbeats out.

Law: a heartbeat is found from rows that the query has already processed, and reaches it one batch later at the
earliest. So no row is lost because the two saw different rows: a row is late only if it comes after the promise. What
was learned is in one file, so that a restart in the same folder goes on from it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather

from eventide.errors import DeclarationError
from eventide.eventtime.arrays import as_plain
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import HeartbeatGenerator, Policy
from eventide.eventtime.instant import EDGE
from eventide.eventtime.policies.skew.declared import names_of_bounds

LEARNED = "learned.json"


class BridgeGenerator:
    """Gives the cells of finished batches to a policy, and its heartbeats to the query.

    >>> import tempfile
    >>> from eventide.api.bridge_source import cells_of, write
    >>> from eventide.eventtime.policies.fixed_delay import FixedDelay
    >>> folder = tempfile.mkdtemp()
    >>> generator = BridgeGenerator(folder, FixedDelay(2_000_000))
    >>> generator.heartbeat(clock=0) is None
    True
    >>> write(cells_of(pa.array(["a"]), pa.array([5_000_000], pa.timestamp("us"))), folder, "q_0_0")
    >>> generator.heartbeat(clock=5_000_000), os.listdir(folder)
    (3000000, ['learned.json'])

    What a policy has learned may hold arrays.

    >>> from eventide.eventtime.policies.drop_ratio.policy import DropRatio
    >>> folder = tempfile.mkdtemp()
    >>> seconds = pa.array([second * 1_000_000 for second in range(9)], pa.timestamp("us"))
    >>> write(cells_of(pa.array(["a"] * 9), seconds), folder, "q_0_0")
    >>> first = BridgeGenerator(folder, DropRatio(0.01)).heartbeat(clock=9_000_000)
    >>> BridgeGenerator(folder, DropRatio(0.01)).heartbeat(clock=0) == first
    True
    """

    def __init__(self, folder: str, policy: Policy) -> None:
        self._folder = folder
        self._policy = policy
        self._query: str | None = None
        self._sources = {name: number for number, name in enumerate(names_of_bounds(policy) or ())}
        self._clock = -EDGE
        self._generator: HeartbeatGenerator = self._resumed()

    def heartbeat(self, clock: int) -> int | None:
        """How far time has come at this clock, after taking what is new; None before the first promise."""
        self._clock = max(self._clock, clock)
        if names := self.news():
            self._observe(names)
        found = self._generator.heartbeats(self._clock).combined
        return None if abs(found) >= EDGE else found

    def news(self) -> list[str]:
        """The files of cells that wait."""
        return sorted(name for name in os.listdir(self._folder) if name.endswith(".cells"))

    def _observe(self, names: list[str]) -> None:
        paths = [os.path.join(self._folder, name) for name in names]
        for query in {name.partition("_")[0] for name in names}:
            self._belongs(query)
        try:
            cells = pa.concat_tables([pyarrow.feather.read_table(path, memory_map=False) for path in paths])
        except FileNotFoundError:
            # Only another query that reads the same frame takes them away.
            raise _shared() from None
        for source in cells.column("source").unique().to_pylist():
            self._sources.setdefault(source, len(self._sources))
        numbers = np.array([self._sources[source] for source in cells.column("source").to_pylist()], dtype=np.intp)
        rows, low, high = (cells.column(name).to_numpy() for name in ("rows", "low", "high"))
        self._generator.observe(
            Arrivals.of_cells(self._clock, numbers, rows, low, high) if len(rows) else Arrivals.silence(self._clock)
        )
        self._save()
        for path in paths:
            os.remove(path)

    def _belongs(self, query: str) -> None:
        """Two queries over one frame would each move the other's time."""
        self._query = self._query or query
        if query != self._query:
            raise _shared()

    def _save(self) -> None:
        known = {
            "query": self._query,
            "clock": self._clock,
            "sources": list(self._sources),
            "pacemaker": self._generator.snapshot(),
        }
        hidden = os.path.join(self._folder, f".{LEARNED}")
        with open(hidden, "w", encoding="utf-8") as file:
            json.dump(known, file, default=as_plain)
        os.replace(hidden, os.path.join(self._folder, LEARNED))

    def _resumed(self) -> HeartbeatGenerator:
        try:
            with open(os.path.join(self._folder, LEARNED), encoding="utf-8") as file:
                known: dict[str, Any] = json.load(file)
        except FileNotFoundError:
            return self._policy.start()
        self._query, self._clock = known["query"], known["clock"]
        self._sources = {source: number for number, source in enumerate(known["sources"])}
        resume: Callable[[dict[str, Any]], HeartbeatGenerator] = self._policy.resume
        return resume(known["pacemaker"])


def _shared() -> DeclarationError:
    return DeclarationError(
        "two Spark queries read the same frame of eventide.heartbeats: each needs its own, so call it once for each "
        "query; after deleting a query's checkpoint give it a new folder too"
    )
