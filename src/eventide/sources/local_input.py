"""Inputs of the local engine: rows as Arrow tables, and a position that a restart can continue from.

Law: whoever takes, notes `position()`, and later seeks it in a new input of the same declaration, gets exactly the rows
that had not been taken then: none twice, none left out. `take` never gives more than `max_rows` rows and waits at most
`wait` seconds; None means that there is nothing now. Whether there will be more, `ended` and `caught_up` say.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from eventide.plan.declared.stream import Stream
from eventide.sources.files import FORMATS, Files
from eventide.sources.input_of import input_of
from eventide.sources.unknown_input import unknown_input


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

    def close(self) -> None:
        """Let go of files and connections."""
        ...


OTHERS = {
    "follow": ("eventide.sources.follow", "Follow"),
    "replay": ("eventide.sources.replay_local", "ReplayInput"),
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
