"""The numbered examples in SQL run alone, have nothing to warn of, and print what they say they print."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from eventide.language.script import read_script
from tests.commands.processes import Here

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SCRIPTS = sorted(EXAMPLES.glob("sql_*.sql"))
PRINTS = "-- It prints:\n"


def promised(text: str) -> list[str]:
    return sorted(line.removeprefix("-- ") for line in text.split(PRINTS)[1].splitlines())


def test_the_examples_are_numbered_and_their_data_is_used() -> None:
    assert [int(path.name.split("_")[1]) for path in SCRIPTS] == list(range(1, len(SCRIPTS) + 1))
    together = "".join(path.read_text(encoding="utf-8") for path in SCRIPTS)
    assert all(f"'examples/data/{path.name}'" in together for path in (EXAMPLES / "data").iterdir())


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_prints_what_it_says(script: Path, here: Here, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "data", tmp_path / "examples" / "data")
    text = script.read_text(encoding="utf-8")
    assert read_script(text, script.name).warnings == ()
    (tmp_path / script.name).write_text(text, encoding="utf-8")
    ran = here("run", script.name, "--engine", "local")
    assert ran.code == 0, ran.err
    assert sorted(ran.out.splitlines()) == promised(text)
    assert f"eventide run examples/{script.name} --engine local" in text
