"""A shell for the blocks of a page: `eventide` is this one, and `make` says what it would do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.commands.processes import ENVIRONMENT
from tests.docs.blocks import REPOSITORY

NOT_OURS = ("curl", "jq")
"""Commands that a page may use, and that a machine may lack."""

EVENTIDE = f"""#!/bin/sh
exec "{sys.executable}" -m eventide.cli "$@"
"""
# A test that ran `make test` would never end. What `make -n` knows is there.
MAKE = f"""#!/bin/sh
exec "{shutil.which("make")}" --no-print-directory -n -C "{REPOSITORY}" "$@"
"""


def ran(commands: Iterable[str], folder: Path, eventide: str = EVENTIDE) -> list[tuple[int, str]]:
    """Run commands in one shell, in a folder; of each its exit code, and what it printed on both ends."""
    given = list(commands)
    for tool in NOT_OURS:
        if not shutil.which(tool) and any(tool in command.split() for command in given):
            pytest.skip(f"there is no {tool} here")
    shims = folder / ".venv" / "bin"
    shims.mkdir(parents=True)
    for name, text in (("eventide", eventide), ("make", MAKE)):
        (shims / name).write_text(text, encoding="utf-8")
        (shims / name).chmod(0o755)
    end = "END OF A COMMAND"
    script = "".join(f'{command}\nprintf "\\n{end} %s\\n" $?\n' for command in given)
    shell = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={**ENVIRONMENT, "PATH": f"{shims}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    first, *rest = shell.stdout.split(f"\n{end} ")
    ends = [part.partition("\n") for part in rest]
    assert len(ends) == len(given), shell.stdout
    printed = [first, *(text for _, _, text in ends)]
    return [(int(code), text) for (code, _, _), text in zip(ends, printed, strict=False)]
