"""Rows of a stream with what a table said at their time: a join with a stored table whose updates are streamed too.

Laws. A table is a stream of *versions*: a row of it holds for its key from its time on, until the next version of the
key. A row of the stream is told with the version of its key as of its own time: the latest one at or before it; of
versions of one time, the greatest by values. It waits until the heartbeat of the table has passed its time, so that no
earlier version can come; then it is told, in that round. What is told has the time of the row. A version is freed when
a later one holds for all rows that can still come.

>>> from eventide.plan.query import named_as
>>> priced = Lookup(
...     "priced", Side("orders", "o", keys=("product",)), Side("prices", "p", keys=("product",)),
...     removed="price IS NULL", select=named_as("o.product", total="o.amount * p.price"),
... )
>>> priced.inputs, priced.keeps_all
(('orders', 'prices'), False)
"""

from __future__ import annotations

from dataclasses import dataclass

from eventide.errors import DeclarationError
from eventide.plan.join import Side
from eventide.plan.query import Named, check_names


@dataclass(frozen=True)
class Lookup:
    """Each row of `rows` with the version in `versions` that holds at its time for the same keys.

    With `keeps_all`, rows without a version are told too, with NULL for its columns. `removed`, a condition over the
    columns of `versions`, tells versions that end the table's row for their key. `where` and `select` name columns as
    `alias.column`.

    >>> Lookup("l", Side("orders"), Side("prices"))
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: 'l' looks up nothing in 'prices': give keys of both sides that must be equal
    """

    name: str
    rows: Side
    versions: Side
    keeps_all: bool = False
    removed: str | None = None
    where: str | None = None
    select: tuple[Named, ...] = ()

    def __post_init__(self) -> None:
        if self.rows.alias.lower() == self.versions.alias.lower():
            raise DeclarationError(
                f"{self.name!r} calls both inputs {self.rows.alias!r}: give one another name with AS"
            )
        if not self.rows.keys or len(self.rows.keys) != len(self.versions.keys):
            raise DeclarationError(
                f"{self.name!r} looks up nothing in {self.versions.input!r}: give keys of both sides that must be equal"
            )
        check_names(self.name, self.select)

    @property
    def inputs(self) -> tuple[str, ...]:
        """What it reads."""
        return tuple(dict.fromkeys((self.rows.input, self.versions.input)))
