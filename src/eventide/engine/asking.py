"""Whoever answers statements over the rows of a round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa

from eventide.plan.stream import Stream


class Asking(Protocol):
    """Runs Spark SQL over rows that it knows by the names of their views."""

    def ask(self, sql: str, tables: Mapping[str, pa.Table] | None = None) -> pa.Table:
        """The answer of a statement, over small tables too."""
        ...

    def reduce(self, stream: Stream, sql: str, plain: bool) -> pa.Table:
        """The same for a statement that reduces the rows of one stream; a group may be told in several parts.

        `plain`: any engine gives its answer.
        """
        ...
