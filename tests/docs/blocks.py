"""The fenced blocks of every page: where each stands, and what its tag says.

Law: a page holds code in fences of three backticks alone, and each fence has a tag; nothing else that Markdown would
show as code escapes unseen (`strays`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md"), *REPOSITORY.glob("tests/**/*.md")])

FENCE = re.compile(r"^(?P<indent> *)```(?P<tag>.*)\n(?P<text>(?:.*\n)*?)(?P=indent)```$", re.MULTILINE)
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
STRAY = re.compile(r"^ *(```|~~~).*|(?<=\n\n) {4}.*|^\t.*|<(?:pre|code)\b.*", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of a page; `line` is that of its fence, `heading` the one above it."""

    page: str
    line: int
    heading: str
    tag: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: str, text: str) -> list[Block]:
    """The blocks of a page, in their order.

    >>> blocks_of("a.md", "# One\\n\\n```sh\\nls\\n```\\n")
    [Block(page='a.md', line=3, heading='One', tag='sh', text='ls\\n')]
    """
    found = []
    for fence in FENCE.finditer(text):
        headings = HEADING.findall(FENCE.sub("", text[: fence.start()]))
        lines = [line.removeprefix(fence["indent"]) for line in fence["text"].splitlines(keepends=True)]
        line = text.count("\n", 0, fence.start()) + 1
        found.append(Block(page, line, headings[-1] if headings else "", fence["tag"].strip(), "".join(lines)))
    return found


def strays(text: str) -> list[str]:
    """Lines outside the blocks that a reader would see as code: other fences, one left open, indented lines.

    >>> strays("~~~\\nls\\n~~~\\n"), strays("```sh\\nls\\n```\\n\\n    ls\\n"), strays("- one\\n\\n  two\\n")
    (['~~~', '~~~'], ['    ls'], [])
    """
    return [found[0] for found in STRAY.finditer(FENCE.sub("", text))]


def shown(path: Path) -> str:
    """A page by its path in the repository."""
    return path.relative_to(REPOSITORY).as_posix()


ALL = [block for path in PAGES for block in blocks_of(shown(path), path.read_text(encoding="utf-8"))]


def tagged(tag: str, blocks: Iterable[Block] = ALL) -> list[Block]:
    """The blocks with this tag, page by page."""
    return [block for block in blocks if block.tag == tag]


def sections(tag: str) -> dict[tuple[str, str], list[Block]]:
    """The blocks with this tag, those of one heading together."""
    found: dict[tuple[str, str], list[Block]] = {}
    for block in tagged(tag):
        found.setdefault((block.page, block.heading), []).append(block)
    return found
