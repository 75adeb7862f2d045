"""Part (b): the experiment of Kim et al. (section 6) remade: 20 sensors a second, drop ratios from 15 to 1 %.

Their claim: the adaptive measure does not exceed the drop ratio, and needs a smaller buffer and less waiting than the
ad hoc one. Our own policy stands beside them.
"""

from __future__ import annotations

from benchmarks.harness import as_duration, as_percent, show_table
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.kim import Kim, KimAdhoc
from eventide.profile.dry_run import Outcome, dry_runs, timetable
from eventide.testing.streams import MILLISECOND
from eventide.testing.systems import kim_experiment

DROP_RATIOS = (0.15, 0.10, 0.05, 0.025, 0.01)
MEASURES = ("adaptive", "ad hoc", "eventide")


def _policy(measure: str, drop_ratio: float) -> Policy:
    if measure == "adaptive":
        return Kim(drop_ratio)
    return KimAdhoc(drop_ratio) if measure == "ad hoc" else DropRatio(drop_ratio)


def measure(quick: bool) -> dict[tuple[str, float], Outcome]:
    """(measure, drop ratio) -> outcome."""
    recording = kim_experiment(seed=1, seconds=200 if quick else 1_200)
    wanted = {f"{name} {ratio}": (name, ratio) for ratio in DROP_RATIOS for name in MEASURES}
    runs = dry_runs(timetable(recording, None), {key: _policy(*each) for key, each in wanted.items()})
    return {wanted[key]: run.outcome for key, run in runs.items()}


def show(outcomes: dict[tuple[str, float], Outcome]) -> dict[str, dict[str, dict[str, float]]]:
    """Print the table; give back its figures by measure and drop ratio."""
    show_table(
        "(b) Kim's experiment: 20 sensors a second, normal latency of 500 ms, deviation 150 ms",
        ["measure", "permitted", "dropped", "rows buffered", "waiting"],
        [
            (name, as_percent(ratio), *_cells(outcomes[name, ratio], ratio))
            for ratio in DROP_RATIOS
            for name in MEASURES
        ],
    )
    return {
        name: {
            str(ratio): {
                "drop_ratio": outcomes[name, ratio].drop_ratio,
                "violated": float(outcomes[name, ratio].drop_ratio > ratio),
                "buffered_mean_rows": outcomes[name, ratio].buffered_mean_rows,
                "lag_mean_ms": (outcomes[name, ratio].lag_mean or 0.0) / MILLISECOND,
            }
            for ratio in DROP_RATIOS
        }
        for name in MEASURES
    }


def _cells(outcome: Outcome, permitted: float) -> tuple[str, str, str]:
    dropped = as_percent(outcome.drop_ratio)
    return (
        f"[bold red]{dropped}[/]" if outcome.drop_ratio > permitted else dropped,
        f"{outcome.buffered_mean_rows:.1f}",
        as_duration((outcome.lag_mean or 0.0) / MILLISECOND),
    )
