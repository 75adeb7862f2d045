"""A folder on any file system of Arrow but the local one.

Law: a file system that renames (HDFS) shows a file, or a folder of parts, when it is renamed. An object store has no
folders and renames nothing: there an object appears when all of it was sent, parts are sent under their final names,
and the marker `_SUCCESS` comes last. Parts that replace something are sent under hidden names, and copied by the store
once all are there. What is replaced is removed first, but for a file by a file.
"""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import fs

from eventide.sinks.folder import COMPLETE, Folder, Writable, are_parts, hidden, hidden_folder

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


WRITE_ONCE = ("s3", "gcs", "abfs")


class RemoteFolder(Folder):
    """A folder at a path of a file system."""

    def __init__(self, where: str, filesystem: FileSystem, path: str) -> None:
        super().__init__(where)
        self._filesystem = filesystem
        self._path = path.rstrip("/")
        self._write_once = filesystem.type_name in WRITE_ONCE

    def make(self) -> None:  # noqa: D102
        # An object store has no folders; a missing bucket is an error when something is written.
        if not self._write_once:
            with self._translated("make the folder, or write"):
                self._filesystem.create_dir(self._path, recursive=True)

    def exists(self) -> bool:  # noqa: D102
        return self._write_once or bool(self._filesystem.get_file_info(self._path).type == fs.FileType.Directory)

    def names(self) -> list[str]:  # noqa: D102
        with self._translated("list the files"):
            found = self._filesystem.get_file_info(fs.FileSelector(self._path, allow_not_found=True))
            return sorted(info.base_name for info in found)

    def parts(self, name: str) -> list[str]:  # noqa: D102
        where = self._at(name)
        if self._filesystem.get_file_info(where).type == fs.FileType.File:
            return []
        found = self._filesystem.get_file_info(fs.FileSelector(where, allow_not_found=True))
        return sorted(info.base_name for info in found)

    def remove(self, name: str) -> None:  # noqa: D102
        with self._translated(f"remove {name}"), suppress(FileNotFoundError):
            if not self._is_folder(name):
                self._filesystem.delete_file(self._at(name))
            elif self._is_gathered(name):
                self._remove_parts(name)

    @contextmanager
    def _file(self, name: str, new: bool) -> Iterator[Writable]:
        if self._write_once:
            with tempfile.TemporaryFile() as spool:
                yield spool
                spool.flush()
                if not new:
                    self._make_way(name)
                self._send(spool.fileno(), self._at(name))
            return
        temporary = self._at(hidden(name))
        with self._growing(temporary) as file:
            yield file
        self._make_way(name)
        self._filesystem.move(temporary, self._at(name))

    @contextmanager
    def _gathered(self, name: str, new: bool) -> Iterator[Folder]:
        if not new:
            self._check_is_ours(name)
        in_place = self._write_once and (new or not self._exists(name))
        place = name if in_place else hidden_folder(name)
        inside = RemoteFolder(f"{self.where.rstrip('/')}/{place}", self._filesystem, self._at(place))
        inside.make()
        try:
            yield inside
            for left in (part for part in inside.parts("") if part.startswith(".")):
                inside.remove(left)
            if not in_place:
                self.remove(name)
                self._move_parts(inside, name)
            if self._write_once:
                with self.writing(f"{name}/{COMPLETE}", new=True):
                    pass
        except BaseException:
            with suppress(OSError, pa.ArrowException):
                self._filesystem.delete_dir(self._at(place))
            raise

    def _move_parts(self, inside: RemoteFolder, name: str) -> None:
        if not self._write_once:
            self._filesystem.move(inside._path, self._at(name))
            return
        # The store copies them; nothing passes through here.
        for part in inside.parts(""):
            self._filesystem.copy_file(inside._at(part), f"{self._at(name)}/{part}")
        self._filesystem.delete_dir(inside._path)

    def _exists(self, name: str) -> bool:
        return bool(self._filesystem.get_file_info(self._at(name)).type != fs.FileType.NotFound)

    def _is_folder(self, name: str) -> bool:
        return bool(self._filesystem.get_file_info(self._at(name)).type == fs.FileType.Directory)

    def _is_gathered(self, name: str) -> bool:
        return name.startswith(".") or are_parts(self.parts(name))

    def _check_is_ours(self, name: str) -> None:
        if self._is_folder(name) and not self._is_gathered(name):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)

    def _make_way(self, name: str) -> None:
        """Parts make way for a file; a file is replaced as it is."""
        if self._is_folder(name):
            self._check_is_ours(name)
            self._remove_parts(name)

    def _remove_parts(self, name: str) -> None:
        if self._write_once:
            # Without it nobody takes the rest for all of it.
            with suppress(FileNotFoundError):
                self._filesystem.delete_file(f"{self._at(name)}/{COMPLETE}")
        self._filesystem.delete_dir(self._at(name))

    def _at(self, name: str) -> str:
        return f"{self._path}/{name}" if name else self._path

    def _send(self, handle: int, path: str) -> None:
        """Send all in one call: Arrow completes an upload whenever its stream is closed, so no part may stand alone."""
        stream = self._filesystem.open_output_stream(path, compression=None)
        try:
            if os.fstat(handle).st_size:
                with mmap.mmap(handle, 0, access=mmap.ACCESS_READ) as content:
                    stream.write(content)
        finally:
            stream.close()

    @contextmanager
    def _growing(self, path: str) -> Iterator[pa.NativeFile]:
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
