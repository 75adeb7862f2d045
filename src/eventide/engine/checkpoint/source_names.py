"""The names of the sources of streams on disk: written when there are new ones."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from eventide.engine.checkpoint.checkpoint import Checkpoint
from eventide.engine.checkpoint.record import RoundRecord, StateFile


class SourceNames:
    """The files with the names, by stream, each with how many of its names count."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._files: dict[str, tuple[StateFile, int]] = {}
        self._names: dict[str, pa.Array] = {}

    def restore(self, record: RoundRecord | None) -> None:
        """The files as a record names them."""
        self._files = {}
        if record is None:
            return
        files = {file.name: file for file in record.files}
        for name, saved in record.streams.items():
            if saved["sources"] is not None:
                file, count = saved["sources"]
                self._files[name] = files[file], count

    def saved(self, stream: str, names: pa.Array, round: int) -> dict[str, Any]:
        """The names of a stream's sources, for the record."""
        known = self._files.get(stream)
        if len(names) and (known is None or known[1] != len(names)):
            name = f"slices/_sources/{stream}-{round:010d}.arrow"
            file = self._checkpoint.write_table(name, pa.table({"source": names}))
            known = self._files[stream] = file, len(names)
            self._names[stream] = names
        return {"sources": None if known is None else [known[0].name, known[1]]}

    def of(self, stream: str) -> pa.Array:
        """The names as of the last record."""
        if stream not in self._files:
            return pa.array([], pa.string())
        file, count = self._files[stream]
        if stream not in self._names or len(self._names[stream]) < count:
            self._names[stream] = self._checkpoint.read_table(file).column("source").combine_chunks()
        return self._names[stream].slice(0, count)

    def files(self) -> tuple[StateFile, ...]:
        """Every file, for the record."""
        return tuple(file for file, _ in self._files.values())
