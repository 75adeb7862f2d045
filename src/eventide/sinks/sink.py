"""The contract of a sink: which methods it has, and what must hold of them.

Law: a sink is idempotent by round. `emit` makes the results of one query in one round visible all at once, in place of
whatever it was given before for the same query and round; if it raises, what was visible before still is. `rewind`
says that rounds after `last` of a query have not happened (the engine starts again after a crash): what was emitted for
them must disappear, or be replaced when those rounds come again. They may then hold other rows than before, or none.
After `emit` has returned, the results survive the death of the process.

What a sink takes, it says by what it asks of the results: `batches`, which are always there and come to this process
one at a time; or, where results are on the cluster, `frame`, a DataFrame over the files that Spark's executors wrote,
or `parts`, which functions of the sink read in Spark's tasks. Files of results go when their round is committed, so all
of it is read before `emit` returns.

`eventide.testing.sink_contract` checks the law, for these sinks and for a user's own; its `from_cluster` gives them the
same results from the cluster.

>>> from eventide.sinks.memory import Memory
>>> isinstance(Memory(), Sink)
True

*Formats.* `FORMATS` are those in which a directory of results can be written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from eventide.results.results import Results


@runtime_checkable
class Sink(Protocol):
    """Takes results, round by round: in ascending order but for what `rewind` says, one call at a time."""

    def emit(self, results: Results) -> None:
        """Show the results of one query in one round; called also when there are none."""
        ...

    def rewind(self, query: str, last: int) -> None:
        """Forget what was emitted for `query` after round `last` (-1: forget all of it)."""
        ...

    def close(self) -> None:
        """No more results will come in this run. May be called again, once for each query."""
        ...


@dataclass(frozen=True)
class Owner:
    """Whose results these are: the id of a checkpoint, and where it was, if it was to stay."""

    id: str
    checkpoint: str | None = None


@runtime_checkable
class OwnedSink(Sink, Protocol):
    """A sink whose results outlive a run: what another checkpoint has written there is not deleted unasked."""

    @property
    def where(self) -> str:
        """The place, for messages."""
        ...

    def holds(self, query: str) -> bool:
        """Whether there are results of a query."""
        ...

    def owner_of(self, query: str) -> Owner | None:
        """Whose the results of a query are; None where nobody has claimed them."""
        ...

    def claim(self, query: str, owner: Owner) -> None:
        """Mark the results of a query as those of an owner, and of no other."""
        ...


@runtime_checkable
class FileSink(Sink, Protocol):
    """A sink whose results stay as files, one for each query and round that gave rows."""

    format: str

    @property
    def place(self) -> str | None:
        """Where another process finds them; None where only this one can."""
        ...

    def missing(self, query: str, rounds: Iterable[int]) -> dict[int, str]:
        """The names of files that are not there, by round, of rounds that have written some."""
        ...


FORMATS = ("parquet", "json", "csv")
