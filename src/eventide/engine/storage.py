"""Storage: a folder somewhere, local or not, in which whole files appear at once.

Law: after `write` has returned, the file holds exactly the given bytes, also after the process or the machine has died;
before that, it holds what it held before. On a local disk, and on HDFS, a hidden temporary file is renamed over
the name; an object store shows an object only when all of it is there.

A name is a path below the folder, such as `rounds/0000000042.json`. What the outside refuses (a full disk, a missing
permission, a file where a folder should be) becomes an `EngineError` that says the way out.

>>> from tempfile import mkdtemp
>>> storage = Storage.at(mkdtemp())
>>> storage.write("slices/a.arrow", b"seven")
>>> storage.list("slices"), storage.size("slices/a.arrow"), storage.exists("slices/b.arrow")
(['slices/a.arrow'], 5, False)
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from eventide.errors import EngineError

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
# Hadoop's names of object stores, as Spark speaks of them, and Arrow's: the same folders.
ARROW_SCHEMES = {"s3a": "s3", "s3n": "s3"}
SPARK_SCHEMES = {"s3": "s3a", "gcs": "gs"}


class MissingFileError(EngineError):
    """A file is not there, or the disk cannot give it back: nothing that trying again would mend."""


class Storage(ABC):
    """A folder. `Storage.at` finds the kind that fits."""

    def __init__(self, where: str) -> None:
        self.where = where

    @staticmethod
    def at(place: str | os.PathLike[str], sync: bool = True) -> Storage:
        """The folder at a local path or at the URI of any file system that Arrow reaches; made if it is not there.

        `sync=False` leaves it to the operating system when bytes reach a local disk: quicker, safe when only
        the process dies, not when the machine does.

        >>> Storage.at("carrier-pigeon://loft/checkpoint")
        Traceback (most recent call last):
            ...
        eventide.errors.EngineError: cannot reach carrier-pigeon://loft/checkpoint: no file system is known for \
'carrier-pigeon'; give a local path, or a URI of file, hdfs, s3, gs or abfs
        """
        text = os.fspath(place)
        found = SCHEME.match(text)
        scheme = found[1].lower() if found else "file"
        if scheme == "file":
            path = unquote(urlsplit(text).path) if found else os.path.abspath(text)
            return LocalStorage(path, sync)
        arrow_scheme = ARROW_SCHEMES.get(scheme, scheme)
        try:
            filesystem, path = fs.FileSystem.from_uri(arrow_scheme + text[len(scheme) :])
        except pa.ArrowInvalid as error:
            raise EngineError(
                f"cannot reach {text}: no file system is known for {scheme!r}; give a local path, or a URI of file, "
                "hdfs, s3, gs or abfs"
            ) from error
        except (pa.ArrowException, OSError) as error:
            raise EngineError(f"cannot reach {text}: {_line(error)}") from error
        parts = urlsplit(text)
        spark = f"{SPARK_SCHEMES.get(scheme, scheme)}://{parts.netloc}{parts.path.rstrip('/')}"
        return RemoteStorage(filesystem, path, spark)

    @abstractmethod
    def write(self, name: str, data: bytes | memoryview | pa.Buffer) -> None:
        """Put a whole file in place, over whatever had the name."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """The whole file; `MissingFileError` if it is not there."""

    @abstractmethod
    def tail(self, name: str, length: int) -> bytes:
        """The last bytes of a file."""

    @abstractmethod
    def list(self, folder: str, hidden: bool = False) -> list[str]:
        """The names of all files below a folder, sorted; hidden ones (`.x`, `_x`) only when asked for.

        A folder that is not there is empty.
        """

    @abstractmethod
    def remove(self, name: str) -> None:
        """Take a file away; nothing to do if it is not there."""

    @abstractmethod
    def remove_folder(self, folder: str) -> None:
        """Take a folder and all that is in it away; nothing to do if it is not there."""

    @abstractmethod
    def size(self, name: str) -> int:
        """The length of a file in bytes; `MissingFileError` if it is not there."""

    @abstractmethod
    def modified(self, name: str) -> float | None:
        """When the file was written, in seconds by the clock of the storage; None if it does not say."""

    @abstractmethod
    def uri(self, name: str = "") -> str:
        """The place in words that Spark understands; `name` may be a folder."""

    def settle(self, name: str) -> None:  # noqa: B027 - elsewhere there is nothing to ask
        """Make a file that someone else wrote survive the death of the machine, where that can be asked for."""

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        try:
            self.size(name)
        except MissingFileError:
            return False
        return True

    @contextmanager
    def _told(self, doing: str, name: str) -> Iterator[None]:
        """Errors of the outside in our own words."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise _explained(error, f"cannot {doing} {name or 'the folder'} in {self.where}") from error


