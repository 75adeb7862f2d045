"""The lines of the tree that `explain` shows."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import RenderableType
from rich.syntax import Syntax
from rich.text import Text


def titled(kind: str, name: str) -> Text:
    """What a node is, and its name."""
    return Text.assemble((f"{kind} ", ""), (name, "bold"))


def line(title: str, words: str) -> Text:
    """A property and what it is."""
    return Text.assemble((f"{title}: ", "cyan"), words)


def named(item: dict[str, Any]) -> str:
    """A column: its name, what it is computed from, its type.

    >>> named({"name": "kmh", "sql": "speed * 1.6", "type": "DOUBLE"}), named({"name": "car", "sql": "car"})
    ('kmh = speed * 1.6 (DOUBLE)', 'car')
    """
    kind = f" ({item['type']})" if "type" in item else ""
    return f"{item['name']}{kind}" if item["sql"] == item["name"] else f"{item['name']} = {item['sql']}{kind}"


def sql_text(text: str) -> RenderableType:
    """SQL, in colours on a terminal."""
    if not sys.stdout.isatty():
        return Text(text)
    return Syntax(text, "sql", theme="ansi_dark", background_color="default", word_wrap=True)
