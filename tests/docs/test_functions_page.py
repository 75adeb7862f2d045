"""The page of functions says what the local engine does."""

from __future__ import annotations

from tests.docs.functions_page import INSTEAD, PAGE, page
from tests.engine.functions_of_spark import functions


def test_the_page_of_functions_says_what_the_local_engine_does() -> None:
    assert PAGE.read_text() == page(), "run `python -m tests.docs.functions_page`"


def test_what_to_write_instead_is_said_of_functions_that_are_there() -> None:
    assert set(INSTEAD) <= {function.name for function in functions()}
