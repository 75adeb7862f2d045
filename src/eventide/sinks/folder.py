"""A folder, on this machine or not, in which files are written piece by piece and appear all at once.

Law: until the block under `writing` has ended well, the file of that name holds what it held before; after that it
holds all that was written, also when the process or the machine dies. A block that raises leaves nothing behind. While
a file grows it is named `.NAME.tmp`, which readers of Spark, Arrow and DuckDB pass over. An object store shows an
object once all of it is there, but cannot call off what was begun: for it the file grows on this machine, and is sent
when complete.

`gathering` is the same for a file that many processes write, each its part: in the end a folder of that name has the
parts. A folder can be pickled, if its file system can, and means the same place in another process.

What the outside refuses (a full disk, a missing permission, a file where the folder should be) becomes an `EngineError`
that says the way out.

*Local*: on a disk of this machine, or on one that is mounted like one, a name never shows a half. A file is written
under a hidden name, confirmed by the disk and renamed; so is a folder of parts. What parts replace, or what replaces
them, is renamed away first, as no rename puts a folder in the place of another: for that moment a reader finds neither.

>>> from tempfile import mkdtemp
>>> folder = folder_at(mkdtemp())
>>> with folder.writing("a.csv") as file:
...     _ = file.write(b"x,y")
...     folder.names()
['.a.csv.tmp']
>>> folder.names()
['a.csv']
>>> with folder.gathering("a.csv") as parts, parts.writing("part-00000.csv") as file:
...     _ = file.write(b"x,y")
>>> folder.names(), folder.parts("a.csv")
(['a.csv'], ['part-00000.csv'])
>>> folder.remove("a.csv")
>>> folder.names()
[]
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
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
COMPLETE = "_SUCCESS"
"""Says in an object store that all parts are there; Spark's own name for it."""
PART = re.compile(rf"\.?part-\d{{5,}}\.\w+(\.tmp)?|{COMPLETE}")
"""What a folder of parts holds; one that holds anything else is not ours."""


class Writable(Protocol):
    """What a file has to offer to those who fill it."""

    def write(self, data: Any, /) -> int:
        """Append bytes to the file."""
        ...


class Folder(ABC):
    """A folder. `folder_at` finds the kind that fits."""

    def __init__(self, where: str) -> None:
        self.where = where

    @abstractmethod
    def make(self) -> None:
        """See to it that the folder is there and can be used."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether the folder is there, as seen from this process; in an object store every folder is."""

    @abstractmethod
    def names(self) -> list[str]:
        """The names of files and folders in it, sorted, hidden ones too; none if there is no folder."""

    @abstractmethod
    def parts(self, name: str) -> list[str]:
        """The names of the parts below a name, sorted; none where there is a file, or nothing."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Take a file, or a folder of parts, away; nothing to do if it is not there. Other folders stay."""

    def writing(self, name: str, new: bool = False) -> AbstractContextManager[Writable]:
        """A file to fill; it appears under its name when the block ends, in place of a file or of parts.

        `new`: nothing has that name, so that nobody has to look, which takes a while in an object store.
        """
        return self._translated(f"write {name}", self._file(name, new))

    def gathering(self, name: str, new: bool = False) -> AbstractContextManager[Folder]:
        """A folder to fill with parts; it appears under its name when the block ends, in place of what is there."""
        return self._translated(f"write {name}", self._gathered(name, new))

    @abstractmethod
    def _file(self, name: str, new: bool) -> AbstractContextManager[Writable]: ...

    @abstractmethod
    def _gathered(self, name: str, new: bool) -> AbstractContextManager[Folder]: ...

    @contextmanager
    def _translated(self, doing: str, block: AbstractContextManager[Any] | None = None) -> Iterator[Any]:
        """Errors of the outside in our own words."""
        try:
            if block is None:
                yield
            else:
                with block as value:
                    yield value
        except (OSError, pa.ArrowException) as error:
            raise explained(error, f"cannot {doing} in {self.where}") from error


def are_parts(names: list[str]) -> bool:
    """Whether a folder that holds these was gathered by us; an empty one was not.

    >>> are_parts(["part-00000.csv", "_SUCCESS"]), are_parts(["part-00000.csv", "notes.txt"]), are_parts([])
    (True, False, False)
    """
    return bool(names) and all(PART.fullmatch(name) for name in names)


