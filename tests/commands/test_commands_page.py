"""docs/commands.md leaves nothing out. What it shows is run by `tests/docs`."""

from __future__ import annotations

import re

import typer

from eventide.cli import app
from tests.commands.processes import REPOSITORY

PAGE = (REPOSITORY / "docs" / "commands.md").read_text(encoding="utf-8")
OF_PROFILE = (REPOSITORY / "docs" / "profile.md").read_text(encoding="utf-8")


def test_the_page_has_every_command_and_every_option() -> None:
    group = typer.main.get_group(app())
    assert len(group.commands) > 5
    for name, command in group.commands.items():
        assert f"eventide {name}" in PAGE
        page = OF_PROFILE if name == "profile" else PAGE
        for parameter in command.params:
            for option in parameter.opts:
                assert not option.startswith("--") or re.search(rf"{option}\b", page), (name, option)