class LocalStorage(Storage):
    """A folder on a disk of this machine, or mounted like one."""

    def __init__(self, path: str, sync: bool = True) -> None:
        super().__init__(path)
        self._sync = sync
        self._folders = set[str]()
        with self._told("make", ""):
            os.makedirs(path, exist_ok=True)
            if not os.path.isdir(path):
                raise NotADirectoryError(errno.ENOTDIR, "Not a directory", path)

    def path(self, name: str) -> str:
        """Where the file is on this machine."""
        return os.path.join(self.where, name)

    def write(self, name: str, data: bytes | memoryview | pa.Buffer) -> None:
        """Write a temporary file, wait for the disk, rename it, wait for the folder."""
        path = self.path(name)
        folder, base = os.path.split(path)
        temporary = os.path.join(folder, f".{base}.tmp")
        with self._told("write", name):
            if folder not in self._folders:
                os.makedirs(folder, exist_ok=True)
                self._folders.add(folder)
            try:
                self._write_through(temporary, memoryview(data).cast("B"))
                os.replace(temporary, path)
            except OSError:
                _forget(temporary)
                raise
            if self._sync:
                _flush(folder)

    def _write_through(self, path: str, data: memoryview) -> None:
        with open(path, "wb", buffering=0) as file:
            # A disk that fills up takes a part first and refuses only the rest.
            while len(data):
                data = data[file.write(data) :]
            if self._sync:
                os.fsync(file.fileno())

    def read(self, name: str) -> bytes:  # noqa: D102
        with self._told("read", name), open(self.path(name), "rb") as file:
            return file.read()

    def tail(self, name: str, length: int) -> bytes:  # noqa: D102
        with self._told("read", name), open(self.path(name), "rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - length))
            return file.read()

    def list(self, folder: str, hidden: bool = False) -> list[str]:  # noqa: D102
        found: list[str] = []
        with self._told("list", folder):
            for parent, folders, files in os.walk(self.path(folder), onerror=_unless_missing):
                if not hidden:
                    folders[:] = [name for name in folders if _plain(name)]
                below = os.path.relpath(parent, self.where)
                found += (str(PurePosixPath(below, name)) for name in files if hidden or _plain(name))
        return sorted(found)

    def remove(self, name: str) -> None:  # noqa: D102
        with self._told("remove", name):
            _forget(self.path(name))

    def remove_folder(self, folder: str) -> None:  # noqa: D102
        with self._told("remove", folder):
            self._folders.clear()
            if os.path.isdir(self.path(folder)):
                shutil.rmtree(self.path(folder))

    def size(self, name: str) -> int:  # noqa: D102
        with self._told("read", name):
            return os.stat(self.path(name)).st_size

    def modified(self, name: str) -> float | None:  # noqa: D102
        with self._told("read", name):
            return os.stat(self.path(name)).st_mtime

    def uri(self, name: str = "") -> str:  # noqa: D102
        return f"file://{self.path(name)}"

    def settle(self, name: str) -> None:  # noqa: D102
        if self._sync:
            with self._told("read", name):
                _flush(self.path(name))
                _flush(os.path.dirname(self.path(name)))


class RemoteStorage(Storage):
    """A folder on any file system of Arrow; `spark` is the same folder as Spark would name it.

    >>> from pyarrow.fs import LocalFileSystem, SubTreeFileSystem
    >>> from tempfile import mkdtemp
    >>> bucket = RemoteStorage(SubTreeFileSystem(mkdtemp(), LocalFileSystem()), "checkpoint", "s3a://bucket/checkpoint")
    >>> bucket.write("rounds/1.json", b"{}")
    >>> bucket.read("rounds/1.json"), bucket.uri("slices/7")
    (b'{}', 's3a://bucket/checkpoint/slices/7')
    """

    def __init__(self, filesystem: Any, path: str, spark: str) -> None:
        super().__init__(spark)
        self._filesystem = filesystem
        self._path = path.rstrip("/")
        # An object appears when its last byte is there; in HDFS a file is seen while it grows, but renames are atomic.
        self._rename = filesystem.type_name in ("hdfs", "local")
        self._folders = set[str]()
        with self._told("make", ""):
            self._filesystem.create_dir(self._path, recursive=True)

    def _at(self, name: str) -> str:
        return f"{self._path}/{name}" if name else self._path

    def write(self, name: str, data: bytes | memoryview | pa.Buffer) -> None:  # noqa: D102
        folder, _, base = self._at(name).rpartition("/")
        temporary = f"{folder}/.{base}.tmp" if self._rename else self._at(name)
        with self._told("write", name):
            if folder not in self._folders:
                self._filesystem.create_dir(folder, recursive=True)
                self._folders.add(folder)
            with self._filesystem.open_output_stream(temporary, compression=None) as file:
                file.write(data)
            if self._rename:
                self._filesystem.move(temporary, self._at(name))

    def read(self, name: str) -> bytes:  # noqa: D102
        with self._told("read", name), self._filesystem.open_input_stream(self._at(name), compression=None) as file:
            data: bytes = file.read()
            return data

    def tail(self, name: str, length: int) -> bytes:  # noqa: D102
        with self._told("read", name), self._filesystem.open_input_file(self._at(name)) as file:
            file.seek(max(0, file.size() - length))
            data: bytes = file.read()
            return data

    def list(self, folder: str, hidden: bool = False) -> list[str]:  # noqa: D102
        with self._told("list", folder):
            selector = fs.FileSelector(self._at(folder), allow_not_found=True, recursive=True)
            infos = self._filesystem.get_file_info(selector)
        names = (info.path[len(self._path) + 1 :] for info in infos if info.type == fs.FileType.File)
        below = len(folder) + 1 if folder else 0
        return sorted(name for name in names if hidden or all(map(_plain, name[below:].split("/"))))

    def remove(self, name: str) -> None:  # noqa: D102
        with self._told("remove", name):
            with suppress(FileNotFoundError):
                self._filesystem.delete_file(self._at(name))

    def remove_folder(self, folder: str) -> None:  # noqa: D102
        with self._told("remove", folder):
            self._folders.clear()
            with suppress(FileNotFoundError):
                self._filesystem.delete_dir(self._at(folder))

    def size(self, name: str) -> int:  # noqa: D102
        return int(self._info(name).size)

    def modified(self, name: str) -> float | None:  # noqa: D102
        nanoseconds = self._info(name).mtime_ns
        return None if nanoseconds is None else nanoseconds / 1e9

    def _info(self, name: str) -> Any:
        with self._told("read", name):
            (info,) = self._filesystem.get_file_info([self._at(name)])
            if info.type != fs.FileType.File:
                raise FileNotFoundError(errno.ENOENT, "No such file", name)
            return info

    def uri(self, name: str = "") -> str:  # noqa: D102
        return f"{self.where}/{name}" if name else self.where


def _explained(error: Exception, what: str) -> EngineError:
    code = getattr(error, "errno", None)
    if isinstance(error, FileNotFoundError) or code == errno.EIO:
        return MissingFileError(f"{what}: {_line(error)}")
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return EngineError(
            f"{what}: there is no room left ({_line(error)}). Every committed round is safe: free some space, or copy "
            "the folder to a larger disk, and start again"
        )
    if code in (errno.EACCES, errno.EPERM, errno.EROFS):
        return EngineError(
            f"{what}: {_line(error)}. Give this user the right to read and write there, or name another folder"
        )
    if code in (errno.ENOTDIR, errno.EEXIST, errno.EISDIR):
        return EngineError(
            f"{what}: it is not a folder ({_line(error)}). Name a folder, or move away the file of that name"
        )
    return EngineError(f"{what}: {_line(error)}")


def _line(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__


def _plain(name: str) -> bool:
    return not name.startswith((".", "_"))


def _forget(path: str) -> None:
    with suppress(FileNotFoundError):
        os.remove(path)


def _flush(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
