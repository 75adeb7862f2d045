"""Which operator runs what a plan declares.

Law: an operator continues as the kind that it was started as; the plan alone says which.
"""

from __future__ import annotations

from eventide.engine.operators.changing_aggregate import ChangingAggregate
from eventide.engine.operators.count_window_aggregate import CountWindowAggregate
from eventide.engine.operators.discarding_aggregate import DiscardingAggregate
from eventide.engine.operators.join import JoinOperator
from eventide.engine.operators.lookup import LookupOperator
from eventide.engine.operators.merge import Merge
from eventide.engine.operators.operator import Operator
from eventide.engine.operators.over import OverOperator
from eventide.engine.operators.per_source_aggregate import PerSourceAggregate
from eventide.engine.operators.queue import QueueOperator
from eventide.engine.operators.session_aggregate import SessionAggregate
from eventide.engine.operators.table_join import TableJoinOperator
from eventide.engine.operators.window_aggregate import WindowAggregate
from eventide.engine.relations.executor import Executor
from eventide.eventtime.instant import NEVER
from eventide.plan.binding import BoundOperator
from eventide.plan.bound.join import BoundJoin
from eventide.plan.bound.over import BoundOver
from eventide.plan.bound.query import BoundQuery
from eventide.plan.bound.rows import BoundRows
from eventide.plan.declared.rows import Queue
from eventide.plan.declared.window import RowWindow


def start(bound: BoundQuery | BoundOperator, executor: Executor, begins: int = NEVER, is_read: bool = True) -> Operator:
    """An operator that has seen nothing; rows before `begins` are not for it.

    `is_read`: another operator reads it.
    """
    if isinstance(bound, BoundQuery):
        if bound.query.by_source:
            return PerSourceAggregate.start(bound, executor, begins)
        if isinstance(bound.query.window, RowWindow):
            return CountWindowAggregate.start(bound, executor, begins)
        if bound.of_sessions:
            return (ChangingAggregate if bound.query.changes else SessionAggregate).start(bound, executor, begins)
        discards = bound.query.prods is not None and bound.query.prods.discarding
        return (DiscardingAggregate if discards else WindowAggregate).start(bound, executor, begins)
    if isinstance(bound, BoundOver):
        return OverOperator.start(bound, executor, begins)
    if isinstance(bound, BoundRows):
        return (QueueOperator if isinstance(bound.rows, Queue) else Merge).start(bound, executor, begins)
    return (
        JoinOperator.start(bound, executor, is_read, begins)
        if isinstance(bound, BoundJoin)
        else (TableJoinOperator if bound.lookup.as_it_is else LookupOperator).start(bound, executor, begins)
    )
