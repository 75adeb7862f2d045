"""Every block of every page is run: its tag says by which tests, and there is no block without one."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tests.docs.blocks import ALL, PAGES, Block, shown, strays, tagged

RUN = {path.stem.split("_")[1] for path in Path(__file__).parent.glob("test_*_blocks.py")}
"""The tags that have tests: those of `sh` are in `test_sh_blocks.py`."""


@pytest.mark.parametrize("block", ALL, ids=str)
def test_a_block_has_a_tag_whose_blocks_are_run(block: Block) -> None:
    assert block.tag in RUN, f"no tests/docs/test_{block.tag or 'TAG'}_blocks.py runs the block at {block}"


@pytest.mark.parametrize("path", PAGES, ids=shown)
def test_code_stands_in_blocks_and_nowhere_else(path: Path) -> None:
    assert strays(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", PAGES, ids=shown)
def test_a_module_that_a_page_says_to_run_is_there(path: Path) -> None:
    named = re.findall(r"python -m ((?:benchmarks|examples|eventide)\.[\w.]*\w)", path.read_text(encoding="utf-8"))
    assert [module for module in named if importlib.util.find_spec(module) is None] == []


def test_every_kind_of_test_has_blocks_to_run() -> None:
    assert all(tagged(tag) for tag in RUN)
    assert len(PAGES) > 40
