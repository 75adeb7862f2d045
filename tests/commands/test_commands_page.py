"""The first hour in docs/commands.md is what a shell shows: every command of it is run, every output compared."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import typer

from eventide.cli import app
from tests.commands.processes import ENVIRONMENT, REPOSITORY

PAGE = (REPOSITORY / "docs" / "commands.md").read_text(encoding="utf-8")
SESSION = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands_of(block: str) -> list[tuple[str, list[str]]]:
    """Each command of a session, and the lines that it prints."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> "):
            command, _ = found.pop()
            found.append((f"{command}\n{line[2:]}", []))
        else:
            found[-1][1].append(line)
    return found


def test_every_command_of_the_first_hour_prints_what_the_page_shows(tmp_path: Path) -> None:
    shim = tmp_path / "bin" / "eventide"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m eventide "$@"\n', encoding="utf-8")
    shim.chmod(0o755)
    folder = tmp_path / "hour"
    folder.mkdir()
    environment = {**ENVIRONMENT, "PATH": f"{shim.parent}{os.pathsep}{os.environ['PATH']}"}
    commands = [command for block in SESSION.findall(PAGE) for command in commands_of(block)]
    assert len(commands) > 10
    for command, shown in commands:
        ran = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        # Groups of one window have no order among themselves.
        assert sorted(ran.stdout.splitlines()) == sorted(shown), f"$ {command}\n{ran.stdout}"


def test_the_page_has_every_command_and_every_option() -> None:
    group = typer.main.get_group(app)
    assert len(group.commands) > 5
    for name, command in group.commands.items():
        assert f"eventide {name}" in PAGE
        if name == "profile":
            continue  # it has a page of its own
        for parameter in command.params:
            for option in parameter.opts:
                assert not option.startswith("--") or re.search(rf"{option}\b", PAGE), (name, option)
