"""Milliseconds in a column that is read in seconds are told with what to declare, wherever rows come from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.processes import Here, eventide

AT = 1_769_850_000
QUERY = "SELECT count(*) AS n FROM s [RANGE 1 minute];\n"


def rows(factor: int) -> str:
    return "".join(json.dumps({"at": (AT + i) * factor}) + "\n" for i in range(20))


def script(folder: Path, given: str) -> None:
    (folder / "q.sql").write_text(
        f"CREATE STREAM s (at TIMESTAMP) {given} TIMESTAMP BY at DELAY 1 s TIMEOUT 1 min;\n" + QUERY
    )


@pytest.mark.parametrize("given", ["FROM json 'rows.json'", "FROM STDIN"])
def test_milliseconds_are_told_once_with_the_declaration_to_use(given: str, tmp_path: Path) -> None:
    """Windows were printed as [infinity, infinity), and nothing else was said."""
    (tmp_path / "rows.json").write_text(rows(1000))
    script(tmp_path, given)
    ran = eventide(tmp_path, "run", "q.sql", "--engine", "local", "--bounded", given=rows(1000))
    [told] = [line for line in ran.err.splitlines() if "is in the year" in line]
    assert "these look like milliseconds. Declare at BIGINT, and windows in milliseconds ([RANGE 60000] is" in told


@pytest.mark.slow
def test_milliseconds_are_told_on_spark_too(tmp_path: Path) -> None:
    """What the local engine looked at row by row is seen in the summary of the first round."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rows.json").write_text(rows(1000))
    script(tmp_path, "FROM json 'in'")
    ran = eventide(tmp_path, "run", "q.sql", "--bounded")
    [told] = [line for line in ran.err.splitlines() if "is in the year" in line]
    assert "these look like milliseconds" in told


def test_seconds_are_no_reason_to_warn(tmp_path: Path, here: Here) -> None:
    (tmp_path / "rows.json").write_text(rows(1))
    script(tmp_path, "FROM json 'rows.json'")
    ran = here("run", "q.sql", "--engine", "local", "--json")
    assert [row["n"] for row in ran.rows] == [20]
    assert "is in the year" not in ran.err
