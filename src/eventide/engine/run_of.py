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
from eventide.engine.operator_run import OperatorRun
from eventide.engine.rows_run import RowsRun
from eventide.engine.workbench import Bench
from eventide.plan.binding import BoundOperator
from eventide.plan.bound_join import BoundJoin
from eventide.plan.bound_rows import BoundRows
from eventide.plan.columns import Column
from eventide.plan.dialect import same_answer
from eventide.plan.join_names import LEFT, RIGHT
from eventide.plan.join_text import COUNT, met_columns, pairs_text, told_text


def run_of(bound: BoundOperator, bench: Bench) -> OperatorRun:
    """An operator that has seen nothing."""
    return RowsRun(bound, bench) if isinstance(bound, BoundRows) else JoinRun.start(bound, bench)


def continued(
    bound: BoundOperator, bench: Bench, saved: dict[str, Any], tables: Mapping[str, list[pa.Table]]
) -> OperatorRun:
    """An operator as it was saved, with what its files hold."""
    if isinstance(bound, BoundRows):
        return RowsRun.restored(bound, bench, saved, tables)
    return JoinRun.restored(bound, bench, saved, tables)


def bench_of(bound: BoundOperator, backend: Backend) -> Bench:
    """Whoever computes what an operator computes itself as Spark does."""
    exact = all(port.driver_exact for port in bound.ports)
    if isinstance(bound, BoundJoin):
        known = (*met_columns(bound, LEFT), *met_columns(bound, RIGHT), Column(COUNT, "BIGINT"))
        texts = (pairs_text(bound, "l", "r"), told_text(bound, "told"))
        exact = exact and all(same_answer(text, known) for text in texts)
    return backend.bench(replace(bound.ports[0], driver_exact=exact))