def folder_at(place: str | os.PathLike[str], filesystem: fs.FileSystem | None = None) -> Folder:
    """The folder at a local path, at the URI of any file system that Arrow reaches, or at a path of `filesystem`.

    >>> folder_at("carrier-pigeon://loft/results")
    Traceback (most recent call last):
        ...
    eventide.errors.EngineError: cannot reach carrier-pigeon://loft/results: Arrow knows no file system \
'carrier-pigeon'. Give a local path, or a URI of file, hdfs, s3, gs or abfs
    """
    from eventide.sinks.remote_folder import RemoteFolder

    text = os.fspath(place)
    if filesystem is None:
        filesystem, path = _resolved(text)
    else:
        path = text
    while isinstance(filesystem, fs.SubTreeFileSystem):
        path, filesystem = f"{filesystem.base_path.rstrip('/')}/{path.lstrip('/')}", filesystem.base_fs
    if filesystem.type_name == "local":
        return LocalFolder(os.path.abspath(path))
    return RemoteFolder(text, filesystem, path)


def _resolved(text: str) -> tuple[fs.FileSystem, str]:
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
        (
            errno.EIO,
        ): "What was shown before is unchanged: see to the disk, or name a folder on another, and start again",
        (errno.EACCES, errno.EPERM, errno.EROFS): "Give this user the right to write there, or name another folder",
        (errno.ENOTDIR, errno.EEXIST): "A file is where the folder should be: move it away, or name another folder",
        (errno.EISDIR,): "A folder has the name of the file: move it away, or name another folder",
        (errno.ENAMETOOLONG,): "Give the query a shorter name",
    }
    for codes, way_out in ways_out.items():
        if code in codes:
            return EngineError(f"{what}: {line}. {way_out}")
    return EngineError(f"{what}: {line}")


def hidden(name: str) -> str:
    """The name of a file while it grows."""
    return f".{name}.tmp"


def hidden_folder(name: str) -> str:
    """The name of a folder while it is filled, or removed; a new one each time: who filled the last may live on."""
    return f".{name}.{secrets.token_hex(4)}.tmp"


class LocalFolder(Folder):
    """A folder at a local path."""

    def make(self) -> None:  # noqa: D102
        with self._translated("make the folder, or write"):
            os.makedirs(self.where, exist_ok=True)
            if not os.access(self.where, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), self.where)

    def exists(self) -> bool:  # noqa: D102
        return os.path.isdir(self.where)

    def names(self) -> list[str]:  # noqa: D102
        with self._translated("list the files"):
            try:
                return sorted(os.listdir(self.where))
            except FileNotFoundError:
                return []

    def parts(self, name: str) -> list[str]:  # noqa: D102
        try:
            return sorted(os.listdir(self._path(name)))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def remove(self, name: str) -> None:  # noqa: D102
        with self._translated(f"remove {name}"), suppress(FileNotFoundError):
            if self._is_gathered(name):
                self._put_away(name)
            elif not os.path.isdir(self._path(name)):
                os.remove(self._path(name))
            self._settle()

    @contextmanager
    def _file(self, name: str, new: bool) -> Iterator[Writable]:
        temporary = self._path(hidden(name))
        try:
            with _opened(temporary) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if self._is_gathered(name):
                self._put_away(name)
            os.replace(temporary, self._path(name))
        except BaseException:
            with suppress(OSError):
                os.remove(temporary)
            raise
        self._settle()

    @contextmanager
    def _gathered(self, name: str, new: bool) -> Iterator[Folder]:
        temporary = LocalFolder(self._path(hidden_folder(name)))
        os.mkdir(temporary.where)
        try:
            yield temporary
            # Who has died while it wrote, and was replaced by another, may have left half of a part.
            for left in (part for part in temporary.parts("") if part.startswith(".")):
                os.remove(temporary._path(left))
            temporary._settle()
            with suppress(FileNotFoundError):
                self._put_away(name)
            os.rename(temporary.where, self._path(name))
        except BaseException:
            shutil.rmtree(temporary.where, ignore_errors=True)
            raise
        self._settle()

    def _is_gathered(self, name: str) -> bool:
        """Whether a folder of parts has this name: one under way, or one of which all is there."""
        return bool(os.path.isdir(self._path(name)) and (name.startswith(".") or are_parts(self.parts(name))))

    def _put_away(self, name: str) -> None:
        """Remove what has this name, all at once; a folder that is not ours stays, and is reported."""
        if os.path.isdir(self._path(name)) and not self._is_gathered(name):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        old = self._path(hidden_folder(name))
        os.rename(self._path(name), old)
        if os.path.isdir(old):
            shutil.rmtree(old)
        else:
            os.remove(old)

    def _path(self, name: str) -> str:
        return os.path.join(self.where, name) if name else self.where

    def _settle(self) -> None:
        """A name is safe from the death of the machine once its folder has reached the disk."""
        handle = os.open(self.where, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    """A file that is closed in the end even if what is buffered finds no room: that was an error when it happened."""
    file = open(path, "wb")  # noqa: SIM115
    try:
        yield file
    except BaseException:
        with suppress(OSError):
            file.close()
        raise
    file.close()
