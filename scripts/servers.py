"""Real servers on this machine, for tests and to try things: started in a folder of their own, stopped with their user.

Law: a server listens on loopback only, on ports that were free, and keeps everything in one folder. It ends with
whoever started it, also when that process is killed: a shell stands beside it, and ends it when nobody holds the other
end of its pipe any more. What cannot be had here is an `UnavailableError` that says why.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

BELOW = Path(sys.prefix) / "servers"
PATIENCE = 60.0
"""Seconds until a server must answer."""

ENDS_WITH_ITS_READER = '"$@" <&- & echo $!; cat >&2; kill "-$0" $!; wait $!'
"""Tells the number of the process that it runs, and ends that one at the end of its own standard input."""

T = TypeVar("T")


class UnavailableError(Exception):
    """A server that cannot be started here, and what is missing."""


class Process:
    """A server that runs, with the log it writes; it can be killed, and started again over the same folder."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        answers: Callable[[], bool],
        *,
        user: str | None = None,
        stopping: str = "TERM",
    ) -> None:
        self._command = command
        self._stopping = stopping
        self._id = ""
        self._log = log
        self._answers = answers
        self._user = user
        self._shell: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with self._log.open("a") as log:
            self._shell = subprocess.Popen(
                ["sh", "-c", ENDS_WITH_ITS_READER, self._stopping, *self._command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                user=self._user,
                group=self._user,
                extra_groups=None if self._user is None else [],
                cwd=self._log.parent,
                # Ctrl-C at a terminal is for whoever started it, who then stops it.
                start_new_session=True,
            )
        assert self._shell.stdout is not None
        self._id = self._shell.stdout.readline().strip()
        deadline = time.monotonic() + PATIENCE
        while not self._answers():
            if self._shell.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise UnavailableError(f"{self._command[0]} does not answer: {_end_of(self._log)}")
            time.sleep(0.05)

    def kill(self) -> None:
        """End it as a loss of power does."""
        assert self._shell is not None
        subprocess.run(["kill", "-9", self._id], check=True)
        self.stop()

    def stop(self) -> None:
        """End it in good order."""
        if self._shell is not None:
            shell, self._shell = self._shell, None
            shell.communicate()


@contextmanager
def folder_of(server: str) -> Iterator[Path]:
    """A new folder below the virtual environment, which git ignores; gone afterwards.

    Folders of processes that were killed go, too.
    """
    BELOW.mkdir(exist_ok=True)
    for other in BELOW.glob("*.of.*"):
        if not _lives(int(other.name.split(".")[2])):
            shutil.rmtree(other, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{server}.of.{os.getpid()}.", dir=BELOW))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    """A port of loopback on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def installed(look: Callable[[], T | None], install: str, missing: str) -> T:
    """What `look` finds, after a try to install it where there is nothing; `missing` says what is not there.

    `install` is in the words of `missing.sh`, and prints what people can do.
    """
    found = look()
    if found is None:
        words = ran(["bash", "-c", f'. "{Path(__file__).parent}/missing.sh"; {install}']).strip()
        found = look()
        if found is None:
            raise UnavailableError(f"{missing}; to install it: {words}")
    return found


def ran(command: Sequence[str | Path], **more: object) -> str:
    """What a command printed; if it fails, that is why there is no server."""
    done = subprocess.run(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more
    )  # type: ignore[call-overload]
    if done.returncode:
        last = " ".join(done.stdout.strip().splitlines()[-3:])
        raise UnavailableError(f"{Path(command[0]).name} failed: {last}")
    return str(done.stdout)


def wait_for_the_end(told: str) -> None:
    """Say where a server is, and hold it until Ctrl-C."""
    print(told, flush=True)
    print("Ctrl-C stops it and removes its data", flush=True)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        print("\nstopping", flush=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _end_of(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return " ".join(lines[-3:]) or "it wrote no log"
