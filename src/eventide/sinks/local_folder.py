"""A folder on a disk of this machine, or on one that is mounted like one.

Law: a name never shows a half. A file is written under a hidden name, confirmed by the disk and renamed; so is a folder
of parts. What parts replace, or what replaces them, is renamed away first, as no rename puts a folder in the place of
another: for that moment a reader finds neither.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from eventide.sinks.folder import Folder, Writable, are_parts, hidden, hidden_folder


class LocalFolder(Folder):
    """A folder at a local path."""

    def make(self) -> None:  # noqa: D102
        with self._told("make the folder, or write"):
            os.makedirs(self.where, exist_ok=True)
            if not os.access(self.where, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), self.where)

    def exists(self) -> bool:  # noqa: D102
        return os.path.isdir(self.where)

    def names(self) -> list[str]:  # noqa: D102
        with self._told("list the files"):
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
        with self._told(f"remove {name}"), suppress(FileNotFoundError):
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
        """Remove what has this name, all at once; a folder that is not ours stays, and is told."""
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
    """A file that is closed in the end even if what is buffered finds no room: that was told when it happened."""
    file = open(path, "wb")  # noqa: SIM115
    try:
        yield file
    except BaseException:
        with suppress(OSError):
            file.close()
        raise
    file.close()
