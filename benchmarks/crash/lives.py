"""The program's lives: each begins where the one before was killed; the last runs to the end.

Law: after every death what a reader could see then (results, late rows, rejects) is laid aside in `deaths/N`, and the
next life begins at once, whatever the last one left running (the JVM of a killed driver needs a moment to notice).

`python -m benchmarks.crash.lives FOLDER MOMENT...` lives them. A life on the local engine is a fork of this process, so
a start costs milliseconds; that is why this process itself never touches Arrow, DuckDB or a thread.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.crash.moment import QUERIES, Moment
from benchmarks.crash.program import CHECKPOINT, OUT, main
from benchmarks.harness import REPOSITORY
from scripts.spark_archive import QUICK_JVM

DEATHS = "deaths"
SEEN = (OUT, f"{CHECKPOINT}/late", f"{CHECKPOINT}/rejects")


@dataclass(frozen=True)
class Random:
    """Some seconds after a life began (`start:0.3`), or after its first round (`round:0.05`)."""

    since: str
    seconds: float

    @classmethod
    def of(cls, text: str) -> Random | Moment:
        """Read this, or an exact moment.

        >>> str(Random.of("round:0.25")), str(Random.of("step:3:emit"))
        ('round:0.25', 'step:3:emit')
        """
        since, _, seconds = text.partition(":")
        if since in ("start", "round"):
            return cls(since, float(seconds))
        return Moment.of(text)

    def __str__(self) -> str:
        return f"{self.since}:{self.seconds:g}"


def live(
    folder: Path,
    engine: str,
    moments: Sequence[Random | Moment],
    chosen: Sequence[str] = QUERIES,
    unfinished: bool = False,
    options: Sequence[str] = (),
) -> int:
    """Live until the end, or until the last of these deaths; gives the number of deaths.

    `options` are more of the program's.
    """
    deaths = 0
    for moment in moments if unfinished else (*moments, None):
        if not _killed(folder, engine, moment, chosen, options):
            break
        for seen in filter(Path.exists, (folder / name for name in SEEN)):
            shutil.copytree(seen, folder / DEATHS / str(deaths) / seen.relative_to(folder))
        deaths += 1
    return deaths


def _killed(
    folder: Path, engine: str, moment: Random | Moment | None, chosen: Sequence[str], options: Sequence[str]
) -> bool:
    arguments = [str(folder), "--engine", engine, *(part for query in chosen for part in ("--query", query))]
    arguments += [*options, *(["--moment", str(moment)] if isinstance(moment, Moment) else [])]
    with _forked(arguments) if engine == "local" else _process(arguments) as (ended, kill):
        if isinstance(moment, Random):
            _wait(moment, folder / CHECKPOINT / "rounds", ended)
            kill()
        while (status := ended()) is None:
            time.sleep(0.002)
    if status not in (0, -signal.SIGKILL):
        raise RuntimeError(f"a life of the program failed with {status}; see above")
    return status != 0


Life = tuple[Callable[[], int | None], Callable[[], None]]
"""Whether it has ended, and with what; and how to kill it."""


def _wait(moment: Random, rounds: Path, ended: Callable[[], int | None]) -> None:
    def newest() -> str:
        with suppress(FileNotFoundError):
            return max((entry.name for entry in os.scandir(rounds)), default="")
        return ""

    before = newest()
    while moment.since == "round" and newest() == before and ended() is None:
        time.sleep(0.002)
    deadline = time.monotonic() + moment.seconds
    while time.monotonic() < deadline and ended() is None:
        time.sleep(0.002)


@contextmanager
def _forked(arguments: list[str]) -> Iterator[Life]:
    process = os.fork()
    if process == 0:
        try:
            main(arguments)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    found: list[int] = []

    def ended() -> int | None:
        if not found:
            which, status = os.waitpid(process, os.WNOHANG)
            if which:
                found.append(os.waitstatus_to_exitcode(status))
        return found[0] if found else None

    def kill() -> None:
        if ended() is None:
            os.kill(process, signal.SIGKILL)

    yield ended, kill


@contextmanager
def _process(arguments: list[str]) -> Iterator[Life]:
    command = [sys.executable, "-m", "benchmarks.crash.program", *arguments]
    environment = {"JAVA_TOOL_OPTIONS": QUICK_JVM, **os.environ}
    with subprocess.Popen(command, cwd=REPOSITORY, start_new_session=True, env=environment) as process:

        def kill() -> None:
            # The driver alone, as a careless hand would; or all of it, as a machine does.
            if process.pid % 2:
                process.kill()
            elif process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)

        yield process.poll, kill


def run() -> None:
    """Read the command line, and live."""
    parser = argparse.ArgumentParser(description="lives of the program that the crash test kills")
    parser.add_argument("folder", type=Path)
    parser.add_argument("moments", nargs="*", type=Random.of, metavar="MOMENT")
    parser.add_argument("--engine", choices=("local", "spark"), default="local")
    parser.add_argument("--query", action="append", choices=QUERIES, help="only these (default: all)")
    parser.add_argument("--option", action="append", default=[], help="one of the program's, such as --option=--remote")
    parser.add_argument("--unfinished", action="store_true", help="do not live on after the last death")
    asked = parser.parse_args()
    chosen = asked.query or QUERIES
    print(live(asked.folder, asked.engine, asked.moments, chosen, asked.unfinished, asked.option))


if __name__ == "__main__":
    run()
