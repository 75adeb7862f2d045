"""The text of a script: a file, or standard input where the name is `-`.

>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp(), "q.sql")
>>> _ = path.write_text("SHOW STREAMS;")
>>> text_of(str(path))
'SHOW STREAMS;'
>>> text_of("no-such.sql")
Traceback (most recent call last):
    ...
eventide.errors.InputError: no-such.sql: no such file
"""

from __future__ import annotations

import sys
from difflib import get_close_matches
from pathlib import Path

from eventide.errors import InputError
from eventide.language.script import Script, read_script

STANDARD_INPUT = "-"


def text_of(name: str) -> str:
    """All of it, as UTF-8."""
    try:
        given = sys.stdin.buffer.read() if name == STANDARD_INPUT else Path(name).read_bytes()
    except FileNotFoundError:
        raise InputError(f"{name}: no such file{_near(name)}") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from error
    try:
        return given.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = given[: error.start].count(b"\n") + 1
        raise InputError(f"{shown_as(name)}:{line}: this is not UTF-8: save the script in that encoding") from error


def script_of(name: str) -> Script:
    """The script in a file, read and checked."""
    return read_script(text_of(name), shown_as(name))


def shown_as(name: str) -> str:
    """The name in messages."""
    return "standard input" if name == STANDARD_INPUT else name


def _near(name: str) -> str:
    path = Path(name)
    there = [other.name for other in path.parent.glob("*.sql")] if path.parent.is_dir() else []
    close = get_close_matches(path.name, there, n=1)
    return f"; did you mean {path.parent / close[0]}?" if close else ""
