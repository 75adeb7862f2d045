"""`--log`: a service says how it is doing, in words or as JSON, beside its results."""

from __future__ import annotations

import json
from pathlib import Path

from tests.commands.processes import QUERY, ROWS, STREAM, Here


def doors(folder: Path) -> None:
    (folder / "doors.csv").write_text(ROWS)
    (folder / "doors.sql").write_text(STREAM + QUERY)


def test_lines_of_json_tell_rows_results_and_losses_beside_the_results(tmp_path: Path, here: Here) -> None:
    doors(tmp_path)
    ran = here("run", "doors.sql", "--engine", "local", "--json", "--log", "json")
    assert len(ran.rows) == 4
    written = [json.loads(line) for line in ran.err.splitlines() if line.startswith("{")]
    events = [line["event"] for line in written if line["event"] != "status"]
    assert events == ["listening", "starting", "ended"]
    lines = [line for line in written if line["event"] == "status"]
    assert lines[0]["streams"][0]["rows"] == 0
    assert (lines[-1]["results"], lines[-1]["streams"][0]["rows"]) == (4, 5)
    assert lines[-1]["streams"][0] | {"lag": None} == {
        "name": "doors",
        "rows": 5,
        "late": 0,
        "rejected": 0,
        "lag": None,
    }


def test_lines_of_text_begin_with_the_time(tmp_path: Path, here: Here) -> None:
    doors(tmp_path)
    ran = here("run", "doors.sql", "--engine", "local", "--json", "--log", "text")
    [_, last] = [line for line in ran.err.splitlines() if line[:2] == "20"]
    assert "5 rows" in last
    assert last.endswith("4 results")


def test_another_form_is_refused_before_anything_starts(tmp_path: Path, here: Here) -> None:
    doors(tmp_path)
    ran = here("run", "doors.sql", "--engine", "local", "--log", "xml")
    assert ran.code == 2
    assert "--log 'xml': choose text or json" in ran.err
