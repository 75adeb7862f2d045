"""Where the rows of a simulated stream come from: a topic in memory, files that appear late, one that grows in parts.

Law: rows are written in the order of the story; the reader alone, for files the engine's own, decides when it has them.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from eventide.plan.declared.stream import Input, Stream
from eventide.sources.files.files import Files
from eventide.sources.files.follow import Follow
from eventide.sources.local_input import LocalInput
from tests.simulation.story import Arrival

SCHEMA = pa.schema(
    [("t", pa.int64()), ("who", pa.string()), ("v", pa.int32()), ("done", pa.bool_()), ("_malformed", pa.string())]
)
BROKEN = "broken"
WRITTEN = 1_700_000_000
"""When the first file was written, in seconds; the disk is always slower than the clock of the reader."""


class Topic:
    """Rows in memory, which stay where they are as others come."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows
        self._taken = self._noted = 0

    ended = False

    @property
    def caught_up(self) -> bool:
        """Whether all rows were taken."""
        return self._taken == len(self._rows)

    def take(self, max_rows: int, wait: float) -> pa.Table | None:
        """The next rows."""
        rows = self._rows[self._taken : self._taken + max_rows]
        self._taken += len(rows)
        return pa.Table.from_pylist(rows, SCHEMA) if rows else None

    def position(self) -> dict[str, Any]:
        """How many were taken."""
        return {"rows": self._taken}

    def seek(self, position: dict[str, Any]) -> None:
        """Go on from there."""
        self._taken = self._noted = position["rows"]

    def portion(self) -> dict[str, Any]:
        """How many were taken since this was last asked."""
        rows, self._noted = self._taken - self._noted, self._taken
        return {"rows": rows}

    def repeat(self, portion: dict[str, Any]) -> tuple[pa.Table | None, bool]:
        """Take as many again."""
        table = self.take(portion["rows"], 0) if portion["rows"] else None
        self._noted = self._taken
        return table, True

    def close(self) -> None:
        """Nothing is held."""


class World:
    """What streams read from, outside of every process."""

    def __init__(self, folder: Path, streams: Sequence[Stream], chance: Random) -> None:
        self._folder, self._chance, self._files = folder, chance, 0
        self._streams = {stream.name: stream for stream in streams}
        self._topics: dict[str, list[dict[str, Any]]] = {stream.name: [] for stream in streams}
        self._rest: dict[str, bytes] = {}
        for stream in streams:
            assert stream.input is not None
            if stream.input.format == "follow":
                (folder / stream.name).touch()
            elif stream.input.format != "topic":
                (folder / stream.name).mkdir()

    def opened(self) -> dict[str, LocalInput]:
        """The inputs of a new process."""
        found: dict[str, LocalInput] = {}
        for name, stream in self._streams.items():
            assert stream.input is not None
            placed = replace(stream, input=replace(stream.input, path=str(self._folder / name)))
            if stream.input.format == "topic":
                found[name] = Topic(self._topics[name])
            else:
                found[name] = Follow(placed) if stream.input.format == "follow" else Files(placed)
        return found

    def arrive(self, arrivals: Sequence[Arrival]) -> None:
        """Rows come."""
        for name in self._streams:
            rows = [one for one in arrivals if one.stream == name]
            given = self._streams[name].input
            assert given is not None
            if given.format == "topic":
                self._topics[name] += map(_values, rows)
            elif given.format == "follow":
                self._grow(name, b"".join(_line("json", one) for one in rows))
            elif rows:
                self._appear(name, given, rows)

    def settle(self) -> None:
        """What was written in part is written to its end."""
        for name in list(self._rest):
            self._append(name, b"")

    def _grow(self, name: str, data: bytes) -> None:
        """A file grows, perhaps by half a line."""
        whole = self._rest.pop(name, b"") + data
        cut = len(whole) if self._chance.random() < 0.5 else self._chance.randint(0, len(whole))
        self._append(name, whole[:cut])
        if whole[cut:]:
            self._rest[name] = whole[cut:]

    def _append(self, name: str, data: bytes) -> None:
        with (self._folder / name).open("ab") as file:
            file.write(data + (self._rest.pop(name, b"") if not data else b""))

    def _appear(self, name: str, given: Input, rows: Sequence[Arrival]) -> None:
        """Some files appear, each whole; one may be older than what was read before."""
        cut = self._chance.randint(0, len(rows))
        for part in (rows[:cut], rows[cut:]):
            if part:
                self._files += 1
                hidden = self._folder / name / f".{self._files}"
                head = b"t,who,v,done\n" if given.format == "csv" else b""
                hidden.write_bytes(head + b"".join(_line(given.format, one) for one in part))
                written = WRITTEN + self._chance.choice((self._files, self._chance.randint(0, 9)))
                os.utime(hidden, (written, written))
                hidden.rename(self._folder / name / f"{self._chance.randrange(100)}-{self._files}")


def _values(one: Arrival) -> dict[str, Any]:
    if one.broken:
        return {"_malformed": BROKEN}
    return {"t": one.time, "who": one.source, "v": one.number, "done": one.promise}


def _line(format: str, one: Arrival) -> bytes:
    if one.broken:
        return b"broken,broken,broken,broken\n" if format == "csv" else b"broken\n"
    if format == "json":
        return json.dumps(_values(one)).encode() + b"\n"
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([one.time, one.source, one.number, str(one.promise).lower()])
    return text.getvalue().encode()
