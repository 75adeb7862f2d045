"""How wrong an early answer was, how it is extrapolated, and comparisons of the user.

Law (prodding thesis, section 4.4): the accuracy of an early value E of a final value F is (F - |F - E|) / F, so its
error is |F - E| / |F|: nothing where they are equal, and without limit where the early value is far too large. Where F
is 0, or where one of them is infinite, NaN or NULL and the other is not, any other value is wholly wrong, an error of
1. Values that are no numbers are right or wrong, unless a comparison of the user's own says how far they are apart
(section 6.1).

>>> relative_error(pa.array([110, 135, None]), pa.array([135, 135, 1])).round(3).tolist()
[0.185, 0.0, 1.0]
>>> errors(pa.array(["karolin"]), pa.array(["kathrin"]), hamming).round(3).tolist()
[0.429]

*Estimates.* Sums and counts are extrapolated to the rows that are still expected. The estimate of a SUM or COUNT is its
raw value divided by the completeness, the share of the rows that are there. Where that is not known yet, or nothing is
there, the estimate is the raw value. The raw value stays beside it, unchanged, and an estimate of something that is
NULL is NULL. (The thesis finds that early sums and counts fall short by the share of the rows that are missing,
sections 3.4 and 4.4; so that share tells how to lift them.)

>>> early = pa.table({"window_end": [50, 50], "total": [80, None]})
>>> estimated(early, ["total"], completeness=0.8).column("total_estimate").to_pylist()
[100.0, None]

*Comparisons.* How far an early value is from the final one, a function of the user can say where nobody else can know.
A comparison takes early and final values, none of them NULL, and gives an error for each pair: a number, 0 where the
early value is as good as the final one. One that fails, or gives anything else, stops nothing: the error of that value
is unknown (NaN), which changes no mean, and the first thing that went wrong is remembered and logged. (Prodding thesis,
section 6.1: a function that compares an estimate and a final value, and returns a quality level.)

>>> import pyarrow.compute as pc
>>> off_by = FailSafeComparison("total", lambda early, final: pc.divide(pc.abs(pc.subtract(early, final)), 100.0))
>>> off_by(pa.array([110, 135]), pa.array([135, 135])).tolist(), off_by.fault
([0.25, 0.0], None)
>>> FailSafeComparison("total", lambda early, final: [-1.0])(pa.array([110]), pa.array([135])).tolist()
[nan]
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Comparison: TypeAlias = Callable[[pa.Array, pa.Array], Any]
"""Early and final values, none of them NULL, to errors, as an array or list of numbers: 0 where the early one is as
good as the final, 1 where it is worth nothing."""


def errors(
    early: pa.Array | pa.ChunkedArray, final: pa.Array | pa.ChunkedArray, comparison: Comparison | None = None
) -> Floats:
    """The error of every early value; by the comparison, or by the one that suits the type.

    >>> errors(pa.array([True, False, None]), pa.array([True, True, None])).tolist()
    [0.0, 1.0, 0.0]
    """
    early, final = _combined(early), _combined(final)
    compare = comparison or (relative_error if _number(final.type) else differs)
    shown, true = early.is_valid().to_numpy(False), final.is_valid().to_numpy(False)
    found = np.where(shown == true, 0.0, 1.0)
    both = np.nonzero(shown & true)[0]
    if len(both):
        found[both] = compare(early.take(pa.array(both)), final.take(pa.array(both)))
    return found


def relative_error(early: pa.Array, final: pa.Array) -> Floats:
    """By how much of the final number the early one is off."""
    shown, true = _floats(early), _floats(final)
    with np.errstate(all="ignore"):
        found = np.abs(true - shown) / np.abs(true)
    same = (shown == true) | (np.isnan(shown) & np.isnan(true))
    return np.where(same, 0.0, np.where(np.isfinite(found), found, 1.0))


def differs(early: pa.Array, final: pa.Array) -> Floats:
    """The error of values that are right or wrong: 0 or 1.

    >>> differs(pa.array(["a", "b"]), pa.array(["a", "c"])).tolist()
    [0.0, 1.0]
    """
    if not kinds.is_nested(final.type):
        try:
            return np.asarray(pc.not_equal(early, final).to_numpy(False), dtype=np.float64)
        except pa.ArrowNotImplementedError:
            pass
    # Lists, structs and maps: Arrow does not compare them as columns.
    pairs = zip(early.to_pylist(), final.to_pylist(), strict=True)
    return np.array([float(not _same(a, b, final.type)) for a, b in pairs], dtype=np.float64)


def _same(early: Any, final: Any, kind: pa.DataType) -> bool:
    """Whether two values are the same, NULL being the same as NULL and NaN as NaN; a map has no order."""
    if early is None or final is None:
        return early is final
    if kinds.is_map(kind):
        shown, true = sorted(map(repr, early)), sorted(map(repr, final))
        return shown == true
    if kinds.is_struct(kind):
        return all(_same(early[f.name], final[f.name], f.type) for f in kind)
    if kinds.is_nested(kind):
        return len(early) == len(final) and all(_same(a, b, kind.value_type) for a, b in zip(early, final, strict=True))
    return bool(early == final or (early != early and final != final))


def hamming(early: pa.Array, final: pa.Array) -> Floats:
    """The share of places at which two texts have different characters; the longer one counts.

    >>> hamming(pa.array(["", "abc", "abc"]), pa.array(["", "abd", "abcdef"])).round(3).tolist()
    [0.0, 0.333, 0.5]
    """
    pairs = zip(early.to_pylist(), final.to_pylist(), strict=True)
    return np.array([_apart(a, b) for a, b in pairs], dtype=np.float64)


def _apart(early: str, final: str) -> float:
    longer = max(len(early), len(final))
    same = sum(a == b for a, b in zip(early, final, strict=False))
    return (longer - same) / longer if longer else 0.0


def accuracy(error: Floats) -> Floats:
    """The thesis' percentage for an error.

    >>> accuracy(np.array([0.0, 0.25])).tolist()
    [100.0, 75.0]
    """
    return (1.0 - error) * 100.0


def _number(kind: pa.DataType) -> bool:
    return bool(kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind))


def _floats(values: pa.Array) -> Floats:
    # Beyond 2^53 a whole number loses its last digits here: far less than an error worth telling.
    return np.asarray(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def _combined(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


SUFFIX = "_estimate"


def estimated(early: pa.Table, names: Sequence[str], completeness: float | Floats | None) -> pa.Table:
    """Add a column `NAME_estimate` for each named column; `completeness` is of all rows, or of each row.

    >>> estimated(pa.table({"n": [3, 4]}), ["n"], completeness=None).column("n_estimate").to_pylist()
    [3.0, 4.0]
    """
    shares = np.broadcast_to(np.asarray(np.nan if completeness is None else completeness, dtype=float), early.num_rows)
    usable = pa.array(np.where(np.isfinite(shares) & (shares > 0), shares, 1.0))
    for name in names:
        raw = early.column(name).cast(pa.float64(), safe=False)
        early = early.append_column(f"{name}{SUFFIX}", pc.divide(raw, usable))
    return early


log = logging.getLogger(__name__)


class PairwiseComparison:
    """A function of two single values, as a comparison; a pair that it fails for is unknown, the others are not.

    >>> apart = PairwiseComparison(lambda early, final: len(final) / len(early), "apart")
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


class FailSafeComparison:
    """The comparison of a value that stops nothing; `fault` says what first went wrong with it."""

    def __init__(self, value: str, comparison: Comparison) -> None:
        self._value = value
        self._comparison = comparison
        self.fault: str | None = None

    def __call__(self, early: pa.Array, final: pa.Array) -> Floats:
        """The errors, NaN where they are unknown."""
        try:
            found = _distances(self._comparison(early, final))
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
            log.warning("%s; their errors are unknown", self.fault, extra={"event": "comparison failed"})


def _called(comparison: Comparison) -> str:
    return str(getattr(comparison, "__name__", type(comparison).__name__))


def _distances(given: Any) -> Floats:
    """Errors however they came: as an Arrow or NumPy array, or a list; NULL is unknown."""
    if isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
    if isinstance(given, pa.Array):
        given = given.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(given, dtype=np.float64)
