"""Errors of Spark in our words: sources, statements, sessions that cannot run an engine, servers that do not answer.

Laws. An error of Spark about a source becomes one sentence that tells the way out; Spark's process may also be gone.
A session of Spark Connect, which cannot run an engine, is refused where it is given.

>>> unknown_format("stream 's'", "jsn", "4.2.0").args[0]
"stream 's': there is no format 'jsn': did you mean json? A format of a package needs `--package group:name:version`"
>>> unknown_format("stream 's'", "kafka", "4.2.0").args[0]
"stream 's': Spark has no 'kafka' here: add `--package org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0`"

*A statement that failed.* An error that a row's values caused is a `DataFaultError`, as on DuckDB; a statement that
fails for every row alike (no such column, no disk) is a plain `EngineError`. Only the first line of what Spark said is
kept.

*A dead Spark.* Spark's process may end before ours: killed for memory, or by hand. Whoever asks it next has to know
that. What is raised because nobody answers says so, with code 3, and never as a fault of the input or the
query.

*Sources that do not answer* are reported within seconds, with what and where; Spark would be silent for minutes.
Nothing is refused. A broker, a topic, a server may come later, and it goes on being tried; whoever waits knows for
what. Only what Spark has given up in a run to the end of what is there is an error, with the same words.
"""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from eventide.errors import DataFaultError, DeclarationError, EngineError, EventideError, InputError, first_line
from eventide.masking import masked_text
from eventide.plan.declared.stream import Stream

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

# Maven coordinates; {spark} is the version of Spark itself, {minor} its first two numbers.
PACKAGES = {
    "kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}",
    "avro": "org.apache.spark:spark-avro_2.13:{spark}",
    "protobuf": "org.apache.spark:spark-protobuf_2.13:{spark}",
    "delta": "io.delta:delta-spark_{minor}_2.13:4.4.0",
    "hudi": "org.apache.hudi:hudi-spark4.0-bundle_2.13:VERSION",
    "pulsar": "io.streamnative.connectors:pulsar-spark-connector_2.13:VERSION",
}

# Of Kafka and Avro some versions tell it without a condition.
NOT_FOUND = re.compile(
    r"\[(?:DATA_SOURCE_NOT_FOUND|[A-Z_]*DATA_SOURCE_NOT_ENABLED)\]|Failed to find data source: \w+\. "
)
CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\] *(.*?)(?: *SQLSTATE: \w+)?$", re.MULTILINE)


def unknown_format(owner: str, name: str, spark_version: str) -> InputError:
    """The error for a format that Spark does not find."""
    if name in PACKAGES:
        minor = ".".join(spark_version.split(".")[:2])
        package = PACKAGES[name].format(spark=spark_version, minor=minor)
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


@contextmanager
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


OF_DATA = ("22", "38", "39", "P0")
"""Classes of SQLSTATE: data exceptions, functions of the user that failed (in Python or not), errors a query raises."""

STATE = re.compile(r"SQLSTATE: (\w{5})")
CAUSE = re.compile(r"^(?:Caused by)?: [\w.$]+: (?!Exception thrown in await)(.+)$", re.MULTILINE)
HEADER = re.compile(r"CSV header does not conform to the schema\.\s+Header: (.*)\s+Schema: (.*)")
NOT_A_VALUE = "net.razorvine.pickle.PickleException"
"""What Spark's reader of Python values says of an object of a class that it does not know."""

NO_ROOM = ("No space left on device", "Disk quota exceeded", "File too large")


