"""The sketches Spark writes, on the driver: distinct counts (HLL) and quantiles (KLL), as bytes.

Law: bytes written here and by Spark are of one kind; either side merges what the other wrote. An estimate of distinct
values does not depend on the order of merging: it is always told by a union.

>>> one, other = distinct_sketch(["a", "b"], 12), distinct_sketch(["b", "c"], 12)
>>> distinct_estimate(distinct_union([one, other]))
3
>>> import numpy as np
>>> few, many = quantile_sketch(np.array([9.0]), 200), quantile_sketch(np.array([1.0, 2.0]), 200)
>>> quantiles(quantile_union([few, many]), [0.5])
[2.0]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import datasketches
import numpy as np
import numpy.typing as npt

DEFAULT_LG_K = 12
DEFAULT_K = 200


def distinct_sketch(values: Iterable[int | str], lg_k: int) -> bytes:
    """A sketch of these values; numbers as int64, text as its bytes. An empty text is not seen, as in Spark."""
    sketch = datasketches.hll_sketch(lg_k, datasketches.tgt_hll_type.HLL_8)
    update = sketch.update
    for value in values:
        update(value)
    return bytes(sketch.serialize_updatable())


def distinct_union(sketches: Iterable[bytes | None]) -> bytes:
    """One sketch of all values that any of these has seen."""
    read = [datasketches.hll_sketch.deserialize(sketch) for sketch in sketches if sketch is not None]
    union = datasketches.hll_union(max((sketch.lg_config_k for sketch in read), default=DEFAULT_LG_K))
    for sketch in read:
        union.update(sketch)
    return bytes(union.get_result(datasketches.tgt_hll_type.HLL_8).serialize_updatable())


def distinct_estimate(sketch: bytes) -> int:
    """How many distinct values, about."""
    return int(np.floor(datasketches.hll_sketch.deserialize(sketch).get_estimate() + 0.5))


def quantile_sketch(values: npt.NDArray[np.float64], k: int) -> bytes:
    """A sketch of these values; NaN is not seen, as in Spark."""
    sketch = datasketches.kll_doubles_sketch(k)
    sketch.update(values)
    return bytes(sketch.serialize())


def quantile_union(sketches: Iterable[bytes | None], k: int | None = None) -> bytes:
    """One sketch of all values; of the given k, or of the first one's."""
    union = None if k is None else datasketches.kll_doubles_sketch(k)
    for sketch in sketches:
        if sketch is not None:
            read = datasketches.kll_doubles_sketch.deserialize(sketch)
            if union is None:
                union = read
            else:
                union.merge(read)
    return bytes((datasketches.kll_doubles_sketch(DEFAULT_K) if union is None else union).serialize())


def quantiles(sketch: bytes, ranks: Sequence[float]) -> list[float] | None:
    """For each rank the least value with at least that share of values up to it; None of nothing."""
    read = datasketches.kll_doubles_sketch.deserialize(sketch)
    if read.is_empty():
        return None
    # The ends are known exactly, though the sketch may have let go of them; Spark tells them so.
    ends = {0.0: read.get_min_value(), 1.0: read.get_max_value()}
    return [ends.get(rank, value) for rank, value in zip(ranks, read.get_quantiles(ranks, True), strict=True)]
