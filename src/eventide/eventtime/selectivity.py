"""How many rows an operator makes of one: measured while it runs, older rounds forgotten.

Law: the selectivity is rows out per row in, over all rounds, where a round counts half as much once `forget` rows more
have gone in; so a steady ratio is found exactly, and a change is followed within a few times `forget` rows. Before any
row has gone in it is 1. Memory-aware heartbeats (`heartbeat_labels`) are labelled with it (STREAM paper, section 7.4:
"gather such selectivity information at runtime").

>>> measured = Selectivity()
>>> measured.count(rows_in=10, rows_out=30)
>>> measured.ratio
3.0
"""

from __future__ import annotations

from dataclasses import dataclass

FORGET = 10_000
"""Rows after which what was known counts half."""


@dataclass
class Selectivity:
    """Sums of rows that went in and came out, the older the lighter.

    >>> measured = Selectivity(forget=100)
    >>> measured.count(100, 200)
    >>> measured.count(100, 0)
    >>> round(measured.ratio, 3)
    0.667
    """

    forget: int = FORGET
    rows_in: float = 0.0
    rows_out: float = 0.0

    def count(self, rows_in: int, rows_out: int) -> None:
        """Take a round into account."""
        kept = 0.5 ** (rows_in / self.forget)
        self.rows_in = self.rows_in * kept + rows_in
        self.rows_out = self.rows_out * kept + rows_out

    @property
    def ratio(self) -> float:
        """Rows out per row in."""
        return self.rows_out / self.rows_in if self.rows_in else 1.0