def of_spark(error: BaseException, what: str) -> EngineError:
    """The error to raise for what Spark said; `what` says what could not be done.

    >>> failure = '''An error occurred while calling o134.getResult.
    ... : org.apache.spark.SparkException: Exception thrown in awaitResult:
    ... Caused by: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Error while reading file a.parquet.'''
    >>> print(of_spark(RuntimeError(failure), "a round cannot be computed"))
    a round cannot be computed: [FAILED_READ_FILE.NO_HINT] Error while reading file a.parquet. Put a good file of that \
name in its place, and start again
    >>> message = "Lost task 0.0: net.razorvine.pickle.PickleException: expected zero arguments for construction of X"
    >>> of_spark(RuntimeError(message), "a round cannot be computed")
    DataFaultError('a round cannot be computed: a function of yours gave an object that is no value of a column')
    """
    if is_gone(error):
        return EngineError(f"{what}: {gone()}")
    message = str(error)
    # Some errors keep the cause of all to themselves.
    if any(words in f"{message} {getattr(error, '_stackTrace', '')}" for words in NO_ROOM):
        return EngineError(
            f"{what}: there is no room left on a disk. Every committed round is safe: free some space, or copy the "
            "checkpoint to a larger disk, and start again"
        )
    state = error.getSqlState() if hasattr(error, "getSqlState") else None
    if state is None and (found := STATE.search(message)) is not None:
        # The failure of a job tells the state of its cause in the text alone.
        state = found[1]
    if NOT_A_VALUE in message:
        return DataFaultError(f"{what}: a function of yours gave an object that is no value of a column")
    kind = DataFaultError if state is not None and state.startswith(OF_DATA) else EngineError
    cause = cause_of(error)
    if cause.startswith("[FAILED_READ_FILE"):
        if (header := HEADER.search(message)) is not None:
            cause += f" Its first line names {header[1]}, that of the first file {header[2]}."
        # Spark has promised itself to read that file in that batch.
        cause += " Put a good file of that name in its place, and start again"
    return kind(f"{what}: {cause}")


def cause_of(error: BaseException) -> str:
    """The sentence in what Spark raised that says what happened.

    >>> text = "An error occurred while calling None.JavaSparkContext.\\n: org.apache.spark.SparkException: No threads"
    >>> cause_of(RuntimeError(text))
    'No threads'
    """
    message = str(error)
    cause = CAUSE.search(message) if message.startswith("An error occurred while calling") else None
    return masked_text(cause[1].strip() if cause else first_line(error))


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


SERVERS = "kafka.bootstrap.servers"
SECONDS = 2.0
"""So long a server has to take a connection."""

TOPICS_SECONDS = 5
"""So long a broker has to name its topics."""

OUTAGE = re.compile(
    r"UnknownTopicOrPartition|org\.apache\.kafka\.common\.errors\.(?:Timeout|Disconnect|Network|BrokerNotAvailable)"
    r"|No resolvable bootstrap urls|Connection refused|Connection timed out|Connection reset|UnknownHostException"
)
"""What Spark says when a source does not answer, in one line or another of a long text."""


def unreachable(stream: Stream) -> str | None:
    """A sentence, if none of the servers that a stream names takes a connection; None for streams that name none.

    >>> from eventide.plan.declared.stream import Input, columns
    >>> options = (("kafka.bootstrap.servers", "localhost:1"), ("subscribe", "cars"))
    >>> unreachable(Stream("s", columns("t BIGINT"), time="t", input=Input("kafka", options=options)))
    "stream 's': no Kafka broker answers at localhost:1 (Connection refused) for the topic 'cars': check \
kafka.bootstrap.servers and that the broker runs"
    """
    given = _options(stream)
    if _format(stream) == "kafka":
        failures = _failures(filter(None, map(str.strip, given.get(SERVERS, "").split(","))))
        topic = f" for the topic {given['subscribe']!r}" if "subscribe" in given else ""
        what = f"no Kafka broker answers at {', '.join(failures or ())}{topic}"
        way = f"check {SERVERS} and that the broker runs"
    elif _format(stream) == "socket":
        failures = _failures([f"{given.get('host', 'localhost')}:{given.get('port', '')}"])
        what, way = f"no server answers at {', '.join(failures or ())}", "check host and port, and that it runs"
    else:
        return None
    return f"stream {stream.name!r}: {what}: {way}" if failures else None


