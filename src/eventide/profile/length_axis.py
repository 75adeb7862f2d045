"""Axes that count lengths of time: marks where people put them, at 10 s and 1 min rather than at 1 min 40 s.

>>> [spoken(at) for at in marks(0, 100_000_000, most=6)]
['0 ms', '20 s', '40 s', '1 min', '1 min 20 s', '1 min 40 s']
>>> [spoken(at) for at in decades(2_000, 700_000_000)]
['10 ms', '100 ms', '1 s', '10 s', '1 min', '10 min']
>>> decades(20, 40_000, plain=True)
[100, 1000, 10000]
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from eventide.eventtime.instant import Instants
from eventide.profile.amounts import spoken

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


def marks(lowest: float, highest: float, most: int = 8, plain: bool = False) -> list[int]:
    """At most so many round lengths between two, evenly spaced."""
    steps = _PLAIN_STEPS if plain else _STEPS
    step = next((step for step in steps if (highest - lowest) / step < most), steps[-1])
    return [at * step for at in range(math.ceil(lowest / step), math.floor(highest / step) + 1)]


def decades(lowest: float, highest: float, plain: bool = False) -> list[int]:
    """Round lengths between two, each about ten times the one before."""
    return _within(_PLAIN_DECADES if plain else _DECADES, lowest, highest)


def _within(lengths: tuple[int, ...], lowest: float, highest: float) -> list[int]:
    return [length for length in lengths if lowest <= length <= highest]


def span_lengths(axes: Axes, lengths: Instants, lowest: float, highest: float, plain: bool) -> None:
    """Let the upright axis reach from one length to another.

    Where nearly all `lengths` would be squeezed into a fraction of it, it is logarithmic, in both directions from zero.
    """
    usual = max(float(np.quantile(np.abs(lengths), 0.9)), 1.0)
    if max(-lowest, highest) < 10 * usual:
        room = 0.05 * (highest - lowest) + 1
        axes.set_ylim(lowest - room, highest + room)
        _mark(axes, marks(lowest - room, highest + room, plain=plain), plain)
        return
    near = decades(1, usual, plain)[-1]
    axes.set_yscale("symlog", linthresh=near)
    low, high = 1.5 * lowest if lowest < -near else min(lowest, 0.0) - 0.1 * near, 1.5 * highest
    axes.set_ylim(low, high)
    _mark(axes, [*(-length for length in decades(near, -low, plain)), 0, *decades(near, high, plain)], plain)


def log_lengths(axes: Axes, plain: bool) -> None:
    """Make the upright axis logarithmic, with its limits as they are."""
    axes.set_yscale("log")
    lowest, highest = axes.get_ylim()
    fine = _within(_PLAIN_STEPS if plain else _STEPS, lowest, highest)
    _mark(axes, fine if len(fine) <= 12 else decades(lowest, highest, plain), plain)


def _mark(axes: Axes, lengths: Sequence[int], plain: bool) -> None:
    axes.yaxis.set_major_locator(FixedLocator(lengths))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: spoken(value, plain)))
