"""Functions of the user in a Python file: found without running it, run by the engines, refused with the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.processes import QUERY, STREAM, Here, doors

FUNCTIONS = """
def isNamed(door: str | None, wanted: str) -> bool:
    return door == wanted

def loose(door):
    return door.upper()
"""
DECLARED = "CREATE FUNCTION isNamed FROM 'mine.py' EXPENSIVE;\n"
NORTH = QUERY.replace("GROUP BY", "WHERE isNamed(door, 'north') GROUP BY")
ANSWERS = [("09:00", "north", 8), ("09:03", "north", 7)]


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(FUNCTIONS, encoding="utf-8")
    return doors(tmp_path, STREAM + DECLARED + NORTH)


def test_a_function_runs_on_the_local_engine(mine: Path, here: Here) -> None:
    assert here("run", "doors.sql", "--engine", "local", "--json").answers == ANSWERS


def test_check_and_explain_know_its_type_and_do_not_run_its_file(mine: Path, here: Here) -> None:
    with (mine / "mine.py").open("a", encoding="utf-8") as file:
        file.write("raise SystemExit('this file was run')\n")
    assert here("check", "doors.sql").out == "doors.sql: 1 stream, 1 query, no errors\n"
    assert "slices keep: partials" in here("explain", "doors.sql").out


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("CREATE FUNCTION isNamd FROM 'mine.py';", "did you mean 'isNamed'?"),
        ("CREATE FUNCTION isNamed FROM 'yours.py';", "yours.py"),
        ("CREATE FUNCTION loose FROM 'mine.py';", "RETURNS type"),
    ],
)
def test_a_function_that_cannot_be_found_is_told_at_its_place(mine: Path, here: Here, declared: str, said: str) -> None:
    doors(mine, STREAM + declared + "\n" + QUERY)
    ran = here("check", "doors.sql")
    assert ran.code == 2
    assert ran.out.startswith("doors.sql:6:1: error: ")
    assert said in ran.out


def test_the_local_engine_must_know_what_a_function_takes(mine: Path, here: Here) -> None:
    used = QUERY.replace("GROUP BY", "WHERE loose(door) = 'NORTH' GROUP BY")
    doors(mine, STREAM + "CREATE FUNCTION loose FROM 'mine.py' RETURNS STRING;\n" + used)
    ran = here("run", "doors.sql", "--engine", "local")
    assert ran.code == 2
    assert "the local engine must know what 'loose' takes" in ran.err


def test_a_function_that_fails_is_told_by_its_own_name_with_what_it_raised(mine: Path, here: Here) -> None:
    with (mine / "mine.py").open("a", encoding="utf-8") as file:
        file.write("def lengthOf(door: str) -> int:\n    raise ValueError(f'no length of {door}')\n")
    used = QUERY.replace("GROUP BY", "WHERE lengthOf(door) > 3 GROUP BY")
    doors(mine, STREAM + "CREATE FUNCTION lengthOf FROM 'mine.py';\n" + used)
    ran = here("run", "doors.sql", "--engine", "local", "--json")
    assert ran.answers == []
    assert "the function lengthOf failed, first with ValueError: no length of " in ran.err
    assert "lengthOf(door) > 3 fails" in ran.err or "lengthOf(door) fails" in ran.err


@pytest.mark.parametrize("given", ["object()", "(n for n in [1])", "[object()]", "exit(0)", "{1: print}"])
def test_what_is_no_value_of_a_column_has_its_row_rejected_and_the_engine_goes_on(
    mine: Path, here: Here, given: str
) -> None:
    """An object or a generator stopped the engine with an error of DuckDB's."""
    with (mine / "mine.py").open("a", encoding="utf-8") as file:
        file.write(f"def odd(door: str) -> int:\n    return {given} if door == 'south' else 1\n")
    used = QUERY.replace("GROUP BY", "WHERE odd(door) = 1 GROUP BY")
    doors(mine, STREAM + "CREATE FUNCTION odd FROM 'mine.py';\n" + used)
    ran = here("run", "doors.sql", "--engine", "local", "--json")
    assert ran.code == 0
    assert ran.answers == ANSWERS
    assert "the function odd failed, first with " in ran.err
    assert "odd(door)" in ran.err


def test_a_file_that_ends_the_program_when_it_is_loaded_is_refused(mine: Path, here: Here) -> None:
    """The run ended with code 0, and nothing was said."""
    with (mine / "mine.py").open("a", encoding="utf-8") as file:
        file.write("import sys\nsys.exit(0)\n")
    ran = here("run", "doors.sql", "--engine", "local", "--json")
    assert ran.code == 2
    assert "mine.py ends the program when it is loaded (exit code 0): let it define its functions only" in ran.err


def test_what_functions_print_does_not_stand_among_the_results(mine: Path, here: Here) -> None:
    with (mine / "mine.py").open("a", encoding="utf-8") as file:
        file.write("print('loaded')\ndef told(door: str) -> bool:\n    print('asked')\n    return door == 'north'\n")
    doors(
        mine, STREAM + "CREATE FUNCTION told FROM 'mine.py';\n" + NORTH.replace("isNamed(door, 'north')", "told(door)")
    )
    ran = here("run", "doors.sql", "--engine", "local", "--json")
    assert ran.answers == ANSWERS
    assert "loaded\n" in ran.err
    assert "asked\n" in ran.err
