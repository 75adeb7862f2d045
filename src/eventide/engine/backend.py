"""What differs between the engines: where the rows of a round are, and who runs SQL over them.

Law: `ask` gives the same table for the same statement and rows, whichever backend it is; rows of a round stay readable
under their views until the next `bring`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pyarrow as pa

from eventide.plan.stream import Stream


class Backend(Protocol):
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

    def bring(self, batch: Mapping[str, Any]) -> None:
        """Give the rows of a round, by stream; streams not mentioned have none."""
        ...

    def ask(self, sql: str) -> pa.Table:
        """The answer of a statement over the round's rows."""
        ...

    def store(self, sql: str, folder: str, partition_by: str | None = None) -> None:
        """Write the answer as Parquet files into a folder that does not exist yet, or replaces one of a dead round."""
        ...

    def ask_files(self, sql: str, views: Mapping[str, list[str]], tables: Mapping[str, pa.Table]) -> str:
        """Make the answer of a statement over Parquet files and small tables available as a view; give its name."""
        ...

    def release(self) -> None:
        """The round is over."""
        ...
