"""The public door: few names, each of them there, and quick to open."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import eventide

HEAVY = {"duckdb", "matplotlib", "pyarrow", "rich", "typer"}


@pytest.mark.parametrize("name", eventide.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(eventide, name) is not None


def test_the_door_is_small_and_lists_each_name_once() -> None:
    assert len(eventide.__all__) == len(set(eventide.__all__)) <= 21


def test_every_public_class_says_what_it_is() -> None:
    classes = [value for name in eventide.__all__ if isinstance(value := getattr(eventide, name), type)]
    assert classes
    assert [each.__name__ for each in classes if not each.__doc__] == []


def test_every_error_has_the_one_root() -> None:
    errors = [value for name in eventide.__all__ if name.endswith("Error") for value in [getattr(eventide, name)]]
    assert len(errors) >= 4
    assert all(issubclass(error, eventide.EventideError) for error in errors)


def test_importing_eventide_loads_no_query_engine_and_no_plots() -> None:
    program = "import sys, eventide; print(' '.join({name.partition('.')[0] for name in sys.modules}))"
    # A new interpreter, finding Eventide where this one did.
    environment = os.environ | {"PYTHONPATH": str(Path(eventide.__file__).parent.parent)}
    answer = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True
    )
    loaded = answer.stdout.split()
    assert "eventide" in loaded
    assert HEAVY.isdisjoint(loaded)
