"""The tables of parts (c) and (d): every policy beside the baselines, and every stream beside its promise."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness import as_duration, as_percent, say, show_table
from benchmarks.heartbeats.baselines import BASELINES, Baseline
from benchmarks.heartbeats.recordings import FOLDER, RUNS
from benchmarks.heartbeats.streams import Measured
from benchmarks.heartbeats.summary import lag_ratios
from eventide.profile.profiling import FIXED_BEST, OURS, YARDSTICKS
from eventide.testing.streams import MILLISECOND


def show_recordings(measured: Sequence[Measured]) -> None:
    """Part (c): a table per drop ratio, share dropped / mean lag, what exceeds the permitted share in red."""
    real = [one for one in measured if one.stream.real]
    for run in RUNS:
        if not any(one.stream.name == run.name for one in real):
            say(f"{run.name}: skipped, {run.file} is not in {FOLDER.parent.name}/{FOLDER.name} beside the repository")
    for permitted in sorted({one.permitted for one in real}):
        cells = {(one.policy, one.stream.name): _cell(one) for one in real if one.permitted == permitted}
        names = list(dict.fromkeys(name for _, name in cells))
        rows = [
            (policy, *(cells[policy, name] for name in names))
            for policy in dict.fromkeys(policy for policy, _ in cells)
        ]
        rows += [
            (
                f"[dim]{policy} (baseline)[/]",
                *(f"[dim]{_before(before[n])}[/]" if n in before else "" for n in names),
            )
            for policy, before in BASELINES[permitted].items()
        ]
        show_table(f"(c) recordings, permitted {as_percent(permitted)}: dropped / mean lag", ["policy", *names], rows)


def _before(baseline: Baseline) -> str:
    return f"{as_percent(baseline.drop_ratio)} / {as_duration(baseline.lag_ms)}"


def _cell(one: Measured) -> str:
    dropped = as_percent(one.outcome.drop_ratio)
    if one.outcome.drop_ratio > one.permitted:
        dropped = f"[bold red]{dropped}[/]"
    return f"{dropped} / {as_duration((one.outcome.lag_mean or 0.0) / MILLISECOND)}"


def show_promises(measured: Sequence[Measured]) -> None:
    """Part (d): per drop ratio, what our policy and the others lost of what was permitted, and what it cost."""
    for permitted in sorted({one.permitted for one in measured}):
        here = [one for one in measured if one.permitted == permitted]
        by_place = {(one.stream, one.policy): one for one in here}
        others = [p for p in dict.fromkeys(one.policy for one in here) if p != OURS and p not in YARDSTICKS]
        lag = lag_ratios(measured, FIXED_BEST, permitted)
        show_table(
            f"(d) all streams, permitted {as_percent(permitted)}: lost / permitted after the first 1,000 rows",
            ["stream", "eventide", "its worst source", "its lag / best fixed", *others],
            [
                (
                    stream.name,
                    _excess(by_place.get((stream, OURS))),
                    f"{by_place[stream, OURS].source_excess:.2f}",
                    f"{lag[stream]:.2f}",
                    *(_excess(by_place.get((stream, policy))) for policy in others),
                )
                for stream in dict.fromkeys(one.stream for one in here)
            ],
        )


def _excess(one: Measured | None) -> str:
    if one is None:
        return ""
    return f"[bold red]{one.excess:.2f}[/]" if one.excess > 1.1 else f"{one.excess:.2f}"
