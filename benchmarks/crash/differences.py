"""A run through deaths, and how what it shows differs from an uninterrupted one.

Law: `lost` and `duplicated` count rows of results, late rows and rejects on one side only; `changed` counts rows that a
reader could see at the moment of a death and cannot see in the end. All are 0, whenever and however often it died.

>>> Differences(0, 0, 0) + Differences(1, 0, 2)
Differences(lost=1, duplicated=0, changed=2)
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.crash.lives import DEATHS
from benchmarks.crash.moment import QUERIES
from benchmarks.crash.outcome import Outcome
from benchmarks.crash.recording import record
from benchmarks.harness import REPOSITORY


@dataclass(frozen=True)
class Differences:
    """Rows that differ."""

    lost: int = 0
    duplicated: int = 0
    changed: int = 0

    def __add__(self, other: Differences) -> Differences:
        return Differences(self.lost + other.lost, self.duplicated + other.duplicated, self.changed + other.changed)


def differences(folder: Path, expected: Outcome, rounds: bool = True) -> Differences:
    """How a run in a folder, and all that was seen of it at its deaths, differs from what is expected.

    Without `rounds`, a result may come in another round: where the clock makes rounds of its own.
    """
    shown = Outcome.of(folder)
    seen = [Outcome.of(death) for death in (folder / DEATHS).glob("*")]
    changed = sum(one.changed(shown) for one in seen)
    if not rounds:
        shown, expected = shown.without_rounds(), expected.without_rounds()
    return Differences(shown.missing(expected), expected.missing(shown), changed)


def calm(folder: Path, files: int, chosen: Sequence[str] = QUERIES) -> Outcome:
    """What an uninterrupted run on the local engine shows."""
    record(folder, files)
    command = [sys.executable, "-m", "benchmarks.crash.program", str(folder), *_only(chosen)]
    subprocess.run(command, cwd=REPOSITORY, check=True)
    return Outcome.of(folder)


def lived(
    folder: Path,
    engine: str,
    moments: Sequence[str],
    chosen: Sequence[str] = QUERIES,
    unfinished: bool = False,
    options: Sequence[str] = (),
) -> int:
    """Run the program through these deaths, and to its end unless `unfinished`; gives how many deaths there were.

    `options` are more of the program's.
    """
    command = [sys.executable, "-m", "benchmarks.crash.lives", "--engine", engine, *_only(chosen)]
    command += [*(f"--option={option}" for option in options), *(["--unfinished"] if unfinished else [])]
    done = subprocess.run(
        [*command, str(folder), *moments], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True
    )
    return int(done.stdout.split()[-1])


def _only(chosen: Sequence[str]) -> list[str]:
    return [part for query in chosen for part in ("--query", query)]
