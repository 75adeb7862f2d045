"""Runs the command in this process and tells which files below a folder Python opened: for a test in another process.

`python -m tests.engine.audited_run FOLDER run SCRIPT ...`; the last line is a list of the files, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

OPENED: set[str] = set()


def watch(folder: Path) -> None:
    """Note from now on what is opened below a folder."""
    below = str(folder.resolve()) + os.sep

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            name = os.path.realpath(os.fsdecode(arguments[0]))
            if name.startswith(below):
                OPENED.add(name)

    sys.addaudithook(hook)


def main() -> None:
    """Watch, run, tell."""
    from eventide.cli import main as eventide

    watch(Path(sys.argv[1]))
    sys.argv = ["eventide", *sys.argv[2:]]
    code: object = 0
    try:
        eventide()
    except SystemExit as ended:
        code = ended.code
    print(json.dumps({"code": code, "opened": sorted(OPENED)}))


if __name__ == "__main__":
    main()
