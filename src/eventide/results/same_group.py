"""Which rows of two tables are of the same window and group.

Law: rows get the same number exactly when all the named columns are equal in both; NULL equals NULL, and NaN equals
NaN.

>>> a, b = pa.table({"k": ["x", None]}), pa.table({"k": [None, "y", "x"]})
>>> [numbers.tolist() for numbers in numbered([a, b], ["k"])]
[[0, 1], [1, 2, 0]]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def numbered(tables: Sequence[pa.Table], names: Sequence[str]) -> list[NDArray[np.int64]]:
    """A number for each row of each table; equal numbers for rows that agree in all the named columns."""
    lengths = [table.num_rows for table in tables]
    numbers = np.zeros(sum(lengths), dtype=np.int64)
    for name in names:
        kind = tables[0].schema.field(name).type
        chunks = [chunk for table in tables for chunk in table.column(name).cast(kind).chunks]
        found = _encoded(pa.chunked_array(chunks, kind))
        _, numbers = np.unique(numbers * (int(found.max(initial=0)) + 1) + found, return_inverse=True)
    return np.split(numbers.astype(np.int64), np.cumsum(lengths)[:-1])


def _encoded(values: pa.ChunkedArray) -> NDArray[np.int64]:
    """Equal values as equal numbers from 0 on."""
    if len(values) == 0:
        return np.zeros(0, dtype=np.int64)
    try:
        coded = values.combine_chunks().dictionary_encode(null_encoding="encode")
    except pa.ArrowNotImplementedError:
        # Arrays, maps and structs: by what they look like.
        coded = pa.array([repr(value) for value in values.to_pylist()]).dictionary_encode()
    return np.asarray(coded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
