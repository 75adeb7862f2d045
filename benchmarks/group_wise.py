"""Closing source by source against closing together: `python -m benchmarks.group_wise [--quick] [--json FILE]`.

The same rows, in the order and at the times in which they arrived, through the local engine: one window aggregate for
each source, three times.

- *by source*: CLOSE BY SOURCE, each source by its own progress (`OwnProgress`);
- *together*: the same heartbeats, but windows close with the combined one;
- *largest time - delay*: the rule of Spark's watermark, with the smallest delay that loses no larger share of the rows
  than closing by source does. Nobody can know it beforehand. Spark itself would tell windows one batch later still.

Time is virtual: a round has all rows that arrived within so many milliseconds and ends at the last of them. The *lag of
a row* is from its arrival until no earlier row can count any more, as far as its group knows; what the recording leaves
open is closed by its end. The *lag of a result* is from the arrival of the last row in it until it is told.

Streams: the two recordings of Windows event logs (`winlog_hosts`, looked up in `../shared/data`; without them only the
fleet is run), and a generated fleet: devices in order, each behind by a delay of its own, some of them far, some silent
for a while.

The last line is one JSON object: for every stream `median_lag_ms`, `median_result_lag_ms` and `drop_ratio` of each of
the three; `median_lag_ratio`, the lag of rows by source over that together, the larger one of both recordings (that of
the fleet without them); `median_lag_ratio_to_watermark`, the same over the rule of the watermark; and both for results.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.harness import as_duration, as_percent, finish, options, say, scratch, show_table
from benchmarks.heartbeats.recordings import RUNS
from eventide.engine.local.backend import LocalBackend
from eventide.engine.round.engine import Engine
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.instant import NEVER, Instants
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import Window

SECOND, MILLISECOND = 1_000_000, 1_000
WINDOW = 10 * SECOND
COLUMNS = columns("ts BIGINT, arrived BIGINT, who BIGINT")
WAYS = ("by_source", "together", "watermark")


@dataclass(frozen=True)
class Rows:
    """Rows as they arrived: microseconds, and numbers of sources."""

    name: str
    time: Instants
    arrival: Instants
    source: Instants


@dataclass(frozen=True)
class Measured:
    """Lags in milliseconds, and the share of rows that came too late."""

    lag: float
    result_lag: float
    drop_ratio: float


def fleet(devices: int, seconds: int, seed: int = 1) -> Rows:
    """Devices that tell something about once a second, in order; one in twenty is a minute or two behind."""
    random = np.random.default_rng(seed)
    count = devices * seconds
    source = np.arange(count) % devices
    time = (np.sort(random.uniform(0, seconds, count)) * SECOND).astype(np.int64)
    behind = random.lognormal(np.log(0.5), 0.7, devices)
    behind[random.permutation(devices)[: max(1, devices // 20)]] = random.uniform(60, 120, max(1, devices // 20))
    # Every device is off for a tenth of the time: what it has to tell waits until it is back.
    off = random.uniform(0, seconds * 0.9, devices)[source] * SECOND
    back = off + seconds * 0.1 * SECOND
    sent = np.where((time >= off) & (time < back) & (source % 4 == 0), back, time)
    arrival = (sent + behind[source] * SECOND).astype(np.int64)
    order = np.lexsort((time, arrival))
    return Rows("fleet", time[order], arrival[order], source[order])


def rounds_of(arrival: Instants, width: int) -> tuple[Instants, Instants]:
    """The number of each row's round, and the clock of every round."""
    _, number = np.unique(arrival // width, return_inverse=True)
    clock = np.zeros(int(number.max()) + 1, dtype=np.int64)
    np.maximum.at(clock, number, arrival)
    return number.astype(np.int64), clock


def delay_that_loses(share: float, rows: Rows, number: Instants) -> int:
    """The smallest delay behind the largest time (whole milliseconds) with which no larger share of rows is late."""
    largest = np.full(int(number.max()) + 2, NEVER, dtype=np.int64)
    np.maximum.at(largest, number + 1, rows.time)
    seen = np.maximum.accumulate(largest)[number]
    ends = rows.time - rows.time % WINDOW + WINDOW
    missed = np.where(seen == NEVER, NEVER, seen + 1 - ends)
    allowed = int(share * len(missed))
    worst = np.sort(missed)[::-1][allowed]
    return max(0, -(-int(worst + 1) // MILLISECOND) * MILLISECOND)


class Play:
    """Rows through an engine, round by round; keeps every heartbeat, and when each result was told."""

    def __init__(self, rows: Rows, width: int, policy: Policy, queries: tuple[Query, ...], checkpoint: Path) -> None:
        self.rows = rows
        self.number, self.clock = rounds_of(rows.arrival, width)
        stream = Stream("s", COLUMNS, time="ts", source=("who",), arrival="arrived", policy=policy)
        engine = Engine(Program((stream,), queries), LocalBackend(), str(checkpoint))
        table = pa.table({"ts": rows.time, "arrived": rows.arrival, "who": rows.source.astype(np.int64)})
        edges = np.searchsorted(self.number, np.arange(len(self.clock) + 1))
        self.combined = np.full(len(self.clock), NEVER, dtype=np.int64)
        self.own = np.full((len(self.clock), int(rows.source.max()) + 1), NEVER, dtype=np.int64)
        self.told: dict[str, list[pa.Table]] = {query.name: [] for query in queries}
        for place, clock in enumerate(self.clock.tolist()):
            work = engine.round({"s": table.slice(edges[place], edges[place + 1] - edges[place])}, clock)
            time = engine.streams["s"]
            beats = time.promise(clock)
            self.combined[place] = beats.combined
            self.own[place] = beats.combined
            known = np.array([int(name) for name in time.sources.to_pylist()], dtype=np.intp)
            self.own[place, known] = beats.by_source
            self._keep(work.results)
        self._keep(engine.end(int(self.clock[-1])).results)
        self.drop_ratio = {name: self._late(name) for name in self.told}
        engine.close()

    def _keep(self, results: Any) -> None:
        for name, tables in self.told.items():
            if results[name].rows:
                tables.append(results[name].table())

    def _late(self, query: str) -> float:
        counted = sum(pc.sum(table.column("rows")).as_py() for table in self.told[query])
        return float(1 - counted / len(self.rows.time))

    def measured(self, query: str, by_source: bool) -> Measured:
        """Of the rows that counted, and of the results of a query."""
        rows = self.rows
        beats = self.own if by_source else np.broadcast_to(self.combined[:, None], self.own.shape)
        closed_in = np.empty(len(rows.time), dtype=np.int64)
        for source in np.unique(rows.source):
            of = rows.source == source
            closed_in[of] = np.searchsorted(beats[:, source], rows.time[of])
        closed_in = np.minimum(np.maximum(closed_in, self.number), len(self.clock) - 1)
        lag = self.clock[closed_in] - rows.arrival
        return Measured(
            float(np.median(lag)) / MILLISECOND, self._result_lag(query) / MILLISECOND, self.drop_ratio[query]
        )

    def _result_lag(self, query: str) -> float:
        told = pa.concat_tables(self.told[query])
        clock = np.append(self.clock, self.clock[-1])[told.column("round").to_numpy()]
        start = self.rows.time - self.rows.time % WINDOW
        # Rows are in the order of arrival: of each group, the last one stays.
        groups = zip(start.tolist(), self.rows.source.tolist(), strict=True)
        last = dict(zip(groups, self.rows.arrival.tolist(), strict=True))
        keys = zip(told.column("window_start").to_pylist(), told.column("who").to_pylist(), strict=True)
        return float(np.median(clock - np.array([last[key] for key in keys])))


def compared(rows: Rows, width: int, folder: Path) -> dict[str, Measured]:
    """Each of the three ways over the same rows."""

    def query(name: str, by_source: bool = False) -> Query:
        return Query(name, "s", Window(WINDOW), named_as(n="count(*)"), named_as("who"), by_source=by_source)

    ours = Play(rows, width, OwnProgress(), (query("own", by_source=True), query("all")), folder / "ours")
    delay = delay_that_loses(ours.drop_ratio["own"], rows, ours.number)
    theirs = Play(rows, width, FixedDelay(delay), (query("all"),), folder / "theirs")
    found = ours.measured("own", True), ours.measured("all", False), theirs.measured("all", False)
    say(f"{rows.name}: {len(rows.time):,} rows, {len(np.unique(rows.source))} sources, delay {delay / SECOND:g} s")
    return dict(zip(WAYS, found, strict=True))


def main() -> None:
    """Run it."""
    asked = options("closing source by source against closing together")
    width = (1_000 if asked.quick else 200) * MILLISECOND
    streams = []
    for run in RUNS:
        recording = run.load() if run.name.startswith("winlog") else None
        if recording is not None:
            streams.append(Rows(run.name, recording.time, recording.arrival, recording.source.astype(np.int64)))
    if not streams:
        say("the recordings of Windows event logs are not in ../shared/data: only the fleet is run")
    streams.append(fleet(40, 300) if asked.quick else fleet(200, 600))
    results: dict[str, Any] = {}
    for rows in streams:
        with scratch() as folder:
            found = compared(rows, width, folder)
        results[rows.name] = {
            "median_lag_ms": {way: found[way].lag for way in WAYS},
            "median_result_lag_ms": {way: found[way].result_lag for way in WAYS},
            "drop_ratio": {way: found[way].drop_ratio for way in WAYS},
        }
        lines = [
            (way, as_duration(found[way].lag), as_duration(found[way].result_lag), as_percent(found[way].drop_ratio))
            for way in WAYS
        ]
        show_table(rows.name, ("closing", "median lag of rows", "median lag of results", "late"), lines)
    finish(asked, {**results, **_ratios(results)})


def _ratios(results: dict[str, Any]) -> dict[str, float]:
    """The worst of the recordings; the fleet where there are none."""
    recorded = [found for name, found in results.items() if name != "fleet"] or [results["fleet"]]

    def worst(key: str, other: str) -> float:
        return float(max(found[key]["by_source"] / max(found[key][other], 1e-9) for found in recorded))

    return {
        "median_lag_ratio": worst("median_lag_ms", "together"),
        "median_lag_ratio_to_watermark": worst("median_lag_ms", "watermark"),
        "median_result_lag_ratio": worst("median_result_lag_ms", "together"),
        "median_result_lag_ratio_to_watermark": worst("median_result_lag_ms", "watermark"),
    }


if __name__ == "__main__":
    main()
