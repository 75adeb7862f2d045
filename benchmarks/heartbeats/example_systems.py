"""Part (a): the two example systems of STREAM, with and without delayed guarantees (Srivastava and Widom, section 4).

A delayed guarantee says "later than t from now, it trails by no more than this". Without it a worker that is slow with
one token must be granted all the tokens the others could take meanwhile; with it, it is only granted its time. Nothing
may be dropped either way: the systems keep what they declare.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from benchmarks.harness import as_duration, say, show_table
from eventide.eventtime.policies.skew.bounds import TimeBound
from eventide.eventtime.policies.skew.declared import DeclaredSkew
from eventide.eventtime.policies.skew.matrix import Skew
from eventide.eventtime.policies.skew.per_source import PerSourceSkew, TimeTerm, distributed_sensors, global_counter
from eventide.profile.dry_run import Outcome, dry_run
from eventide.profile.reading import Recording
from eventide.testing.streams import MILLISECOND
from eventide.testing.systems import counter_system, sensor_system


def undelayed_counter(fastest: Sequence[int], slowest: Sequence[int], latency: Sequence[int]) -> PerSourceSkew:
    """The global counter in bounds that hold at once: the end of section 4.1.

    >>> undelayed_counter(fastest=[1, 2], slowest=[4, 9], latency=[0, 0]).bounds(0, 1)
    (TimeBound(after=0, lag=9),)
    """
    behind = [
        sum(ceil(slow / fast) for other, fast in enumerate(fastest) if other != source)
        for source, slow in enumerate(slowest)
    ]
    return PerSourceSkew.of(latency, between=[TimeTerm.of(into=behind)], own=[[TimeBound(0, 0)] for _ in latency])


def delayed_counter(fastest: Sequence[int], slowest: Sequence[int], latency: Sequence[int]) -> PerSourceSkew:
    """The global counter with the time bound of section 4.1 alone, to see what its row bound adds.

    >>> delayed_counter(fastest=[1, 2], slowest=[4, 9], latency=[0, 0]).bounds(0, 1)
    (TimeBound(after=8, lag=0),)
    """
    return PerSourceSkew.of(
        latency,
        between=[TimeTerm.of(give=[-fast for fast in fastest], take=slowest)],
        own=[[TimeBound(0, 0)] for _ in latency],
    )


def measure(quick: bool) -> dict[str, dict[str, Outcome]]:
    """System -> declaration -> outcome."""
    counter = counter_system(seed=1, rows=3_000 if quick else 15_000)
    workers = (counter.fastest, counter.slowest, counter.latency)
    sensors = sensor_system(seed=1, seconds=150 if quick else 600)
    rate = [float(sensors.minimum_rate)] * len(sensors.deviation)
    return {
        "global counter": _outcomes(
            counter.recording,
            {
                "bounds that hold at once": undelayed_counter(*workers),
                "delayed": delayed_counter(*workers),
                "delayed, and by rows": global_counter(*workers),
            },
        ),
        "distributed sensors": _outcomes(
            sensors.recording,
            {
                "bounds that hold at once": distributed_sensors(sensors.deviation, sensors.latency),
                "delayed, from a minimum rate": distributed_sensors(sensors.deviation, sensors.latency, rate),
            },
        ),
    }


def _outcomes(recording: Recording, declarations: dict[str, Skew]) -> dict[str, Outcome]:
    return {name: dry_run(recording, DeclaredSkew(skew)).outcome for name, skew in declarations.items()}


def show(systems: dict[str, dict[str, Outcome]]) -> dict[str, dict[str, dict[str, float]]]:
    """Print the table; give back its figures."""
    figures = {
        system: {declaration: _figures(outcome) for declaration, outcome in outcomes.items()}
        for system, outcomes in systems.items()
    }
    show_table(
        "(a) STREAM's example systems: what delayed guarantees bring",
        ["system", "declared", "rows dropped", "mean lag", "p95 lag", "rows buffered"],
        [
            (
                system,
                declaration,
                f"{shown['drop_ratio']:.0%}",
                as_duration(shown["lag_mean_ms"]),
                as_duration(shown["lag_p95_ms"]),
                f"{shown['buffered_mean_rows']:.1f}",
            )
            for system, by_declaration in figures.items()
            for declaration, shown in by_declaration.items()
        ],
    )
    say("Both systems keep what they declare, so no row may be dropped.")
    return figures


def _figures(outcome: Outcome) -> dict[str, float]:
    return {
        "drop_ratio": outcome.drop_ratio,
        "lag_mean_ms": (outcome.lag_mean or 0.0) / MILLISECOND,
        "lag_p95_ms": (outcome.lag_p95 or 0.0) / MILLISECOND,
        "buffered_mean_rows": outcome.buffered_mean_rows,
    }
