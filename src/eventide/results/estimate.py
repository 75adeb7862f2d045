"""Sums and counts, extrapolated to the rows that are still expected.

Law: the estimate of a SUM or COUNT is its raw value divided by the completeness, the share of the rows that are there.
Where that is not known yet, or nothing is there, the estimate is the raw value. The raw value stays beside it,
unchanged, and an estimate of something that is NULL is NULL. (The thesis finds that early sums and counts fall short
by the share of the rows that are missing, sections 3.4 and 4.4; so that share tells how to lift them.)

>>> early = pa.table({"window_end": [50, 50], "total": [80, None]})
>>> estimated(early, ["total"], completeness=0.8).column("total_estimate").to_pylist()
[100.0, None]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.results.error import Floats

SUFFIX = "_estimate"


def estimated(early: pa.Table, names: Sequence[str], completeness: float | Floats | None) -> pa.Table:
    """With a column `NAME_estimate` for each of the named ones; `completeness` of all rows, or of each.

    >>> estimated(pa.table({"n": [3, 4]}), ["n"], completeness=None).column("n_estimate").to_pylist()
    [3.0, 4.0]
    """
    shares = np.broadcast_to(np.asarray(np.nan if completeness is None else completeness, dtype=float), early.num_rows)
    shares = pa.array(np.where(np.isfinite(shares) & (shares > 0), shares, 1.0))
    for name in names:
        raw = early.column(name).cast(pa.float64(), safe=False)
        early = early.append_column(f"{name}{SUFFIX}", pc.divide(raw, shares))
    return early
