"""`eventide plan`, `run --accept --backfill`, and checkpoints that are copied, listed and taken back."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import eventide
from tests.commands.processes import ROWS, STREAM, Here

PEOPLE = (
    "CREATE QUERY people AS SELECT door, sum(people) AS people FROM doors [RANGE 1 minute] GROUP BY door INTO 'out';\n"
)
MOST = "CREATE QUERY most AS SELECT max(people) AS most FROM doors [RANGE 1 minute] INTO 'most';\n"
LATER = """at,door,people
2026-01-31 09:04:00,south,2
2026-01-31 09:06:00,south,9
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint after a round, and the script that it was made by."""
    monkeypatch.chdir(tmp_path)
    stream = STREAM.replace("'doors.csv'", "'in'")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "first.csv").write_text(ROWS)
    (tmp_path / "old.sql").write_text(stream + PEOPLE)
    (tmp_path / "more.sql").write_text(
        "-- One query more.\n" + stream.replace("10 seconds", "20 seconds") + PEOPLE + MOST
    )
    (tmp_path / "other.sql").write_text(stream + PEOPLE.replace("1 minute", "2 minutes"))
    with eventide.sql(stream + PEOPLE).start(checkpoint="state", engine="local") as queries:
        while queries.status().round < 0:
            assert queries.isActive, queries.engine.failure
            time.sleep(0.01)
    (tmp_path / "in" / "second.csv").write_text(LATER)
    return tmp_path


def told(here: Here, script: str, *more: str) -> dict[str, tuple[str, str]]:
    ran = here("plan", script, "--checkpoint", "state", "--json", *more)
    assert ran.code == 0, ran.err
    return {part["name"]: (part["verdict"], part["begins"]) for part in json.loads(ran.out)["parts"]}


def test_a_plan_says_what_becomes_of_each_stream_and_query(state: Path, here: Here) -> None:
    assert told(here, "old.sql") == {"doors": ("unchanged", "state"), "people": ("unchanged", "state")}
    assert told(here, "more.sql") == {
        "doors": ("adjusted", "state"),
        "people": ("unchanged", "state"),
        "most": ("added", "present"),
    }
    assert told(here, "more.sql", "--backfill", "most")["most"] == ("added", "beginning")
    assert told(here, "other.sql")["people"] == ("changed", "present")
    said = here("plan", "other.sql", "--checkpoint", "state").out
    assert "query people: changed, begins anew after the rows that have come (RANGE was 60000000" in said
    assert said.endswith("eventide run needs --accept for this\n")


def test_a_change_that_drops_state_waits_for_a_word_and_all_others_do_not(state: Path, here: Here) -> None:
    run = ("--engine", "local", "--checkpoint", "state", "--bounded")
    refused = here("run", "other.sql", *run)
    assert refused.code == 2
    assert "query people: changed, begins anew" in refused.err
    assert "--accept" in refused.err
    ran = here("run", "more.sql", *run, "--backfill", "most")
    assert ran.code == 0, ran.err
    assert "query most: added, begins with all rows that its sources have given" in ran.err
    import pyarrow.parquet as pq

    most = pq.read_table([str(file) for file in (state / "most").glob("most-*")]).to_pylist()
    assert [row["most"] for row in sorted(most, key=lambda row: row["window_start"])] == [5, 1, 7, 2, 9]
    people = pq.read_table([str(file) for file in (state / "out").glob("people-*")]).to_pylist()
    assert sum(row["people"] for row in people) == 3 + 4 + 5 + 1 + 7 + 2 + 9


def test_accepted_it_does_what_was_told(state: Path, here: Here) -> None:
    ran = here("run", "other.sql", "--engine", "local", "--checkpoint", "state", "--bounded", "--accept", "--json")
    assert ran.code == 0, ran.err


def test_a_copy_goes_on_by_itself_and_what_is_taken_back_comes_again(state: Path, here: Here) -> None:
    copied = here("checkpoint", "copy", "state", "saved", "--json")
    assert (copied.code, json.loads(copied.out)["round"]) == (0, 0)
    run = ("run", "old.sql", "--engine", "local", "--bounded", "--checkpoint")
    assert here(*run, "state").code == 0
    rounds = [one["round"] for one in json.loads(here("checkpoint", "list", "state", "--json").out)["rounds"]]
    assert rounds == [2, 1]
    assert here("checkpoint", "verify", "saved").code == 0
    before = sorted((file.name, file.read_bytes()) for file in (state / "out").glob("people-*"))
    back = here("checkpoint", "rewind", "state", "--round", "1")
    assert back.out == "state: to be continued from round 1; 1 later round dropped\n"
    assert here(*run, "state").code == 0
    assert sorted((file.name, file.read_bytes()) for file in (state / "out").glob("people-*")) == before
    assert here(*run, "saved").code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("checkpoint", "copy", "state"), "where to?"),
        (("checkpoint", "copy", "state", "in"), "is not empty"),
        (("checkpoint", "copy", "nowhere", "saved"), "there is no committed round"),
        (("checkpoint", "rewind", "state"), "to which round?"),
        (("checkpoint", "rewind", "state", "--round", "7"), "round 7 is not kept in state: there are 0"),
        (("plan", "old.sql"), "which checkpoint would it go on from?"),
        (("plan", "old.sql", "--checkpoint", "state", "--backfill", "peopel"), "did you mean 'people'?"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_way_out(
    state: Path, here: Here, arguments: tuple[str, ...], said: str
) -> None:
    ran = here(*arguments)
    assert ran.code in (2, 3)
    assert said in ran.err
