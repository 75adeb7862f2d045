"""The commands as a shell runs them: real processes, in a folder of their own."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "eventide"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), "TERM": "dumb", "COLUMNS": "200"}

STREAM = """CREATE STREAM doors (at TIMESTAMP, door STRING, people INT)
FROM csv 'doors.csv'
TIMESTAMP BY at
SOURCE BY door
DELAY 10 seconds TIMEOUT 1 hour;
"""
QUERY = "SELECT door, sum(people) AS people FROM doors [RANGE 1 minute] GROUP BY door;\n"
ROWS = """at,door,people
2026-01-31 09:00:01,north,3
2026-01-31 09:00:30,south,4
2026-01-31 09:00:20,north,5
2026-01-31 09:01:20,south,1
2026-01-31 09:03:00,north,7
"""
ANSWERS = [("09:00", "north", 8), ("09:00", "south", 4), ("09:01", "south", 1), ("09:03", "north", 7)]
"""What the query says of the rows: minute, door, people."""


@dataclass(frozen=True)
class Ran:
    """How a process ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Standard output as lines of JSON; anything else on it is an error."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def answers(self) -> list[tuple[str, str, int]]:
        """Minute, door and people of every result, sorted."""
        return sorted((row["window_start"][11:16], row["door"], row["people"]) for row in self.rows)


Ends = TypeVar("Ends", str, bytes)

Here = Callable[..., Ran]
"""Runs a command in this process: the fixture `here`."""


def eventide(folder: Path, *arguments: str, given: str | None = None) -> Ran:
    """Run a command to its end; `given` is its standard input."""
    found = subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        input=given if given is not None else "",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "Traceback" not in found.stderr or "--debug" in arguments, found.stderr
    return Ran(found.returncode, found.stdout, found.stderr)


def begun(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a command with pipes to all its ends."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
    )


def doors(folder: Path, script: str = STREAM + QUERY, rows: str = ROWS) -> Path:
    """A script and its rows in a folder."""
    (folder / "doors.sql").write_text(script, encoding="utf-8")
    (folder / "doors.csv").write_text(rows, encoding="utf-8")
    return folder


@contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    """A terminal: its screen, as whoever sits before it sees it, and the other side, for a process."""
    screen, other_side = pty.openpty()
    try:
        yield screen, other_side
    finally:
        os.close(other_side)
        os.close(screen)


@contextmanager
def ended(process: subprocess.Popen[Ends]) -> Iterator[subprocess.Popen[Ends]]:
    """A process that does not outlive the test."""
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def ends(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str], IO[str]]:
    """Standard input, output and error of a process with pipes to all of them."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    return process.stdin, process.stdout, process.stderr


def shown_until(screen: int, words: str, seconds: float = 300.0) -> str:
    """What a terminal shows, colours and movements left out, until some words are there or it is closed."""
    shown, deadline = b"", time.monotonic() + seconds
    while time.monotonic() < deadline:
        ready, _, _ = select.select([screen], [], [], 0.2)
        if ready:
            try:
                piece = os.read(screen, 65536)
            except OSError:  # Linux's way to say that nobody is on the other side any more
                piece = b""
            if not piece:
                break
            shown += piece
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode("utf-8", "replace"))
        if words and words in plain:
            break
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode("utf-8", "replace"))
