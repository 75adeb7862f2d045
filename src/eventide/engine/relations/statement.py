"""A statement over relations: what is computed, in Spark's SQL, whatever the place.

Law: a statement is the same text every round, so that neither engine has to understand it anew; what changes from
round to round is in small tables that it reads.

>>> one_row(first=5, last=9).to_pylist()
[{'__first': 5, '__last': 9}]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

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


def one_row(**values: int) -> pa.Table:
    """A table of one row, for what changes from round to round; no column of a user begins with `__`, as these do."""
    return pa.table({f"__{name}": pa.array([value], pa.int64()) for name, value in values.items()})
