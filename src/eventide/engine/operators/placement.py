"""Where the state of operators is: with the driver while all of it fits there, on the cluster when it does not.

Laws. The place changes no result. There is one budget of the driver's memory for the whole engine, `driver.memory`.
When the state of all operators is larger, that of the largest goes to the cluster, and of the next one, until the rest
fits; it comes back when it would take a small part of what is free, so that state near the edge does not move to and
fro. With a budget of 0 nothing stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from eventide.engine.operators.operator import Operator
from eventide.engine.relations.executor import Executor
from eventide.engine.relations.relation import Relation, place_of
from eventide.engine.relations.segments import Segments

DRIVER_MEMORY = 256 * 1024 * 1024
BACK_BELOW = 16
"""State comes back when it would take less than this part of what is free."""


def place(operator: Operator) -> str:
    """Where the state of an operator is."""
    return place_of(part for kind in operator.state.values() for part in kind.parts)


def beside_state(operator: Operator, rows: Relation, executor: Executor) -> Relation:
    """Rows for an operator, where its state is: of what is on the cluster no copy stays with the driver."""
    if rows.table is None or not rows.rows or place(operator) == "driver":
        return rows
    return executor.persisted(rows).without_table()


def state_bytes(operator: Operator) -> int:
    """How many bytes an operator keeps, in memory or in files."""
    return sum(kind.bytes for kind in operator.state.values())


def state_rows(operator: Operator) -> int:
    """The number of rows that an operator keeps."""
    return sum(kind.rows for kind in operator.state.values())


def placed(operators: Mapping[str, Operator], executor: Executor) -> dict[str, Operator]:
    """The operators with their state saved in files, and moved to where it belongs after a round."""
    found = {name: _saved(operator, executor) for name, operator in operators.items()}
    if not executor.backend.has_cluster:
        return found
    here = {name: state_bytes(operator) for name, operator in found.items() if place(operator) == "driver"}
    for name in sorted(here, key=lambda name: -here[name]):
        if sum(here.values()) <= executor.driver_memory:
            break
        found[name] = _moved(found[name], Relation.without_table)
        del here[name]
    free = executor.driver_memory - sum(here.values())
    for name, operator in found.items():
        size = _memory(operator)
        if name not in here and size and size * BACK_BELOW <= free:
            found[name] = _moved(operator, executor.loaded)
            free -= state_bytes(found[name])
    return found


def _memory(operator: Operator) -> int:
    """How much of the driver's memory its state would take, about: files are packed, memory is not."""
    return sum(
        max(part.bytes, part.rows * kind.layout.row_bytes) for kind in operator.state.values() for part in kind.parts
    )


def _saved(operator: Operator, executor: Executor) -> Operator:
    """With all its state in files: of state on the cluster no copy stays with the driver."""
    on_cluster = place(operator) == "cluster"

    def saved(part: Relation) -> Relation:
        part = executor.persisted(part)
        return part.without_table() if on_cluster and part.table is not None else part

    return _moved(operator, saved)


def _moved(operator: Operator, move: Callable[[Relation], Relation]) -> Operator:
    state = operator.state
    moved = {
        kind: Segments(rows.layout, tuple(part if part.rows == 0 else move(part) for part in rows.parts))
        for kind, rows in state.items()
    }
    same = all(moved[kind].parts == rows.parts for kind, rows in state.items())
    return operator if same else operator.with_state(moved)
