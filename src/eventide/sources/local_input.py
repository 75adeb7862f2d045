"""Inputs of the local engine: rows as Arrow tables, and a position that a restart can continue from.

Law: whoever takes, notes `position()`, and later seeks it in a new input of the same declaration, gets exactly the rows
that had not been taken then: none twice, none left out. `take` never gives more than `max_rows` rows and waits at most
`wait` seconds; None means that there is nothing now. Whether there will be more, `ended` and `caught_up` say.

A round that a crash broke off is run again with the rows that it had, whatever has come since: `portion()` says which
they are before the round begins, and `repeat` takes them again after the restart.

*Batches*, the simplest input, are an iterable of Arrow tables or record batches from Python. Rows come in the order of
the iterable. The position is the number of rows taken; to continue from it the same rows are drawn again and passed
over, so an iterable that starts elsewhere each time cannot be continued exactly.

>>> from eventide.plan.declared.stream import Stream, columns
>>> stream = Stream("s", columns("t BIGINT"), time="t")
>>> given = Batches(stream, [pa.table({"t": [1, 2, 3]}), pa.table({"t": [4]})])
>>> given.take(2, 0).column("t").to_pylist(), given.position()
([1, 2], {'rows': 2})
>>> given.take(9, 0).column("t").to_pylist(), given.take(9, 0), given.ended
([3, 4], None, True)

*By format.* `open_input` loads an input when a stream asks for it.

>>> unknown_input("stream 's'", "rate").args[0]
"stream 's': the local engine cannot read rate: use the Spark engine"
>>> unknown_input("stream 's'", "cvs").args[0]
"stream 's': there is no format 'cvs': did you mean csv?"
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from eventide.errors import InputError
from eventide.plan.declared.stream import Stream
from eventide.sources.arrow_types import declared_table
from eventide.sources.options import input_of
from eventide.sources.spark_errors import BUILT_IN, PACKAGES

LOOK_AGAIN = 0.05
"""Seconds between two looks for new rows while waiting."""


@runtime_checkable
class LocalInput(Protocol):
    """Where the local engine takes the rows of one stream from."""

    @property
    def ended(self) -> bool:
        """No more rows will ever come."""
        ...

    @property
    def caught_up(self) -> bool:
        """All that is there now has been taken: where a bounded run ends. True also once `ended`."""
        ...

    def take(self, max_rows: int, wait: float) -> pa.Table | None:
        """The next rows: the declared columns and `_malformed`; None when there is nothing now."""
        ...

    def position(self) -> dict[str, Any]:
        """How far was taken, as plain JSON."""
        ...

    def seek(self, position: dict[str, Any]) -> None:
        """Continue from a position noted before; called before the first `take`."""
        ...

    def portion(self) -> dict[str, Any]:
        """Which rows were taken since this was last asked, as plain JSON."""
        ...

    def repeat(self, portion: dict[str, Any]) -> tuple[pa.Table | None, bool]:
        """Take the rows of a portion again, from the position before it; and whether they are all, as they were.

        What cannot be had again is not replaced by other rows: those come with the next `take`.
        """
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...


@runtime_checkable
class RereadableInput(Protocol):
    """An input that can be read again from its beginning."""

    def history(self, position: dict[str, Any]) -> Iterator[pa.Table]:
        """All rows before a position, some at a time; what was taken so far is not touched."""
        ...


@runtime_checkable
class PartitionedInput(Protocol):
    """An input that knows how much waits for it: a topic."""

    @property
    def lag(self) -> Mapping[str, int]:
        """How many records wait in each partition, as far as that is known."""
        ...


class CountedInput:
    """What inputs share whose position is the number of rows taken, and which end when all was taken."""

    def __init__(self) -> None:
        self._rows = 0
        self._noted = 0
        self._ended = False

    @property
    def ended(self) -> bool:
        """Whether all was taken, and no more will come."""
        return self._ended

    @property
    def caught_up(self) -> bool:
        """The same: what is there now is not distinguished from what will be."""
        return self.ended

    def portion(self) -> dict[str, Any]:
        """How many rows were taken since this was last asked."""
        rows, self._noted = self._rows - self._noted, self._rows
        return {"rows": rows}


class PolledInput(ABC):
    """What inputs share that look for new rows again and again, because nobody tells them."""

    def __init__(self, stream: Stream) -> None:
        self._caught_up = False

    @property
    @abstractmethod
    def ended(self) -> bool:
        """No more rows will ever come."""

    @property
    def caught_up(self) -> bool:
        """Whether the last look found nothing to read."""
        return self._caught_up

    def take(self, max_rows: int, wait: float) -> pa.Table | None:
        """The next rows; with nothing there, those that come within `wait` seconds."""
        deadline = time.monotonic() + wait
        while True:
            rows = self._look(max_rows)
            self._caught_up = rows is None
            rest = deadline - time.monotonic()
            if rows is not None or rest <= 0 or self.ended:
                return rows
            time.sleep(min(rest, LOOK_AGAIN))

    @abstractmethod
    def _look(self, max_rows: int) -> pa.Table | None:
        """What can be read now; None where that is nothing."""


class Batches(CountedInput):
    """The rows of an iterable of Arrow tables or record batches; it is drawn from only when rows are asked for."""

    def __init__(self, stream: Stream, batches: Iterable[pa.Table | pa.RecordBatch]) -> None:
        super().__init__()
        self._stream = stream
        self._batches: Iterator[pa.Table | pa.RecordBatch] = iter(batches)
        self._rest: pa.Table | None = None

    def take(self, max_rows: int, wait: float) -> pa.Table | None:
        """The next rows. `wait` means nothing here: an iterable gives its next batch or ends."""
        tables: list[pa.Table] = []
        wanted = max_rows
        while wanted > 0 and (table := self._next()) is not None:
            tables.append(table.slice(0, wanted))
            self._rest = table.slice(wanted) if table.num_rows > wanted else None
            wanted -= tables[-1].num_rows
        self._rows += max_rows - wanted
        return pa.concat_tables(tables) if tables else None

    def _next(self) -> pa.Table | None:
        """What is left of the last batch, or the next one that has rows."""
        if self._rest is not None:
            return self._rest
        for batch in self._batches:
            table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
            if table.num_rows:
                owner = f"stream {self._stream.name!r}"
                return declared_table(owner, self._stream.columns, table, "a batch")
        self._ended = True
        return None

    def position(self) -> dict[str, Any]:
        """How many rows were taken."""
        return {"rows": self._rows}

    def seek(self, position: dict[str, Any]) -> None:
        """Draw and pass over as many rows."""
        while self._rows < int(position["rows"]):
            if self.take(min(1_000_000, int(position["rows"]) - self._rows), 0.0) is None:
                break
        self._noted = self._rows

    def repeat(self, portion: dict[str, Any]) -> tuple[pa.Table | None, bool]:
        """Take as many rows again."""
        wanted = int(portion["rows"])
        tables = self.take(wanted, 0.0) if wanted else None
        return tables, (0 if tables is None else tables.num_rows) == wanted

    def close(self) -> None:
        """Do nothing: batches hold nothing open."""


INPUTS = {
    **dict.fromkeys(("arrow", "csv", "json", "orc", "parquet", "text"), ("eventide.sources.files.files", "Files")),
    "delta": ("eventide.sources.delta", "DeltaInput"),
    "follow": ("eventide.sources.files.follow", "Follow"),
    "iceberg": ("eventide.sources.iceberg.local", "IcebergInput"),
    "kafka": ("eventide.sources.kafka", "KafkaInput"),
    "replay": ("eventide.sources.replay.delivery", "ReplayInput"),
    "stdin": ("eventide.sources.standard_input", "StandardInput"),
}
"""Where they are: most programs need none but files."""


def unknown_input(owner: str, name: str) -> InputError:
    """The error for a format that the local engine does not have."""
    if name in BUILT_IN or name in PACKAGES:
        return InputError(f"{owner}: the local engine cannot read {name}: use the Spark engine")
    near = get_close_matches(name, INPUTS, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"the local engine has {', '.join(sorted(INPUTS))}"
    return InputError(f"{owner}: there is no format {name!r}: {hint}")


def open_input(stream: Stream) -> LocalInput:
    """The input that a stream declares."""
    stream = stream.as_read
    if stream.is_in_envelopes:
        changes = import_module("eventide.sources.debezium")
        over_messages: LocalInput = changes.opened(stream, open_input(changes.raw(stream)))
        return over_messages
    given = input_of(stream)
    if given.format not in INPUTS:
        raise unknown_input(f"stream {stream.name!r}", given.format)
    module, name = INPUTS[given.format]
    opened: LocalInput = getattr(import_module(module), name)(stream)
    return opened
