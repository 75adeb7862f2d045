r"""A Spark session with the settings that make rounds short and answers the same, and why one did not start.

Law: nothing Spark says reaches the user's terminal; all of it goes to one log file. Times are UTC. A setting given by
the user wins over ours, and a session that already runs is taken as it is, but for what can be set while it runs.

A session that did not start says why: no Java, no master, no such package, or whatever Spark said last.

>>> thrown = "[unresolved dependency: org.no#such_2.13;1.0: not found]"
>>> reason_in(f'Exception in thread "main" java.lang.RuntimeException: {thrown}')  # doctest: +ELLIPSIS
'Spark finds no package org.no:such_2.13:1.0: check its name and version, ...'
>>> reason_in("Invalid maximum heap size: -Xmxlots\nError: Could not create the Java Virtual Machine.")
'Invalid maximum heap size: -Xmxlots'
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eventide.errors import DeclarationError, EngineError
from eventide.sources.spark_errors import cause_of, gone, is_gone, message_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKPOINT_SETTINGS = {
    # Each took tens of milliseconds from a small round on a local disk; see docs/decisions.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
}

SETTINGS = {
    **CHECKPOINT_SETTINGS,
    # Else times in files are of a kind that only Spark writes, and that ends in the year 2262.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # The reduce has one shuffle of small partials: re-planning it while it runs costs more than it can gain.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # Otherwise what breaks an expression is no error but another number; an environment may say so for all of Spark.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Between Spark and its Python workers; a socket of the network makes each task wait for its peer, twice 40 ms.
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A round that fails is reported by Eventide, once.
    "spark.sql.streaming.stopTimeout": "30s",
}

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
INVALID = "INVALID_CONF_VALUE"

LOG4J = """rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log_file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""


OF_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""What Delta's package wants of a session."""


def local_session(
    master: str = "local[*]",
    settings: Mapping[str, str] | None = None,
    packages: Sequence[str] = (),
    log_file: Path | None = None,
) -> SparkSession:
    """Start Spark, or take the session that already runs in this process."""
    try:
        from pyspark.logger import PySparkLogger
        from pyspark.sql import SparkSession
    except ImportError as missing:
        raise EngineError("Spark is not installed here: `pip install pyspark`, or use the local engine") from missing
    # Workers (Python data sources, user functions) need what this process has installed.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # PySpark prints a statement that failed, stack and all; whoever asked gets an error.
    for logger in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(logger).setLevel(logging.CRITICAL)
    log_file = log_file or Path(tempfile.mkdtemp(prefix="eventide-")) / "spark.log"
    log_file.parent.mkdir(parents=True, exist_ok=True)
    log_settings = log_file.with_suffix(".log4j2.properties")
    log_settings.write_text(LOG4J.format(log_file=log_file), encoding="utf-8")
    builder = SparkSession.builder.master(master).appName("eventide")
    chosen = {**SETTINGS, "spark.sql.shuffle.partitions": str(_cores(master)), **(settings or {})}
    # Those of the user come after ours: the last of two that disagree holds.
    java = (f"-Dlog4j2.configurationFile=file:{log_settings}", chosen.get(JAVA_OPTIONS))
    chosen[JAVA_OPTIONS] = " ".join(filter(None, java))
    if any(":delta-spark" in package for package in packages):
        chosen = {**OF_DELTA, **chosen}
    if packages:
        chosen["spark.jars.packages"] = ",".join(filter(None, (chosen.get("spark.jars.packages"), *packages)))
    for key, value in chosen.items():
        builder = builder.config(key, value)
    running = SparkSession.getActiveSession()
    if running is None and (nobody := unreachable(master)) is not None:
        raise EngineError(f"Spark did not start on {master}: {nobody}")
    try:
        with started_well(log_file):
            spark = builder.getOrCreate()
            # Settings of SQL are looked at when they are first needed; the error would be of something else then.
            spark.conf.get("spark.sql.shuffle.partitions")
    except Exception as failure:
        if INVALID in str(failure):
            if running is None and (half := SparkSession.getActiveSession()) is not None:
                half.stop()
            raise DeclarationError(f"Spark cannot use a setting: {message_of(failure)}") from failure
        raise EngineError(
            f"Spark did not start on {master}: {why_not(failure, log_file)}. Its log: {log_file}"
        ) from failure
    return spark


def settle(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """Settings for a session that runs already: what can be set now is set, and of the rest a warning tells."""
    too_late = []
    for key, value in settings.items():
        if spark.conf.get(key, None) == value:
            continue
        try:
            spark.conf.set(key, value)
        except Exception as failure:
            if INVALID in str(failure):
                raise DeclarationError(f"Spark cannot use a setting: {message_of(failure)}") from failure
            too_late.append(key)
    if too_late:
        warnings.warn(
            f"Spark runs already and takes these settings only when it starts: {', '.join(too_late)}. Give them to "
            "SparkSession.builder, or stop the session before",
            stacklevel=2,
        )


def _cores(master: str) -> int:
    """Partitions of a shuffle of partials: as many as this machine or the local master has cores, few on a cluster."""
    if master.startswith("local["):
        asked = master.removeprefix("local[").rstrip("]").split(",")[0]
        if asked.isdigit():
            return max(1, int(asked))
    return os.cpu_count() or 2


@contextlib.contextmanager
def started_well(log_file: Path) -> Iterator[None]:
    """A context for starting the JVM of PySpark: an error before the JVM answers ends it."""
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
