"""Large arrays of a round record, in files beside it: what changed is written, not what is there.

Law: the arrays of a record are those of its first file, with the changes of the later ones put in, in their order. A
stream of 100,000 sources under a permitted ratio has 130 MB of them, of which a round touches few places: to write them
all each round, as compressed text, took most of its time. A file has the places of each array that are not as they
were, and their values; when the changes have become as large as the whole, or many, the whole is written again, and the
files before are garbage once no kept record names them.

>>> written = {}
>>> def write(name, table):
...     written[name] = table
...     return StateFile(name, table.nbytes, "")
>>> large = np.arange(5_000)
>>> def record(round):
...     return RoundRecord(round, 0, 0, False, {}, {"s": {"seen": Packed(large.copy())}}, {}, {}, ())
>>> first, files = ArrayFiles().apart(record(0), write)
>>> large[7] = -1
>>> second, files = files.apart(record(1), write)
>>> second.streams, len(second.arrays), [table.nbytes > 40_000 for table in written.values()]
({'s': {'seen': {'array': 's.seen'}}}, 2, [True, False])
>>> complete(second, lambda file: written[file.name])[0].streams == record(1).streams
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eventide.engine.checkpoint.record import RoundRecord, StateFile
from eventide.eventtime.arrays import Packed

APART = 16 * 1024
"""Bytes from which on an array is kept in a file; smaller ones are text of the record."""
MOST_FILES = 32
"""So many files are read at a start, at most."""
MARK = "array"
COLUMNS = pa.schema(
    {
        "path": pa.string(),
        "dtype": pa.string(),
        "shape": pa.list_(pa.int64()),
        "places": pa.large_binary(),
        "values": pa.large_binary(),
    }
)
"""An array by its path in the record, and the places (of int64) that have these values; all of them if it is NULL."""

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class ArrayFiles:
    """The files in which the arrays of the last record are, and these arrays."""

    files: tuple[StateFile, ...] = ()
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def apart(self, record: RoundRecord, write: Callable[[str, pa.Table], StateFile]) -> tuple[RoundRecord, ArrayFiles]:
        """The record with its large arrays in files, and these; `write` stores a table."""
        arrays: Arrays = {}
        streams = {name: _without(saved, name, arrays) for name, saved in record.streams.items()}
        if not arrays:
            return record, ArrayFiles()
        files = self.files
        changed = sum(file.bytes for file in files[1:])
        if not files or len(files) == MOST_FILES or changed > files[0].bytes:
            files, table = (), _differences({}, arrays)
        else:
            table = _differences(self.arrays, arrays)
        if table.num_rows:
            files = (*files, write(f"slices/_arrays/{record.round:010d}.arrow", table))
        apart = replace(
            record, streams=streams, files=(*record.files, *files), arrays=tuple(file.name for file in files)
        )
        return apart, ArrayFiles(files, arrays)


def complete(record: RoundRecord, read: Callable[[StateFile], pa.Table]) -> tuple[RoundRecord, ArrayFiles]:
    """The record as it was before its arrays were put into files, and these; `read` gives the table of a file."""
    by_name = {file.name: file for file in record.files}
    files = tuple(by_name[name] for name in record.arrays)
    arrays: Arrays = {}
    for file in files:
        for row in read(file).to_pylist():
            arrays[row["path"]] = _put_in(arrays.get(row["path"]), row)
    kept = frozenset(record.arrays)
    whole = replace(
        record,
        streams={name: _with(saved, arrays) for name, saved in record.streams.items()},
        files=tuple(file for file in record.files if file.name not in kept),
        arrays=(),
    )
    return whole, ArrayFiles(files, arrays)


def _without(saved: Any, path: str, arrays: Arrays) -> Any:
    if isinstance(saved, Packed) and saved.array.nbytes >= APART:
        arrays[path] = saved.array
        return {MARK: path}
    if isinstance(saved, dict):
        return {key: _without(value, f"{path}.{key}", arrays) for key, value in saved.items()}
    if isinstance(saved, list) and saved and isinstance(saved[0], dict | list | Packed):
        return [_without(value, f"{path}.{place}", arrays) for place, value in enumerate(saved)]
    return saved


def _with(saved: Any, arrays: Arrays) -> Any:
    if isinstance(saved, dict):
        if saved.keys() == {MARK}:
            return Packed(arrays[saved[MARK]])
        return {key: _with(value, arrays) for key, value in saved.items()}
    if isinstance(saved, list) and saved and isinstance(saved[0], dict | list):
        return [_with(value, arrays) for value in saved]
    return saved


def _differences(before: Mapping[str, NDArray[Any]], arrays: Arrays) -> pa.Table:
    """What makes the arrays of before these."""
    found = []
    for path, array in arrays.items():
        places = _changed(before.get(path), array)
        if places is None:
            values = array
        elif len(places) or before[path].shape != array.shape:
            values = array.reshape(-1)[places]
        else:
            continue
        shape, given = list(array.shape), None if places is None else places.tobytes()
        found.append(
            {"path": path, "dtype": array.dtype.str, "shape": shape, "places": given, "values": values.tobytes()}
        )
    return pa.Table.from_pylist(found, COLUMNS)


def _changed(before: NDArray[Any] | None, array: NDArray[Any]) -> NDArray[np.int64] | None:
    """The places, counted through all axes, that differ bit by bit; None where the whole takes less."""
    if before is None or before.dtype != array.dtype or not _fits(before.shape, array.shape):
        return None
    bits = np.dtype(f"u{array.dtype.itemsize}")
    was = _extended(before, array.shape).reshape(-1).view(bits)
    places = np.flatnonzero(was != array.reshape(-1).view(bits)).astype(np.int64, copy=False)
    return places if len(places) * (places.itemsize + array.itemsize) < array.nbytes else None


def _fits(inner: tuple[int, ...], outer: tuple[int, ...]) -> bool:
    return len(inner) == len(outer) and all(one <= other for one, other in zip(inner, outer, strict=True))


def _extended(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """An array in the corner of a larger one: sources were added, along whichever axis they are."""
    if array.shape == shape:
        return array
    larger = np.zeros(shape, dtype=array.dtype)
    larger[tuple(map(slice, array.shape))] = array
    return larger


def _put_in(before: NDArray[Any] | None, row: Mapping[str, Any]) -> NDArray[Any]:
    dtype, shape = np.dtype(row["dtype"]), tuple(row["shape"])
    values = np.frombuffer(row["values"], dtype=dtype)
    if row["places"] is None or before is None:
        return values.reshape(shape)
    array = _extended(before, shape).copy()
    array.reshape(-1)[np.frombuffer(row["places"], dtype=np.int64)] = values
    array.setflags(write=False)
    return array
