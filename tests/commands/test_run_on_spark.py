"""The same script on Spark: the same answers, nothing of Spark's on any screen, its log named when something fails."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.commands.processes import ANSWERS, QUERY, STREAM, doors, eventide

pytestmark = pytest.mark.spark

FUNCTION = "def named(door: str | None, wanted: str) -> bool:\n    return door == wanted\n"
NORTH = QUERY.replace("GROUP BY", "WHERE named(door, 'north') GROUP BY")


def test_spark_gives_the_same_answers_runs_functions_and_says_only_that_it_starts(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FUNCTION, encoding="utf-8")
    script = f"{STREAM}CREATE FUNCTION named FROM 'mine.py' EXPENSIVE;\n{QUERY}{NORTH}"
    arguments = ("--master", "local[1]", "--conf", "spark.ui.enabled=false", "--json")
    ran = eventide(doors(tmp_path, script), "run", "doors.sql", "--bounded", *arguments)
    of_north = [answer for answer in ANSWERS if answer[1] == "north"]
    assert (ran.code, ran.answers) == (0, sorted([*ANSWERS, *of_north])), ran.err
    said = ran.err.splitlines()
    assert said[0] == "eventide: starting Spark on local[1]"
    assert all(line.startswith("eventide: ") for line in said), ran.err


def test_an_error_on_spark_names_the_log(tmp_path: Path) -> None:
    ran = eventide(doors(tmp_path), "run", "doors.sql", "--bounded", "--master", "nonsense")
    assert ran.code == 3
    found = re.search(r"log: (\S+spark\.log)", ran.err)
    assert found is not None, ran.err
    assert Path(found[1]).is_file()
    shutil.rmtree(Path(found[1]).parent)
    assert "--engine local" in ran.err
