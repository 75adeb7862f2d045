"""The pictures of the heartbeat benchmark: lag against loss of every recording, the worst excess of every stream."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.harness import as_percent
from benchmarks.heartbeats.streams import Measured, Stream
from eventide.profile.profiling import CLAIRVOYANT, OURS
from eventide.testing.streams import MILLISECOND

COLUMNS = 3
SMALLEST_SHARE = 1e-4
"""Where a policy that dropped nothing is drawn on an axis that has no zero."""


def draw_lag_against_loss(measured: Sequence[Measured], path: Path) -> None:
    """One field per recording: a point per drop ratio, a line per policy; lower and further left is better."""
    streams = list(dict.fromkeys(one.stream for one in measured if one.stream.real))
    if not streams:
        return
    rows = -(-len(streams) // COLUMNS)
    figure = Figure(figsize=(4.6 * COLUMNS, 3.6 * rows), layout="constrained")
    fields = figure.subplots(rows, COLUMNS, squeeze=False)
    for field, stream in zip(fields.flat, streams, strict=False):
        _lag_against_loss(field, stream, [one for one in measured if one.stream == stream])
    for unused in fields.flat[len(streams) :]:
        unused.set_visible(False)
    figure.legend(*fields.flat[0].get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    _save(figure, path)


def _lag_against_loss(field: Axes, stream: Stream, measured: Sequence[Measured]) -> None:
    for policy in dict.fromkeys(one.policy for one in measured):
        points = sorted((one for one in measured if one.policy == policy), key=lambda one: one.permitted)
        field.plot(
            [max(one.outcome.drop_ratio, SMALLEST_SHARE) for one in points],
            [one.lag / MILLISECOND for one in points],
            marker="o",
            markersize=4,
            linewidth=2.5 if policy == OURS else 1.0,
            linestyle=":" if policy == CLAIRVOYANT else "-",
            zorder=3 if policy == OURS else 2,
            label=policy,
        )
    for permitted in {one.permitted for one in measured}:
        field.axvline(permitted, color="0.8", linewidth=0.8, zorder=0)
    field.set(xscale="log", yscale="log", title=stream.name, xlabel="rows dropped", ylabel="mean lag, ms")
    field.xaxis.set_major_formatter(FuncFormatter(_share_label))


def _share_label(share: float, _: int | None) -> str:
    return "none" if share <= SMALLEST_SHARE else as_percent(share)


def draw_worst_excess(measured: Sequence[Measured], path: Path) -> None:
    """One line per stream: what each policy lost over what was permitted, at its worst drop ratio of 1 % and above."""
    promised = [one for one in measured if one.permitted >= 0.01]
    streams = list(dict.fromkeys(one.stream for one in promised))[::-1]
    policies = [p for p in dict.fromkeys(one.policy for one in promised) if p != CLAIRVOYANT]
    figure = Figure(figsize=(9, 1.2 + 0.26 * len(streams)), layout="constrained")
    field = figure.subplots()
    for policy in policies:
        worst = {
            place: max((one.excess for one in promised if one.stream == stream and one.policy == policy), default=None)
            for place, stream in enumerate(streams)
        }
        there = {place: excess for place, excess in worst.items() if excess is not None}
        ours = policy == OURS
        field.scatter(
            [max(excess, 0.01) for excess in there.values()],
            list(there),
            s=46 if ours else 18,
            marker="D" if ours else "o",
            label=policy,
            zorder=3 if ours else 2,
        )
    field.axvline(1.1, color="crimson", linewidth=1, label="1.1 x permitted")
    field.set_yticks(range(len(streams)), [stream.name for stream in streams], fontsize="small")
    field.set(xscale="log", xlabel="rows lost / rows permitted, after the first 1,000 (0.01: none)")
    field.grid(axis="y", color="0.92")
    figure.legend(loc="outside right upper", fontsize="small")
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"savefig.dpi": 130}):
        figure.savefig(path)
