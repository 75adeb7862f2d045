"""The pinned versions are complete: what is needed is pinned, what is pinned is needed."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PIN_LINES = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
PINS = {canonicalize_name(line.partition("==")[0]) for line in PIN_LINES}


def declared() -> list[str]:
    """What pyproject.toml asks for: to build, to run, to develop."""
    project = PROJECT["project"]
    extras = project["optional-dependencies"].values()
    asked = [
        *PROJECT["build-system"]["requires"],
        *project["dependencies"],
        *(one for extra in extras for one in extra),
    ]
    # An extra may ask for another one of our own, whose packages are in the list already.
    return [one for one in asked if Requirement(one).name != project["name"]]


def needed() -> set[str]:
    """Every package that the declared ones bring along, found in what is installed."""
    found: set[tuple[str, frozenset[str]]] = set()
    # A requirement, and the extras that whoever has it was asked for.
    open_ends: list[tuple[Requirement, frozenset[str]]] = [(Requirement(text), frozenset()) for text in declared()]
    while open_ends:
        requirement, asked = open_ends.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        wanted = requirement.marker is None or any(requirement.marker.evaluate({"extra": one}) for one in ("", *asked))
        if not wanted or (name, extras) in found:
            continue
        found.add((name, extras))
        open_ends.extend((Requirement(text), extras) for text in importlib.metadata.requires(name) or [])
    return {name for name, _ in found}


def test_every_package_that_is_needed_is_pinned() -> None:
    assert needed() - PINS == set()


def test_nothing_is_pinned_that_is_not_needed() -> None:
    assert PINS - needed() == set()


@pytest.mark.parametrize("line", PIN_LINES)
def test_a_pin_is_a_name_and_a_version_and_nothing_else(line: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][A-Za-z0-9.]*", line)
