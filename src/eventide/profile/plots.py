"""Draw a recording: delay of each source over time, lag against loss, heartbeats against rows.

*Axes.* An axis of lengths of time has marks where people put them, at 10 s and 1 min rather than at 1 min 40 s.

>>> [spoken(at) for at in marks(0, 100_000_000, most=6)]
['0 ms', '20 s', '40 s', '1 min', '1 min 20 s', '1 min 40 s']
>>> [spoken(at) for at in decades(2_000, 700_000_000)]
['10 ms', '100 ms', '1 s', '10 s', '1 min', '10 min']
>>> decades(20, 40_000, unitless=True)
[100, 1000, 10000]
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from numpy.typing import NDArray

from eventide.eventtime.instant import Instants
from eventide.profile.amounts import percent, spoken
from eventide.profile.drawn import COLOURED_SOURCES, has_promised, oddest, spread, trail
from eventide.profile.profiling import CLAIRVOYANT, FIXED_BEST, OURS, YARDSTICKS, Point, Profile
from eventide.profile.report import keeps

_SECOND, _MINUTE, _HOUR, _DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
_STEPS = (
    *(10**power * part for power in range(6) for part in (1, 2, 5)),
    *(_SECOND * part for part in (1, 2, 5, 10, 20, 30)),
    *(_MINUTE * part for part in (1, 2, 5, 10, 20, 30)),
    *(_HOUR * part for part in (1, 2, 6, 12)),
    *(_DAY * 10**power * part for power in range(7) for part in (1, 2, 5)),
)
_DECADES = (
    *(10**power for power in range(8)),
    *(_MINUTE, 10 * _MINUTE, _HOUR, 10 * _HOUR),
    *(_DAY * 10**power for power in range(8)),
)
_PLAIN_STEPS = tuple(10**power * part for power in range(19) for part in (1, 2, 5))
_PLAIN_DECADES = tuple(10**power for power in range(19))


def marks(lowest: float, highest: float, most: int = 8, unitless: bool = False) -> list[int]:
    """At most so many round lengths between two, evenly spaced."""
    steps = _PLAIN_STEPS if unitless else _STEPS
    step = next((step for step in steps if (highest - lowest) / step < most), steps[-1])
    return [at * step for at in range(math.ceil(lowest / step), math.floor(highest / step) + 1)]


def decades(lowest: float, highest: float, unitless: bool = False) -> list[int]:
    """Round lengths between two, each about ten times the one before."""
    return _within(_PLAIN_DECADES if unitless else _DECADES, lowest, highest)


def _within(lengths: tuple[int, ...], lowest: float, highest: float) -> list[int]:
    return [length for length in lengths if lowest <= length <= highest]


def span_lengths(axes: Axes, lengths: Instants, lowest: float, highest: float, unitless: bool) -> None:
    """Let the upright axis reach from one length to another.

    Where nearly all `lengths` would be squeezed into a fraction of it, it is logarithmic, in both directions from zero.
    """
    usual = max(float(np.quantile(np.abs(lengths), 0.9)), 1.0)
    if max(-lowest, highest) < 10 * usual:
        room = 0.05 * (highest - lowest) + 1
        axes.set_ylim(lowest - room, highest + room)
        _mark(axes, marks(lowest - room, highest + room, unitless=unitless), unitless)
        return
    near = decades(1, usual, unitless)[-1]
    axes.set_yscale("symlog", linthresh=near)
    low, high = 1.5 * lowest if lowest < -near else min(lowest, 0.0) - 0.1 * near, 1.5 * highest
    axes.set_ylim(low, high)
    _mark(axes, [*(-length for length in decades(near, -low, unitless)), 0, *decades(near, high, unitless)], unitless)


def log_lengths(axes: Axes, unitless: bool) -> None:
    """Make the upright axis logarithmic, with its limits as they are."""
    axes.set_yscale("log")
    lowest, highest = axes.get_ylim()
    fine = _within(_PLAIN_STEPS if unitless else _STEPS, lowest, highest)
    _mark(axes, fine if len(fine) <= 12 else decades(lowest, highest, unitless), unitless)


def _mark(axes: Axes, lengths: Sequence[int], unitless: bool) -> None:
    axes.yaxis.set_major_locator(FixedLocator(lengths))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: spoken(value, unitless)))


MOST_POINTS = 20_000
"""Rows drawn at most."""

# Okabe and Ito's colours, told apart by colour-blind eyes too; grey is left for what is not to the point.
_PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
_COLOURS = {
    OURS: "#D55E00",
    CLAIRVOYANT: "#999999",
    FIXED_BEST: "#000000",
    "kim": "#0072B2",
    "kim_adhoc": "#56B4E9",
    "delay_quantile": "#CC79A7",
    "adaptive_window": "#882255",
    "quality_driven": "#44AA99",
    "disorder_histogram": "#8C564B",
    "own_progress": "#009E73",
    "skew_adaptive": "#E69F00",
}
_GREY = "#BBBBBB"


def draw(profile: Profile, curves: Mapping[str, Sequence[Point]], directory: Path) -> list[Path]:
    """Draw everything into a directory, as PNG and as SVG, and return what was written."""
    stem = re.sub(r"[^\w.-]+", "-", profile.reading.recording.name).strip("-")
    figures = {
        "delay": _delay_figure(profile),
        "lag-loss": _lag_loss_figure(profile, curves),
        "heartbeat": _heartbeat_figure(profile),
    }
    written = []
    for kind, figure in figures.items():
        for ending in ("png", "svg"):
            path = directory / f"{stem}-{kind}.{ending}"
            figure.savefig(path, dpi=160)
            written.append(path)
    return written


def _canvas(title: str, subtitle: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(10, 5.6), layout="constrained")
    axes = figure.subplots()
    figure.suptitle(title, x=0.01, ha="left", fontsize=14, fontweight="bold")
    axes.set_title(subtitle, loc="left", fontsize=10, color="#555555")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def _time_axis(axes: Axes, profile: Profile) -> NDArray[np.float64]:
    """Label the axis of arrival; return what turns instants into its numbers: start, and length of its unit."""
    arrival = profile.reading.recording.arrival
    start, span = float(arrival[0]), float(arrival[-1] - arrival[0])
    if profile.reading.unitless:
        axes.set_xlabel("arrival, from the start")
        return np.array([start, 1.0])
    units = (("days", 86_400e6), ("hours", 3600e6), ("minutes", 60e6), ("seconds", 1e6))
    name, length = next(((n, size) for n, size in units if span >= 3 * size), units[-1])
    axes.set_xlabel(f"arrival, {name} from the start")
    return np.array([start, length])


def _short(name: str, most: int = 26) -> str:
    """A name that leaves room for the plot: its beginning and its end."""
    return name if len(name) <= most else f"{name[: most // 2]}...{name[-(most // 2 - 3) :]}"


def _delay_figure(profile: Profile) -> Figure:
    recording = profile.reading.recording
    figure, axes = _canvas("Delay of each source over time", recording.name)
    start, length = _time_axis(axes, profile)
    rows = spread(recording.rows, MOST_POINTS)
    source, x = recording.source[rows], (recording.arrival[rows] - start) / length
    delay = (recording.arrival - recording.time)[rows]
    odd = oddest(source, delay, len(recording.source_names))
    others = ~np.isin(source, odd)
    if others.any():
        axes.plot(x[others], delay[others], ".", ms=2.5, color=_GREY, label="all others", rasterized=True)
    for place, (at, colour) in enumerate(zip(odd, _PALETTE, strict=False)):
        mine, name = source == at, _short(recording.source_names[at])
        # The oddest on top.
        above = 3 - place / COLOURED_SOURCES
        axes.plot(x[mine], delay[mine], ".", ms=2.5, color=colour, label=name, zorder=above, rasterized=True)
    axes.set_ylabel("delay (arrival - time)")
    span_lengths(axes, delay, float(delay.min()), float(delay.max()), profile.reading.unitless)
    figure.legend(loc="outside right upper", markerscale=4, frameon=False, fontsize=8)
    return figure


def _lag_loss_figure(profile: Profile, curves: Mapping[str, Sequence[Point]]) -> Figure:
    recording, unitless = profile.reading.recording, profile.reading.unitless
    figure, axes = _canvas("Lag against loss", recording.name)
    lags = [point.outcome.lag_mean for points in curves.values() for point in points if point.outcome.lag_mean]
    # Logarithmic axes have no place for nothing: what lost or waited nothing stands at the edge.
    least_lag = min(lags, default=1.0) / 2
    least_loss = 0.5 / max(recording.rows, 1_000)
    for name, points in curves.items():
        x = [max(point.outcome.drop_ratio, least_loss) for point in points]
        y = [max(point.outcome.lag_mean or 0.0, least_lag) for point in points]
        colour, size, width = _COLOURS[name], *((7, 2.6) if name == OURS else (5, 1.3))
        style = "o--" if name in YARDSTICKS else "o-"
        axes.plot(x, y, style, color=colour, lw=width, ms=size, label=name)
        broken = [at for at, point in enumerate(points) if not keeps(point.outcome, point.permitted)]
        axes.plot([x[at] for at in broken], [y[at] for at in broken], "o", ms=size, mfc="white", mec=colour)
    axes.set_xscale("log")
    decades = [share for share in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0) if share > 2 * least_loss]
    axes.set_xticks([least_loss, *decades], ["none", *(f"{100 * share:g} %" for share in decades)])
    losses = [max(point.outcome.drop_ratio, least_loss) for points in curves.values() for point in points]
    axes.set_xlim(0.7 * min(losses), min(1.6 * max(losses), 1.1))
    axes.set_xlabel("rows lost (a point for each permitted ratio; hollow: more was lost than permitted)")
    axes.set_ylabel("mean lag of the rows kept")
    log_lengths(axes, unitless)
    figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    return figure


def _heartbeat_figure(profile: Profile) -> Figure:
    """Rows and heartbeats by how far they trail the clock: a row above a line comes too late for it."""
    recording = profile.reading.recording
    figure, axes = _canvas("Heartbeats against rows", f"{recording.name}, {percent(profile.drop_ratio)} may be lost")
    start, length = _time_axis(axes, profile)
    rows = spread(recording.rows, MOST_POINTS)
    delay = recording.arrival - recording.time
    x = (recording.arrival - start) / length
    axes.plot(x[rows], delay[rows], ".", ms=2, color=_GREY, label="rows", rasterized=True)
    lowest, highest = float(delay.min()), float(delay.max())
    for name in (FIXED_BEST, "own_progress", OURS):
        # A policy that has promised nothing has no line.
        if name in profile.runs and has_promised(profile.runs[name]):
            clock, low, middle, high = trail(profile.runs[name])
            at = (clock - start) / length
            if name == OURS:
                axes.fill_between(at, low, high, color=_COLOURS[name], alpha=0.15, lw=0)
            axes.plot(at, middle, color=_COLOURS[name], lw=2.2 if name == OURS else 1.2, label=name)
            lowest, highest = min(lowest, float(middle.min())), max(highest, float(middle.max()))
    if OURS in profile.runs:
        lost = np.flatnonzero(~profile.runs[OURS].kept)[:MOST_POINTS]
        axes.plot(x[lost], delay[lost], "x", ms=4, mew=0.8, color="#C00000", label=f"lost by {OURS}", rasterized=True)
    axes.set_ylabel("behind the clock (a row above a line is late for it)")
    span_lengths(axes, delay, lowest, highest, profile.reading.unitless)
    figure.legend(loc="outside right upper", markerscale=2, frameon=False, fontsize=9)
    return figure
