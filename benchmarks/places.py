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


def result_files(pattern: str | Path) -> list[str]:
    """The Parquet files of results that match a pattern; a large round is a folder of parts.

    >>> result_files("/no/such/folder/answers-*.parquet")
    []
    """
    pattern = Path(pattern)
    found = sorted(pattern.parent.glob(pattern.name))
    return [str(file) for one in found for file in (sorted(one.glob("*.parquet")) if one.is_dir() else [one])]
