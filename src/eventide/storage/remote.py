"""Storage on any file system that Arrow reaches: HDFS, S3, Google's, Azure's, or one of your own.

Law: an object appears when its last byte is there, so it is written under its name at once. HDFS shows a file while it
grows, but renames at once, so there a hidden temporary file is renamed. When `write` returns, the file has left this
machine; what keeps it is the business of the store.

>>> from pyarrow.fs import LocalFileSystem, SubTreeFileSystem
>>> from tempfile import mkdtemp
>>> bucket = RemoteStorage(SubTreeFileSystem(mkdtemp(), LocalFileSystem()), "checkpoint", "s3a://bucket/checkpoint")
>>> bucket.write("rounds/1.json", b"{}")
>>> bucket.read("rounds/1.json"), bucket.uri("slices/7")
(b'{}', 's3a://bucket/checkpoint/slices/7')
"""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import fs

from eventide.storage.storage import Storage, is_visible

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem


COPY_BYTES = 2**22


class RemoteStorage(Storage):
    """The folder `path` of an Arrow file system; `spark` is the same folder as Spark would name it.

    `by_renaming`: the file system shows files while they grow.
    """

    near = False

    def __init__(
        self, filesystem: FileSystem, path: str, spark: str, by_renaming: bool = False, make: bool = True
    ) -> None:
        super().__init__(spark)
        self._filesystem = filesystem
        self._path = path.rstrip("/")
        self._by_renaming = by_renaming or filesystem.type_name == "hdfs"
        self._made = set[str]()
        if make:
            with self.translated_errors("make", ""):
                self._make(self._path)

    def apart(self) -> RemoteStorage:
        """Over the same connections, which Arrow shares out between threads."""
        return RemoteStorage(self._filesystem, self._path, self.where, self._by_renaming, make=False)

    def _make(self, folder: str) -> None:
        if folder not in self._made:
            self._filesystem.create_dir(folder, recursive=True)
            self._made.add(folder)

    def _at(self, name: str) -> str:
        return f"{self._path}/{name}" if name else self._path

    def write(self, name: str, data: bytes | pa.Buffer, flush: bool = True) -> None:
        """Write a file, which appears all at once."""
        folder, _, base = self._at(name).rpartition("/")
        first = f"{folder}/.{base}.tmp" if self._by_renaming else self._at(name)
        with self.translated_errors("write", name):
            self._make(folder)
            with self._filesystem.open_output_stream(first, compression=None) as file:
                file.write(data)
            if self._by_renaming:
                self._filesystem.move(first, self._at(name))

    def copy(self, name: str, to: str) -> None:
        """As the file system copies; one that cannot (HDFS) is read and written, a little at a time."""
        folder, _, base = self._at(to).rpartition("/")
        with self.translated_errors("write", to):
            self._make(folder)
            try:
                self._filesystem.copy_file(self._at(name), self._at(to))
            except NotImplementedError:
                first = f"{folder}/.{base}.tmp" if self._by_renaming else self._at(to)
                with (
                    self._filesystem.open_input_stream(self._at(name), compression=None) as source,
                    self._filesystem.open_output_stream(first, compression=None) as target,
                ):
                    while data := source.read(COPY_BYTES):
                        target.write(data)
                if self._by_renaming:
                    self._filesystem.move(first, self._at(to))

    def flush(self) -> None:
        """Do nothing: the store holds nothing back."""

    def adopt(self, name: str) -> None:
        """Do nothing: whoever wrote the file had it accepted by the store."""

    def read(self, name: str) -> bytes:
        """Read the whole file."""
        with (
            self.translated_errors("read", name),
            self._filesystem.open_input_stream(self._at(name), compression=None) as file,
        ):
            data: bytes = file.read()
            return data

    def opened(self, name: str) -> pa.NativeFile:
        """The file, to be read part by part."""
        with self.translated_errors("read", name):
            return self._filesystem.open_input_file(self._at(name))

    def tail(self, name: str, length: int) -> bytes:
        """The last bytes of a file."""
        with self.translated_errors("read", name), self._filesystem.open_input_file(self._at(name)) as file:
            file.seek(max(0, file.size() - length))
            data: bytes = file.read()
            return data

    def list(self, folder: str, hidden: bool = False) -> list[str]:
        """All files below a folder."""
        with self.translated_errors("list", folder):
            selector = fs.FileSelector(self._at(folder), allow_not_found=True, recursive=True)
            found = self._filesystem.get_file_info(selector)
        names = (info.path[len(self._path) + 1 :] for info in found if info.type == fs.FileType.File)
        below = len(folder) + 1 if folder else 0
        return sorted(name for name in names if hidden or all(map(is_visible, name[below:].split("/"))))

    def remove(self, name: str) -> None:
        """Remove a file."""
        with self.translated_errors("remove", name), suppress(FileNotFoundError):
            self._filesystem.delete_file(self._at(name))

    def remove_folder(self, folder: str) -> None:
        """Remove a folder."""
        self._made.clear()
        with self.translated_errors("remove", folder), suppress(FileNotFoundError):
            self._filesystem.delete_dir(self._at(folder))

    def size(self, name: str) -> int:
        """The length of a file."""
        return int(self._info(name).size)

    def modified(self, name: str) -> float | None:
        """When a file was modified, by the clock of the store."""
        nanoseconds = self._info(name).mtime_ns
        return None if nanoseconds is None else nanoseconds / 1e9

    def _info(self, name: str) -> FileInfo:
        with self.translated_errors("read", name):
            (info,) = self._filesystem.get_file_info([self._at(name)])
            if info.type != fs.FileType.File:
                raise FileNotFoundError(errno.ENOENT, "No such file", name)
            return info

    def located(self, name: str) -> tuple[FileSystem, str]:
        """Where a file is in the store."""
        return self._filesystem, self._at(name)

    def uri(self, name: str = "") -> str:
        """The address of a file as Spark writes it."""
        return f"{self.where}/{name}" if name else self.where
