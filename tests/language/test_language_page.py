"""Every SQL block of the documentation is a script that holds; of Python that is no session, every block is Python.

Sessions (`python` blocks with their answers) are run by `scripts/check_docs.py`, those of a shell (`console`) by the
tests of the commands. A `py` block goes on from what a reader has: it can be read here, not run.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from eventide.language.script import read_script

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = DOCS / "language.md"
BLOCKS = re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
OTHERS = [
    (path.name, kind, block)
    for path in sorted(DOCS.rglob("*.md"))
    if path != PAGE
    for kind, block in re.findall(
        r"^```(sql|py)\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
]
VOLUMES = "CREATE STREAM traffic (ts TIMESTAMP, detector STRING, volume INT) FROM json 'incoming';\n"
TRAFFIC = BLOCKS[0].split(";")[0] + ";\n"


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_of_the_page_is_a_script(block: str) -> None:
    # Blocks that declare no stream are about the one that the page begins with.
    script = read_script(block if "CREATE STREAM" in block else TRAFFIC + block, PAGE.name)
    assert script.statements


def test_the_page_has_blocks() -> None:
    assert len(BLOCKS) >= 6


@pytest.mark.parametrize(("page", "kind", "block"), OTHERS)
def test_a_block_of_another_page_can_be_read(page: str, kind: str, block: str) -> None:
    if kind == "py":
        assert ast.parse(block, page).body
    else:
        assert read_script(block if "CREATE STREAM" in block else VOLUMES + block, page).statements


def test_other_pages_have_blocks_of_both_kinds() -> None:
    assert {kind for _, kind, _ in OTHERS} == {"sql", "py"}
