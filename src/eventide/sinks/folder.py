"""A folder, on this machine or not, in which files are written piece by piece and appear all at once.

Law: until the block under `writing` has ended well, the file of that name holds what it held before; after that it
holds all that was written, also when the process or the machine dies. A block that raises leaves nothing behind. While
a file grows it is named `.NAME.tmp`, which readers of Spark, Arrow and DuckDB pass over. An object store shows an
object once all of it is there, but cannot call off what was begun: for it the file grows on this machine, and is sent
when complete.

What the outside refuses (a full disk, a missing permission, a file where the folder should be) becomes an `EngineError`
that says the way out.

>>> from tempfile import mkdtemp
>>> folder = folder_at(mkdtemp())
>>> with folder.writing("a.csv") as file:
...     _ = file.write(b"x,y")
...     folder.names()
['.a.csv.tmp']
>>> folder.names()
['a.csv']
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from eventide.errors import EngineError

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
# Hadoop's names of S3, as Spark speaks of it, and Arrow's.
ARROW_SCHEMES = {"s3a": "s3", "s3n": "s3"}
WRITE_ONCE = ("s3", "gcs", "abfs")


class Writable(Protocol):
    """What a file has to offer to those who fill it."""

    def write(self, data: Any, /) -> int:
        """Append these bytes."""
        ...


class Folder(ABC):
    """A folder. `folder_at` finds the kind that fits."""

    def __init__(self, where: str) -> None:
        self.where = where

    @abstractmethod
    def make(self) -> None:
        """See to it that the folder is there and can be used."""

    @abstractmethod
    def names(self) -> list[str]:
        """The names of the files in the folder, sorted, hidden ones too; none if there is no folder."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Take a file away; nothing to do if it is not there."""

    def writing(self, name: str) -> AbstractContextManager[Writable]:
        """A file to fill; it appears under its name when the block ends."""
        return self._told(f"write {name}", self._file(name))

    @abstractmethod
    def _file(self, name: str) -> AbstractContextManager[Writable]: ...

    @contextmanager
    def _told(self, doing: str, block: AbstractContextManager[Any] | None = None) -> Iterator[Any]:
        """Errors of the outside in our own words."""
        try:
            if block is None:
                yield
            else:
                with block as value:
                    yield value
        except (OSError, pa.ArrowException) as error:
            raise explained(error, f"cannot {doing} in {self.where}") from error


