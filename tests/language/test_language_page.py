"""Every SQL block of the pages about the language is a script that holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eventide.language.script import read_script

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = DOCS / "language.md"


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```sql\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


BLOCKS = blocks(PAGE)
TRAFFIC = BLOCKS[0].split(";")[0] + ";\n"


@pytest.mark.parametrize("block", [*BLOCKS, *blocks(DOCS / "bursts.md")])
def test_a_block_of_the_page_is_a_script(block: str) -> None:
    # Blocks that declare no stream are about the one that the page begins with.
    script = read_script(block if "CREATE STREAM" in block else TRAFFIC + block, PAGE.name)
    assert script.statements


def test_the_page_has_blocks() -> None:
    assert len(BLOCKS) >= 6
