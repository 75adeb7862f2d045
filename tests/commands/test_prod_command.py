"""`eventide prod` against a real `eventide run`: early rows, how the prod came, what is refused, who may be asked."""

from __future__ import annotations

import json
import re
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands.processes import (
    COMMAND,
    ENVIRONMENT,
    QUERY,
    ROWS,
    STREAM,
    Here,
    Ran,
    begun,
    doors,
    ended,
    eventide,
    shown_until,
    terminal,
)

FOLDER = STREAM.replace("'doors.csv'", "'in'")
NAMED = FOLDER + "CREATE QUERY people AS " + QUERY
LAST = "people round=0 early [2026-01-31 09:03:00, 2026-01-31 09:04:00) door=north people=7\n"


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A run that has told its first results, and goes on."""
    doors(folder, NAMED)
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / "first.csv").write_text(ROWS, encoding="utf-8")
    with begun(folder, "run", "doors.sql", "--json", *arguments) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert process.stdout.readline(), process.stderr.read()
            yield process
        finally:
            process.kill()


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[None]:
    """The same; after the test it is stopped, and has to end cleanly."""
    with started(folder, *arguments) as process:
        yield
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        said = process.stderr.read()
        assert (process.wait(timeout=300), "Fatal" in said) == (0, False), said


def asked_until(here: Here, said: str, *arguments: str) -> Ran:
    """Ask again until the round whose results were told is committed."""
    for _ in range(200):
        ran = here("prod", *arguments)
        if said in ran.out:
            return ran
        time.sleep(0.05)
    raise AssertionError(ran)


def test_a_running_query_is_asked_by_its_checkpoint_until_it_stops(tmp_path: Path, here: Here) -> None:
    ask = ("prod", "people", "--checkpoint", "state")
    with running(tmp_path, "--engine", "local", "--checkpoint", "state"):
        assert stat.S_IMODE((tmp_path / "state" / "endpoint.token").stat().st_mode) == 0o600
        asked_until(here, LAST, *ask[1:], "--up-to", "2026-01-31 09:04")
        first = eventide(tmp_path, *ask)
        assert (first.code, first.out, first.err) == (0, LAST, "")
        again = here(*ask, "--json")
        assert again.rows == [
            {
                "query": "people",
                "kind": "early",
                "window_start": "2026-01-31T09:03:00.000000Z",
                "window_end": "2026-01-31T09:04:00.000000Z",
                "round": 0,
                "door": "north",
                "people": 7,
            }
        ]
        assert again.err == "eventide: repeated: nothing has come since the same answer\n"
        assert here(*ask, "--group", "door=north", "--up-to", "2026-01-31 09:04").out == LAST
        assert here(*ask, "--where", "door BETWEEN 'm' AND 'o'", "--up-to", "2026-01-31 09:04").out == LAST
        south = here(*ask, "--group", "door=south")
        assert (south.code, south.out) == (0, "")
        assert south.err == "eventide: too early: no row of such a window has come yet\n"
        assert here(*ask, "--null", "door").err.startswith("eventide: too early")
        assert here(*ask, "--up-to", "2026-01-31 09:01").err.startswith("eventide: too late")
        told = json.loads((tmp_path / "state" / "endpoint.json").read_text())
        token = str(tmp_path / "state" / "endpoint.token")
        assert here("prod", "people", "--url", told["url"], "--token-file", token).out == LAST
        for arguments, said in (
            (("poeple",), "there is no query 'poeple'; did you mean 'people'?"),
            (("people", "--group", "dor=north"), "query 'people' has no group 'dor' to prod: it has door"),
            (("people", "--up-to", "noon"), "up_to 'noon' is no time of the query; give a time (UTC)"),
            (("people", "--group", "door"), "write --group NAME=VALUE"),
            (("people", "--where", "door > 'a'"), "is no pattern of a group"),
            (("people", "--where", "door IN ("), "cannot be read"),
            (("people", "--where", "door = 'a'", "--null", "door"), "given twice"),
            (("people", "--group", "door=a", "--null", "door"), "given twice"),
        ):
            refused = here("prod", *arguments, "--checkpoint", "state")
            assert (refused.code, refused.out) == (2, ""), refused
            assert said in refused.err
    assert not (tmp_path / "state" / "endpoint.token").exists()
    gone = here(*ask)
    assert (gone.code, gone.out) == (3, "")
    assert "no engine that can be asked works on state" in gone.err


def test_the_one_run_with_a_temporary_checkpoint_needs_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setitem(ENVIRONMENT, "TMPDIR", str(tmp_path / "tmp"))
    none = eventide(tmp_path, "prod", "people")
    assert (none.code, "none runs" in none.err) == (2, True)
    with running(tmp_path, "--engine", "local"):
        asked_until(lambda *arguments: eventide(tmp_path, *arguments), LAST, "people")
        with running(tmp_path, "--engine", "local"):
            two = eventide(tmp_path, "prod", "people")
            assert (two.code, "2 of them run" in two.err) == (2, True)
    assert list((tmp_path / "tmp").glob("eventide-checkpoint-*")) == []


def test_a_run_that_was_killed_is_not_taken_for_one_that_runs(tmp_path: Path, here: Here) -> None:
    with started(tmp_path, "--engine", "local", "--checkpoint", "state") as process:
        process.kill()
        process.wait()
        gone = here("prod", "people", "--checkpoint", "state")
        assert (gone.code, f"process {process.pid}, which listened at" in gone.err) == (3, True)
    assert (tmp_path / "state" / "endpoint.json").exists()
    (tmp_path / "in" / "later.csv").write_text("at,door,people\n2026-01-31 09:06:00,south,1\n", encoding="utf-8")
    with running(tmp_path, "--engine", "local", "--checkpoint", "state", "--no-listen"):
        assert not (tmp_path / "state" / "endpoint.json").exists()
        assert not (tmp_path / "state" / "endpoint.token").exists()
        assert "no engine that can be asked" in here("prod", "people", "--checkpoint", "state").err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--listen", "nonsense:http"), "is no address to listen on: write HOST:PORT"),
        (("--listen", "127.0.0.1:99999"), "is no address to listen on"),
        (("--listen", "8080", "--no-listen"), "contradict each other"),
    ],
)
def test_an_address_that_is_none_is_told_before_anything_runs(
    tmp_path: Path, here: Here, arguments: tuple[str, ...], said: str
) -> None:
    doors(tmp_path)
    ran = here("run", "doors.sql", "--engine", "local", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--url", "http://127.0.0.1:1"), "--token-file FILE"),
        (("--url", "http://127.0.0.1:1", "--checkpoint", "x", "--token-file", "t"), "give one of them"),
        (("--token-file", "t"), "goes with --url"),
        (("--url", "nowhere", "--token-file", "t"), "write http://HOST:PORT"),
        (("--url", "http://127.0.0.1:1", "--token-file", "t"), "cannot read the token in t"),
    ],
)
def test_whom_to_ask_must_be_said_in_one_way(tmp_path: Path, here: Here, arguments: tuple[str, ...], said: str) -> None:
    ran = here("prod", "people", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_a_port_that_was_named_must_be_free(tmp_path: Path, here: Here) -> None:
    doors(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = here("run", "doors.sql", "--engine", "local", "--listen", f"{taken.getsockname()[1]}")
    assert (ran.code, ran.out) == (3, "")
    assert "cannot listen at 127.0.0.1" in ran.err


def test_listening_to_other_machines_has_to_be_asked_for_and_is_warned_of(tmp_path: Path, here: Here) -> None:
    doors(tmp_path)
    ran = here("run", "doors.sql", "--engine", "local", "--json", "--listen", "0.0.0.0:0")
    assert ran.code == 0
    assert len(ran.rows) == 4
    assert "warning: 0.0.0.0:" in ran.err
    assert "other machines can ask here" in ran.err
    assert "other machines" not in here("run", "doors.sql", "--engine", "local", "--listen", "0").err


def test_a_terminal_is_told_how_to_ask_and_shows_a_table(tmp_path: Path) -> None:
    doors(tmp_path, NAMED)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "first.csv").write_text(ROWS, encoding="utf-8")
    with terminal() as (screen, other_side):
        environment = ENVIRONMENT | {"TERM": "xterm-256color", "COLUMNS": "300"}
        with ended(
            subprocess.Popen(
                [*COMMAND, "run", "doors.sql", "--engine", "local", "--json", "--checkpoint", "state"],
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=other_side,
            )
        ) as process:
            assert "to ask: eventide prod QUERY --checkpoint " in shown_until(screen, "round 0, ")
            ask = [*COMMAND, "prod", "people", "--checkpoint", "state"]
            subprocess.run(ask, cwd=tmp_path, env=environment, stdout=other_side, check=True, timeout=300)
            shown = shown_until(screen, "north")
            assert re.search(r"2026-01-31 09:03:00 - 09:04:00 +early +north +7", shown), shown
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=300) == 0


@pytest.mark.slow
@pytest.mark.spark
def test_a_query_on_spark_is_asked_the_same_way(tmp_path: Path, here: Here) -> None:
    spark = ("--engine", "spark", "--master", "local[1]", "--conf", "spark.ui.enabled=false")
    with running(tmp_path, *spark, "--checkpoint", "state"):
        assert asked_until(here, LAST, "people", "--checkpoint", "state", "--group", "door=north").code == 0
    assert not (tmp_path / "state" / "endpoint.token").exists()
