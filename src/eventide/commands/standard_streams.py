"""Standard input, output and error as a command finds them: some may be closed, some cannot say every letter.

Law: after `prepare` all three are there. What is written to one that was closed is gone, and no file that is opened
later takes its number, or what is meant for the one would be in the other. A letter that standard output cannot say
becomes a question mark; it is never an error.
"""

from __future__ import annotations

import io
import os
import sys
from typing import IO, Any

HIGHEST = 2


def prepare() -> None:
    """Put something in the place of what is closed."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= HIGHEST:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdin = sys.stdin or open(os.devnull, encoding="utf-8")  # noqa: SIM115 - open until the end
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def was_closed(stream: IO[Any]) -> bool:
    """Whether `prepare` had to put something in its place; `> /dev/null` is a choice of the user, and open."""
    return getattr(stream, "name", None) == os.devnull


def give_up(stream: IO[Any]) -> None:
    """Forget what a stream cannot write any more: the interpreter would try again as it ends, and complain."""
    try:
        stream.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
