"""Whether the brokers of a Kafka stream answer: told within seconds, where Spark would try for minutes without a word.

Law: nothing is refused. A broker may come later, and Spark goes on trying; whoever waits knows for what.
"""

from __future__ import annotations

import socket

from eventide.plan.declared.stream import Stream

SERVERS = "kafka.bootstrap.servers"
SECONDS = 2.0
"""So long a broker has to answer."""


def unreachable_brokers(stream: Stream, seconds: float = SECONDS) -> str | None:
    """A sentence, if none of the brokers that a stream names takes a connection; None for all other streams.

    >>> from eventide.plan.declared.stream import Input, columns
    >>> options = (("kafka.bootstrap.servers", "localhost:1"), ("subscribe", "cars"))
    >>> unreachable_brokers(Stream("s", columns("t BIGINT"), time="t", input=Input("kafka", options=options)))
    "stream 's': no Kafka broker answers at localhost:1 (Connection refused): check kafka.bootstrap.servers and that \
the broker runs; it goes on being tried"
    """
    given = stream.input
    if given is None or given.format.lower() != "kafka":
        return None
    options = {name.lower(): value for name, value in given.options}
    failures = []
    for server in filter(None, map(str.strip, options.get(SERVERS, "").split(","))):
        host, _, port = server.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), seconds):
                return None
        except (OSError, ValueError) as failure:
            why = getattr(failure, "strerror", None) or str(failure)
            failures.append(f"{server} ({why})")
    if not failures:
        return None
    return (
        f"stream {stream.name!r}: no Kafka broker answers at {', '.join(failures)}: check {SERVERS} and that the "
        "broker runs; it goes on being tried"
    )
