"""What can be started: a query with windows, or rows as they are.

Law: `plan` is the program that SQL would have become. Starting the same thing twice gives two runs of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Self, TypeAlias

import pyarrow as pa

from eventide.errors import DeclarationError
from eventide.plan.declared.program import NAME, Program
from eventide.sinks.sink import Sink

if TYPE_CHECKING:
    from eventide.api.running_query import RunningQuery

UNNAMED = "query"

GivenSink: TypeAlias = "str | PathLike[str] | Callable[[pa.Table], object] | Sink | None"
"""Where results go: a directory, a function of an Arrow table, any sink; None keeps them in memory."""


class Startable(ABC):
    """A query with windows, or rows, that has a plan and can be started."""

    @property
    @abstractmethod
    def called(self) -> str:
        """The name under which it is started."""

    @abstractmethod
    def named(self, name: str) -> Self:
        """The same query under a name, which its results and files carry."""

    @property
    def plan(self) -> Program:
        """The streams, operators and queries as plan nodes."""
        from eventide.api.planning import planned

        return planned((self,))[1]

    def explain(self) -> None:
        """Print how it is computed: time, windows, what is kept, and the SQL of each step, as `eventide explain`."""
        from eventide.report.explain import show_program

        show_program(self.plan, self.called)

    def start(
        self,
        sink: GivenSink = None,
        checkpoint: str | PathLike[str] | None = None,
        name: str | None = None,
        *,
        format: str = "parquet",
        every: str | None = None,
        bounded: bool | None = None,
        driver_memory: int | str | None = None,
        replace: bool = False,
    ) -> RunningQuery:
        """Start the query; its results go to `sink`, or are kept in memory.

        - `checkpoint`: a folder. A later start of the same query with it continues exactly where this run ended.
          Without it, a temporary one is used and removed with the process.
        - `name`: the name of the query in its results and files.
        - `format`: parquet, json or csv, if `sink` is a directory.
        - `every`: begin a round (a micro-batch) at most so often, such as `'1 second'`.
        - `bounded`: read the rows that are there now, close every window, and end. The default for Arrow data.
        - `driver_memory`: how much state stays on the driver when it runs on Spark, in bytes or such as `'1 GB'`
          (default 256 MiB); state above that is on the cluster.
        - `replace`: delete results of this query that another checkpoint has written to the directory `sink`. Without
          it, such a start is refused.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> cars = stream(pa.table({"t": [1, 12]}), time="t")
        >>> running = cars.window(10).agg(n="count(*)").start()
        >>> running.awaitTermination(), running.results().column("n").to_pylist()
        (True, [1, 1])
        """
        from eventide.api.start import start_all

        one = self if name is None else self.named(name)
        run = start_all((one,), {one.called: sink}, checkpoint, format, every, bounded, driver_memory, replace)
        return run[one.called]

    def run(self) -> pa.Table:
        """Read the rows that are there now, close every window, and return all results.

        A `LostRowsWarning` says how many rows were late or rejected.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> cars = stream(pa.table({"t": [1, 12], "speed": [50, 60]}), time="t")
        >>> cars.window(10).agg(top="max(speed)").run().column("top").to_pylist()
        [50, 60]
        """
        with self.start(bounded=True) as running:
            return running.together.finished()[self.called]


def checked_name(name: str) -> str:
    """The name, if a query can have it."""
    if not NAME.fullmatch(name):
        raise DeclarationError(f"{name!r} cannot name a query: use letters, digits and underscores, a letter first")
    return name
