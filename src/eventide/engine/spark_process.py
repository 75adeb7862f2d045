"""The process that Spark runs in: a JVM, which PySpark starts as a child of this one.

Laws. All it says goes to the log, its first words included. It ends when we do, and not before: SIGTERM passes it by,
which service managers and `timeout` send to all processes at once, so that the round under way can end. A start that
is broken off leaves none behind.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def started_well(log_file: Path) -> Iterator[None]:
    """Inside, the JVM that PySpark starts is one of these; leaving by an error before it can be talked to ends it."""
    from pyspark import SparkContext, java_gateway

    started: list[subprocess.Popen[bytes]] = []

    def start(command: list[str], preexec_fn: Any = None, **options: Any) -> subprocess.Popen[bytes]:
        def prepared() -> None:
            if preexec_fn is not None:
                preexec_fn()
            # What is ignored here stays so in the JVM.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

        with log_file.open("ab") as log:
            process = subprocess.Popen(command, preexec_fn=prepared, stdout=log, stderr=log, **options)
        started.append(process)
        return process

    place: Any = java_gateway
    ordinary, place.Popen = place.Popen, start
    try:
        yield
    except BaseException:
        # It would wait for ever: where it wants to say how it can be reached is gone.
        if SparkContext._gateway is None:
            for process in started:
                process.kill()
                process.wait()
        raise
    finally:
        place.Popen = ordinary
