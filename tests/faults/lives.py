"""Lives of the program, in each of which one operation on its files goes wrong, or none.

Law: a life is a fork of this process, so a start costs little; that is why this process itself never touches Arrow,
DuckDB or a thread. What a reader could see after a life that did not come to its end is laid aside in `deaths/N`.

`python -m tests.faults.lives FOLDER FAULT [FOLDER FAULT]...`, with the shim preloaded, lives them one after the other,
each in its folder, and ends with a line of JSON: how each of them ended. A fault is `KIND:NUMBER[:ERROR]`, such as
`k:17` or `e:3:ENOSPC`; `none` is a life without one.
"""

from __future__ import annotations

import ctypes
import errno
import json
import logging
import os
import shutil
import subprocess
import sys
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.crash.lives import DEATHS, SEEN
from benchmarks.harness import REPOSITORY
from eventide.errors import EventideError
from tests.faults.program import engine, program

NONE = "none"
SAID, TOLD = "said", "told"


@dataclass(frozen=True)
class Life:
    """How a life ended: `ended`, `killed`, `refused` (with what it said), or `broke` (with a traceback)."""

    fault: str
    end: str
    said: str = ""


def lived(shim: Path, *lives: tuple[Path, str]) -> list[Life]:
    """Live once in each of these folders, with its fault."""
    environment = {
        **os.environ,
        "LD_PRELOAD": str(shim),
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path]),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.lives", *(str(part) for life in lives for part in life)],
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [Life(**life) for life in json.loads(done.stdout.splitlines()[-1])]


def beside(folder: Path, what: str) -> Path:
    """A file about the lives in a folder, out of reach of what goes wrong there."""
    return folder.with_name(f"{folder.name}.{what}")


def _live(folder: Path, fault: str) -> Life:
    said = beside(folder, SAID)
    # Read here, it need not be read in the life.
    program(folder)
    process = os.fork()
    if process == 0:
        code = 1
        try:
            _one_life(folder, fault, said)
            code = 0
        except EventideError as error:
            said.write_text(str(error))
            code = 3
        except BaseException:
            said.write_text(traceback.format_exc())
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if status == 0:
        return Life(fault, "ended", said.read_text() if said.exists() else "")
    death = len(list((folder / DEATHS).glob("*")))
    for seen in filter(Path.exists, (folder / name for name in SEEN)):
        shutil.copytree(seen, folder / DEATHS / str(death) / seen.relative_to(folder))
    if status < 0:
        return Life(fault, "killed", str(-status))
    return Life(fault, "refused" if status == 3 else "broke", said.read_text())


def _one_life(folder: Path, fault: str, said: Path) -> None:
    logging.basicConfig(filename=said, filemode="w", level=logging.WARNING, format="%(message)s", force=True)
    kind, _, rest = fault.partition(":")
    number, _, error = rest.partition(":")
    if fault != NONE:
        arm = ctypes.CDLL(None).faults_arm
        arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_char, ctypes.c_int, ctypes.c_char_p]
        told = beside(folder, TOLD)
        arm(str(folder).encode(), int(number), kind.encode(), getattr(errno, error or "EIO"), str(told).encode())
    engine(folder).run()


def main() -> None:
    """Live."""
    lives = zip(sys.argv[1::2], sys.argv[2::2], strict=True)
    print(json.dumps([asdict(_live(Path(folder), fault)) for folder, fault in lives]))


if __name__ == "__main__":
    main()
