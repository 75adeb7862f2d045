"""What of each paper is shown by what: every section has its place, and everything that is named is there.

A file lists the mechanisms of one paper: `where` it says so, `what` it is, and what it is `shown_by`: a transcript of
queries (`transcripts/`), of a policy (`eventtime/transcripts/`), a golden query (`queries/`), or a test by its file and
name. What is not built is in `left`, so that nobody takes silence for an answer.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).parent
TESTS = FOLDER.parent
PAPERS = sorted(FOLDER.glob("*.yaml"))
PLACES = {
    "eventtime/transcripts/": ("transcripts", ".yaml"),
    "transcripts/": ("engine/transcripts", ".yaml"),
    "queries/": ("queries", ".sql"),
}


@cache
def names_in(path: Path) -> frozenset[str]:
    """The tests of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def is_there(name: str) -> bool:
    """Whether a transcript, a golden query or a test of that name exists."""
    if "::" in name:
        file, test = name.split("::")
        path = TESTS.parent / file
        return path.is_file() and test.startswith("test_") and test in names_in(path)
    for start, (folder, ending) in PLACES.items():
        if name.startswith(start):
            return (TESTS / folder / (name.removeprefix(start) + ending)).is_file()
    return False


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_everything_that_shows_a_mechanism_is_there(path: Path) -> None:
    dangling = [name for one in read(path)["mechanisms"] for name in one["shown_by"] if not is_there(name)]
    assert dangling == []


@pytest.mark.parametrize("path", PAPERS, ids=lambda path: path.stem)
def test_every_section_is_shown_or_is_said_to_be_left(path: Path) -> None:
    paper = read(path)
    entries = [*paper["mechanisms"], *paper["left"]]
    assert all(one["what"] and one["where"] for one in entries)
    assert all(one["shown_by"] for one in paper["mechanisms"])
    named = {place for one in entries for place in one["where"]}
    assert set(paper["sections"]) <= named
    assert all(place in paper["sections"] or place.split()[0] in ("figure", "equation") for place in named)


def test_there_is_a_list_for_each_of_the_five_papers() -> None:
    assert [path.stem[:3] for path in PAPERS] == ["000", "001", "002", "003", "004"]


@pytest.mark.parametrize(
    "name", ["transcripts/no_such", "queries/no_such", "tests/seeds/test_seeds.py::test_no_such", "elsewhere/this"]
)
def test_a_name_that_leads_nowhere_is_found(name: str) -> None:
    assert not is_there(name)
