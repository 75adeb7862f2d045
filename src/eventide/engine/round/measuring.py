"""How many rows the operators of a program make of one, while they run.

Law: rows that went in count when the operator has come past them, rows that came out when they are told; so an operator
that is held back is not taken for one that lets nothing through. What was measured is part of the round record.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from eventide.eventtime.selectivity import Selectivity


class Measuring:
    """The selectivity of every operator (`eventtime.selectivity`)."""

    def __init__(self, saved: Mapping[str, Mapping[str, Any]]) -> None:
        self._of: dict[str, Selectivity] = {}
        self._waiting: dict[str, deque[tuple[int, int]]] = {}
        for name, known in saved.items():
            if "selectivity" in known:
                rows_in, rows_out = known["selectivity"]
                self._of[name] = Selectivity(rows_in=rows_in, rows_out=rows_out)

    def count(self, name: str, rows_in: int, rows_out: int, seen: int, reached: int) -> None:
        """Take a round of an operator into account: its inputs had come to `seen`, it went on to `reached`."""
        waiting = self._waiting.setdefault(name, deque())
        if rows_in:
            waiting.append((seen, rows_in))
        passed = 0
        while waiting and waiting[0][0] <= reached:
            passed += waiting.popleft()[1]
        self._of.setdefault(name, Selectivity()).count(passed, rows_out)

    def ratios(self) -> dict[str, float]:
        """Rows out per row in, by operator."""
        return {name: measured.ratio for name, measured in self._of.items()}

    def saved(self, name: str) -> dict[str, Any]:
        """Plain data for the round record."""
        measured = self._of.get(name)
        return {} if measured is None else {"selectivity": [measured.rows_in, measured.rows_out]}
