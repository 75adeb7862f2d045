"""What every benchmark shares: its arguments, its tables, its folder for pictures, its last line of JSON.

>>> options("an example", ["--quick"]).quick
True
>>> as_percent(0.0123), as_duration(1_500.0), as_duration(0.25)
('1.23 %', '1.5 s', '0.25 ms')
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import duckdb
import numpy as np
from rich.console import Console
from rich.table import Table

REPOSITORY = Path(__file__).resolve().parent.parent
"""The root of the repository; recordings that are not part of it are looked up beside it."""

WIDTH_ELSEWHERE = 160


@dataclass(frozen=True)
class Options:
    """How a benchmark was asked to run.

    >>> Options(quick=True, json_file=None, out=Path("out")).picture("lag.png")
    PosixPath('out/lag.png')
    """

    quick: bool
    json_file: Path | None
    out: Path

    def picture(self, name: str) -> Path:
        """Where a picture goes."""
        return self.out / name


def options(description: str, arguments: Sequence[str] | None = None) -> Options:
    """Read the command line.

    >>> options("an example", []).out.name
    'out'
    """
    return asked(parser(description).parse_args(arguments))


def parser(description: str) -> argparse.ArgumentParser:
    """The arguments that every benchmark has; one with more of them adds those, and reads `asked` of what it parsed."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--quick", action="store_true", help="less of everything: minutes become seconds")
    made.add_argument("--json", dest="json_file", type=Path, metavar="FILE", help="write the last line there too")
    made.add_argument("--out", type=Path, default=REPOSITORY / "out", metavar="DIR", help="pictures (default: out/)")
    return made


def add_only(made: argparse.ArgumentParser, names: Sequence[str]) -> None:
    """Let a benchmark be asked for some of its parts alone.

    >>> made = parser("an example")
    >>> add_only(made, ["rows", "merge", "lookup"])
    >>> made.parse_args(["--only", "merge,rows"]).only, made.parse_args([]).only
    (('merge', 'rows'), ('rows', 'merge', 'lookup'))
    """

    def read(text: str) -> tuple[str, ...]:
        found = tuple(text.split(","))
        for name in found:
            if name not in names:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(names)}")
        return found

    made.add_argument("--only", type=read, default=tuple(names), metavar="NAME[,NAME]", help=f"of {', '.join(names)}")


def asked(found: argparse.Namespace) -> Options:
    """What every benchmark wants to know of a command line.

    >>> asked(parser("an example").parse_args(["--quick"])).quick
    True
    """
    return Options(found.quick, found.json_file, found.out)


def show_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print one table, the first column as a label, the others as figures."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place == 0 else "right")
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    _console().print(table)


def say(text: str) -> None:
    """Print a line between tables: what is measured, or why something is not."""
    _console().print(text, highlight=False)


def _console() -> Console:
    # Into a file or a pipe there is no width to fit into: tables keep their shape.
    return Console(width=None if sys.stdout.isatty() else WIDTH_ELSEWHERE)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for what a benchmark makes; it is gone afterwards, also when the benchmark is told to terminate.

    >>> with scratch() as folder:
    ...     made = folder
    >>> made.exists()
    False
    """

    def leave(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        with TemporaryDirectory(prefix="eventide-bench-") as folder:
            yield Path(folder)
    finally:
        signal.signal(signal.SIGTERM, before)


def database() -> duckdb.DuckDBPyConnection:
    """A DuckDB of its own that prints nothing, however long it takes.

    >>> database().execute("SELECT 1").fetchall()
    [(1,)]
    """
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    return connection


def finish(options: Options, results: Mapping[str, Any]) -> None:
    """Print the results as the last line, and into the file that was asked for.

    >>> finish(Options(quick=True, json_file=None, out=Path("out")), {"lag": np.float64(1.5), "rows": np.int64(2)})
    {"lag": 1.5, "rows": 2}
    """
    line = json.dumps(results, default=_plain)
    if options.json_file is not None:
        options.json_file.parent.mkdir(parents=True, exist_ok=True)
        options.json_file.write_text(line + "\n", encoding="utf-8")
    print(line)


def _plain(number: object) -> object:
    if isinstance(number, np.generic):
        return number.item()
    raise TypeError(f"{number!r} is not a number, a text, a list or a mapping")


def as_percent(share: float) -> str:
    """A share for people.

    >>> as_percent(0.5)
    '50 %'
    """
    return f"{100 * share:.3g} %"


def as_duration(milliseconds: float) -> str:
    """A duration for people, in milliseconds below one second.

    >>> as_duration(42_000.0)
    '42 s'
    """
    return f"{milliseconds / 1000:.3g} s" if abs(milliseconds) >= 1000 else f"{milliseconds:.3g} ms"
