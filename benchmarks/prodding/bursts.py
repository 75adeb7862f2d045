"""Bursts before an expensive function, as figures 4.5 and 6.3 of the thesis show them: on the engine's own queue.

Law: rows arrive at their times, and a window is over at its end; only the expensive function, which takes so many rows
a second, holds answers back. Rounds are a fifth of a second of virtual time, so moments are exact to that. With and
without setting bursts aside, every window has the same final answer, that of all its rows: the thesis' prototype never
processed what it had set aside.
"""

from __future__ import annotations

from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.prodding.runs import EPOCH
from benchmarks.prodding.streams import SECOND, Recorded, bursty
from eventide.engine.local.backend import LocalBackend
from eventide.engine.round.engine import Engine
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Prods, Query, named_as
from eventide.plan.declared.rows import Sideline, queued
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import Window
from eventide.results.error import errors
from eventide.sinks.sink import Memory

ROWS_PER_SECOND = 200
ROUND = SECOND // 5
RANGE, SLIDE = 5 * SECOND, SECOND
STREAM = Stream("s", columns("ts TIMESTAMP, v DOUBLE"), time="ts", policy=Punctuated())


@dataclass(frozen=True)
class Answers:
    """When each window was answered, in seconds after its end, and what was said."""

    ends: Any
    early: dict[int, tuple[float, float]]
    """By the end of a window: the delay and the value of its first early answer."""
    final: dict[int, tuple[float, float]]

    def summary(self) -> dict[str, float]:
        """What the figure shows, in numbers."""
        delays = np.array([delay for delay, _ in self.final.values()])
        both = sorted(self.early.keys() & self.final.keys())
        early, final = (pa.array([told[end][1] for end in both]) for told in (self.early, self.final))
        accuracy = 100 * (1 - errors(early, final)) if both else np.zeros(0)
        gains = [self.final[end][0] - self.early[end][0] for end in both]
        return {
            "windows": len(self.final),
            "early_answers": len(both),
            "accuracy": float(np.mean(accuracy)) if both else 100.0,
            "gain": float(np.mean(gains)) if both else 0.0,
            "final_delay_mean": float(delays.mean()),
            "final_delay_median": float(np.median(delays)),
            "final_delay_worst": float(delays.max()),
            "late_windows": int((delays > 1).sum()),
        }


def answered(stream: Recorded, sideline: Sideline | None) -> Answers:
    """Q4-2 over a bursty stream, prodded every second, through a queue."""
    query = Query("q", "s", Window(RANGE, SLIDE), named_as(most="max(v)"), prods=Prods(every=SECOND))
    queue, query = queued(query, ("s",), "q_queue", room=ROWS_PER_SECOND * ROUND // SECOND, sideline=sideline)
    memory, clocks = Memory(), dict[int, int]()
    times = stream.times + EPOCH
    rows = pa.table({"ts": pa.array(times).cast(pa.timestamp("us", "UTC")), "v": pa.array(stream.values)})
    last = int(times[-1]) - int(times[-1]) % SLIDE + SLIDE
    with TemporaryDirectory() as folder:
        engine = Engine(Program((STREAM,), (query,), (queue,)), LocalBackend(), folder, {"q": memory})
        try:
            taken, clock = 0, EPOCH
            while clock <= last or engine.is_behind:
                clock += ROUND
                upto = int(np.searchsorted(times, clock))
                given = {"s": rows.slice(taken, upto - taken)} if upto > taken else {}
                work = engine.round(given, clock, {"s": min(clock, last) - 1})
                clocks[work.number], taken = clock, upto
        finally:
            engine.close()
    table = memory.table("q")
    ends = table.column("window_end").cast(pa.int64()).to_pylist()
    told: dict[str, dict[int, tuple[float, float]]] = {"early": {}, "final": {}}
    for kind, end, number, most in zip(
        table.column("kind").to_pylist(),
        ends,
        table.column("round").to_pylist(),
        table.column("most").to_pylist(),
        strict=True,
    ):
        delay = (clocks[number] - end) / SECOND
        # A window that is final within its own second needed no early answer; one before its end is none for it.
        if kind == "final" or delay >= 0:
            told[kind].setdefault(end, (delay, most))
    return Answers(sorted(told["final"]), told["early"], told["final"])


def burst_windows(stream: Recorded) -> set[int]:
    """The ends of the windows that hold a burst: a slide with more rows than the function can take in it."""
    counts = np.bincount(stream.times // SLIDE)
    bursts = np.flatnonzero(counts > ROWS_PER_SECOND * SLIDE // SECOND)
    return {EPOCH + int(slide) * SLIDE + end for slide in bursts for end in range(SLIDE, RANGE + SLIDE, SLIDE)}


def figures(quick: bool) -> tuple[dict[str, Any], dict[str, Answers]]:
    """Figures 4.5 (a burst in a queue) and 6.3 (with bursts set aside); the numbers, and what is drawn."""
    stream = bursty(45 if quick else 100, seed=1)
    stream = Recorded(stream.times, stream.values, stream.times)
    kinds = {"waiting": None, "set aside": Sideline(), "one in three": Sideline(one_in=3)}
    found = {name: answered(stream, sideline) for name, sideline in kinds.items()}
    same = {end: most for end, (_, most) in found["waiting"].final.items()}
    told = {name: answers.summary() for name, answers in found.items()}
    others = found["waiting"].final.keys() - burst_windows(stream)
    for name, answers in found.items():
        told[name]["same_finals"] = {end: most for end, (_, most) in answers.final.items()} == same
        delays = {end: (answers.final[end][0], found["waiting"].final[end][0]) for end in others}
        told[name]["others"] = len(others)
        told[name]["others_later"] = sum(ours > waiting for ours, waiting in delays.values())
        told[name]["others_earlier"] = sum(ours < waiting for ours, waiting in delays.values())
    told["thesis"] = {"accuracy": 91.37}
    return told, found