def missing_topics(spark: SparkSession, stream: Stream) -> str | None:
    """A sentence, if a Kafka broker answers and has not all of the topics that a stream names."""
    if _format(stream) != "kafka" or not (wanted := topics(stream)):
        return None
    try:
        missing = sorted(wanted - _topics_of(spark, _options(stream)))
    except Exception:
        # A broker that cannot be asked is Spark's to tell of.
        return None
    if not missing:
        return None
    names, servers = ", ".join(map(repr, missing)), _options(stream).get(SERVERS)
    return f"stream {stream.name!r}: Kafka at {servers} has no topic {names}: create it, or check subscribe"


def outage(failure: BaseException, streams: Iterable[Stream]) -> str | None:
    """What to tell of a source that did not answer while a query ran; None if it failed for another reason.

    >>> from eventide.plan.declared.stream import Input, columns
    >>> options = (("kafka.bootstrap.servers", "b:9092"), ("subscribe", "cars"))
    >>> cars = Stream("s", columns("t BIGINT"), time="t", input=Input("kafka", options=options))
    >>> outage(RuntimeError("org.apache.kafka.common.errors.UnknownTopicOrPartitionException: ..."), [cars])
    "stream 's' (topic 'cars' of Kafka at b:9092): there is no such topic"
    >>> outage(RuntimeError("Py4JError"), [cars]) is None
    True
    """
    text = f"{failure} {getattr(failure, '_stackTrace', '')}"
    found = OUTAGE.search(text)
    places = [place for stream in streams if (place := _place(stream)) is not None]
    if found is None or not places:
        return None
    why = "there is no such topic" if found[0].startswith("UnknownTopic") else "it does not answer"
    return f"{' or '.join(places)}: {why}"


def topics(stream: Stream) -> set[str]:
    """The topics that a Kafka stream names one by one.

    >>> from eventide.plan.declared.stream import Input, columns
    >>> options = (("Assign", '{"cars": [0], "lanes": [0, 1]}'),)
    >>> sorted(topics(Stream("s", columns("t BIGINT"), time="t", input=Input("kafka", options=options))))
    ['cars', 'lanes']
    """
    given = _options(stream)
    with suppress(ValueError):
        return set(json.loads(given["assign"])) if "assign" in given else _names(given.get("subscribe", ""))
    return set()


def _names(text: str) -> set[str]:
    return {name.strip() for name in text.split(",") if name.strip()}


def _place(stream: Stream) -> str | None:
    given = _options(stream)
    if _format(stream) == "kafka":
        named = ", ".join(map(repr, sorted(topics(stream)))) or repr(given.get("subscribepattern", "?"))
        return f"stream {stream.name!r} (topic {named} of Kafka at {given.get(SERVERS, '?')})"
    if _format(stream) == "socket":
        return f"stream {stream.name!r} (a server at {given.get('host', 'localhost')}:{given.get('port', '?')})"
    return None


def _failures(servers: Iterable[str]) -> list[str] | None:
    """Why none of these takes a connection; None if one does."""
    failures = []
    for server in servers:
        host, _, port = server.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), SECONDS):
                return None
        except (OSError, ValueError) as failure:
            why = getattr(failure, "strerror", None) or str(failure)
            failures.append(f"{server} ({why})")
    return failures


def _topics_of(spark: SparkSession, options: dict[str, str]) -> set[str]:
    """The topics of a broker, asked with the options of the stream, so that it lets us in as it will let Spark."""
    java: Any = spark._jvm
    settings = java.java.util.Properties()
    settings.put("default.api.timeout.ms", str(1_000 * TOPICS_SECONDS))
    settings.put("request.timeout.ms", str(1_000 * TOPICS_SECONDS))
    for name, value in options.items():
        if name.startswith("kafka."):
            settings.put(name.removeprefix("kafka."), value)
    client = java.org.apache.kafka.clients.admin.AdminClient.create(settings)
    try:
        return set(client.listTopics().names().get())
    finally:
        client.close(java.java.time.Duration.ofSeconds(1))


def _format(stream: Stream) -> str:
    return "" if stream.input is None else stream.input.format.lower()


def _options(stream: Stream) -> dict[str, str]:
    return {} if stream.input is None else {name.lower(): value for name, value in stream.input.options}
