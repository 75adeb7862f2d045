"""Adaptive estimates of how far sources trail: figure 4 of Srivastava and Widom, for all cells at once.

A cell (target, reference, t) estimates the lag of a target behind a reference as it stood t units of the clock ago.
Each row shows the least lag that would have let it pass. Law, for each cell:

- a row that shows more than the estimate raises it at once, and the count starts anew;
- after more than W rows without that, the estimate falls to alpha x itself + (1 - alpha) x the most those rows showed;
- adaptive adaptivity (section 6.2): an estimate exceeded more often than tolerated doubles W, four falls in a row halve
  it, within a factor of 16 of the W declared.

Rows of a round come together: the one that shows most speaks for all, and the estimate falls at most once in a round,
so a round never falls lower than its rows one by one. Falls are rounded up, but by one at least.

>>> policy = Adaptivity(window=2, weight=0.5, tolerated=None)
>>> cell = SkewEstimates(policy, references=1, units=1)
>>> cell.grow(targets=1, references=1)
>>> for shown in [10, 0, 4, 0]:
...     cell.learn(np.array([0]), np.array([[[shown]]]), np.array([[[True]]]), rows=np.array([1]))
...     print(cell.lag[0, 0, 0])
10
10
10
7
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.heartbeat import Snapshot
from eventide.eventtime.instant import Instants

FALLS_UNTIL_FASTER = 4
WIDEST = 16


@dataclass(frozen=True)
class Adaptivity:
    """How estimates follow: `window` (W) rows, `weight` (alpha) of the old estimate, `tolerated` share of rows above.

    Without `window` estimates never fall: the maximum seen. Without `tolerated` the window keeps its length.

    >>> Adaptivity(window=0)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a window of 0 rows: give 1 or more, or None for estimates that never fall
    """

    window: int | None = 100
    weight: float = 0.5
    tolerated: float | None = 0.01

    def __post_init__(self) -> None:
        if self.window is not None and self.window < 1:
            raise DeclarationError(
                f"a window of {self.window} rows: give 1 or more, or None for estimates that never fall"
            )
        if not 0 <= self.weight < 1:
            raise DeclarationError(
                f"weight {self.weight} must be from 0 to below 1: for estimates that never fall give window=None"
            )
        if self.tolerated is not None and not 0 < self.tolerated < 1:
            raise DeclarationError(f"tolerated {self.tolerated} must be a share between 0 and 1: write 0.01 for 1 %")


class SkewEstimates:
    """Arrays over (target, reference, t)."""

    def __init__(self, adaptivity: Adaptivity, references: int, units: int) -> None:
        self._adaptivity = adaptivity
        shape = (0, references, units)
        self.lag: Instants = np.zeros(shape, dtype=np.int64)
        self._most: Instants = np.zeros(shape, dtype=np.int64)
        self._rows: Instants = np.zeros(shape, dtype=np.int64)
        self._calm: Instants = np.zeros(shape, dtype=np.int64)
        self._falls: Instants = np.zeros(shape, dtype=np.int64)
        self._window: Instants = np.zeros(shape, dtype=np.int64)

    def grow(self, targets: int, references: int) -> None:
        """Make room for new targets and references; their estimates start at 0."""
        more = (targets - self.lag.shape[0], references - self.lag.shape[1])
        if max(more) > 0:
            pad = ((0, more[0]), (0, more[1]), (0, 0))
            for name in ("lag", "_most", "_rows", "_calm", "_falls"):
                setattr(self, name, np.pad(getattr(self, name), pad))
            self._window = np.pad(self._window, pad, constant_values=self._adaptivity.window or 0)

    def learn(
        self, targets: NDArray[np.intp], shown: Instants, meant: NDArray[np.bool_], rows: NDArray[np.int64]
    ) -> None:
        """Take in the most that the rows of a round showed for each of `targets`, where there was a reference."""
        # When all speak, a slice spares a copy of every array.
        at = slice(None) if len(targets) == len(self.lag) else targets
        lag = self.lag[at]
        exceeded = meant & (shown > lag)
        if self._adaptivity.window is None:
            self.lag[at] = np.where(exceeded, shown, lag)
            return
        came = rows[:, None, None] * meant
        count = self._rows[at] + came
        most = np.maximum(self._most[at], np.where(meant, shown, 0))
        full = ~exceeded & (count > self._window[at])
        falling = full & (most < lag)
        if self._adaptivity.tolerated is not None:
            calm = self._calm[at] + came
            hasty = exceeded & (calm < 1 / self._adaptivity.tolerated)
            self._calm[at] = np.where(exceeded, 0, calm)
            falls = np.where(exceeded | (full & ~falling), 0, self._falls[at] + falling)
            slow = falls >= FALLS_UNTIL_FASTER
            self._falls[at] = np.where(slow, 0, falls)
            shortest, longest = max(self._adaptivity.window // WIDEST, 1), self._adaptivity.window * WIDEST
            window = np.where(hasty, self._window[at] * 2, np.where(slow, self._window[at] // 2, self._window[at]))
            self._window[at] = np.minimum(np.maximum(window, shortest), longest)
        # Floats near 2**63 may round beyond int64.
        fall = np.minimum((lag - most) * (1 - self._adaptivity.weight), 2.0**62).astype(np.int64)
        self.lag[at] = np.where(exceeded, shown, np.where(falling, lag - np.maximum(fall, 1), lag))
        self._most[at] = np.where(exceeded | full, 0, most)
        self._rows[at] = np.where(exceeded | full, 0, count)

    def snapshot(self) -> Snapshot:
        """All arrays, as nested lists."""
        return {
            "lag": self.lag.tolist(),
            "most": self._most.tolist(),
            "rows": self._rows.tolist(),
            "calm": self._calm.tolist(),
            "falls": self._falls.tolist(),
            "window": self._window.tolist(),
        }

    def restore(self, saved: Snapshot) -> None:
        """Take over what `snapshot` saved."""
        shape = (len(saved["lag"]), *self.lag.shape[1:]) if not saved["lag"] else np.shape(saved["lag"])
        self.lag, self._most, self._rows, self._calm, self._falls, self._window = (
            np.array(saved[name], dtype=np.int64).reshape(shape)
            for name in ("lag", "most", "rows", "calm", "falls", "window")
        )
