"""Inputs of the local engine by format: rows as Arrow tables, and a position from which a restart continues.

Law: whoever takes, notes `position()`, and later seeks it in a new input of the same declaration, gets exactly the rows
that had not been taken then: none twice, none left out. `take` never gives more than `max_rows` rows and waits at most
`wait` seconds; None means that there is nothing now. Whether there will be more, `ended` and `caught_up` say.

A round that a crash broke off is run again with the rows that it had, whatever has come since: `portion()` says which
they are before the round begins, and `repeat` takes them again after the restart.

*Unknown formats.* What is said when the local engine has no such input.

>>> unknown_input("stream 's'", "delta").args[0]
"stream 's': the local engine cannot read delta: use the Spark engine"
>>> unknown_input("stream 's'", "cvs").args[0]
"stream 's': there is no format 'cvs': did you mean csv?"
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from eventide.errors import InputError
from eventide.plan.declared.stream import Stream
from eventide.sources.files.files import FORMATS, Files
from eventide.sources.options import input_of
from eventide.sources.spark_errors import BUILT_IN, PACKAGES

LOCAL = ("arrow", "csv", "follow", "json", "kafka", "orc", "parquet", "replay", "stdin", "text")


def unknown_input(owner: str, name: str) -> InputError:
    """The error for a format that the local engine does not have."""
    if name in BUILT_IN or name in PACKAGES:
        return InputError(f"{owner}: the local engine cannot read {name}: use the Spark engine")
    near = get_close_matches(name, LOCAL, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"the local engine has {', '.join(LOCAL)}"
    return InputError(f"{owner}: there is no format {name!r}: {hint}")


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


OTHERS = {
    "follow": ("eventide.sources.files.follow", "Follow"),
    "kafka": ("eventide.sources.kafka", "KafkaInput"),
    "replay": ("eventide.sources.replay.local", "ReplayInput"),
    "stdin": ("eventide.sources.standard_input", "StandardInput"),
}
"""Where the other inputs are: most programs need none of them."""


def open_input(stream: Stream) -> LocalInput:
    """The input that a stream declares."""
    given = input_of(stream)
    if given.format in FORMATS:
        return Files(stream)
    if given.format in OTHERS:
        module, name = OTHERS[given.format]
        opened: LocalInput = getattr(import_module(module), name)(stream)
        return opened
    raise unknown_input(f"stream {stream.name!r}", given.format)
