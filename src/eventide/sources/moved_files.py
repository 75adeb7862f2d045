"""Folders of input that were moved since Spark read them: its log of files says where they are now.

Law: a file is read once, wherever its folder was moved, and however the path to it is written. Spark knows files by
their whole names, so in its log a file that was read gets the name that it has now: the one below the new folder with
its name below the old one, and with its time. Another time means that it may be another file, and is refused. A file
that is gone keeps no name that a later one could have.

Spark knows sources by their places among all. What they are is noted beside its log, in `spark-inputs.json`: the names
of the streams in their order, and the folder of each, as Spark writes it. Another order is refused.

>>> folder_of_pattern("in/2026-*/*.csv"), folder_of_pattern("*.csv"), folder_of_pattern("in")
('in', '.', 'in')
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

from eventide.errors import CheckpointError
from eventide.plan.declared.stream import Stream
from eventide.sources.options import FILES
from eventide.storage.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

SOURCES = "spark/sources"
"""Where Spark keeps the log of each source of files in a checkpoint."""

NOTED = "spark-inputs.json"
GONE = "_gone"
"""Below it are the names of files that are not there any more: Spark reads nothing that begins with `_`."""

PATTERN = re.compile(r"[*?{\[]")


class FileTimes(Protocol):
    """Knows when files were modified."""

    def modified(self, uri: str) -> int | None:
        """The time of a file in milliseconds; None where there is none."""
        ...


class HadoopFiles:
    """Files as Spark finds them, on any file system."""

    def __init__(self, spark: SparkSession) -> None:
        # Py4J makes names as they are asked for.
        self._java: Any = spark._jvm
        self._settings: Any = spark._jsc.hadoopConfiguration()

    def modified(self, uri: str) -> int | None:
        """The time of a file in milliseconds; None where there is none."""
        path = self._java.org.apache.hadoop.fs.Path(self._java.java.net.URI(uri))
        system = path.getFileSystem(self._settings)
        return int(system.getFileStatus(path).getModificationTime()) if system.exists(path) else None

    def folder_of(self, path: str) -> str:
        """The folder that names of files are counted from, as Spark begins their whole names."""
        place = self._java.org.apache.hadoop.fs.Path(folder_of_pattern(path))
        system = place.getFileSystem(self._settings)
        if not PATTERN.search(path) and system.exists(place) and system.getFileStatus(place).isFile():
            place = place.getParent() or self._java.org.apache.hadoop.fs.Path(".")
        return str(system.makeQualified(place).toUri().toString())


def folder_of_pattern(path: str) -> str:
    """The folder above the first part of a path that is a pattern; the path itself, if it is none."""
    if (found := PATTERN.search(path)) is None:
        return path
    folder, slash, _ = path[: found.start()].rpartition("/")
    return folder or slash or "."


def follow_moves(spark: SparkSession, storage: Storage, streams: Sequence[Stream], declared: bool) -> None:
    """Bring Spark's log of files in line with where the inputs of these streams are now.

    `declared`: all of them are read as they are declared, so that each is one source of Spark's.
    """
    files = HadoopFiles(spark)
    folders = {}
    for number, stream in enumerate(streams if declared else ()):
        given = stream.input
        if given is not None and given.path and given.format.lower() in FILES:
            folders[str(number)] = files.folder_of(given.path)
    MovedInputs(storage, files, [stream.name for stream in streams]).follow(folders)


@dataclass(frozen=True)
class SourceFolders:
    """The streams in their order, and the folders of those that read files, by the number of their source."""

    streams: tuple[str, ...] = ()
    folders: Mapping[str, str] = field(default_factory=dict)

    def without(self, streams: Collection[str]) -> SourceFolders:
        """The same, where nothing that was read of some streams counts any more.

        >>> SourceFolders(("s", "r")).without(["r"])
        SourceFolders(streams=('s', ''), folders={})
        """
        return replace(self, streams=tuple("" if name in streams else name for name in self.streams))


def noted_text(noted: SourceFolders) -> dict[str, str]:
    """The file that says what the log is about, by its name.

    >>> noted_text(SourceFolders(("s",), {"0": "file:/in"}))
    {'spark-inputs.json': '{"streams": ["s"], "folders": {"0": "file:/in"}}'}
    """
    return {NOTED: json.dumps({"streams": noted.streams, "folders": dict(noted.folders)})}


def noted_in(storage: Storage) -> SourceFolders:
    """What Spark's log of files in a checkpoint is about; nothing before the first start."""
    if not storage.exists(NOTED):
        return SourceFolders()
    try:
        found = json.loads(storage.read(NOTED))
        folders = {str(number): str(folder) for number, folder in found["folders"].items()}
        return SourceFolders(tuple(map(str, found["streams"])), folders)
    except (ValueError, KeyError, TypeError, AttributeError):
        log.warning(
            "%s/%s is damaged, and is written anew", storage.where, NOTED, extra={"event": "moved files damaged"}
        )
        return SourceFolders()


