"""Operators run by themselves: rows come through their ports, state goes to files and comes back, without an engine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import pyarrow as pa

from eventide.engine.checkpoint.checkpoint import Checkpoint
from eventide.engine.local.backend import LocalBackend
from eventide.engine.operators.frontier import OperatorFrontier
from eventide.engine.operators.operator import InputProgress, Operator, Output
from eventide.engine.operators.placement import placed
from eventide.engine.relations.executor import Executor
from eventide.engine.relations.files import RelationFiles
from eventide.engine.relations.relation import Relation
from eventide.engine.round.engine_state import restored, saved_data, state_files
from eventide.plan.bound.query import BoundQuery
from eventide.plan.bound.rows import IDENTITY
from eventide.plan.sql.reduce import kept_text
from eventide.plan.sql.stream_rows import MALFORMED, batch_view
from eventide.storage.storage import Storage

BACKEND = LocalBackend()

Kind = TypeVar("Kind", bound=Operator)


@contextmanager
def executing(backend: Any = BACKEND, shared: bool = False) -> Iterator[Executor]:
    """An executor whose files are gone in the end; `shared` ones are Parquet, as a cluster has them."""
    storage = Storage.temporary()
    try:
        with Checkpoint.open(storage) as checkpoint:
            yield Executor(backend, RelationFiles(checkpoint, shared), 2**62)
    finally:
        storage.remove_folder("")


def came(operator: Operator, port: BoundQuery, rows: pa.Table, clock: int | None = None) -> Relation:
    """Rows of what a port reads, as they come to an operator; at a clock, where they have no time of their own."""
    name = port.query.name
    layout, renames = operator.layout(name), operator.renames(name)
    if MALFORMED not in rows.column_names:
        rows = rows.append_column(MALFORMED, pa.nulls(rows.num_rows, pa.string()))
    table = BACKEND.duckdb_executor.ask(kept_text(port), {batch_view(port.stream): rows})
    if clock is not None:
        for column, at in operator.stamps(name, clock).items():
            place = table.schema.get_field_index(column)
            if place >= 0:
                table = table.set_column(place, column, pa.array([at] * table.num_rows, pa.int64()))
    own = layout.columns[len(IDENTITY) :] if layout.is_numbered else layout.columns
    named = table.select([renames.get(column.name, column.name) for column in own])
    return operator.executor.of_table(layout, named.rename_columns([column.name for column in own]))


def inputs(**frontiers: OperatorFrontier | int) -> list[InputProgress]:
    """How far the inputs of an operator have come, by port."""
    return [
        InputProgress(port, one if isinstance(one, OperatorFrontier) else OperatorFrontier(one))
        for port, one in frontiers.items()
    ]


def emitted(output: Output) -> pa.Table:
    """The final rows, as a table."""
    return output.final.table()


def in_files(operator: Kind) -> Kind:
    """The same with all its state in files, as a round leaves it."""
    found = placed({operator.name: operator}, operator.executor)[operator.name]
    return cast(Kind, found)


def in_one_part(operator: Kind) -> Kind:
    """The same with all rows of a kind in one segment."""
    return operator.with_state(
        {kind: rows.merged(operator.executor.merged, 1) for kind, rows in operator.state.items()}
    )


def restarted(new: Kind, operator: Kind) -> Kind:
    """A new operator, continued from the files and the plain data of one whose state is in files."""
    saved: Mapping[str, Any] = json.loads(json.dumps(saved_data(operator)))
    found = restored(new, operator.executor, saved, state_files({operator.name: operator}))
    return cast(Kind, found)