class LocalFolder(Folder):
    """A folder on a disk of this machine, or mounted like one."""

    def make(self) -> None:  # noqa: D102
        with self._told("make the folder, or write"):
            os.makedirs(self.where, exist_ok=True)
            if not os.access(self.where, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), self.where)

    def names(self) -> list[str]:  # noqa: D102
        with self._told("list the files"):
            try:
                return sorted(entry.name for entry in os.scandir(self.where) if not entry.is_dir())
            except FileNotFoundError:
                return []

    def remove(self, name: str) -> None:  # noqa: D102
        with self._told(f"remove {name}"), suppress(FileNotFoundError):
            os.remove(self._path(name))
            self._settle()

    @contextmanager
    def _file(self, name: str) -> Iterator[Writable]:
        temporary = self._path(_hidden(name))
        try:
            with _opened(temporary) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._path(name))
        except BaseException:
            with suppress(OSError):
                os.remove(temporary)
            raise
        self._settle()

    def _path(self, name: str) -> str:
        return os.path.join(self.where, name)

    def _settle(self) -> None:
        """A name is safe from the death of the machine once its folder has reached the disk."""
        handle = os.open(self.where, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class RemoteFolder(Folder):
    """A folder on any other file system of Arrow."""

    def __init__(self, where: str, filesystem: Any, path: str) -> None:
        super().__init__(where)
        self._filesystem = filesystem
        self._path = path.rstrip("/")
        self._write_once = filesystem.type_name in WRITE_ONCE

    def make(self) -> None:  # noqa: D102
        # An object store has no folders; a bucket that is missing is told when something is written.
        if not self._write_once:
            with self._told("make the folder, or write"):
                self._filesystem.create_dir(self._path, recursive=True)

    def names(self) -> list[str]:  # noqa: D102
        with self._told("list the files"):
            found = self._filesystem.get_file_info(fs.FileSelector(self._path, allow_not_found=True))
        return sorted(info.base_name for info in found if info.type == fs.FileType.File)

    def remove(self, name: str) -> None:  # noqa: D102
        with self._told(f"remove {name}"), suppress(FileNotFoundError):
            self._filesystem.delete_file(f"{self._path}/{name}")

    @contextmanager
    def _file(self, name: str) -> Iterator[Writable]:
        if self._write_once:
            with tempfile.TemporaryFile() as spool:
                yield spool
                spool.flush()
                self._send(spool.fileno(), f"{self._path}/{name}")
            return
        temporary = f"{self._path}/{_hidden(name)}"
        with self._growing(temporary) as file:
            yield file
        self._filesystem.move(temporary, f"{self._path}/{name}")

    def _send(self, handle: int, path: str) -> None:
        """Send all in one call: Arrow completes an upload whenever its stream is closed, so no part may stand alone."""
        with mmap.mmap(handle, 0, access=mmap.ACCESS_READ) as content:
            stream = self._filesystem.open_output_stream(path, compression=None)
            try:
                stream.write(content)
            finally:
                stream.close()

    @contextmanager
    def _growing(self, path: str) -> Iterator[Any]:
        file = self._filesystem.open_output_stream(path, compression=None)
        try:
            yield file
            file.close()
        except BaseException:
            with suppress(OSError, pa.ArrowException):
                file.close()
            with suppress(OSError, pa.ArrowException):
                self._filesystem.delete_file(path)
            raise


def folder_at(place: str | os.PathLike[str], filesystem: Any | None = None) -> Folder:
    """The folder at a local path, at the URI of any file system that Arrow reaches, or at a path of `filesystem`.

    >>> folder_at("carrier-pigeon://loft/results")
    Traceback (most recent call last):
        ...
    eventide.errors.EngineError: cannot reach carrier-pigeon://loft/results: Arrow knows no file system \
'carrier-pigeon'. Give a local path, or a URI of file, hdfs, s3, gs or abfs
    """
    text = os.fspath(place)
    if filesystem is None:
        filesystem, path = _resolved(text)
    else:
        path = text
    while filesystem.type_name == "subtree":
        filesystem, path = filesystem.base_fs, f"{filesystem.base_path.rstrip('/')}/{path.lstrip('/')}"
    if filesystem.type_name == "local":
        return LocalFolder(os.path.abspath(path))
    return RemoteFolder(text, filesystem, path)


def _resolved(text: str) -> tuple[Any, str]:
    found = SCHEME.match(text)
    scheme = found[1].lower() if found else "file"
    if scheme == "file":
        return fs.LocalFileSystem(), unquote(urlsplit(text).path) if found else text
    try:
        filesystem, path = fs.FileSystem.from_uri(ARROW_SCHEMES.get(scheme, scheme) + text[len(scheme) :])
        return filesystem, path
    except (pa.ArrowException, OSError) as error:
        if "Unrecognized filesystem" not in str(error):
            raise explained(error, f"cannot reach {text}") from error
        raise EngineError(
            f"cannot reach {text}: Arrow knows no file system {scheme!r}. "
            "Give a local path, or a URI of file, hdfs, s3, gs or abfs"
        ) from error


def explained(error: Exception, what: str) -> EngineError:
    """What the outside refused, and the way out.

    >>> explained(OSError(errno.ENOSPC, "No space left on device"), "cannot write a.csv in out").args[0]
    'cannot write a.csv in out: No space left on device. What was shown before is unchanged: free some space there and \
start again'
    """
    code = getattr(error, "errno", None)
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    line = text.strip().splitlines()[0] if text.strip() else type(error).__name__
    ways_out = {
        (errno.ENOSPC, errno.EDQUOT, errno.EFBIG): (
            "What was shown before is unchanged: free some space there and start again"
        ),
        (errno.EACCES, errno.EPERM, errno.EROFS): "Give this user the right to write there, or name another folder",
        (errno.ENOTDIR, errno.EEXIST): "A file is where the folder should be: move it away, or name another folder",
        (errno.EISDIR,): "A folder has the name of the file: move it away, or name another folder",
        (errno.ENAMETOOLONG,): "Give the query a shorter name",
    }
    for codes, way_out in ways_out.items():
        if code in codes:
            return EngineError(f"{what}: {line}. {way_out}")
    return EngineError(f"{what}: {line}")


def _hidden(name: str) -> str:
    return f".{name}.tmp"


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    """A file that is closed in the end even if what is buffered finds no room: that was told when it happened."""
    file = open(path, "wb")  # noqa: SIM115
    try:
        yield file
    except BaseException:
        with suppress(OSError):
            file.close()
        raise
    file.close()
