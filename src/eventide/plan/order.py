"""The order of the results within a window, as ORDER BY says it.

Law: NULL comes first in ascending order and last in descending order, as in Spark, unless said otherwise. What is equal
in all of it is in the order of the groups, ascending, so that the order of a window's results is always the same.

>>> order_by("total DESC", "sensor")
(OrderBy(sql='total', descending=True, nulls_first=False), OrderBy(sql='sensor', descending=False, nulls_first=True))
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.plan.spark_grammar import SPARK


@dataclass(frozen=True)
class OrderBy:
    """One expression to order by: over the names of the results' columns, or over aggregates, in Spark SQL."""

    sql: str
    descending: bool = False
    nulls_first: bool | None = None

    def __post_init__(self) -> None:
        if self.nulls_first is None:
            object.__setattr__(self, "nulls_first", not self.descending)

    @property
    def direction(self) -> str:
        """The words after the expression.

        >>> OrderBy("n", descending=True).direction
        'DESC NULLS LAST'
        """
        return f"{'DESC' if self.descending else 'ASC'} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


def order_by(*written: str) -> tuple[OrderBy, ...]:
    """Read what stands in an ORDER BY.

    >>> order_by("n NULLS LAST")
    (OrderBy(sql='n', descending=False, nulls_first=False),)
    >>> order_by("n n")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: cannot read the order 'n n': write an expression, perhaps with DESC or ASC after \
it, and NULLS FIRST or NULLS LAST
    """
    return tuple(_read(text) for text in written)


def _read(text: str) -> OrderBy:
    try:
        order = sqlglot.parse_one(f"SELECT 1 ORDER BY {text}", read=SPARK).args.get("order")
    except sqlglot.errors.SqlglotError as error:
        raise _unreadable(text) from error
    if order is None or len(order.expressions) != 1:
        raise _unreadable(text)
    [one] = order.expressions
    assert isinstance(one, exp.Ordered)
    return OrderBy(one.this.sql(SPARK), bool(one.args.get("desc")), bool(one.args.get("nulls_first")))


def _unreadable(text: str) -> DeclarationError:
    return DeclarationError(
        f"cannot read the order {text!r}: write an expression, perhaps with DESC or ASC after it, and NULLS FIRST or "
        "NULLS LAST"
    )
