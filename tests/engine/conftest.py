"""What tests of the engine share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eventide.duckdb.executor import DuckDBExecutor
from tests.engine.scenarios import SharedWorkbench


@pytest.fixture(scope="module")
def duckdb_executor() -> Iterator[DuckDBExecutor]:
    """One for all scenarios of a module."""
    shared = SharedWorkbench()
    yield shared
    shared.connection.close()
