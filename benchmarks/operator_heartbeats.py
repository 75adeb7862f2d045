"""Where heartbeats are compared: `python -m benchmarks.operator_heartbeats [--quick] [--json FILE]`.

The plan of figure 5 of the STREAM paper (section 7), in virtual time on the local engine: O1 joins S1 and S2, which are
nearly synchronous, and O2 joins what O1 gives with S3, which is far behind. Three ways (`SET heartbeats`):

- *query*: O1 waits for S3 as well, though it does not read it; its inputs are kept until then.
- *operator*: O1 runs as soon as S1 and S2 allow; what it gives is kept until S3 has caught up.
- *memory*: as *operator*, unless O1 is found to give more rows than it takes; then as *query*.

Once with a selective O1 (many keys: few rows have a partner) and once with one that proliferates (few keys: each has
many). A row of the result is late by what it waited after the row of S3 that completes it, by the clock, and by what
the round took that told it.

The last line is one JSON object, for `selective` and `proliferating`: `latency_ms`, `peak_rows` by way, and `results`.
Results must be the same for all three ways.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.harness import as_duration, finish, options, say, scratch, show_table
from benchmarks.virtual_time import SECOND, Arrival, Played, play
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.scheduling.labels import HeartbeatScope
from eventide.eventtime.scheduling.options import Scheduling
from eventide.plan.declared.join import Band, Join, Side
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import named_as
from eventide.plan.declared.stream import Stream, columns

COLUMNS = "ts TIMESTAMP, k INT, id BIGINT"
NAMES = ("S1", "S2", "S3")
NEAR = SECOND
"""Rows of S1 and S2 are partners within a second."""

ROUND = SECOND // 4
START = 1_700_000_000 * SECOND


@dataclass(frozen=True)
class Case:
    """How many keys, rows a second, how far S3 is behind, and how long it all takes."""

    keys: int
    rate: int
    behind: int
    seconds: int

    @property
    def until(self) -> int:
        """The last clock."""
        return START + (self.seconds + self.behind) * SECOND


def program() -> Program:
    """Figure 5."""
    streams = tuple(Stream(name, columns(COLUMNS), time="ts", policy=FixedDelay(0)) for name in NAMES)
    first = Join(
        "O1",
        Side("S1", keys=("k",)),
        Side("S2", keys=("k",)),
        (Band("ts", "ts", -NEAR, NEAR),),
        select=named_as(ts="S1.ts", k="S1.k", id1="S1.id", id2="S2.id"),
    )
    second = Join(
        "O2",
        Side("O1", keys=("k",)),
        Side("S3", keys=("k",)),
        (Band("ts", "ts", -NEAR, NEAR),),
        select=named_as(id1="O1.id1", id2="O1.id2", id3="S3.id"),
    )
    return Program(streams, operators=(first, second))


def arrivals(case: Case, seed: int) -> Iterator[Arrival]:
    """S1 and S2 as they happen, S3 so many seconds later; S3 has a row for each of a few keys every second."""
    random = np.random.default_rng(seed)
    rounds, behind = case.seconds * SECOND // ROUND, case.behind * SECOND // ROUND
    third = [_rows(random, case, START + place * ROUND, max(1, case.rate // 50)) for place in range(rounds)]
    for place in range(rounds + behind):
        clock = START + (place + 1) * ROUND
        found = {}
        if place < rounds:
            count = case.rate * ROUND // SECOND
            found = {name: _rows(random, case, START + place * ROUND, count) for name in NAMES[:2]}
        if place >= behind:
            found["S3"] = third[place - behind]
        if found:
            yield clock, found


def _rows(random: np.random.Generator, case: Case, start: int, count: int) -> pa.Table:
    times = np.sort(start + random.integers(ROUND, size=count))
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "k": pa.array(random.integers(case.keys, size=count).astype(np.int32)),
            "id": pa.array(times),
        }
    )


def run(case: Case, folder: Path) -> dict[HeartbeatScope, Played]:
    """Each way over the same rows."""
    return {
        level: play(
            program(),
            ("O2",),
            arrivals(case, seed=11),
            case.until,
            folder / level.value,
            Scheduling(heartbeats=level),
            tick=ROUND,
        )
        for level in (HeartbeatScope.QUERY, HeartbeatScope.OPERATOR, HeartbeatScope.MEMORY)
    }


def latency_ms(played: Played, behind: int) -> float:
    """From the arrival of the row of S3 that completes a result to the end of the round that told it."""
    waits = []
    for clock, seconds, table in played.told.get("O2", ()):
        if clock == played.until:
            # Told because everything ended, not because anyone had caught up.
            continue
        # A row of S3 comes with the round that ends its quarter of a second, `behind` later.
        came = np.asarray(table.column("id3")) // ROUND * ROUND + ROUND + behind * SECOND
        waits += [(clock - one) / 1000 + 1000 * seconds for one in came.tolist()]
    return mean(waits) if waits else 0.0


def rows_told(played: Played) -> list[tuple[int, ...]]:
    """The results, in an order that does not depend on rounds."""
    found = []
    for _, _, table in played.told.get("O2", ()):
        found += list(zip(*(table.column(name).to_pylist() for name in ("id1", "id2", "id3")), strict=True))
    return sorted(found)


def measured(name: str, case: Case, folder: Path) -> dict[str, Any]:
    """One case: its table and numbers."""
    found = run(case, folder)
    answers = {level: rows_told(played) for level, played in found.items()}
    if len({tuple(one) for one in answers.values()}) > 1:
        counts = {level.value: len(one) for level, one in answers.items()}
        raise SystemExit(f"{name}: the three ways do not give the same results: {counts}")
    latency = {level.value: latency_ms(played, case.behind) for level, played in found.items()}
    peak = {level.value: played.peak_rows for level, played in found.items()}
    show_table(
        f"{name}: S3 is {case.behind} s behind, {len(answers[HeartbeatScope.QUERY]):,} results",
        ("heartbeats", "latency", "peak rows"),
        [(level.value, as_duration(latency[level.value]), f"{peak[level.value]:,}") for level in found],
    )
    return {"latency_ms": latency, "peak_rows": peak, "results": len(answers[HeartbeatScope.QUERY])}


def main() -> None:
    """Both cases."""
    asked = options("query-level, operator-level and memory-aware heartbeats where one stream is far behind")
    rate, behind, seconds = (200, 5, 10) if asked.quick else (1_000, 20, 40)
    say(f"{rate:,} rows a second on S1 and on S2")
    cases = {
        "selective": Case(20 * rate, rate, behind, seconds),
        "proliferating": Case(rate // 4, rate, behind, seconds),
    }
    with scratch() as folder:
        found = {name: measured(name, case, folder / name) for name, case in cases.items()}
    finish(asked, found)


if __name__ == "__main__":
    main()
