"""`eventide why`: times of windows, what JSON has, what is refused. Its sentences are those of docs/operations.md."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.fleet import NOON, SECOND, fleet
from tests.commands.processes import Here


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """The fleet of the page after two rounds: gps-3 has fallen silent."""
    return fleet(tmp_path)


def test_a_window_is_named_by_its_time_its_day_or_its_number(checkpoint: Path, here: Here) -> None:
    for start in ("12:05", "12:05:00", "2026-01-31 12:05", "2026-01-31T12:05:00Z", str(NOON + 300 * SECOND)):
        ran = here("why", "fleet.sql", "speeds", start, "--checkpoint", "state", "--json")
        [window] = json.loads(ran.out)["windows"]
        assert window["window_start"] == NOON + 300 * SECOND
        assert window["waits_for"]["stream"] == "fleet"


def test_json_has_who_holds_it_by_which_rule_and_when_it_closes(checkpoint: Path, here: Here) -> None:
    ran = here("why", "fleet.sql", "speeds", "12:00", "--checkpoint", "state", "--json")
    assert ran.out.count("\n") == 1
    told = json.loads(ran.out)
    [window] = told["windows"]
    [source] = window["waits_for"]["sources"][:1]
    assert (source["source"], source["silent"], source["largest"]) == ("gps-3", True, NOON + 298 * SECOND)
    assert source["rule"] == {"rule": "on demand", "skew": 2 * SECOND}
    assert window["closes_at"] == NOON + 305 * SECOND
    assert told["round"] == 1


def test_what_is_closed_or_not_there_is_said(checkpoint: Path, here: Here) -> None:
    ran = here("why", "fleet.sql", "speeds", "2026-01-31 11:55", "--checkpoint", "state")
    assert ran.out == "window 2026-01-31 11:55:00 of query speeds is closed\n"
    for arguments, said in (
        (("speeds", "11:07"), "no open window of query 'speeds' starts at 11:07"),
        (("speeds", "2026-01-31 12:01"), "aligned otherwise"),
        (("speeds", "soon"), "'soon' is no start of a window"),
        (("speed",), "there is no query 'speed'"),
    ):
        ran = here("why", "fleet.sql", *arguments, "--checkpoint", "state")
        assert (ran.code, ran.out) == (2, "")
        assert said in ran.err
    ran = here("why", "fleet.sql", "speeds", "--checkpoint", "elsewhere")
    assert ran.code == 2
    assert "no committed round" in ran.err
    assert not (checkpoint / "elsewhere").exists()


def test_the_state_of_a_query_and_of_what_it_reads_is_told_with_its_place_and_size(here: Here, tmp_path: Path) -> None:
    fleet(tmp_path)
    ran = here("why", "fleet.sql", "fastest", "--checkpoint", "state", "--json")
    states = {one["name"]: one for one in json.loads(ran.out)["state"]}
    assert list(states) == ["fastest", "speeds"]
    assert {one["placement"] for one in states.values()} == {"driver"}
    assert (states["speeds"]["rows"], states["speeds"]["size"] > 0) == (5, True)
    assert (
        "speeds keeps 5 rows, less than 1 KiB, with the driver\n"
        in here("why", "fleet.sql", "fastest", "--checkpoint", "state").out
    )
