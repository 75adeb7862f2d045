"""A shell for the blocks of a page: `eventide` is this one, and `make` says what it would do.

A plain `eventide ...` runs in this process, where a start costs nothing. Whatever needs a shell goes to one: commands
that follow each other share it, with its variables.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import pytest

from tests.commands.processes import ENVIRONMENT, Here
from tests.docs.blocks import REPOSITORY

PLAIN = re.compile(r"(?:\.venv/bin/)?eventide (?P<arguments>[^|<>&;$`\n]*)")
NOT_OURS = ("curl", "jq")
"""Commands that a page may use, and that a machine may lack."""

SHIMS = {
    "eventide": f'#!/bin/sh\nexec "{sys.executable}" -m eventide "$@"\n',
    # A test that ran `make test` would never end. What `make -n` knows is there.
    "make": f'#!/bin/sh\nexec "{shutil.which("make")}" --no-print-directory -n -C "{REPOSITORY}" "$@"\n',
}
END = "END OF A COMMAND"

Ended = tuple[int, str]
"""The exit code of a command, and what it printed on both ends."""


def ran(commands: Iterable[str], folder: Path, here: Here) -> list[Ended]:
    """Run commands one after the other in a folder, which is that of `here`."""
    found: list[Ended] = []
    for is_plain, group in groupby(commands, lambda command: PLAIN.fullmatch(command) is not None):
        given = list(group)
        found += [_in_this_process(command, here) for command in given] if is_plain else _in_a_shell(given, folder)
    return found


def _in_this_process(command: str, here: Here) -> Ended:
    plain = PLAIN.fullmatch(command)
    assert plain is not None
    ended = here(*shlex.split(plain["arguments"]))
    return ended.code, ended.out + ended.err


def _in_a_shell(given: list[str], folder: Path) -> list[Ended]:
    for tool in NOT_OURS:
        if not shutil.which(tool) and any(tool in command for command in given):
            pytest.skip(f"there is no {tool} here")
    shims = folder / ".shims"
    shims.mkdir(exist_ok=True)
    for name, text in SHIMS.items():
        (shims / name).write_text(text, encoding="utf-8")
        (shims / name).chmod(0o755)
    shell = subprocess.run(
        ["bash", "-c", "".join(f'{command}\nprintf "\\n{END} %s\\n" $?\n' for command in given)],
        cwd=folder,
        env={**ENVIRONMENT, "HOME": str(folder), "PATH": f"{shims}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    first, *rest = shell.stdout.split(f"\n{END} ")
    ends = [part.partition("\n") for part in rest]
    assert len(ends) == len(given), shell.stdout
    printed = [first, *(text for _, _, text in ends)]
    return [(int(code), text) for (code, _, _), text in zip(ends, printed, strict=False)]
