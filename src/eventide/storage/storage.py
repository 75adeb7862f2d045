"""Storage: a folder somewhere, local or not, in which whole files appear at once.

Law: after `write` has returned, the file holds exactly the given bytes, also after the process or the machine has died;
before that, it holds what it held before.

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
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from eventide.errors import EngineError

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
# Hadoop, and so Spark, has its own names for object stores that Arrow reaches too.
ARROW_SCHEMES = {"s3a": "s3", "s3n": "s3"}
SPARK_SCHEMES = {"s3": "s3a", "gcs": "gs"}


class MissingFileError(EngineError):
    """A file is not there, or the disk cannot give it back: nothing that trying again would mend."""


class Storage(ABC):
    """A folder; `where` names it to a human. `Storage.at` finds the kind that fits.

    `near`: a request takes microseconds, not a way through a network.
    """

    near: bool

    def __init__(self, where: str) -> None:
        self.where = where

    @staticmethod
    def at(place: str | os.PathLike[str] | Storage, sync: bool = True, make: bool = True) -> Storage:
        """The folder at a local path or at the URI of any file system that Arrow reaches; made if it is not there.

        A storage is at itself.

        Who only reads says `make=False`: then nothing is made, and a folder that is not there is empty.

        `sync=False` leaves it to the operating system when bytes reach a local disk: quicker, safe when only
        the process dies, not when the machine does.

        >>> Storage.at("carrier-pigeon://loft/checkpoint")
        Traceback (most recent call last):
            ...
        eventide.errors.EngineError: cannot reach carrier-pigeon://loft/checkpoint: no file system is known for \
'carrier-pigeon'; give a local path, or a URI of file, hdfs, s3, gs or abfs
        """
        from eventide.storage.local import LocalStorage

        if isinstance(place, Storage):
            return place
        text = os.fspath(place)
        found = SCHEME.match(text)
        scheme = found[1].lower() if found else "file"
        if scheme == "file":
            return LocalStorage(unquote(urlsplit(text).path) if found else text, sync, make)
        # Arrow's file systems are loaded only to go somewhere else.
        from pyarrow import fs

        from eventide.storage.remote import RemoteStorage

        try:
            filesystem, path = fs.FileSystem.from_uri(ARROW_SCHEMES.get(scheme, scheme) + text[len(scheme) :])
        except pa.ArrowInvalid as error:
            why = f"no file system is known for {scheme!r}" if "nrecognized" in str(error) else line(error)
            raise EngineError(
                f"cannot reach {text}: {why}; give a local path, or a URI of file, hdfs, s3, gs or abfs"
            ) from error
        except (pa.ArrowException, OSError) as error:
            raise EngineError(f"cannot reach {text}: {line(error)}") from error
        return RemoteStorage(filesystem, path, spark_uri(text), make=make)

    @staticmethod
    def temporary() -> Storage:
        """A new folder that its maker removes: it need not survive the machine, so no disk is waited for.

        >>> storage = Storage.temporary()
        >>> storage.write("a", b"seven")
        >>> storage.list("")
        ['a']
        >>> storage.remove_folder("")
        """
        return Storage.at(tempfile.mkdtemp(prefix="eventide-checkpoint-"), sync=False)

    @abstractmethod
    def apart(self) -> Storage:
        """The same folder for another thread, and for files that need not survive the machine; nothing is shared."""

    @abstractmethod
    def write(self, name: str, data: bytes | pa.Buffer, flush: bool = True) -> None:
        """Put a whole file in place, over whatever had the name.

        Without `flush` it survives the death of the process at once, that of the machine only after `flush`.
        """

    @abstractmethod
    def copy(self, name: str, to: str) -> None:
        """Have a whole file under another name too, over whatever had that."""

    @abstractmethod
    def flush(self) -> None:
        """Wait until all that was written is safe from the death of the machine."""

    @abstractmethod
    def adopt(self, name: str) -> None:
        """Let `flush` hold for a file, too, that someone else wrote."""

    @abstractmethod
    def read(self, name: str) -> bytes:
        """The whole file; `MissingFileError` if it is not there."""

    @abstractmethod
    def opened(self, name: str) -> pa.NativeFile:
        """The file, to be read part by part."""

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
    def located(self, name: str) -> tuple[Any, str]:
        """A file for Arrow: its file system, which another process can be given, and the path there."""

    @abstractmethod
    def uri(self, name: str = "") -> str:
        """The place in words that Spark understands; `name` may be a folder."""

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        try:
            self.size(name)
        except MissingFileError:
            return False
        return True

    @contextmanager
    def translated_errors(self, doing: str, name: str) -> Iterator[None]:
        """Errors of the outside in our own words."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise explained(error, f"cannot {doing} {name or 'the folder'} in {self.where}") from error


def spark_uri(uri: str) -> str:
    """The same folder in Spark's words; options for Arrow are none of Spark's.

    >>> spark_uri("s3://bucket/eventide/?region=eu-central-1")
    's3a://bucket/eventide'
    """
    parts = urlsplit(uri)
    return f"{SPARK_SCHEMES.get(parts.scheme, parts.scheme)}://{parts.netloc}{parts.path.rstrip('/')}"


def explained(error: Exception, what: str) -> EngineError:
    """An error of the outside in our own words, with the way out.

    >>> print(explained(PermissionError(errno.EACCES, "Permission denied"), "cannot write a.json in checkpoint"))
    cannot write a.json in checkpoint: Permission denied. Give this user the right to read and write there, or name \
another folder
    """
    text, code = line(error), getattr(error, "errno", None)
    if isinstance(error, FileNotFoundError) or code in (errno.EIO, errno.EISDIR):
        return MissingFileError(f"{what}: {text}")
    if code in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return EngineError(
            f"{what}: there is no room left ({text}). Every committed round is safe: free some space, or copy the "
            "folder to a larger disk, and start again"
        )
    if code in (errno.EACCES, errno.EPERM, errno.EROFS):
        return EngineError(f"{what}: {text}. Give this user the right to read and write there, or name another folder")
    if code in (errno.ENOTDIR, errno.EEXIST):
        return EngineError(f"{what}: it is not a folder ({text}). Name a folder, or move away the file of that name")
    return EngineError(f"{what}: {text}")


def line(error: Exception) -> str:
    """What an error says, in one line."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text.strip().splitlines()[0] if text.strip() else type(error).__name__


def is_visible(name: str) -> bool:
    """Whether a file is no temporary and no mark of Spark's own."""
    return not name.startswith((".", "_"))


def with_place(path: str) -> str:
    """A path as it was written, and where that is: relative ones are so to where the command was started.

    >>> with_place("/data/in")
    '/data/in'
    >>> with_place("in") == f"in ({os.getcwd()}/in)"
    True
    """
    return path if os.path.isabs(path) or "://" in path else f"{path} ({os.path.abspath(path)})"
