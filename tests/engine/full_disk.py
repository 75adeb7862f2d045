"""A program on a disk that is full: it is run, fails, gets a little more room, and is run again, until it has ended.

`python -m tests.engine.full_disk MODE FOLDER CALM` prints what it said each time and how its results differ from those
in CALM. MODE is `limit`: files cannot grow beyond a limit, which needs no rights; or `local` or `spark`: FOLDER is a
real small disk, in a name space of its own (so run it under `unshare -rm`).
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from benchmarks.crash.differences import differences
from benchmarks.crash.outcome import Outcome
from benchmarks.crash.program import engine
from benchmarks.crash.recording import record
from eventide.errors import EngineError

FILES = 4
SLIDING = ("sliding",)
DISK = 8 * 2**20
STEPS = {"local": 4 * 1024, "spark": 8 * 1024}
"""How much room there is at first, and how much more each time."""


def growing_limit(folder: Path) -> Callable[[], None]:
    """No file may be larger than a limit, that grows."""
    record(folder, FILES)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, most))

    def more() -> None:
        size, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2 * size, most))

    return more


def small_disk(folder: Path, step: int) -> Callable[[], None]:
    """A disk in memory, nearly all of it taken; then a little less of it."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "none", str(folder)], check=True)
    record(folder, FILES)
    ballast = folder / "ballast"
    free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    ballast.write_bytes(bytes(free - step))

    def less() -> None:
        os.truncate(ballast, max(0, ballast.stat().st_size - step))

    return less


def main() -> None:
    mode, folder, calm = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    spark = None
    if mode == "spark":
        from eventide.launch.spark_session import local_session

        spark = local_session("local[2]")
    more = growing_limit(folder) if mode == "limit" else small_disk(folder, STEPS[mode])
    said: list[str] = []
    for _ in range(100):
        try:
            engine(folder, spark, chosen=SLIDING).start(bounded=True).await_end()
            break
        except EngineError as error:
            said.append(str(error))
            more()
    expected = Outcome.of(calm)
    print(json.dumps({"said": said, **asdict(differences(folder, expected))}))


if __name__ == "__main__":
    main()
