"""Why Spark cannot open a source: its errors in our words, and sessions that cannot run an engine.

Laws. An error of Spark about a source becomes one sentence that tells the way out; Spark's process may also be gone.
A session of Spark Connect, which cannot run an engine, is refused where it is given.

>>> unknown_format("stream 's'", "jsn", "4.3.0").args[0]
"stream 's': there is no format 'jsn': did you mean json? A format of a package needs `--package group:name:version`"
>>> unknown_format("stream 's'", "kafka", "4.3.0").args[0]
"stream 's': Spark has no 'kafka' here: add `--package org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0`"

*A dead Spark.* Spark's process may end before ours: killed for memory, or by hand. Whoever asks it next has to know
that. What is raised because nobody answers is told as that, with code 3, and never as a fault of the input or the
query.
"""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

from eventide.errors import DeclarationError, EngineError, EventideError, InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_gone(failure: BaseException) -> bool:
    """Whether what was raised says that Spark's process does not answer any more.

    >>> is_gone(ConnectionRefusedError()), is_gone(ValueError())
    (True, False)
    """
    # A broken pipe is one of ours, and the other two come from the library between Python and Spark.
    refused = isinstance(failure, ConnectionRefusedError | ConnectionResetError)
    return refused or type(failure).__name__ == "Py4JNetworkError"


def gone() -> str:
    """That Spark's process has ended, and by what; a machine without memory ends processes without a word."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    try:
        code = None if process is None else process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return "Spark's process does not answer. Its log may say why"
    by = "" if code is None else f" with code {code}" if code >= 0 else f", killed by {signal.Signals(-code).name}"
    return f"Spark's process has ended{by}. Its log may say why; is there enough memory for it?"


BUILT_IN = (
    "csv",
    "json",
    "orc",
    "parquet",
    "rate",
    "rate-micro-batch",
    "replay",
    "socket",
    "table",
    "text",
    "xml",
)

# Maven coordinates; {spark} is the version of Spark itself.
PACKAGES = {
    "kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}",
    "avro": "org.apache.spark:spark-avro_2.13:{spark}",
    "protobuf": "org.apache.spark:spark-protobuf_2.13:{spark}",
    "delta": "io.delta:delta-spark_2.13:VERSION",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:VERSION",
    "hudi": "org.apache.hudi:hudi-spark4.0-bundle_2.13:VERSION",
    "pulsar": "io.streamnative.connectors:pulsar-spark-connector_2.13:VERSION",
}

NOT_FOUND = re.compile(r"\[(?:DATA_SOURCE_NOT_FOUND|[A-Z_]*DATA_SOURCE_NOT_ENABLED)\]")
CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\] *(.*?)(?: *SQLSTATE: \w+)?$", re.MULTILINE)


def unknown_format(owner: str, name: str, spark_version: str) -> InputError:
    """The error for a format that Spark does not find."""
    if name in PACKAGES:
        package = PACKAGES[name].format(spark=spark_version)
        return InputError(f"{owner}: Spark has no {name!r} here: add `--package {package}`")
    near = get_close_matches(name, [*BUILT_IN, *PACKAGES], n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(BUILT_IN)}."
    return InputError(
        f"{owner}: there is no format {name!r}: {hint} A format of a package needs `--package group:name:version`"
    )


def message_of(failure: BaseException) -> str:
    """The one sentence in what Spark raised that is meant for people.

    >>> message_of(ValueError("[PATH_NOT_FOUND] Path does not exist: in. SQLSTATE: 42K03\\n at org.apache"))
    'Path does not exist: in.'
    >>> message_of(ValueError())
    'ValueError'
    """
    text = str(failure).strip() or type(failure).__name__
    found = CONDITION.search(text)
    return found.group(1) if found and found.group(1) else text.splitlines()[0]


@contextlib.contextmanager
def translated_errors(spark: SparkSession, owner: str, name: str, place: str | None) -> Iterator[None]:
    """Inside, what Spark raises becomes an `InputError`; our own errors pass."""
    try:
        yield
    except EventideError:
        raise
    except Exception as failure:
        text = str(failure)
        if is_gone(failure):
            raise EngineError(f"{owner} cannot be opened: {gone()}") from failure
        if NOT_FOUND.search(text):
            raise unknown_format(owner, name, spark.version) from failure
        if "[PATH_NOT_FOUND]" in text:
            raise InputError(
                f"{owner}: there is nothing at {place}: check the path, or make the folder before the stream starts"
            ) from failure
        if "[TABLE_OR_VIEW_NOT_FOUND]" in text:
            raise InputError(
                f"{owner}: there is no table {place}: check its name, or give it as catalog.database.table"
            ) from failure
        if "does not support streamed reading" in text:
            raise InputError(
                f"{owner}: Spark cannot read {name} as a stream, only as a whole: write it to files and read those"
            ) from failure
        if "TIMESTAMP(NANOS" in text:
            raise InputError(
                f"{owner}: {place} has times in nanoseconds, which Spark does not read: write it with microseconds "
                "(pandas: to_parquet(.., coerce_timestamps='us')), or use the local engine"
            ) from failure
        where = f" from {place}" if place else ""
        raise InputError(f"{owner} cannot be read as {name}{where}: {message_of(failure)}") from failure


def refuse_connect(given: object, what: str) -> None:
    """Refuse a session or DataFrame of Spark Connect.

    >>> refuse_connect(42, "this session")
    """
    if any(base.__module__.startswith("pyspark.sql.connect.") for base in type(given).__mro__):
        raise DeclarationError(
            f"{what} is one of Spark Connect, whose driver is in another process; Eventide works in the driver. Make "
            "the session without .remote(...) (SparkSession.builder.master(...).getOrCreate(), with SPARK_REMOTE "
            "unset), or send the program to the cluster with spark-submit. eventide.heartbeats works with Spark "
            "Connect, for queries that stay plain Spark"
        )
