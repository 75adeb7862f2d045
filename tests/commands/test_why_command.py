"""`eventide why`: the sentence on its page is what a checkpoint gives; times of windows; what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from eventide.commands.script_file import script_of
from eventide.engine.local_backend import LocalBackend
from eventide.engine.rounds import Engine
from tests.commands.processes import REPOSITORY, Here

PAGE = (REPOSITORY / "docs" / "operations.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("## Why is it open?") :]
SCRIPT = re.findall(r"^```sql\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)[0]
SHOWN = re.findall(r"^```\n\$ (.*?)^```", SECTION, re.MULTILINE | re.DOTALL)

NOON = 1_769_860_800_000_000  # 2026-01-31 12:00:00
SECOND = 1_000_000


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """The fleet of the page after two rounds: gps-3 has fallen silent."""
    (tmp_path / "fleet.sql").write_text(SCRIPT, encoding="utf-8")
    program = script_of(str(tmp_path / "fleet.sql")).program
    engine = Engine(program, LocalBackend(), str(tmp_path / "state"))

    def row(seconds: float, device: str) -> dict[str, object]:
        return {"ts": NOON + round(seconds * SECOND), "device": device, "speed": 50}

    def table(*rows: dict[str, object]) -> dict[str, pa.Table]:
        schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("device", pa.string()), ("speed", pa.int32())])
        return {"fleet": pa.Table.from_pylist(list(rows), schema)}

    engine.round(table(row(297, "gps-1"), row(298, "gps-3"), row(299, "gps-2")), clock=NOON + 301 * SECOND)
    engine.round(table(row(302, "gps-1"), row(302.5, "gps-2")), clock=NOON + 303 * SECOND)
    engine.close()
    return tmp_path


def test_the_page_shows_what_the_command_says(checkpoint: Path, here: Here) -> None:
    assert len(SHOWN) >= 2
    for shown in SHOWN:
        command, _, said = shown.partition("\n")
        ran = here(*command.removeprefix("eventide ").split())
        assert (ran.code, ran.out.split()) == (0, said.split())


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
