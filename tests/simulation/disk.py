"""A disk in memory whose machine may die: what was not confirmed by then may be gone.

Laws. The same chance gives the same disk. A file is whole or not there, as `Storage` promises. A process that was
killed leaves what it wrote; one whose machine lost its power leaves what was confirmed, and of the rest each file in
some state that it has had since. Whatever changes something is an operation: before any of them, and after it, the
process may die, and any of them may be refused.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import PurePosixPath
from random import Random
from typing import Any

import pyarrow as pa

from eventide.engine.checkpoint.record import Intent, read_document
from eventide.storage.storage import MissingFileError, Storage, is_visible

LOCK = "lock/"


class KilledError(BaseException):
    """The process is gone."""


class Faults:
    """Counts the operations of the processes, and lets one of them fail.

    `kind`: `killed before` the operation, `killed after` it, `torn` in it, `power` lost after it, or `refused`.
    """

    def __init__(self) -> None:
        self.kind: str | None = None
        self._left = 0

    def arm(self, kind: str, operations: int) -> None:
        """Let the operation fail that comes after so many others."""
        self.kind, self._left = kind, operations

    def operation(self, does: Callable[[], None], tears: Callable[[], None] = lambda: None) -> None:
        """Do something, unless it is the one to fail."""
        self._left -= 1
        if self.kind is None or self._left >= 0:
            does()
            return
        kind = self.kind
        if kind == "refused":
            self.kind = None
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if kind == "torn":
            tears()
        elif kind != "killed before":
            does()
        raise KilledError(kind)


class Disk:
    """What is left when no process runs."""

    def __init__(self, chance: Random, faults: Faults) -> None:
        self.files: dict[str, bytes] = {}
        self.faults = faults
        self._chance = chance
        self._unconfirmed: dict[str, list[bytes | None]] = {}
        self._process: Process | None = None

    def start(self) -> Process:
        """A process that works with the disk; the one before it is dead, and has no lock any more."""
        self.end()
        self._process = Process(self)
        return self._process

    def end(self) -> None:
        """The process is gone."""
        if self._process is not None:
            self._process.dead = True
        self.files = {name: data for name, data in self.files.items() if not name.startswith(LOCK)}

    def lose_power(self) -> None:
        """Whatever was not confirmed is in some state that it has had."""
        for name, states in sorted(self._unconfirmed.items()):
            self._put(name, self._chance.choice([*states, self.files.get(name)]))
        self._unconfirmed = {}

    def change(self, name: str, data: bytes | None) -> None:
        """Have a file, or None of it, until further notice."""
        self._unconfirmed.setdefault(name, []).append(self.files.get(name))
        self._put(name, data)

    def confirm(self) -> None:
        """All that was done stays done."""
        self._unconfirmed = {}

    def intended(self) -> Intent | None:
        """The newest intent."""
        names = [
            name for name in sorted(self.files) if name.startswith("intents/") and is_visible(name.partition("/")[2])
        ]
        return Intent.from_json(read_document(names[-1], self.files[names[-1]])) if names else None

    def damage(self) -> str | None:
        """Cut some bytes off the newest record, or off a state file; what it was, None if there is nothing."""
        names = [name for name in sorted(self.files) if name.startswith(("rounds/", "slices/")) and self.files[name]]
        records = [name for name in names if name.startswith("rounds/")]
        if len(records) < 2:
            return None
        name = records[-1] if self._chance.random() < 0.5 else self._chance.choice(names)
        self.files[name] = self.files[name][: -self._chance.randint(1, len(self.files[name]))]
        return name

    def _put(self, name: str, data: bytes | None) -> None:
        if data is None:
            self.files.pop(name, None)
        else:
            self.files[name] = data


class Process(Storage):
    """The disk, as one process has it."""

    near = True

    def __init__(self, disk: Disk) -> None:
        super().__init__("simulated disk")
        self._disk = disk
        self.dead = False

    def apart(self) -> Storage:
        """There are no other threads."""
        return self

    def write(self, name: str, data: bytes | pa.Buffer, flush: bool = True) -> None:
        """Put a whole file in place."""
        whole = bytes(data)
        half = str(PurePosixPath(name).with_name(f".{PurePosixPath(name).name}.tmp"))
        self._do("write", name, lambda: self._disk.change(name, whole), lambda: self._disk.change(half, whole[:9]))
        if flush:
            self.flush()

    def copy(self, name: str, to: str) -> None:
        """Have a file under another name too."""
        self.write(to, self.read(name))

    def flush(self) -> None:
        """All that was written is safe."""
        self._do("write", "", self._disk.confirm)

    def adopt(self, name: str) -> None:
        """Everything is confirmed by `flush`."""

    def remove(self, name: str) -> None:
        """Take a file away."""
        self._do("remove", name, lambda: self._disk.change(name, None))

    def remove_folder(self, folder: str) -> None:
        """Take all files below a folder away."""
        for name in self.list(folder, hidden=True):
            self.remove(name)

    def _do(self, doing: str, name: str, does: Callable[[], None], tears: Callable[[], None] = lambda: None) -> None:
        if name.startswith(LOCK):
            if not self.dead:
                does()
            return
        self._alive()
        with self.translated_errors(doing, name):
            self._disk.faults.operation(does, tears)

    def _alive(self) -> None:
        if self.dead:
            raise KilledError("it is dead already")

    def read(self, name: str) -> bytes:
        """The whole file."""
        self._alive()
        if name not in self._disk.files:
            raise MissingFileError(f"cannot read {name} in {self.where}: No such file or directory")
        return self._disk.files[name]

    def opened(self, name: str) -> pa.NativeFile:
        """The file, to be read part by part."""
        return pa.BufferReader(self.read(name))

    def tail(self, name: str, length: int) -> bytes:
        """The last bytes of a file."""
        return self.read(name)[-length:]

    def list(self, folder: str, hidden: bool = False) -> list[str]:
        """All files below a folder."""
        self._alive()
        below = [
            PurePosixPath(name) for name in sorted(self._disk.files) if name.startswith(f"{folder}/" * bool(folder))
        ]
        return [str(path) for path in below if hidden or all(map(is_visible, path.parts))]

    def size(self, name: str) -> int:
        """The length of a file."""
        return len(self.read(name))

    def modified(self, name: str) -> float | None:
        """It does not say."""
        return None

    def located(self, name: str) -> tuple[Any, str]:
        """Nobody else reads it."""
        raise AssertionError(f"{name} is read by another process")

    def uri(self, name: str = "") -> str:
        """A place that nobody else reaches."""
        return f"memory:///{name}"
