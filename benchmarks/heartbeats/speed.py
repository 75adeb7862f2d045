"""How long a round takes our own policy, and how many rows a second the dry run gets through.

A round is digested into cells, so its cost follows the number of sources, not of rows: about a millisecond for 1,000
sources, at most a tenth of a second for 100,000. Every source speaks in every round, in three stretches of time each.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.profile.dry_run import dry_runs, timetable
from eventide.profile.profiling import candidates, clairvoyant, fixed_best
from eventide.testing.streams import MILLISECOND, SECOND, START, arrived, emissions, exponential

CELLS_PER_SOURCE = 3
DROP_RATIO = 0.01


def round_of(rng: np.random.Generator, number: int, sources: int) -> Arrivals:
    """A round of one second in which every source sent rows of the last three seconds, one in each.

    >>> r = round_of(np.random.default_rng(0), number=4, sources=10)
    >>> len(r.sources), len(r.rows)
    (10, 30)
    """
    clock = START + number * SECOND
    source = np.repeat(np.arange(sources), CELLS_PER_SOURCE)
    age = np.tile(np.arange(CELLS_PER_SOURCE) * SECOND, sources) + rng.integers(1, SECOND, len(source))
    return Arrivals.of_rows(clock, source, clock - age, cell_width=SECOND)


def milliseconds_per_round(sources: int, rounds: int) -> float:
    """Median time that one round takes `DropRatio`: observe it, and answer with heartbeats."""
    rng = np.random.default_rng(1)
    generator = DropRatio(DROP_RATIO).start()
    taken = []
    for number in range(rounds):
        arrivals = round_of(rng, number, sources)
        begin = perf_counter()
        generator.observe(arrivals)
        generator.heartbeats(arrivals.clock)
        taken.append(perf_counter() - begin)
    # The first rounds make room for the sources; a long run never sees them again.
    return 1000 * float(np.median(taken[rounds // 5 :]))


def rows_per_second(rows: int) -> float:
    """Rows that a dry run in rounds of a second gets through, with every policy and both yardsticks."""
    rng = np.random.default_rng(1)
    time, source = emissions(rng, rows=rows, seconds=rows / 10_000, sources=100)
    recording = arrived("speed", time, time + exponential(rng, 300.0 * MILLISECOND, rows), source)
    begin = perf_counter()
    plan = timetable(recording, SECOND)
    dry_runs(plan, candidates(DROP_RATIO))
    clairvoyant(plan, DROP_RATIO)
    fixed_best(plan, DROP_RATIO)
    return rows / (perf_counter() - begin)


def measure(quick: bool) -> dict[str, float]:
    """All three figures, under their names in the last line."""
    return {
        "rows_per_second": rows_per_second(500_000 if quick else 5_000_000),
        "ms_per_round_1000_sources": milliseconds_per_round(1_000, rounds=50 if quick else 500),
        "ms_per_round_100000_sources": milliseconds_per_round(100_000, rounds=5 if quick else 30),
    }
