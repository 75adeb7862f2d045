"""How good is the automatic grouping of sources? `python -m benchmarks.grouping [--quick] [--json FILE]`.

Added delay is the mean delay of heartbeats in groups less that of sources alone, by the model of `heartbeat_delay`,
always with the true join of bounds. Four kinds of systems:

- sensors: clocks off by a lognormal deviation, latencies likewise;
- counter: tokens of a global counter, with processing times of very different sources;
- kinds: sensors of four kinds, each kind nearly alike, in shuffled order;
- matrix: every pair has two random bounds (quick and loose, slow and tight), the hardest to group.

The last line is one JSON object. For few sources: `optimal_share` of systems on which the heuristic finds the optimum,
`mean_over_optimum` and `worst_over_optimum` of its added delay. For many: `over_random` and `over_blocks`, its added
delay over that of random groups and of neighbours by number (geometric means). `model_error`: how far the model's delay
lies from one measured by running the heartbeat generator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

import numpy as np

from benchmarks.harness import as_percent, finish, options, say, show_table
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.instant import NEVER
from eventide.eventtime.policies.skew.bounds import TimeBound
from eventide.eventtime.policies.skew.declared import DeclaredSkew
from eventide.eventtime.policies.skew.grouping import expected_delay, group, partition
from eventide.eventtime.policies.skew.matrix import Skew, SkewMatrix
from eventide.eventtime.policies.skew.per_source import distributed_sensors, global_counter
from eventide.eventtime.policies.wrappers.source_groups import MergedSources

GAP = 200.0
Assignment = tuple[int, ...]


def _lognormal(random: np.random.Generator, n: int, median: float) -> list[int]:
    return [int(value) for value in median * np.exp(random.normal(0, 1, n))]


def _sensors(random: np.random.Generator, n: int) -> Skew:
    return distributed_sensors(_lognormal(random, n, 300), _lognormal(random, n, 100))


def _counter(random: np.random.Generator, n: int) -> Skew:
    fastest = _lognormal(random, n, 50)
    extra = _lognormal(random, n, 300)
    return global_counter(
        fastest, [low + more for low, more in zip(fastest, extra, strict=True)], _lognormal(random, n, 100)
    )


def _kinds(random: np.random.Generator, n: int) -> Skew:
    kind = random.integers(0, 4, n)
    deviation = np.array([20, 150, 600, 2500])[kind] * random.uniform(0.9, 1.1, n)
    latency = np.array([400, 30, 100, 10])[kind] * random.uniform(0.9, 1.1, n)
    return distributed_sensors([int(d) for d in deviation], [int(at) for at in latency])


def _matrix(random: np.random.Generator, n: int) -> Skew:
    def bounds() -> list[TimeBound]:
        loose, slow = random.exponential(500, 2)
        return [TimeBound(0, int(loose)), TimeBound(int(slow), int(loose / 5))]

    return SkewMatrix.of([[bounds() for _ in range(n)] for _ in range(n)], _lognormal(random, n, 100))


SYSTEMS: dict[str, Callable[[np.random.Generator, int], Skew]] = {
    "sensors": _sensors,
    "counter": _counter,
    "kinds": _kinds,
    "matrix": _matrix,
}


def all_partitions(n: int, groups: int) -> Iterator[Assignment]:
    """Every assignment of n sources to at most `groups` groups, each grouping once.

    >>> len(list(all_partitions(4, 2)))
    8
    """

    def extend(start: Assignment) -> Iterator[Assignment]:
        if len(start) == n:
            yield start
            return
        for label in range(min(max(start, default=-1) + 2, groups)):
            yield from extend((*start, label))

    return extend(())


def blocks(n: int, groups: int) -> Assignment:
    """Neighbours by number, in equal parts.

    >>> blocks(5, 2)
    (0, 0, 0, 1, 1)
    """
    return tuple(k * groups // n for k in range(n))


def _shuffled(random: np.random.Generator, n: int, groups: int) -> Assignment:
    return tuple(int(label) for label in random.permutation(np.array(blocks(n, groups))))


def against_optimum(quick: bool) -> dict[str, dict[str, float]]:
    """Added delay over the least possible, for systems small enough to try every grouping."""
    results = {}
    for name, make in SYSTEMS.items():
        ratios = []
        for seed in range(4 if quick else 30):
            random = np.random.default_rng(seed)
            n, m = (5, 2) if quick else ((7, 2), (7, 3), (6, 3))[seed % 3]
            skew = make(random, n)
            alone = expected_delay(skew, GAP)
            least = min(expected_delay(skew, GAP, assignment=a) for a in all_partitions(n, m)) - alone
            found = expected_delay(skew, GAP, assignment=partition(skew, m, GAP)) - alone
            ratios.append((found + 1) / (least + 1))
        results[name] = {
            "optimal_share": float(np.mean(np.array(ratios) < 1.001)),
            "mean_over_optimum": float(np.mean(ratios)),
            "worst_over_optimum": float(np.max(ratios)),
        }
    return results


def against_naive(quick: bool) -> dict[str, dict[str, float]]:
    """Added delay over that of random groups and of neighbours by number, for larger systems."""
    results = {}
    n, m = (24, 4) if quick else (60, 6)
    for name, make in SYSTEMS.items():
        over_random, over_blocks, seconds = [], [], []
        for seed in range(2 if quick else 6):
            random = np.random.default_rng(100 + seed)
            skew = make(random, n)
            alone = expected_delay(skew, GAP)
            started = perf_counter()
            assignment = partition(skew, m, GAP)
            seconds.append(perf_counter() - started)
            found = expected_delay(skew, GAP, assignment=assignment) - alone + 1
            chance = [expected_delay(skew, GAP, assignment=_shuffled(random, n, m)) - alone + 1 for _ in range(5)]
            over_random.append(found / np.mean(chance))
            over_blocks.append(found / (expected_delay(skew, GAP, assignment=blocks(n, m)) - alone + 1))
        results[name] = {
            "over_random": float(np.exp(np.mean(np.log(over_random)))),
            "over_blocks": float(np.exp(np.mean(np.log(over_blocks)))),
            "seconds": float(np.mean(seconds)),
        }
    return results


def measured_delay(skew: Skew, assignment: Assignment, rows: int, seed: int) -> float:
    """The mean delay of heartbeats when the generator runs on sources that speak at random, in step with the clock."""
    random = np.random.default_rng(seed)
    n = len(assignment)
    generator = MergedSources(DeclaredSkew(group(skew, assignment), clock_unit=1), assignment).start()
    clock, total, weight = 0.0, 0.0, 0
    for _ in range(rows):
        clock += random.exponential(GAP / n)
        # Ask first: a heartbeat is seen by someone who comes at a random moment, not by the row that lifts it.
        heartbeats = generator.heartbeats(int(clock)).by_source
        if heartbeats.min() > NEVER:
            total += float((clock - heartbeats).mean())
            weight += 1
        generator.observe(Arrivals.of_row(int(clock), int(random.integers(n)), int(clock)))
    return total / weight


def model_error(quick: bool) -> float:
    """The largest relative difference between the model's delay and the measured one, over a few systems."""
    errors = []
    for name in ("sensors", "counter", "kinds"):
        skew = SYSTEMS[name](np.random.default_rng(7), 8)
        for assignment in (tuple(range(8)), partition(skew, 3, GAP)):
            modelled = expected_delay(skew, GAP, assignment=assignment)
            errors.append(abs(measured_delay(skew, assignment, 1_000 if quick else 10_000, seed=1) / modelled - 1))
    return max(errors)


def main() -> None:
    """Measure, show, and end with the line of JSON."""
    asked = options("automatic grouping of sources")
    small, large = against_optimum(asked.quick), against_naive(asked.quick)
    show_table(
        "few sources: added delay of the heuristic over the least possible",
        ["system", "optimum found", "mean ratio", "worst ratio"],
        [
            (name, as_percent(r["optimal_share"]), f"{r['mean_over_optimum']:.3f}", f"{r['worst_over_optimum']:.3f}")
            for name, r in small.items()
        ],
    )
    show_table(
        "many sources: added delay of the heuristic over that of naive groupings",
        ["system", "over random", "over neighbours by number", "seconds"],
        [
            (name, f"{r['over_random']:.2f}", f"{r['over_blocks']:.2f}", f"{r['seconds']:.2f}")
            for name, r in large.items()
        ],
    )
    error = model_error(asked.quick)
    say(f"the model's delay and the one measured by running the generator differ by at most {as_percent(error)}")
    finish(asked, {"few_sources": small, "many_sources": large, "model_error": error})


if __name__ == "__main__":
    main()
