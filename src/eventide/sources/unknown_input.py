"""What to say when the local engine has no such input.

>>> unknown_input("stream 's'", "kafka").args[0]
"stream 's': the local engine cannot read kafka: use the Spark engine"
>>> unknown_input("stream 's'", "cvs").args[0]
"stream 's': there is no format 'cvs': did you mean csv?"
"""

from __future__ import annotations

from difflib import get_close_matches

from eventide.errors import InputError
from eventide.sources.spark_errors import BUILT_IN, PACKAGES

LOCAL = ("arrow", "csv", "follow", "json", "orc", "parquet", "replay", "stdin", "text")


def unknown_input(owner: str, name: str) -> InputError:
    """The error for a format that the local engine does not have."""
    if name in BUILT_IN or name in PACKAGES:
        return InputError(f"{owner}: the local engine cannot read {name}: use the Spark engine")
    near = get_close_matches(name, LOCAL, n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"the local engine has {', '.join(LOCAL)}"
    return InputError(f"{owner}: there is no format {name!r}: {hint}")
