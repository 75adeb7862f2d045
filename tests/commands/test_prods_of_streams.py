"""`explain`, `check` and `run` of prods that come as rows, and of COMPARE with a function in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from eventide.commands.check import check_file
from eventide.language.script import read_script
from eventide.report.explain import plan_of, trees
from tests.commands.processes import Here, doors

SCRIPT = """CREATE STREAM doors (at TIMESTAMP, door STRING, people INT, ask BOOLEAN) FROM csv 'doors.csv'
    TIMESTAMP BY at DELAY 10 minutes PRODDED BY ask;
CREATE STREAM asks (at TIMESTAMP) FROM csv 'asks.csv';
CREATE STREAM windows (at TIMESTAMP, people INT) FROM csv 'windows.csv';
CREATE FUNCTION off_by FROM 'mine.py';
CREATE QUERY sums AS SELECT door, sum(people) AS people FROM doors [RANGE 1 minute] GROUP BY door;
CREATE QUERY others AS SELECT sum(people) AS people FROM windows [RANGE 1 minute]
    PROD BY asks PROD EVERY 10 s COMPARE people WITH off_by;
"""
FUNCTION = "def off_by(early, final) -> float:\n    return abs(final - early) / 10\n"
ROWS = """at,door,people,ask
2026-01-31 09:00:01,north,3,false
2026-01-31 09:01:00,north,,true
2026-01-31 09:00:30,south,4,
2026-01-31 09:00:20,north,5,false
"""


def test_explain_tells_the_prods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FUNCTION, encoding="utf-8")
    plan = plan_of(read_script(SCRIPT))
    assert [stream["prods"] for stream in plan["streams"]] == ["ask", None, None]
    early = {query["name"]: query["prods"] for query in plan["queries"]}
    assert early == {
        "sums": "at the prods among the rows that it reads",
        "others": "every 10 s, if rows have come; at every row of asks, up to its time; compared: people by off_by",
    }
    console = Console(width=200, highlight=False)
    with console.capture() as capture:
        for tree in trees(plan):
            console.print(tree)
    assert "prods: rows in which ask is TRUE; they are no data" in capture.get()


def test_check_finds_no_fault_and_does_not_run_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.sql").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "mine.py").write_text(FUNCTION + "raise SystemExit('this file was run')", encoding="utf-8")
    assert check_file("s.sql", as_json=True) == 0
    assert not [finding for finding in json.loads(capsys.readouterr().out)["findings"] if "asks" in finding["message"]]


def test_check_shows_where_a_prod_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.sql").write_text(SCRIPT.replace("PROD BY asks", "PROD BY ask"), encoding="utf-8")
    (tmp_path / "mine.py").write_text(FUNCTION, encoding="utf-8")
    assert check_file("s.sql", as_json=True) == 2
    [finding] = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["line"], finding["column"], finding["hint"]) == (8, 13, "did you mean 'asks'?")


def test_a_file_with_prods_is_run(tmp_path: Path, here: Here) -> None:
    lines = SCRIPT.splitlines(keepends=True)
    doors(tmp_path, "".join([*lines[:2], lines[5]]), ROWS)
    ran = here("run", "doors.sql", "--engine", "local", "--json")
    assert [(row["kind"], row["door"], row["people"]) for row in ran.rows] == [
        ("early", "north", 8),
        ("final", "north", 8),
        ("final", "south", 4),
    ]


def test_a_function_in_a_file_compares(tmp_path: Path, here: Here) -> None:
    """Of each minute half of the people are there at the prod: five are missing, which this function calls 0.5."""
    (tmp_path / "mine.py").write_text(FUNCTION, encoding="utf-8")
    minutes = ("00", "01", "02")
    rows = "".join(
        f"2026-01-31 09:{minute}:10,5,false\n2026-01-31 09:{minute}:59.999999,,true\n2026-01-31 09:{minute}:30,5,\n"
        for minute in minutes
    )
    stream = "CREATE STREAM doors (at TIMESTAMP, people INT, ask BOOLEAN) FROM csv 'doors.csv' LIMIT 1 ROWS PER ROUND\n"
    script = (
        f"{stream}    DELAY 10 seconds PRODDED BY ask;\nCREATE FUNCTION off_by FROM 'mine.py';\n"
        "SELECT sum(people) AS people FROM doors [RANGE 1 minute] COMPARE people WITH off_by;\n"
    )
    doors(tmp_path, script, "at,people,ask\n" + rows)
    ran = here("run", "doors.sql", "--engine", "local", "--json")
    assert ran.code == 0, ran.err
    assert [(row["kind"], row["people"], row["people_error"]) for row in ran.rows] == [
        ("early", 5, None),
        ("final", 10, None),
        ("early", 5, 0.5),
        ("final", 10, None),
        ("early", 5, 0.5),
        ("final", 10, None),
    ]
