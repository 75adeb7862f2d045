"""A file that grows, followed as `tail -F` does: lines of JSON, CSV or text, read as they are written.

Laws. A last line without an end waits until it is ended. When the file is replaced (renamed away and made anew), what
was still in the old one is read first, its last line even without an end; then those that bore the name meanwhile
(`sources.rotation`), in their order; then the new one from its beginning. When it was emptied and written anew, the
rest is read from its copy, if there is one, and then the file from its beginning. A file that is not there yet is
waited for.

A position knows the file by its number on the disk and its first bytes. After a restart it is found again, also under
another name in the same folder, and read on. What is gone or compressed meanwhile cannot be read, and is told.

>>> import os, tempfile
>>> from eventide.plan.declared.stream import Input, columns
>>> path = os.path.join(tempfile.mkdtemp(), "log")
>>> log = open(path, "w"); _ = log.write('{"t": 1}\\n{"t": '); log.flush()
>>> followed = Follow(Stream("s", columns("t BIGINT"), time="t", input=Input("follow", path)))
>>> followed.take(9, 0)["t"].to_pylist(), followed.take(9, 0)
([1], None)
>>> _ = log.write("2}\\n"); log.close()
>>> followed.take(9, 0)["t"].to_pylist()
[2]
>>> followed.close()
"""

from __future__ import annotations

import logging
import os
import time
from typing import Any

import pyarrow as pa

from eventide.errors import DeclarationError, InputError
from eventide.plan.declared.stream import Stream
from eventide.sources.followed_file import FollowedFile, Mark
from eventide.sources.input_of import input_of, needs_path
from eventide.sources.rotation import copy_of, rotated_after
from eventide.sources.text_rows import LineFormat
from eventide.sources.time_units import UnitWatch

LOG = logging.getLogger(__name__)
LOOK_AGAIN = 0.05
"""Seconds between two looks for new lines while waiting."""


class Follow:
    """The lines of a growing file; the option `format` says what they are (by default json)."""

    def __init__(self, stream: Stream) -> None:
        given = input_of(stream)
        owner = f"stream {stream.name!r}"
        self._path = needs_path(stream, given)
        options = {name.lower(): value for name, value in given.options}
        kind = options.pop("format", "json")
        if kind not in ("json", "csv", "text"):
            raise DeclarationError(f"{owner} cannot follow {kind}: give the option format as json, csv or text")
        if os.path.isdir(self._path):
            raise InputError(f"{owner}: {self._path} is a folder: follow a file in it, or read the folder as {kind}")
        self._how = LineFormat(owner, stream.columns, kind, options)
        self._file: FollowedFile | None = None
        self._after: Mark | None = None
        self._told: set[str] = set()
        self._units = UnitWatch(stream)
        self._caught_up = False

    @property
    def ended(self) -> bool:
        """Never: a file may always grow."""
        return False

    @property
    def caught_up(self) -> bool:
        """Whether there was nothing more at the last look."""
        return self._caught_up

    def take(self, max_rows: int, wait: float) -> pa.Table | None:
        """The next lines."""
        deadline = time.monotonic() + wait
        while True:
            taken = self._rows(max_rows)
            self._caught_up = taken is None
            self._units.look(taken)
            rest = deadline - time.monotonic()
            if taken is not None or rest <= 0:
                return taken
            time.sleep(min(rest, LOOK_AGAIN))

    def _rows(self, max_rows: int) -> pa.Table | None:
        try:
            while True:
                if self._file is None:
                    self._file = self._next()
                if self._file.rewritten():
                    self._emptied(self._file.mark())
                    continue
                taken = self._file.read(max_rows)
                if taken is not None and taken.num_rows:
                    return taken
                if taken is None and not self._file.replaced(self._path):
                    return None
                if taken is None:
                    # Written between our last look and the renaming, or never ended.
                    taken = self._file.read_to_the_end(max_rows)
                    if taken is not None:
                        return taken
                    self._after = self._file.mark()
                    self.close()
        except FileNotFoundError:
            return None
        except OSError as failure:
            raise InputError(f"{self._how.owner}: {self._path} cannot be followed: {failure.strerror}") from failure

    def _next(self) -> FollowedFile:
        """The file behind the one that was read: one that bore the name meanwhile, or the one that bears it now."""
        if self._after is None:
            return FollowedFile(self._how, self._path)
        waiting, compressed = rotated_after(self._path, self._after)
        for path in compressed:
            if path not in self._told:
                self._told.add(path)
                LOG.warning("%s: %s was compressed before it was read: its rows are missing", self._how.owner, path)
        return FollowedFile(self._how, waiting[0] if waiting else self._path)

    def _emptied(self, mark: Mark) -> None:
        """Read on in the copy of a file that is written anew, or else in that file from its beginning."""
        self.close()
        copied = copy_of(self._path, mark)
        self._file = FollowedFile(self._how, self._path if copied is None else copied, None if copied is None else mark)

    def position(self) -> dict[str, Any]:
        """Which file, and how far it was read."""
        after = None if self._after is None else self._after.saved()
        return {"file": None if self._file is None else self._file.mark().saved(), "after": after}

    def seek(self, position: dict[str, Any]) -> None:
        """Read on in the file that was read then, wherever it is now."""
        after = position.get("after")
        self._after = None if after is None else Mark.restored(after)
        if position["file"] is not None:
            mark = Mark.restored(position["file"])
            where = mark.found(self._path) or copy_of(self._path, mark)
            if where is not None:
                self._file = FollowedFile(self._how, where, mark)
            else:
                self._after = mark
                LOG.warning(
                    "%s: the file that was read last as %s is gone: what was written to it behind byte %d is missing",
                    self._how.owner,
                    self._path,
                    mark.offset,
                )

    def close(self) -> None:
        """Close the file that is open."""
        if self._file is not None:
            self._file.close()
            self._file = None
