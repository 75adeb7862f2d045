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
    """Has a name, a plan, and can be started."""

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
        """Start it; results go to `sink`.

        `checkpoint`: a folder from which a later start of the same query continues exactly; without it, one is made and
        forgotten with the process. `format`: parquet, json or csv, where `sink` is a directory. `every`: begin a round
        at most so often (`'1 second'`). `bounded`: take what is there now, close every window, and end; so it is
        for Arrow data unless told otherwise, and not for Spark. `driver_memory`: so much state stays with the driver
        (bytes, or such as `'1 GB'`; 256 MiB), where it runs on Spark; what is above is on the cluster. `replace`:
        delete what another checkpoint has written of this query into the directory `sink`; else that is refused.
        """
        from eventide.api.start import start_all

        one = self if name is None else self.named(name)
        run = start_all((one,), {one.called: sink}, checkpoint, format, every, bounded, driver_memory, replace)
        return run[one.called]

    def run(self) -> pa.Table:
        """All results, after taking what is there now and closing every window.

        A `LostRowsWarning` tells of rows that came too late, or that were rejected.
        """
        with self.start(bounded=True) as running:
            return running.together.finished()[self.called]


def checked_name(name: str) -> str:
    """The name, if a query can have it."""
    if not NAME.fullmatch(name):
        raise DeclarationError(f"{name!r} cannot name a query: use letters, digits and underscores, a letter first")
    return name
