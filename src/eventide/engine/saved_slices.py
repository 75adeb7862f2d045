"""Slices on disk: what each round added, file by file, until nobody needs it any more.

Law: the files that a record names hold everything its slices hold. A round adds one small file for each query that took
rows; a file goes when all its panes are done with; when there are many, they are written anew as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.checkpoint import Checkpoint
from eventide.engine.cluster_slices import Chunk, ClusterSlices
from eventide.engine.operator_run import Kept
from eventide.engine.record import RoundRecord, StateFile
from eventide.engine.slices import DriverSlices
from eventide.engine.source_slices import SourceSlices
from eventide.engine.stream_time import StreamTime

MOST_FILES = 64


class Saveable(Protocol):
    """A query while it runs, as far as its files go."""

    @property
    def slices(self) -> DriverSlices | ClusterSlices | SourceSlices:
        """What it keeps."""
        ...

    def live(self) -> int:
        """State before this is not needed any more."""
        ...

    def state_table(self) -> pa.Table:
        """All that it holds."""
        ...

    def high(self, chunk: pa.Table) -> int:
        """Up to where some state reaches."""
        ...


class SavedSlices:
    """The state files of an engine, by query, each with the last pane (or time) in it."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._of: dict[str, list[tuple[StateFile, int]]] = {}
        self._sources: dict[str, tuple[StateFile, int]] = {}
        self._names: dict[str, pa.Array] = {}
        self._placed: dict[str, str] = {}

    def restore(self, record: RoundRecord | None) -> None:
        """The files as a record names them."""
        self._of, self._sources = {}, {}
        if record is None:
            return
        files = {file.name: file for file in record.files}
        for name, saved in record.queries.items():
            if "series" in saved:
                for kind, listed in saved["series"].items():
                    self._of[_series(name, kind)] = [(files[file], high) for file, high in listed]
                continue
            self._of[name] = [(files[file], high) for file, high in saved["files"]]
            self._placed[name] = "cluster" if "chunks" in saved else "driver"
        for name, saved in record.streams.items():
            if saved["sources"] is not None:
                file, count = saved["sources"]
                self._sources[name] = files[file], count

    def keep(self, name: str, run: Saveable, round: int, accepted: pa.Table | None) -> None:
        """Write what a round added, and let go of files that are done with."""
        files = self._of.setdefault(name, [])
        before, self._placed[name] = self._placed.get(name, run.slices.placement), run.slices.placement
        if isinstance(run.slices, ClusterSlices):
            files[:] = [(file, 0) for chunk in run.slices.chunks for file in chunk.files]
            return
        if before != run.slices.placement:
            # Back from the cluster: the driver has all of it, and no file of its own yet.
            files.clear()
            accepted = run.state_table()
        live = run.live()
        # What came and was answered in the same round, as on the levels of a plan, needs no file.
        if accepted is not None and accepted.num_rows and run.high(accepted) >= live:
            file = self._checkpoint.write_table(f"slices/{name}/{round:010d}.arrow", accepted)
            files.append((file, run.high(accepted)))
        files[:] = [(file, high) for file, high in files if high >= live]
        if len(files) > MOST_FILES:
            table = run.state_table()
            files.clear()
            if table.num_rows:
                file = self._checkpoint.write_table(f"slices/{name}/{round:010d}-all.arrow", table)
                files.append((file, run.high(table)))

    def keep_series(self, name: str, kept: Mapping[str, Kept], round: int) -> None:
        """The same for what an operator keeps, each kind of it in files of its own."""
        for kind, part in kept.items():
            files = self._of.setdefault(_series(name, kind), [])
            added = part.added
            if added is not None and added.num_rows and (high := _last(added)) >= part.live:
                file = self._checkpoint.write_table(f"slices/{name}/{kind}/{round:010d}.arrow", added)
                files.append((file, high))
            files[:] = [(file, high) for file, high in files if high >= part.live]
            if len(files) > MOST_FILES:
                files.clear()
                if (whole := part.whole()).num_rows:
                    file = self._checkpoint.write_table(f"slices/{name}/{kind}/{round:010d}-all.arrow", whole)
                    files.append((file, _last(whole)))

    def of_series(self, name: str, kinds: Iterable[str]) -> dict[str, Any]:
        """The files of an operator, for the record."""
        listed = {kind: self._of.get(_series(name, kind), []) for kind in kinds}
        return {"series": {kind: [[file.name, high] for file, high in files] for kind, files in listed.items()}}

    def series(self, name: str, kinds: Iterable[str]) -> dict[str, list[pa.Table]]:
        """What the files of an operator hold, by kind."""
        return {kind: self.tables(_series(name, kind)) for kind in kinds}

    def of(self, name: str) -> dict[str, Any]:
        """The files of a query, for the record."""
        return {"files": [[file.name, high] for file, high in self._of.get(name, [])]}

    def forget(self, name: str) -> None:
        """The query is gone."""
        self._of.pop(name, None)

    def tables(self, name: str) -> list[pa.Table]:
        """What the files of a query hold."""
        return [self._checkpoint.read_table(file) for file, _ in self._of.get(name, [])]

    def chunks(self, name: str, saved: dict[str, Any]) -> tuple[Chunk, ...]:
        """What a query has on the cluster."""
        files = {file.name: file for file, _ in self._of[name]}
        return tuple(
            Chunk(tuple(files[f] for f in names), tuple(panes), rows) for names, panes, rows in saved["chunks"]
        )

    def sources(self, name: str, stream: StreamTime, round: int) -> dict[str, Any]:
        """The names of the sources, for the record; written when there are new ones."""
        known = self._sources.get(name)
        count = len(stream.sources)
        if count and (known is None or known[1] != count):
            table = pa.table({"source": stream.sources})
            file = self._checkpoint.write_table(f"slices/_sources/{name}-{round:010d}.arrow", table)
            known = self._sources[name] = file, count
            self._names[name] = stream.sources
        return {"sources": None if known is None else [known[0].name, known[1]]}

    def source_names(self, name: str) -> pa.Array:
        """The names of the sources as of the last record."""
        if name not in self._sources:
            return pa.array([], pa.string())
        file, count = self._sources[name]
        if name not in self._names or len(self._names[name]) < count:
            self._names[name] = self._checkpoint.read_table(file).column("source").combine_chunks()
        return self._names[name].slice(0, count)

    def files(self) -> tuple[StateFile, ...]:
        """Every file, for the record."""
        slices = [file for files in self._of.values() for file, _ in files]
        return (*slices, *(file for file, _ in self._sources.values()))


def _series(name: str, kind: str) -> str:
    """How the files of one kind of an operator's state are known; no query has such a name."""
    return f"{name}/{kind}"


def _last(table: pa.Table) -> int:
    return int(pc.max(table.column("__t")).as_py())
