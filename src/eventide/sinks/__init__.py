"""Where results go. `sink` has the contract; every other sink is one module."""

from eventide.sinks.by_name import sink_of
from eventide.sinks.callback import Callback
from eventide.sinks.console import Console
from eventide.sinks.directory import Directory
from eventide.sinks.memory import Memory
from eventide.sinks.sink import Sink
from eventide.sinks.spark_writer import SparkWriter

__all__ = ["Callback", "Console", "Directory", "Memory", "Sink", "SparkWriter", "sink_of"]
