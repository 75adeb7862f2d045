"""Folders that last as long as a command: gone in the end, however that comes.

>>> with temporary_folder("eventide-example-") as folder:
...     folder.is_dir()
True
>>> folder.is_dir()
False
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eventide.errors import EngineError

_there: set[Path] = set()


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A folder for the time inside; `keep` lets it stay."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
    except OSError as error:
        raise EngineError(
            f"there is no place for temporary files: {error.strerror or error}. Set TMPDIR to a folder that you can "
            "write to"
        ) from error
    _there.add(folder)
    try:
        yield folder
    finally:
        if folder in _there:
            _remove(folder)


def keep(folder: Path) -> None:
    """Let a folder stay: somebody may want to look into it."""
    _there.discard(folder)


def remove_all() -> None:
    """Before a process ends that does not wait for the end of anything."""
    for folder in list(_there):
        _remove(folder)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    _there.discard(folder)
