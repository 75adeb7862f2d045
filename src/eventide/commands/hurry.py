"""Ctrl-C and SIGTERM while no engine takes care of them: the command ends, and cleans up as it goes.

Law: what was interrupted ends as interrupted, whatever it made of that. DuckDB, for one, raises an error of its own.

>>> with hurry_heard():
...     try:
...         signal.raise_signal(signal.SIGTERM)
...     except TerminatedError:
...         raise RuntimeError("Query interrupted")
Traceback (most recent call last):
    ...
eventide.commands.endings.TerminatedError
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from eventide.commands.endings import TerminatedError

RAISED: dict[int, type[BaseException]] = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: TerminatedError}


@contextmanager
def hurry_heard() -> Iterator[None]:
    """Inside, Ctrl-C raises KeyboardInterrupt and SIGTERM TerminatedError, where the user lets them through at all."""
    came: list[int] = []

    def leave(number: int, frame: FrameType | None) -> None:
        came.append(number)
        raise RAISED[number]

    before = {number: signal.getsignal(number) for number in RAISED}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, leave)
    try:
        yield
    except Exception as error:
        if came:
            raise RAISED[came[-1]] from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
