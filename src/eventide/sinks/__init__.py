"""Where results go. `sink` has the contract; every other sink is one module, loaded when its name is asked for."""

from typing import TYPE_CHECKING

from eventide.lazy_import import lazy_import

if TYPE_CHECKING:
    from eventide.sinks.callback import Callback, SparkWriter
    from eventide.sinks.console import Console
    from eventide.sinks.delta import Delta
    from eventide.sinks.directory import Directory
    from eventide.sinks.iceberg import Iceberg
    from eventide.sinks.jdbc import Jdbc
    from eventide.sinks.kafka import Kafka
    from eventide.sinks.postgres import Postgres
    from eventide.sinks.sink import Memory, Sink, sink_of

__all__ = [
    "Callback",
    "Console",
    "Delta",
    "Directory",
    "Iceberg",
    "Jdbc",
    "Kafka",
    "Memory",
    "Postgres",
    "Sink",
    "SparkWriter",
    "sink_of",
]

__getattr__ = lazy_import(
    __name__,
    {
        "Callback": "eventide.sinks.callback",
        "Console": "eventide.sinks.console",
        "Delta": "eventide.sinks.delta",
        "Directory": "eventide.sinks.directory",
        "Iceberg": "eventide.sinks.iceberg",
        "Jdbc": "eventide.sinks.jdbc",
        "Kafka": "eventide.sinks.kafka",
        "Memory": "eventide.sinks.sink",
        "Postgres": "eventide.sinks.postgres",
        "Sink": "eventide.sinks.sink",
        "SparkWriter": "eventide.sinks.callback",
        "sink_of": "eventide.sinks.sink",
    },
)