class MovedInputs:
    """Spark's log of files in a checkpoint, for a program with these streams."""

    def __init__(self, storage: Storage, files: FileTimes, streams: Sequence[str]) -> None:
        self._storage = storage
        self._files = files
        self._streams = tuple(streams)

    def follow(self, folders: Mapping[str, str]) -> None:
        """Let the log speak of these folders, by the number of the source; nothing is written where it does."""
        before, now = noted_in(self._storage), SourceFolders(self._streams, folders)
        if before == now:
            return
        if before.streams and before.streams != now.streams:
            raise CheckpointError(
                f"Spark knows streams by their order, and the checkpoint {self._storage.where} was begun with "
                f"{', '.join(before.streams)}: declare them in that order, not as {', '.join(now.streams)}"
            )
        # Nothing is changed if one of them is refused.
        texts: dict[str, str] = {}
        for number, folder in folders.items():
            texts |= self._renamed(number, before.folders.get(number), folder)
        for name, text in texts.items():
            place, _, entry = name.rpartition("/")
            self._storage.remove(f"{place}/.{entry}.crc")
            self._storage.write(name, text.encode())
        # Last: whoever dies before begins again, and finds some names done.
        for name, text in noted_text(now).items():
            self._storage.write(name, text.encode())

    def _renamed(self, number: str, before: str | None, folder: str) -> dict[str, str]:
        """The entries of a source's log in which files have other names now."""
        if before == folder:
            return {}
        found = {}
        for name in self._storage.list(f"{SOURCES}/{number}"):
            text = self._storage.read(name).decode()
            lines = text.split("\n")
            renamed = [
                self._line(line, number, before, folder) if line.startswith('{"path":') else line for line in lines
            ]
            if renamed != lines:
                found[name] = "\n".join(renamed)
        return found

    def _line(self, line: str, number: str, before: str | None, folder: str) -> str:
        entry = json.loads(line)
        path = self._path_now(str(entry["path"]), int(entry["timestamp"]), number, before, folder)
        return line if path == entry["path"] else json.dumps(entry | {"path": path}, separators=(",", ":"))

    def _path_now(self, path: str, time: int, number: str, before: str | None, folder: str) -> str:
        inside = None if before is None else _below(path, before)
        if inside is None:
            if _below(path, folder) is None:
                raise CheckpointError(self._strange(path, number, folder))
            return path
        if _below(path, folder) is not None and self._files.modified(path) is not None:
            return path
        now = f"{folder.rstrip('/')}/{inside}"
        modified = self._files.modified(now)
        if modified is not None and modified != time:
            raise CheckpointError(
                f"{self._owner(number)}: {_shown(folder)} is another folder than the one that was read, "
                f"{_shown(before)}, and {unquote(inside)} in it has another time than the file of that name which was "
                "read: nobody can tell whether it is the same one. Move or copy files with their times (mv, cp -p), "
                "give new ones new names, or start anew with another checkpoint"
            )
        return now if modified is not None else f"{folder.rstrip('/')}/{GONE}/{inside.removeprefix(f'{GONE}/')}"

    def _strange(self, path: str, number: str, folder: str) -> str:
        return (
            f"{self._owner(number)}: {unquote(path)} was read, and is not in {_shown(folder)}; the checkpoint does not "
            "say from where the folder was moved. Move it back, or start anew with another checkpoint"
        )

    def _owner(self, number: str) -> str:
        return f"stream {self._streams[int(number)]!r}"


def _below(path: str, folder: str | None) -> str | None:
    """The rest of a name below a folder; None if it is elsewhere.

    >>> _below("file:///in/a.json", "file:/in"), _below("file:/in2/a.json", "file:/in")
    ('a.json', None)
    """
    whole, start = _plain(path), _plain(str(folder)).rstrip("/") + "/"
    return whole.removeprefix(start) if folder is not None and whole.startswith(start) else None


def _plain(uri: str) -> str:
    """Without the empty name of a machine, which Spark writes here and not there."""
    return re.sub(r"^(\w+):///", r"\1:/", uri)


def _shown(uri: str | None) -> str:
    return unquote(_plain(uri or "")).removeprefix("file:")
