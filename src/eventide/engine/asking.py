"""Whoever answers statements over the rows of a round."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa


class Asking(Protocol):
    """Runs Spark SQL over rows that it knows by the names of their views."""

    def ask(self, sql: str) -> pa.Table:
        """The answer of a statement."""
        ...
