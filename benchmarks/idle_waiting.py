"""What an operator of two inputs waits for: `python -m benchmarks.idle_waiting [--quick] [--json FILE]`.

The experiment of the Stream Mill paper (section 6): two streams of Poisson arrivals, 50 and 0.05 rows a second, each
through a selection that lets 95 % pass, and the union of both in the order of time. Rows of the fast stream have to
wait until the time of the slow one is known. Four scenarios:

- **A**: internal timestamps; the slow stream's time moves when its rows come (`timestamps = 'none'`);
- **B**: the silent stream is asked at intervals (`'every ...'`), for several rates;
- **C**: it is asked when the union waits for it (`'on demand'`);
- **D**: latent timestamps: the union does not order, and nobody waits. Nothing can be faster.

*Row by row* (`idle_waiting_records`): twenty minutes of rows through the scheduler of the time core, as in the paper's
figures 7 and 8. *In rounds*: every row is a round of the local engine, at the clock of its arrival. The latency of a
row is how long it waited by that clock, and what its round took, which is taken to be the same for all scenarios: the
median round of D. `c_over_d` compares so; `c_over_d_measured` takes each scenario's own rounds, with the noise of the
machine. *On Spark*: the same program in real time, rows from Spark's `rate` source; a row's latency is from its making
to the sink.

The last line is one JSON object: `records` with `latency_ms`, `idle_waiting` and `peak_rows` by scenario, `a_over_c`,
`c_minus_d_ms` and `a_peak_over_c`; for rounds `latency_ms`, `wait_ms` (the wait by the clock alone), `idle_waiting`
(the share of time in which the union holds rows) and `peak_rows` (rows held at once, those of the round under way
included) by scenario, `a_over_c`, `c_over_d`, `a_peak_over_c`, and `spark` with its own `latency_ms` and `a_over_c`.
In the paper: A is four orders of magnitude above C, C is 0.1 ms above D; the union waits 99 % of the time in A, 15 %
in B at 100 a second, below 0.1 % in C; A holds more than two orders of magnitude more rows than C.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.harness import as_duration, as_percent, finish, options, say, scratch, show_table
from benchmarks.idle_waiting_records import Measured, lines
from benchmarks.idle_waiting_records import play as play_records
from benchmarks.idle_waiting_spark import on_spark
from benchmarks.virtual_time import SECOND, Arrival, Played, play
from eventide.eventtime.scheduling.options import IdlePolling, Scheduling
from eventide.plan.declared.program import Program
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Stream, Timestamps, columns

COLUMNS = "id BIGINT, percent INT"
PASSING = "percent < 95"
FAST, SLOW = 50.0, 0.05
UNION = "all_rows"


@dataclass(frozen=True)
class Scenario:
    """How time is found; `rate` is that of periodic timestamps, per second."""

    name: str
    asking: IdlePolling
    latent: bool = False

    @property
    def scheduling(self) -> Scheduling:
        """How the engine is told."""
        return Scheduling(self.asking)

    @property
    def program(self) -> Program:
        """Two selections and their union."""
        timestamps = Timestamps.LATENT if self.latent else Timestamps.INTERNAL
        streams = tuple(Stream(name, columns(COLUMNS), timestamps=timestamps) for name in ("fast", "slow"))
        return program_over(streams, ordered=not self.latent)


def program_over(streams: tuple[Stream, ...], ordered: bool) -> Program:
    """The query graph of figure 4, over any streams of these columns."""
    chosen = tuple(Rows(f"{one.name}_chosen", (one.name,), where=PASSING, ordered=False) for one in streams)
    union = Rows(UNION, tuple(one.name for one in chosen), ordered=ordered)
    return Program(streams, operators=(*chosen, union))


def scenarios(rates: tuple[float, ...]) -> list[Scenario]:
    """A, B at these rates, C and D.

    >>> [one.name for one in scenarios((1.0,))]
    ['A', 'B 1/s', 'C', 'D']
    """
    periodic = [Scenario(f"B {rate:g}/s", IdlePolling.every(round(SECOND / rate))) for rate in rates]
    latent = Scenario("D", IdlePolling.on_demand(), latent=True)
    return [Scenario("A", IdlePolling.never()), *periodic, Scenario("C", IdlePolling.on_demand()), latent]


def poisson(seconds: float, seed: int) -> list[tuple[int, str, int]]:
    """Clock, stream and percent of every row, in the order of arrival; the slow stream ends the recording."""
    random = np.random.default_rng(seed)
    rows: list[tuple[int, str, int]] = []
    for name, rate in (("fast", FAST), ("slow", SLOW)):
        clock = 0.0
        while (clock := clock + random.exponential(1 / rate)) < seconds:
            rows.append((round(clock * SECOND), name, int(random.integers(100))))
    rows.sort()
    # Two rows of one microsecond would be one round: the clock of stamped rows moves on by one.
    return [(clock + place, name, percent) for place, (clock, name, percent) in enumerate(rows)]


def arrivals(rows: list[tuple[int, str, int]]) -> Iterator[Arrival]:
    """One row a round."""
    for number, (clock, name, percent) in enumerate(rows):
        row = {"id": pa.array([number], pa.int64()), "percent": pa.array([percent], pa.int32())}
        yield clock, {name: pa.table(row)}


@dataclass(frozen=True)
class Outcome:
    """What a scenario came to; waits in milliseconds of the clock."""

    waits: list[float]
    own_rounds: list[float]
    round_ms: float
    waiting_share: float
    peak_rows: int

    def latency(self, round_ms: float) -> float:
        """The mean wait, and a round that took so long."""
        return float(np.mean(self.waits)) + round_ms

    @property
    def measured(self) -> float:
        """The mean wait, and the median of the rounds that told the rows."""
        return float(np.mean(self.waits)) + median(self.own_rounds)


def outcome(rows: list[tuple[int, str, int]], played: Played) -> Outcome:
    """Compare what was told with what came; a row that waits to the end of the recording is told then."""
    told: dict[int, tuple[int, float]] = {}
    for clock, seconds, table in played.told.get(UNION, ()):
        for number in table.column("id").to_pylist():
            if number in told:
                raise SystemExit(f"row {number} was told twice")
            told[number] = clock, seconds
    wanted = [number for number, (_, _, percent) in enumerate(rows) if percent < 95]
    if extra := told.keys() - set(wanted):
        raise SystemExit(f"rows that no selection lets pass were told: {sorted(extra)[:5]}")
    if missing := set(wanted) - told.keys():
        raise SystemExit(f"rows were not told: {sorted(missing)[:5]}")
    waits = [told[one][0] - rows[one][0] for one in wanted]
    rounds = [1000 * told[one][1] for one in wanted]
    round_ms = 1000 * median(played.seconds)
    # The row of the round under way is held, too.
    peak = played.peak_rows + 1
    return Outcome([wait / 1000 for wait in waits], rounds, round_ms, played.waiting_share, peak)


def virtual(seconds: float, rates: tuple[float, ...], folder: Path) -> dict[str, Outcome]:
    """Every scenario over the same rows."""
    rows = poisson(seconds, seed=7)
    until = round(seconds * SECOND)
    found = {}
    for number, scenario in enumerate(scenarios(rates)):
        played = play(
            scenario.program,
            (UNION,),
            arrivals(rows),
            until,
            folder / str(number),
            scenario.scheduling,
            tick=SECOND // 100,
            waiting=(UNION,),
        )
        found[scenario.name] = outcome(rows, played)
    return found


def report(found: dict[str, Outcome]) -> dict[str, Any]:
    """The table, and the numbers of the last line."""
    round_ms = found["D"].round_ms
    latency = {name: one.latency(round_ms) for name, one in found.items()}
    show_table(
        "Two selections and a union in virtual time, one row a round",
        ("scenario", "latency", "with its own rounds", "union waits", "peak rows"),
        [
            (name, as_duration(latency[name]), as_duration(one.measured), as_percent(one.waiting_share), one.peak_rows)
            for name, one in found.items()
        ],
    )
    return {
        "latency_ms": latency,
        "wait_ms": {name: float(np.mean(one.waits)) for name, one in found.items()},
        "idle_waiting": {name: one.waiting_share for name, one in found.items()},
        "peak_rows": {name: one.peak_rows for name, one in found.items()},
        "a_over_c": latency["A"] / latency["C"],
        "c_over_d": latency["C"] / latency["D"],
        "c_over_d_measured": found["C"].measured / found["D"].measured,
        "a_peak_over_c": found["A"].peak_rows / found["C"].peak_rows,
    }


def by_records(seconds: float, rates: tuple[float, ...]) -> dict[str, Any]:
    """Figures 7 and 8: the table, and its numbers."""
    rows = poisson(seconds, seed=7)
    # What is run for the first time is slower than ever after.
    play_records(lines(())[-1], rows[:500])
    found: dict[str, Measured] = {}
    for line in lines(rates):
        found[line.name] = play_records(line, rows)
        say(f"{line.name}: {found[line.name].rows:,} rows")
    show_table(
        f"Figures 7 and 8: two selections and a union, row by row, {seconds:g} s of rows",
        ("scenario", "latency", "union waits", "peak queue"),
        [
            (name, as_duration(one.latency_ms), as_percent(one.waiting_share), one.peak_rows)
            for name, one in found.items()
        ],
    )
    latency = {name: one.latency_ms for name, one in found.items()}
    return {
        "latency_ms": latency,
        "idle_waiting": {name: one.waiting_share for name, one in found.items()},
        "peak_rows": {name: one.peak_rows for name, one in found.items()},
        "a_over_c": latency["A"] / latency["C"],
        "c_minus_d_ms": latency["C"] - latency["D"],
        "a_peak_over_c": found["A"].peak_rows / found["C"].peak_rows,
    }


def main() -> None:
    """All parts."""
    asked = options("idle-waiting of a union: none, periodic and on-demand timestamps, and latent ones")
    seconds, rates = (2.0, (100.0,)) if asked.quick else (20.0, (1.0, 100.0))
    say(f"{seconds:g} s of rows, {FAST:g} and {SLOW:g} a second")
    records = by_records(200.0 if asked.quick else 1_200.0, (0.1, 1.0, 10.0, 100.0, 1_000.0))
    with scratch() as folder:
        results = {"records": records, **report(virtual(seconds, rates, folder))}
        results["spark"] = on_spark(folder, seconds=6.0 if asked.quick else 20.0)
    finish(asked, results)


if __name__ == "__main__":
    main()
