"""Why a window is open, as a value: print it and read a sentence, or take its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from eventide.commands.why_words import window_words
from eventide.engine.introspection.why import OpenWindow
from eventide.engine.introspection.why_data import window_data


@dataclass(frozen=True)
class WhyOpen:
    """An open window and what it waits for; `closes_at` is the clock at which it closes if nothing more arrives.

    Times are whole numbers, microseconds or the numbers of a sequence. `closes_at` is None where only a row can close
    it. `waits_for` is plain data: the stream, its sources that hold the window with the rule of each, or a query and
    what that waits for.

    >>> str(WhyOpen(0, 10, None, {"stream": "s"}, "window 0 to 10 waits for stream s"))
    'window 0 to 10 waits for stream s'
    """

    window_start: int
    window_end: int
    closes_at: int | None
    waits_for: dict[str, Any]
    words: str

    @classmethod
    def of(cls, window: OpenWindow) -> WhyOpen:
        """From what the engine knows."""
        waits = window_data(window)["waits_for"]
        return cls(window.start, window.end, window.closes_at, waits, window_words(window))

    def __str__(self) -> str:
        return self.words
