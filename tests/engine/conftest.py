"""What tests of the engine share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.relations.executor import Executor
from tests.engine.operators_alone import executing
from tests.engine.scenarios import SharedWorkbench


@pytest.fixture(scope="module")
def duckdb_executor() -> Iterator[DuckDBExecutor]:
    """One for all scenarios of a module."""
    shared = SharedWorkbench()
    yield shared
    shared.connection.close()


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    """One for all operators of a module that run by themselves."""
    with executing() as found:
        yield found
