"""Sources that do not answer: told within seconds with what and where, where Spark would be silent for minutes.

Law: nothing is refused. A broker, a topic, a server may come later, and it goes on being tried; whoever waits knows for
what. Only what Spark has given up in a run to the end of what is there is an error, with the same words.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from eventide.plan.declared.stream import Stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
