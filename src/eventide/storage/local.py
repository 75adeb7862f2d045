"""Storage on a disk of this machine, or on one that is mounted like one.

Law: bytes go to a hidden temporary file, the disk confirms them, the file is renamed over its name, the disk confirms
the folder. So a name never shows a half. (On the machine of the first measurements: 0.5 ms for each confirmation,
0.1 ms for the rest.)

>>> from tempfile import mkdtemp
>>> storage = LocalStorage(mkdtemp())
>>> storage.write("rounds/1.json", b"{}")
>>> storage.read("rounds/1.json"), storage.uri("slices/7").startswith("file:///")
(b'{}', True)
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from eventide.storage.storage import Storage, is_visible


class LocalStorage(Storage):
    """A local folder, made if it is not there and `make` is not False."""

    near = True

    def __init__(self, path: str, sync: bool = True, make: bool = True) -> None:
        super().__init__(os.path.abspath(path))
        self._sync = sync
        self._made = set[str]()
        self._unconfirmed = set[str]()
        if make:
            with self.translated_errors("make", ""):
                self._make(self.where)

    def apart(self) -> LocalStorage:
        """Bytes reach the disk when the operating system likes."""
        return LocalStorage(self.where, sync=False, make=False)

    def path(self, name: str) -> str:
        """Where the file is on this machine."""
        return os.path.join(self.where, name)

    def _make(self, folder: str) -> None:
        if folder in self._made:
            return
        os.makedirs(folder, exist_ok=True)
        self._made.add(folder)
        # A new folder is lost with the machine if the one above it was not confirmed.
        self._unconfirmed.add(os.path.dirname(folder))
        if len(folder) > len(self.where):
            self._make(os.path.dirname(folder))

    def write(self, name: str, data: bytes | pa.Buffer, flush: bool = True) -> None:
        """Temporary file, disk, rename, folder."""
        path = self.path(name)
        folder, base = os.path.split(path)
        temporary = os.path.join(folder, f".{base}.tmp")
        with self.translated_errors("write", name):
            self._make(folder)
            try:
                self._write_through(temporary, memoryview(data))
                os.replace(temporary, path)
            except OSError:
                with suppress(OSError):
                    os.remove(temporary)
                raise
        self._unconfirmed.add(folder)
        if flush:
            self.flush()

    def _write_through(self, path: str, data: memoryview) -> None:
        with open(path, "wb", buffering=0) as file:
            # A disk that fills up takes a part first and refuses only the rest.
            while len(data):
                data = data[file.write(data) :]
            if self._sync:
                os.fsync(file.fileno())

    def copy(self, name: str, to: str) -> None:
        """A second name of the same bytes, or a copy where the disk knows no such; disk, rename, folder."""
        path = self.path(to)
        folder, base = os.path.split(path)
        temporary = os.path.join(folder, f".{base}.tmp")
        with self.translated_errors("write", to):
            self._make(folder)
            with suppress(FileNotFoundError):
                os.remove(temporary)
            try:
                # Files are never changed once they are written.
                os.link(self.path(name), temporary)
            except FileNotFoundError:
                raise
            except OSError:
                shutil.copyfile(self.path(name), temporary)
            if self._sync:
                _confirm(temporary)
            os.replace(temporary, path)
            with suppress(FileNotFoundError):
                # Of two names of the same bytes a rename leaves both: a round that died has done this before.
                os.remove(temporary)
        self._unconfirmed.add(folder)
        self.flush()

    def flush(self) -> None:
        """Wait for the folders, and for adopted files."""
        while self._unconfirmed:
            path = self._unconfirmed.pop()
            if self._sync:
                with self.translated_errors("write", os.path.relpath(path, self.where)):
                    _confirm(path)

    def adopt(self, name: str) -> None:
        """Wait for the file and its folder at the next `flush`."""
        self._unconfirmed |= {self.path(name), os.path.dirname(self.path(name))}

    def read(self, name: str) -> bytes:
        """Read the whole file."""
        with self.translated_errors("read", name), open(self.path(name), "rb") as file:
            return file.read()

    def opened(self, name: str) -> pa.NativeFile:
        """The file, to be read part by part."""
        with self.translated_errors("read", name):
            return pa.OSFile(self.path(name), "rb")

    def tail(self, name: str, length: int) -> bytes:
        """The last bytes of a file."""
        with self.translated_errors("read", name), open(self.path(name), "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - length))
            return file.read()

    def list(self, folder: str, hidden: bool = False) -> list[str]:
        """All files below a folder."""
        found: list[str] = []
        with self.translated_errors("list", folder):
            for parent, folders, files in os.walk(self.path(folder), onerror=_unless_missing):
                if not hidden:
                    folders[:] = filter(is_visible, folders)
                below = PurePosixPath(os.path.relpath(parent, self.where))
                found += (str(below / name) for name in files if hidden or is_visible(name))
        return sorted(found)

    def remove(self, name: str) -> None:
        """Remove a file."""
        self._unconfirmed.discard(self.path(name))
        with self.translated_errors("remove", name), suppress(FileNotFoundError):
            os.remove(self.path(name))

    def remove_folder(self, folder: str) -> None:
        """Remove a folder."""
        path = self.path(folder)
        within = path + os.sep
        self._made = {made for made in self._made if made != path and not made.startswith(within)}
        self._unconfirmed = {one for one in self._unconfirmed if one != path and not one.startswith(within)}
        with self.translated_errors("remove", folder), suppress(FileNotFoundError):
            shutil.rmtree(path)

    def size(self, name: str) -> int:
        """The length of a file."""
        with self.translated_errors("read", name):
            found = os.stat(self.path(name))
            if stat.S_ISDIR(found.st_mode):
                raise IsADirectoryError(errno.EISDIR, "Is a directory", name)
            return found.st_size

    def modified(self, name: str) -> float | None:
        """When a file was modified, by the clock of this machine."""
        with self.translated_errors("read", name):
            return os.stat(self.path(name)).st_mtime

    def located(self, name: str) -> tuple[Any, str]:
        """Where a file is on this disk."""
        # Arrow's file systems are loaded only where another process is to read.
        from pyarrow.fs import LocalFileSystem

        return LocalFileSystem(), self.path(name)

    def uri(self, name: str = "") -> str:
        """Spark takes a path literally: nothing in it is escaped."""
        return f"file://{self.path(name)}" if name else f"file://{self.where}"


def _confirm(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some mounted file systems cannot confirm a folder; they have nothing to confirm.
        if error.errno not in (errno.EINVAL, errno.EBADF):
            raise
    finally:
        os.close(handle)


def _unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
