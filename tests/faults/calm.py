"""A run in which nothing goes wrong: what every other must show in the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.crash.outcome import Outcome
from tests.faults.lives import TOLD, Life, beside, lived
from tests.faults.program import ON_CLUSTER, record

NEVER_MET = "d:1000000"


@dataclass(frozen=True)
class Calm:
    """The queries that were run, in which folder, what was shown, and what was done to which file, in order."""

    queries: Sequence[str]
    folder: Path
    outcome: Outcome
    operations: Sequence[tuple[str, str]]

    @classmethod
    def of(cls, shim: Path, folder: Path, queries: Sequence[str]) -> Calm:
        """Run these undisturbed; every table has rows in the end."""
        record(folder, queries)
        assert lived(shim, (folder, NEVER_MET)) == [Life(NEVER_MET, "ended")]
        outcome = Outcome.of(folder)
        shown = set(queries) - {ON_CLUSTER}
        assert {*shown, "late of a", "late of b", "rejects of a"} <= set(outcome.tables())
        told = (line.split() for line in beside(folder, TOLD).read_text().splitlines())
        return cls(queries, folder, outcome, [(kind, name) for _, kind, name in told])
