"""Statements over relations: what is computed, in Spark's SQL, whatever the place.

Laws. A statement is the same text every round, so that neither engine has to understand it anew; what changes from
round to round is in small tables that it reads. *Steps* are run one after the other, together: as one job where they
are on the cluster and small. A later step may read the rows of an earlier one by its name.

>>> one_row(first=5, last=9).to_pylist()
[{'__first': 5, '__last': 9}]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from eventide.engine.relations.relation import Layout, Relation
from eventide.plan.expressions.columns import Column


@dataclass(frozen=True)
class Statement:
    """Spark's SQL over the names of relations.

    `portable`: DuckDB gives Spark's answer of it. `order` follows it where its rows are few, or where their order is
    asked for (`ordered`): sorting what nobody asked to be in order is one shuffle more. `fail_safe` gives the form in
    which what fails for a row is told as lost instead; it is asked when a row has made the other one fail. `inner` are
    columns that the statement makes and uses itself. `identified`: its rows have their identity already.
    """

    sql: str
    portable: bool = True
    order: str = ""
    ordered: bool = False
    fail_safe: Callable[[], str] | None = None
    inner: tuple[Column, ...] = ()
    identified: bool = False


@dataclass(frozen=True)
class StatementStep:
    """A statement whose answer is a relation of this layout; without one it is a small table, for the driver.

    It has no rows where all of the earlier steps that it `needs` have none: then it is not run.
    """

    name: str
    statement: Statement
    layout: Layout | None = None
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class StepResults:
    """The answers of steps by their names: relations, and small tables."""

    relations: Mapping[str, Relation]
    tables: Mapping[str, pa.Table]


def one_row(**values: int | None) -> pa.Table:
    """A table of one row, for what changes from round to round; no column of a user begins with `__`, as these do."""
    return pa.table({f"__{name}": pa.array([value], pa.int64()) for name, value in values.items()})
