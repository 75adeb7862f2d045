"""Shell sessions of the pages (`console` blocks) print what they show; the blocks under one heading are one session."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest

import eventide
from tests.commands.fleet import fleet
from tests.commands.processes import QUERY, ROWS, STREAM, Here
from tests.docs.blocks import sections
from tests.docs.shells import ran


@contextmanager
def running(script: str) -> Iterator[None]:
    """A run on the checkpoint `state` that has taken a round, and can be asked."""
    with eventide.sql(script).start(checkpoint="state", engine="local") as queries:
        while queries.status().round < 0:
            assert queries.isActive, queries.engine.failure
            time.sleep(0.01)
        queries.listen()
        yield


def people_at_doors() -> AbstractContextManager[None]:
    Path("in").mkdir()
    Path("in/first.csv").write_text(ROWS, encoding="utf-8")
    return running(STREAM.replace("'doors.csv'", "'in'") + "CREATE QUERY people AS " + QUERY)


@contextmanager
def a_run_that_was_stopped() -> Iterator[None]:
    """The script `doors.sql`, and its checkpoint after one round."""
    Path("in").mkdir()
    Path("in/first.csv").write_text(ROWS, encoding="utf-8")
    script = STREAM.replace("'doors.csv'", "'in'") + "CREATE QUERY people AS " + QUERY
    Path("doors.sql").write_text(script, encoding="utf-8")
    with running(script):
        pass
    yield


def volumes_of_detectors() -> AbstractContextManager[None]:
    rows = [("09:10:20", "1045", 31), ("09:11:05", "1046", 12), ("09:12:40", "1045", 27), ("09:14:10", "1045", 34)]
    told = [{"ts": f"2026-01-31 {time}", "detector": detector, "volume": n} for time, detector, n in rows]
    Path("incoming").mkdir()
    Path("incoming/first.json").write_text("\n".join(map(json.dumps, told)), encoding="utf-8")
    return running(
        "CREATE STREAM traffic (ts TIMESTAMP, detector STRING, volume INT) FROM json 'incoming';"
        "CREATE QUERY volumes AS SELECT detector, sum(volume) AS total FROM traffic [RANGE 10 min] GROUP BY detector;"
    )


def silent_device() -> AbstractContextManager[None]:
    fleet(Path.cwd())
    return nullcontext()


def ended_run() -> AbstractContextManager[None]:
    Path("in").mkdir()
    Path("in/first.csv").write_text(ROWS, encoding="utf-8")
    script = STREAM.replace("'doors.csv'", "'in'") + "CREATE QUERY people AS " + QUERY
    eventide.sql(script).start({"people": "out"}, "state", engine="local", bounded=True).awaitTermination()
    return nullcontext()


SCENES: dict[tuple[str, str], Callable[[], AbstractContextManager[None]]] = {
    ("docs/changing-programs.md", "See it before"): a_run_that_was_stopped,
    ("docs/changing-programs.md", "Copies, and the way back"): a_run_that_was_stopped,
    ("docs/commands.md", "`eventide checkpoint`"): ended_run,
    ("docs/commands.md", "`eventide prod`"): people_at_doors,
    ("docs/operations.md", "Where do heartbeats wait?"): silent_device,
    ("docs/operations.md", "Why is it open?"): silent_device,
    ("docs/prods.md", "From another process"): volumes_of_detectors,
}
"""What is there before a session begins; all others begin in an empty folder."""

SESSIONS = sections("console")


def commands_of(text: str) -> list[tuple[str, str]]:
    """Each command of a session, and what it prints.

    >>> commands_of("$ cat <<END\\n> one\\n> END\\none\\n$ true\\n")
    [('cat <<END\\none\\nEND', 'one\\n'), ('true', '')]
    """
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        elif line.startswith("> "):
            found[-1] = (f"{found[-1][0]}\n{line[2:]}", "")
        else:
            found[-1] = (found[-1][0], f"{found[-1][1]}{line}\n")
    return found


@pytest.mark.parametrize("section", SESSIONS, ids=" ".join)
def test_a_session_prints_what_the_page_shows(section: tuple[str, str], tmp_path: Path, here: Here) -> None:
    commands = [command for block in SESSIONS[section] for command in commands_of(block.text)]
    with SCENES.get(section, nullcontext)():
        printed = [text for _, text in ran((command for command, _ in commands), tmp_path, here)]
    for (command, shown), text in zip(commands, printed, strict=True):
        # Groups of one window have no order among themselves; a page breaks lines that are too long for it.
        same = sorted(text.splitlines()) == sorted(shown.splitlines()) or text.split() == shown.split()
        assert same, f"$ {command}\n{text}"


def test_every_scene_belongs_to_a_session() -> None:
    assert SCENES.keys() <= SESSIONS.keys()
