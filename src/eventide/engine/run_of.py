"""How each kind of operator runs.

Law: an operator continues as the kind of run that it was started as.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from eventide.engine.backend import Backend
from eventide.engine.join_run import JoinRun
from eventide.engine.lookup_run import LookupRun
from eventide.engine.operator_run import OperatorRun
from eventide.engine.queue_run import QueueRun
from eventide.engine.rows_run import RowsRun
from eventide.engine.workbench import Bench
from eventide.plan.binding import BoundOperator
from eventide.plan.bound_join import BoundJoin
from eventide.plan.bound_lookup import BoundLookup, lookup_exact
from eventide.plan.bound_rows import BoundRows
from eventide.plan.join_text import driver_exact
from eventide.plan.queue import Queue


def run_of(bound: BoundOperator, bench: Bench) -> OperatorRun:
    """An operator that has seen nothing."""
    if isinstance(bound, BoundRows):
        return _of_rows(bound)(bound, bench)
    return JoinRun.start(bound, bench) if isinstance(bound, BoundJoin) else LookupRun.start(bound, bench)


def _of_rows(bound: BoundRows) -> type[RowsRun]:
    return QueueRun if isinstance(bound.rows, Queue) else RowsRun


def continued(
    bound: BoundOperator, bench: Bench, saved: dict[str, Any], tables: Mapping[str, list[pa.Table]]
) -> OperatorRun:
    """An operator as it was saved, with what its files hold."""
    if isinstance(bound, BoundRows):
        return _of_rows(bound).restored(bound, bench, saved, tables)
    if isinstance(bound, BoundJoin):
        return JoinRun.restored(bound, bench, saved, tables)
    return LookupRun.restored(bound, bench, saved, tables)


def bench_of(bound: BoundOperator, backend: Backend) -> Bench:
    """Whoever computes what an operator computes itself as Spark does."""
    exact = all(port.driver_exact for port in bound.ports)
    if isinstance(bound, BoundJoin):
        exact = exact and driver_exact(bound)
    elif isinstance(bound, BoundLookup):
        exact = exact and lookup_exact(bound)
    return backend.bench(replace(bound.ports[0], driver_exact=exact))
