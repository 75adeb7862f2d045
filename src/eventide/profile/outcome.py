"""What became of the rows of a recording under a policy: how many were dropped, how long the kept ones waited.

The *lag* of a kept row is the time from its arrival to its release. The mean number of rows in the buffer follows
from it by Little's law: rows waiting on average = all the waiting / the length of the recording.

>>> from eventide.profile.recording import Recording
>>> r = Recording.of("three", time=[1, 3, 2], arrival=[0, 10, 20], source=["a", "a", "b"])
>>> o = Outcome.of(r, kept=np.array([True, True, False]), released=np.array([10, 20, 20]))
>>> o.drop_ratio, o.lag_mean, o.buffered_mean_rows
(0.3333333333333333, 10.0, 1.0)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.instant import Instants
from eventide.profile.recording import Recording

WARM_UP_ROWS = 1_000
"""A policy that starts with nothing is judged after so many rows."""

LARGE_SOURCE_ROWS = 1_000
"""Only a source with so many rows has a drop ratio worth comparing."""

STRETCH_ROWS = 10_000
"""A stretch of so many consecutive rows shows what the total hides."""


@dataclass(frozen=True)
class Outcome:
    """Ratios of rows dropped, and lags in the units of the recording; None where there is nothing to measure."""

    drop_ratio: float
    drop_ratio_after_1000: float | None
    worst_source_drop_ratio: float | None
    worst_stretch_drop_ratio: float
    lag_mean: float | None
    lag_p95: float | None
    buffered_mean_rows: float

    @classmethod
    def of(cls, recording: Recording, kept: NDArray[np.bool_], released: Instants) -> Outcome:
        """Count and average; `released` need only hold for the rows in `kept`."""
        dropped = ~kept
        # A round ends after its rows have arrived, but a heartbeat may have passed a row of the future long before.
        lags = np.maximum(released[kept] - recording.arrival[kept], 0)
        duration = float(recording.arrival[-1] - recording.arrival[0]) if recording.rows else 0.0
        return cls(
            drop_ratio=float(dropped.mean()) if len(dropped) else 0.0,
            drop_ratio_after_1000=float(dropped[WARM_UP_ROWS:].mean()) if len(dropped) > WARM_UP_ROWS else None,
            worst_source_drop_ratio=_worst_source(recording, dropped),
            worst_stretch_drop_ratio=_worst_stretch(dropped),
            lag_mean=float(lags.mean()) if len(lags) else None,
            lag_p95=float(np.quantile(lags, 0.95)) if len(lags) else None,
            buffered_mean_rows=float(lags.sum(dtype=np.float64)) / duration if duration > 0 else 0.0,
        )


def _worst_source(recording: Recording, dropped: NDArray[np.bool_]) -> float | None:
    rows = np.bincount(recording.source)
    large = rows >= LARGE_SOURCE_ROWS
    if not large.any():
        return None
    lost = np.bincount(recording.source[dropped], minlength=len(rows))
    return float((lost[large] / rows[large]).max())


def _worst_stretch(dropped: NDArray[np.bool_]) -> float:
    length = min(STRETCH_ROWS, len(dropped))
    if length == 0:
        return 0.0
    lost = np.concatenate(([0], np.cumsum(dropped)))
    return float((lost[length:] - lost[:-length]).max() / length)
