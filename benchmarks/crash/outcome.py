"""What a reader sees of a run: results, late rows and rejects; and how two of them differ.

Law: everything is compared, down to the round and the heartbeat of each result, except the times of `by_clock`, which
are the clock's: of those, how many rows went in.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.crash.program import CHECKPOINT, OUT

BY_CLOCK = "by_clock"

Rows = Counter[tuple[Any, ...]]


@dataclass(frozen=True)
class Outcome:
    """Rows, each with the table it is in; those of the clock's times apart."""

    rows: Rows = field(default_factory=Counter)
    by_clock: Rows = field(default_factory=Counter)

    @classmethod
    def of(cls, folder: Path) -> Outcome:
        """What is to be seen in a folder."""
        found = cls()
        for file in sorted((folder / OUT).glob("*.parquet")):
            query = file.name.split("-")[0]
            kept = found.by_clock if query == BY_CLOCK else found.rows
            kept.update(_rows(query, pq.ParquetFile(file).read(use_threads=False)))
        for name in ("late", "rejects"):
            for file in sorted((folder / CHECKPOINT / name).glob("*/*.parquet")):
                found.rows.update(_rows(f"{name} of {file.parent.name}", pq.ParquetFile(file).read(use_threads=False)))
        return found

    def tables(self) -> dict[str, int]:
        """How many rows there are in each table."""
        counts: Counter[str] = Counter()
        for row, count in (self.rows + self.by_clock).items():
            counts[row[0]] += count
        return dict(counts)

    def missing(self, expected: Outcome) -> int:
        """Rows that should be here and are not."""
        return ((expected.rows + expected._visits()) - (self.rows + self._visits())).total()

    def changed(self, later: Outcome) -> int:
        """Rows that were here and are not there later."""
        return ((self.rows + self.by_clock) - (later.rows + later.by_clock)).total()

    def without_rounds(self) -> Outcome:
        """The same, whichever round told it."""
        plain: Rows = Counter()
        for row, count in self.rows.items():
            plain[tuple(part for part in row if part[0] not in ("round", "_round"))] += count
        return Outcome(plain, self.by_clock)

    def _visits(self) -> Rows:
        """The rows that went into results of the clock's times, by page."""
        counts: Rows = Counter()
        for row, count in self.by_clock.items():
            told = dict(row[1:])
            counts[BY_CLOCK, told["page"]] += count * told["rows"]
        return counts


def _rows(table: str, rows: pa.Table) -> Rows:
    return Counter((table, *row.items()) for row in rows.to_pylist())
