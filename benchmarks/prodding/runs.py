"""A prodded query over a recorded stream, in virtual time on the local engine; early answers beside final ones.

Law: rounds are run at the moments that matter, when a promise arrives and when a prod falls due, each over the rows
that have arrived by then. So the moments of answers are exact, and a stream of an hour takes seconds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.prodding.streams import SECOND, Recorded
from eventide.engine.local.backend import LocalBackend
from eventide.engine.round.engine import Engine
from eventide.eventtime.early.triggers import Earliness
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Prods, Query, named_as
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import Window
from eventide.results.error import errors
from eventide.sinks.sink import Memory

AGGREGATES = {"average": "avg(v)", "max": "max(v)", "sum": "sum(v)", "count": "count(*)"}
STREAM = Stream("s", columns("ts TIMESTAMP, v DOUBLE"), time="ts", policy=Punctuated())
EPOCH = 1_599_999_960 * SECOND
"""Where virtual time begins: a whole number of every slide."""


@dataclass(frozen=True)
class Asked:
    """What is run: the windows, when they are prodded, and whether sums are extrapolated."""

    range: int
    slide: int
    points: tuple[float, ...] = ()
    within: Earliness | None = None
    estimate: bool = False
    every: int | None = None

    @property
    def prods(self) -> Prods | None:
        """As a query declares it."""
        if not self.points and self.within is None and self.every is None:
            return None
        return Prods(self.every, self.points, self.within, self.estimate)


@dataclass(frozen=True)
class Outcome:
    """Early and final answers of a run, with the clock of each round and the arrival of each window's first row."""

    table: pa.Table
    clocks: dict[int, int]
    first: dict[int, int]
    seconds: float
    values: dict[str, str] = field(default_factory=lambda: dict(zip(AGGREGATES, AGGREGATES, strict=True)))

    def paired(self) -> pa.Table:
        """Each early row with the final row of its window."""
        rows = self.table.append_column("clock", pa.array([self.clocks[r] for r in self.table["round"].to_pylist()]))
        rows = rows.set_column(rows.column_names.index("window_end"), "window_end", rows["window_end"].cast(pa.int64()))
        kinds = np.array(rows["kind"].to_pylist())
        early, final = (rows.filter(pa.array(kinds == kind)) for kind in ("early", "final"))
        kept = ["window_end", "clock", *AGGREGATES]
        final = final.select(kept).rename_columns(["window_end", *(f"final_{name}" for name in kept[1:])])
        return early.join(final, "window_end", join_type="inner")

    def errors(self, name: str, of: str, pairs: pa.Table) -> NDArray[np.float64]:
        """The error of each early value."""
        return errors(pairs[name], pairs[f"final_{of}"])

    def latency(self, kind: str = "final", only: set[int] | None = None) -> float:
        """The mean time from the first row of a window to its answer, in seconds."""
        return float(np.mean([late for end, late in self.latencies(kind) if only is None or end in only]))

    def latencies(self, kind: str) -> list[tuple[int, float]]:
        """The end of each window, and the time from its first row to each answer of a kind, in seconds."""
        return [
            (end, (self.clocks[row["round"]] - self.first[end]) / SECOND)
            for row in self.table.select(["kind", "round", "window_end"]).to_pylist()
            if row["kind"] == kind and (end := _micros(row["window_end"])) in self.first
        ]


def run(stream: Recorded, asked: Asked) -> Outcome:
    """Run a query over a stream."""
    query = Query("q", "s", Window(asked.range, asked.slide), named_as(**AGGREGATES), prods=asked.prods)
    memory = Memory()
    clocks: dict[int, int] = {}
    promises = stream.promises(asked.slide)
    times, arrivals = stream.times + EPOCH, stream.arrivals + EPOCH
    stamps = pa.array(times).cast(pa.timestamp("us", "UTC"))
    rows = pa.table({"ts": stamps, "v": pa.array(stream.values)})
    started = time.perf_counter()
    with TemporaryDirectory() as folder:
        engine = Engine(Program((STREAM,), (query,)), LocalBackend(), folder, {"q": memory})
        try:
            taken, told, moment = 0, 0, EPOCH
            while told < len(promises):
                due = _next_due(engine, asked, moment)
                moment = min(due, promises[told][0] + EPOCH)
                beats = {}
                while told < len(promises) and promises[told][0] + EPOCH <= moment:
                    beats["s"] = promises[told][1] + EPOCH
                    told += 1
                upto = int(np.searchsorted(arrivals, moment, side="right"))
                work = engine.round({"s": rows.slice(taken, upto - taken)} if upto > taken else {}, moment, beats)
                clocks[work.number], taken = moment, upto
        finally:
            engine.close()
    return Outcome(memory.table("q"), clocks, _first_arrivals(times, arrivals, asked), time.perf_counter() - started)


def _next_due(engine: Engine, asked: Asked, moment: int) -> int:
    """The next moment at which a prod can fall due."""
    found = [2**62]
    points: Sequence[float] = asked.points
    if asked.within is not None:
        control = engine.early.states["q"].control
        assert control is not None
        points = (*points, control.point)
    for point in points:
        lead = round((1 - point) * asked.slide)
        found.append((moment + lead) // asked.slide * asked.slide + asked.slide - lead)
    if asked.every is not None:
        found.append(moment - moment % asked.every + asked.every)
    return min(found)


def _first_arrivals(times: NDArray[np.int64], arrivals: NDArray[np.int64], asked: Asked) -> dict[int, int]:
    """When the first row of each window arrived."""
    panes = times - times % asked.slide
    known, place = np.unique(panes, return_inverse=True)
    earliest = np.full(len(known), 2**62, dtype=np.int64)
    np.minimum.at(earliest, place, arrivals)
    by_pane = dict(zip(known.tolist(), earliest.tolist(), strict=True))
    found: dict[int, int] = {}
    for pane, arrival in by_pane.items():
        for end in range(pane + asked.slide, pane + asked.range + 1, asked.slide):
            found[end] = min(found.get(end, arrival), arrival)
    return found


def _micros(moment: object) -> int:
    return int(pa.scalar(moment, pa.timestamp("us", "UTC")).cast(pa.int64()).as_py())
