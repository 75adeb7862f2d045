"""What differs between the engines: where the rows of a round are, and who runs SQL over them.

Law: `ask` gives the same table for the same statement and rows, whichever backend it is; rows of a round stay readable
under their views until the next `bring`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pyarrow as pa

from eventide.engine.asking import Asking
from eventide.engine.workbench import Bench
from eventide.plan.bound import Bound
from eventide.plan.stream import Stream


class Backend(Asking, Protocol):
    """Runs Spark SQL over the rows of a round."""

    name: str
    has_cluster: bool
    """Whether slices can be placed with this backend, outside the driver."""

    def declare(self, stream: Stream) -> None:
        """Make the columns of a stream known, so that types can be asked."""
        ...

    def type_of(self, stream: Stream, sql: str) -> str:
        """The Spark type of an expression over a stream, or a DeclarationError that shows it."""
        ...

    def bring(self, batch: Mapping[str, Any], few: bool = False) -> None:
        """Give the rows of a round, by stream; streams not mentioned have none. `few`: they are expected to be few."""
        ...

    def bench(self, query: Bound) -> Bench:
        """Who merges the slices of a query that are on the driver: whoever gives Spark's own answer."""
        ...

    def store(self, sql: str, folder: str) -> None:
        """Write the answer of a statement over the round's rows as Parquet files, in place of what the folder held."""
        ...

    def store_over(
        self, sql: str, files: Mapping[str, tuple[list[str], str]], tables: Mapping[str, pa.Table], folder: str
    ) -> None:
        """Write the answer of a statement over Parquet files (paths and schema by name) and small tables."""
        ...

    def release(self) -> None:
        """The round is over."""
        ...

    def close(self) -> None:
        """Nothing will be asked any more."""
        ...
