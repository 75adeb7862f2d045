"""How each kind of operator runs.

Law: an operator continues as the kind of run that it was started as.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from eventide.engine.operator_run import OperatorRun
from eventide.engine.rows_run import RowsRun
from eventide.engine.workbench import Bench
from eventide.plan.binding import BoundOperator


def run_of(bound: BoundOperator, bench: Bench) -> OperatorRun:
    """An operator that has seen nothing."""
    return RowsRun(bound, bench)


def continued(
    bound: BoundOperator, bench: Bench, saved: dict[str, Any], tables: Mapping[str, list[pa.Table]]
) -> OperatorRun:
    """An operator as it was saved, with what its files hold."""
    return RowsRun.restored(bound, bench, saved, tables)
