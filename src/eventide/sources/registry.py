"""Open inputs of the local engine by the name of their format; all but files are loaded when they are asked for.

>>> unknown_input("stream 's'", "delta").args[0]
"stream 's': the local engine cannot read delta: use the Spark engine"
>>> unknown_input("stream 's'", "cvs").args[0]
"stream 's': there is no format 'cvs': did you mean csv?"
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

from eventide.errors import InputError
from eventide.plan.declared.stream import Stream
from eventide.sources.files.files import FORMATS, Files
from eventide.sources.local_input import LocalInput
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
