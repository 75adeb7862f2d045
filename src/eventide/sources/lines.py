"""Bytes become lines, without a Python object for each.

Law: a line ends at LF, CR LF or CR, as in Spark; the mark at the beginning of a file that says UTF-8 is no part of it.
Blank lines are no rows. The lines of a block, joined again, are its bytes but for blank lines and line ends.

>>> lines_of(b"a\\r\\nb\\n\\nc", "csv").to_pylist()
['a', 'b', 'c']
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MARK = b"\xef\xbb\xbf"
# Spark's CSV reader passes over lines of anything up to the blank, its JSON reader over blanks and tabs.
BLANKS = {"csv": "".join(map(chr, range(0x21))), "json": " \t"}


def ends_of(block: bytes) -> Any:
    """Where the lines of a block end: the index after each line end (a NumPy array).

    >>> ends_of(b"a\\r\\nb\\rc").tolist()
    [3, 5]
    """
    found = np.frombuffer(block, dtype=np.uint8)
    ends = found == 10
    if b"\r" in block:
        ends[:-1] |= (found[:-1] == 13) & (found[1:] != 10)
        ends[-1] |= found[-1] == 13
    return np.flatnonzero(ends) + 1


def normal(block: bytes) -> bytes:
    """The same lines, each ended by one LF."""
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return block if block.endswith(b"\n") else block + b"\n"


def lines_of(block: bytes, kind: str) -> pa.StringArray:
    """The lines of a block of valid UTF-8 that are not blank."""
    block = normal(block)
    ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == 10)
    # Without the line ends the lines lie side by side: their borders move up by one for each line before.
    borders = np.zeros(len(ends) + 1, dtype=np.int32)
    borders[1:] = ends - np.arange(len(ends))
    lines = pa.StringArray.from_buffers(len(ends), pa.py_buffer(borders), pa.py_buffer(block.replace(b"\n", b"")))
    if kind not in BLANKS:
        return lines
    starts = np.concatenate([[0], ends[:-1] + 1])
    # Few lines begin with a blank or a line end; only these are looked at.
    doubtful = np.flatnonzero(np.frombuffer(block, dtype=np.uint8)[starts] <= 32)
    if not len(doubtful):
        return lines
    blank = pc.equal(pc.utf8_ltrim(lines.take(pa.array(doubtful)), characters=BLANKS[kind]), "")
    if not pc.any(blank).as_py():
        return lines
    kept = np.ones(len(lines), dtype=np.bool_)
    kept[doubtful[blank.to_numpy(zero_copy_only=False)]] = False
    return lines.filter(pa.array(kept))


def as_block(lines: pa.StringArray) -> bytes:
    """Lines as a block of bytes again."""
    one = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    joined = pc.binary_join(one, "\n")
    return bytes(joined[0].as_buffer())
