"""Python sessions of the pages (`python` blocks, with `>>>`) give what they show; one page is one session."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from tests.docs.blocks import Block, blocks_of, tagged

PAGES = sorted({block.page for block in tagged("python")})


def differences(blocks: list[Block]) -> str:
    """What the sessions of one page give otherwise than they show; nothing where all is as shown."""
    found: list[str] = []
    session = "\n".join(block.text for block in blocks)
    test = doctest.DocTestParser().get_doctest(session, {}, blocks[0].page, blocks[0].page, 0)
    doctest.DocTestRunner(verbose=False).run(test, out=found.append)
    return "".join(found)


@pytest.mark.parametrize("page", PAGES)
def test_a_session_gives_what_it_shows(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = [block for block in tagged("python") if block.page == page]
    assert [block for block in blocks if not block.text.startswith(">>> ")] == []
    assert differences(blocks) == ""


def test_one_page_is_one_session() -> None:
    assert differences(blocks_of("a.md", "```python\n>>> x = 2\n\n```\nand then\n```python\n>>> x + 1\n3\n```\n")) == ""


def test_a_session_that_shows_something_else_is_told() -> None:
    assert "Expected:\n    3\nGot:\n    2" in differences(blocks_of("a.md", "```python\n>>> 1 + 1\n3\n```\n"))
