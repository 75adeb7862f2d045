"""Which cases of a test run every time, and which with `--all` only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def chosen(cases: Iterable[Any], choose: Callable[[Any], bool]) -> list[Any]:
    """All cases for `pytest.mark.parametrize`; those that are not chosen are slow.

    >>> always, sometimes = chosen(["a", "b"], lambda case: case == "a")
    >>> always, sometimes.values, sometimes.marks[0].name
    ('a', ('b',), 'slow')
    """
    return [case if choose(case) else slow(case) for case in cases]


def slow(case: Any) -> Any:
    """A case of a test that runs with `--all`."""
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.slow)
