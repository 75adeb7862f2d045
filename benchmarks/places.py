"""Where a side of a benchmark puts what it makes."""

from __future__ import annotations

from pathlib import Path


class Places:
    """The places below the folder of a task.

    >>> class Task(Places):
    ...     folder = Path("one")
    >>> Task().results, Task().checkpoint
    (PosixPath('one/results'), 'one/checkpoint')
    """

    folder: Path

    @property
    def results(self) -> Path:
        """Where results go."""
        return self.folder / "results"

    @property
    def checkpoint(self) -> str:
        """Where a side keeps what it needs to go on."""
        return str(self.folder / "checkpoint")
