"""A selected expression over aggregates, split into partials and its value over them.

Law: whatever way rows are cut into slices, reducing each, merging all and telling the value gives what Spark's own
aggregate gives over all the rows. An expression with an aggregate that has no such form is not split: its slices keep
their rows.

>>> from eventide.plan.columns import columns
>>> found = split("p", "max(price) - min(price)", lambda sql: "INT")
>>> found.value, [partial.reduce for partial in found.partials]
('p_0 - p_1', ['max(price)', 'min(price)'])
>>> split("p", "percentile(price, 0.5)", lambda sql: "DOUBLE") is None
True
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from eventide.plan.aggregate_call import Call, Columns, Told, call_from
from eventide.plan.aggregate_forms import FORMS
from eventide.plan.expressions import SPARK, aggregates_in, parsed
from eventide.plan.partials import Split


def split(name: str, expression: str, type_of: Callable[[str], str], time: str = "") -> Split | None:
    """The partials of an expression and its value over them, or None where rows must be kept.

    `name` is the prefix of the partial columns' names; `type_of` gives the Spark type of an expression over the
    stream's columns; `time` is the application time as a whole number, in SQL, for what is first and last. Columns
    outside of aggregates (groups) stay in the value as they are.
    """
    tree = parsed(expression, f"the expression {expression!r}")
    columns = Columns(name, type_of, time)
    typed = exp.Paren(this=tree.copy())
    valued = exp.Paren(this=tree)
    checks: dict[tuple[str, str], None] = {}
    for in_value, in_typed in zip(aggregates_in(valued), aggregates_in(typed), strict=True):
        told = _told(call_from(in_value), columns)
        if told is None:
            return None
        checks.update(dict.fromkeys(told.checks))
        in_value.replace(_operand(told.value))
        in_typed.replace(exp.cast(exp.Null(), told.type, dialect=SPARK))
    kind = type_of(typed.this.sql(SPARK))
    partials = tuple(columns.kept.values())
    return Split(partials, valued.this.sql(SPARK), kind, tuple(checks))


def _told(call: Call, columns: Columns) -> Told | None:
    if call.distinct or call.ordered or call.name not in FORMS:
        return None
    return FORMS[call.name](call, columns)


def _operand(value: str) -> exp.Expression:
    """A value that can stand inside of a larger expression."""
    read = parsed(value, "a value")
    return read if isinstance(read, exp.Column | exp.Paren | exp.Func) else exp.Paren(this=read)
