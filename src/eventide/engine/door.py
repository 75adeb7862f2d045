"""The door for those who ask an engine while it runs: open until it ends, and then shut behind the last of them.

Law: whoever is let in finds everything in place until they leave; `shut` lets nobody in any more, and returns when all
have left. So an asking that comes before the end has its answer, and one that comes after it an error.

>>> door = Door()
>>> with door.let_in("prod query 'sums'"):
...     pass
>>> door.shut()
>>> with door.let_in("prod query 'sums'"):
...     pass
Traceback (most recent call last):
    ...
eventide.errors.EngineError: cannot prod query 'sums': the engine has ended
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from eventide.errors import EngineError


class Door:
    """Counts those who are inside."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._shut = False

    @contextmanager
    def let_in(self, what: str) -> Iterator[None]:
        """Inside until the block ends; `what` someone wants is told if the door is shut."""
        with self._changed:
            if self._shut:
                raise EngineError(f"cannot {what}: the engine has ended")
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    def shut(self) -> None:
        """Wait until nobody is inside; safe to call again."""
        with self._changed:
            self._shut = True
            self._changed.wait_for(lambda: self._inside == 0)
