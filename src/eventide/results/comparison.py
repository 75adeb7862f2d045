"""Comparisons of the user: how far an early value is from the final one, where nobody else can know.

Laws. A comparison takes early and final values, none of them NULL, and gives an error for each pair: a number, 0 where
the early value is as good as the final one. One that fails, or gives anything else, stops nothing: the error of that
value is unknown (NaN), which changes no mean, and the first thing that went wrong is remembered and logged. (Prodding
thesis, section 6.1: a function that compares an estimate and a final value, and returns a quality level.)

>>> import pyarrow.compute as pc
>>> off_by = Guarded("total", lambda early, final: pc.divide(pc.abs(pc.subtract(early, final)), 100.0))
>>> off_by(pa.array([110, 135]), pa.array([135, 135])).tolist(), off_by.fault
([0.25, 0.0], None)
>>> Guarded("total", lambda early, final: [-1.0])(pa.array([110]), pa.array([135])).tolist()
[nan]
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.results.error import Comparison, Floats

log = logging.getLogger(__name__)


class InPairs:
    """A function of two single values, as a comparison; a pair that it fails for is unknown, the others are not.

    >>> apart = InPairs(lambda early, final: len(final) / len(early), "apart")
    >>> apart(pa.array(["ab", ""]), pa.array(["abc", "a"])), apart.raised
    ([1.5, None], 'ZeroDivisionError: division by zero')
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function = function
        self.__name__ = name
        self.raised: str | None = None

    def __call__(self, early: pa.Array, final: pa.Array) -> list[Any]:
        """The errors of the pairs."""
        return [self._of(*pair) for pair in zip(early.to_pylist(), final.to_pylist(), strict=True)]

    def _of(self, early: Any, final: Any) -> Any:
        try:
            return self._function(early, final)
        except Exception as error:
            self.raised = self.raised or f"{type(error).__name__}: {error}"
            return None


class Guarded:
    """The comparison of a value that stops nothing; `fault` says what first went wrong with it."""

    def __init__(self, value: str, comparison: Comparison) -> None:
        self._value = value
        self._comparison = comparison
        self.fault: str | None = None

    def __call__(self, early: pa.Array, final: pa.Array) -> Floats:
        """The errors, NaN where they are unknown."""
        try:
            found = _floats(self._comparison(early, final))
        except Exception as error:
            self._note(f"{type(error).__name__}: {error}")
            return np.full(len(early), np.nan)
        if found.shape != (len(early),):
            self._note(f"it gave {found.size} errors for {len(early)} pairs")
            return np.full(len(early), np.nan)
        sound = np.isfinite(found) & (found >= 0)
        if not sound.all():
            raised = getattr(self._comparison, "raised", None)
            self._note(raised or f"{found[~sound][0]} is no error: give 0 or more")
        return np.where(sound, found, np.nan)

    def _note(self, fault: str) -> None:
        if self.fault is None:
            self.fault = f"early values of {self._value!r} cannot be compared by {_called(self._comparison)}: {fault}"
            log.warning("%s; their errors are unknown", self.fault)


def _called(comparison: Comparison) -> str:
    return str(getattr(comparison, "__name__", type(comparison).__name__))


def _floats(given: Any) -> Floats:
    """Errors however they came: as an Arrow or NumPy array, or a list; NULL is unknown."""
    if isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
    if isinstance(given, pa.Array):
        given = given.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(given, dtype=np.float64)
