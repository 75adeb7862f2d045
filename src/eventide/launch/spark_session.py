"""A Spark session with the settings that make rounds short and answers the same everywhere.

Law: nothing Spark says reaches the user's terminal; all of it goes to one log file. Times are UTC. A setting given by
the user wins over ours, and a session that already runs is taken as it is, but for what can be set while it runs."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eventide.errors import DeclarationError, EngineError
from eventide.launch.spark_starting import started_well, unreachable, why_not
from eventide.sources.spark.errors import message_of

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
    # A round that fails is told by Eventide, once.
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
    # PySpark prints a statement that failed, stack and all; whoever asked is told by an error.
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
            # Settings of SQL are looked at when they are first needed; then it would be told of something else.
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
