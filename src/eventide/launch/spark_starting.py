"""Why Spark did not start: no Java, no master, no such package, or whatever it said last.

>>> thrown = "[unresolved dependency: org.no#such_2.13;1.0: not found]"
>>> reason_in(f'Exception in thread "main" java.lang.RuntimeException: {thrown}')  # doctest: +ELLIPSIS
'Spark finds no package org.no:such_2.13:1.0: check its name and version, ...'
>>> reason_in("Invalid maximum heap size: -Xmxlots\\nError: Could not create the Java Virtual Machine.")
'Invalid maximum heap size: -Xmxlots'
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eventide.engine.spark.faults import cause_of
from eventide.sources.spark.errors import gone, is_gone


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


LOST = re.compile(r"unresolved dependency: ([^#\[\]]+)#([^;]+);([^:\]]+): not found")
THROWN = re.compile(r'^Exception in thread "main" [\w.$]+: (.+)$', re.MULTILINE)
REFUSED = re.compile(r"^(?:Error: )?((?:Invalid|Unrecognized|Could not|Improperly) .+)$", re.MULTILINE)
TOO_OLD = "UnsupportedClassVersionError"
STANDALONE = "spark://"
ADDRESS = re.compile(r".+:\d{1,5}")
PATIENCE = 10.0
"""Seconds in which a master that is just being started may come up; Spark waits for 60, and does not say for what."""


def why_not(failure: Exception, log_file: Path) -> str:
    """The reason, as far as one can see from here, without a full stop."""
    log_text = log_file.read_text(encoding="utf-8", errors="replace") if log_file.exists() else ""
    if is_gone(failure):
        return gone()
    unheard = "JAVA_GATEWAY_EXITED" in str(failure)
    return (without_java() or (reason_in(log_text) if unheard else None) or cause_of(failure)).rstrip(".")


def without_java() -> str | None:
    """Why there is no Java for Spark, as far as one can see from here; None where there is one."""
    home = os.environ.get("JAVA_HOME")
    if home:
        there = shutil.which("java", path=str(Path(home) / "bin"))
        return None if there else f"JAVA_HOME is {home}, where there is no bin/java: point it to a Java 17, or unset it"
    return None if shutil.which("java") else "there is no Java: install Java 17, or set JAVA_HOME to one"


def reason_in(log: str) -> str | None:
    """What a JVM said that ended before it could be talked to."""
    if lost := [":".join(found) for found in LOST.findall(log)]:
        return (
            f"Spark finds no package {', '.join(dict.fromkeys(lost))}: check its name and version, and that this "
            "machine reaches Maven Central; --conf spark.jars.repositories=URL names other places"
        )
    if TOO_OLD in log:
        return "its Java is too old: point JAVA_HOME to a Java 17 or newer"
    found = THROWN.search(log) or REFUSED.search(log)
    return None if found is None else found[1].strip()


def unreachable(master: str, patience: float = PATIENCE) -> str | None:
    """Why nobody can be reached where a standalone cluster's master should be; None where somebody can.

    >>> unreachable("local[*]"), unreachable("spark://127.0.0.1:1", patience=0)
    (None, 'no master answers at 127.0.0.1:1 (Connection refused): start it, or give --master its address')
    """
    if not master.startswith(STANDALONE):
        return None
    addresses = master.removeprefix(STANDALONE).split(",")
    if not all(ADDRESS.fullmatch(address) for address in addresses):
        return "a master is written spark://HOST:PORT"
    deadline = time.monotonic() + patience
    while True:
        reasons = [_refusal(address) for address in addresses]
        if not all(reasons):
            return None
        if time.monotonic() >= deadline:
            tried = ", ".join(f"{one} ({why})" for one, why in zip(addresses, reasons, strict=True))
            return f"no master answers at {tried}: start it, or give --master its address"
        time.sleep(0.2)


def _refusal(address: str) -> str | None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
    except OSError as refused:
        return refused.strerror or str(refused)
    return None
