"""`eventide run --console`, `eventide console` and `eventide watch`, as a shell runs them."""

from __future__ import annotations

import json
import re
import signal
import time
import urllib.request
from pathlib import Path
from typing import IO

import pytest

from tests.commands.processes import ROWS, Here, begun, doors, ended, ends, eventide
from tests.commands.test_prod_command import NAMED

LINK = re.compile(r"(http://127\.0\.0\.1:\d+)/console/#token=(\S+)")


def link_in(lines: IO[str]) -> tuple[str, str]:
    """The address and the token of the first link that is printed."""
    for line in lines:
        if found := LINK.search(line):
            return found[1], found[2]
    raise AssertionError("no link was printed")


def shown_at(url: str, token: str) -> dict[str, object]:
    """What the page Results is sent first."""
    body = json.dumps({"token": token}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{url}/console/session", body, method="POST")) as answer:
        session = json.load(answer)["session"]
    asked = urllib.request.Request(
        f"{url}/console/api/events?page=results", headers={"Authorization": f"Bearer {session}"}
    )
    with urllib.request.urlopen(asked) as events:
        found: dict[str, object] = json.loads(events.readline().removeprefix(b"data: "))
        return found


@pytest.mark.slow
def test_a_run_shows_itself_and_its_record_after_it(tmp_path: Path) -> None:
    doors(tmp_path, NAMED)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "first.csv").write_text(ROWS, encoding="utf-8")
    arguments = ("run", "doors.sql", "--engine", "local", "--json", "--checkpoint", "state", "--console")
    with begun(tmp_path, *arguments) as process, ended(process):
        _, output, errors = ends(process)
        url, token = link_in(errors)
        assert output.readline()
        assert shown_at(url, token)["ended"] is False
        again = LINK.search(eventide(tmp_path, "console", "--checkpoint", "state", "--read-only").out)
        assert again is not None
        assert shown_at(again[1], again[2])["query"] == "people"
        assert eventide(tmp_path, "watch", "--checkpoint", "state", "--once").out == ""
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0, errors.read()
    with begun(tmp_path, "console", "--checkpoint", "state") as process, ended(process):
        _, output, errors = ends(process)
        shown = shown_at(*link_in(output))
        assert (shown["stopped"], shown["ended"], shown["open_count"]) == (True, True, 1)
        process.send_signal(signal.SIGINT)
        for _ in range(600):
            if process.poll() is not None:
                break
            time.sleep(0.1)
        assert process.returncode == 0, errors.read()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "doors.sql", "--console", "--no-listen"), "--console and --no-listen contradict each other"),
        (("run", "doors.sql", "--console", "nowhere:99999"), "is no address to listen on"),
        (("run", "doors.sql", "--console", "8080", "--listen", "8081"), "name two addresses"),
        (("run", "doors.sql", "--webhook", "example.org/hook"), "is no address"),
        (("console", "--checkpoint", "nothing"), "keeps no script"),
        (("watch", "--checkpoint", "nothing"), "no engine that can be asked"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_the_way_out(
    tmp_path: Path, here: Here, arguments: tuple[str, ...], said: str
) -> None:
    doors(tmp_path)
    ran = here(*arguments)
    assert ran.code in (2, 3)
    assert said in ran.err
    assert "Traceback" not in ran.err
