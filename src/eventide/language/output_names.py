"""Names for result columns that were given none.

Law: a name says what it names, is a plain identifier, and no two columns of a query share one.

>>> from eventide.plan.expressions.parse import parsed
>>> [name_for(parsed(sql, "q")) for sql in ("MAX(speed)", "count(*)", "max(p) - min(p)", "s.field", "avg(a.b) / 2")]
['max_speed', 'count', 'max_p_min_p', 'field', 'avg_b_2']
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot import exp

from eventide.plan.declared.query import RESERVED
from eventide.plan.expressions.parse import name_of

LONGEST = 60


def name_for(expression: exp.Expr) -> str:
    """A name from the words of an expression."""
    words = list(_words(expression))
    name = re.sub(r"[\W_]+", "_", "_".join(words)).strip("_")[:LONGEST].strip("_") or "value"
    name = f"_{name}" if name[0].isdigit() else name
    return f"{name}_value" if name.lower() in RESERVED else name


def unused(name: str, taken: Iterable[str]) -> str:
    """The name, with a number behind it if it is taken.

    >>> unused("max_speed", ["max_speed", "max_speed_2"])
    'max_speed_3'
    """
    there = {one.lower() for one in taken}
    number, free = 1, name
    while free.lower() in there:
        number += 1
        free = f"{name}_{number}"
    return free


def _words(node: exp.Expr) -> Iterable[str]:
    if isinstance(node, exp.Column):
        yield node.name
        return
    if isinstance(node, exp.Literal | exp.Identifier | exp.Var | exp.DataType):
        yield node.name if not isinstance(node, exp.DataType) else node.sql().lower()
        return
    if isinstance(node, exp.Func) and not isinstance(node, exp.Cast | exp.Connector | exp.Binary):
        name = name_of(node)
        # A CASE begins with its condition.
        yield name if re.fullmatch(r"\w+", name) else name.split()[0]
    elif isinstance(node, exp.Distinct):
        yield "distinct"
    for child in node.iter_expressions():
        yield from _words(child)
