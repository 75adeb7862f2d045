"""Read bytes and files as blocks of whole lines.

*Blocks.* A file is read in blocks of whole lines, from any byte on. The blocks, put together, are the bytes of the file
from `offset` on, each cut after a line end; only the last one may end without. `offset` counts bytes after unpacking
(`.gz`, `.bz2`, `.xz`, `.zst`, by the ending of the name).

>>> import io
>>> blocks = LineBlocks(io.BytesIO(b"one\\ntwo\\r\\nthree"))
>>> blocks.read(2), blocks.offset, blocks.read(2), blocks.read(2)
(b'one\\ntwo\\r\\n', 9, b'three', None)

*Lines.* Bytes become lines without a Python object for each. A line ends at LF, CR LF or CR, as in Spark; the mark at
the beginning of a file that says UTF-8 is no part of it. Blank lines are no rows. The lines of a block, joined again,
are its bytes but for blank lines and line ends.

>>> lines_of(b"a\\r\\nb\\n\\nc", "csv").to_pylist()
['a', 'b', 'c']
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

MARK = b"\xef\xbb\xbf"
# Spark's CSV reader passes over lines of anything up to the blank, its JSON reader over blanks and tabs.
BLANKS = {"csv": "".join(map(chr, range(0x21))), "json": " \t"}


def ends_of(block: bytes) -> NDArray[np.intp]:
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
    """Lines with one LF at the end of each."""
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return block if block.endswith(b"\n") else block + b"\n"


def lines_of(block: bytes, kind: str) -> pa.Array:
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


def as_block(lines: pa.Array) -> bytes:
    """Lines as a block of bytes again."""
    one = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    joined = pc.binary_join(one, "\n")
    return bytes(joined[0].as_buffer())


BLOCK = 16 << 20
"""Bytes read at once."""

CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


class ByteReader(Protocol):
    """Whatever bytes can be read from, in order."""

    def read(self, size: int = -1, /) -> bytes:
        """At most so many bytes; none at the end."""
        ...

    def close(self) -> None:
        """Let go of what is read."""
        ...


def opened(path: str) -> ByteReader:
    """A file, unpacked while it is read."""
    file = pa.OSFile(path)
    for ending, codec in CODECS.items():
        if path.lower().endswith(ending):
            return _Closing(pa.CompressedInputStream(file, codec), file)
    if path.lower().endswith(".xz"):
        import lzma

        file.close()
        return lzma.open(path)
    return _Closing(file)


class _Closing:
    """An Arrow stream as a plain reader that closes all it is made of."""

    def __init__(self, *streams: Any) -> None:
        self._streams = streams

    def read(self, size: int = -1, /) -> bytes:
        return self._streams[0].read(size)  # type: ignore[no-any-return]

    def seek(self, offset: int) -> None:
        self._streams[0].seek(offset)

    @property
    def seekable(self) -> bool:
        return len(self._streams) == 1

    def close(self) -> None:
        for stream in self._streams:
            stream.close()


class LineBlocks:
    """Lines from a reader. `growing`: the file may grow, so a last line without an end is not yet a line."""

    def __init__(self, source: ByteReader, growing: bool = False) -> None:
        self._source = source
        self.growing = growing
        self._buffer = b""
        self._used = 0
        self._ends = ends_of(b"")
        self.offset = 0

    def skip_to(self, offset: int) -> None:
        """Pass over what was read before; called before the first `read`."""
        if isinstance(self._source, _Closing) and self._source.seekable:
            self._source.seek(offset)
            self.offset = offset
        while self.offset < offset:
            passed = self._source.read(min(BLOCK, offset - self.offset))
            if not passed:
                break
            self.offset += len(passed)

    def read(self, max_lines: int) -> bytes | None:
        """The next lines, at most so many; None when there are none (now, if the file grows)."""
        while len(self._ends) == 0:
            more = self._source.read(BLOCK)
            if not more and (self.growing or self._used == len(self._buffer)):
                return None
            self._buffer = self._buffer[self._used :] + more
            self._used = 0
            self._ends = ends_of(self._buffer)
            if not more:
                self._ends = self._ends if len(self._ends) else ends_of(b"\n") + len(self._buffer) - 1
            elif self._buffer.endswith(b"\r"):
                # It may be half of a line end.
                self._ends = self._ends[:-1]
        cut = int(self._ends[min(max_lines, len(self._ends)) - 1])
        whole = self._buffer[self._used : cut]
        self._ends = self._ends[max_lines:]
        self._used = cut
        at_start = self.offset == 0
        self.offset += len(whole)
        return whole.removeprefix(MARK) if at_start else whole

    def close(self) -> None:
        """Let go of the file."""
        self._source.close()
