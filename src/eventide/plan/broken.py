"""Rows that break a query: found without failing, left out of it, and told with the reason.

Law: a row is broken for a query if an expression of it (WHERE, a group, what is aggregated, its FILTER) raises an error
for that row; a row that WHERE leaves out is not broken by the rest. The careful form of a query leaves its broken
rows out, and has the answer of the query itself over all others.

How a failure is asked for: `try_add` to a date gives NULL for whatever fails inside of it, on Spark, and so does TRY on
DuckDB. The CASE inside keeps both from computing an expression that occurs twice ahead of the statement.

>>> fails("CAST(s AS INT)", "t IS NOT NULL")
"(try_add(DATE '2000-01-01', CASE WHEN t IS NOT NULL THEN size(array(CAST(s AS INT))) ELSE 0 END) IS NULL)"
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property

from sqlglot import exp

from eventide.plan.blame import blamed, spelled
from eventide.plan.bound import Bound
from eventide.plan.expressions import SPARK, aggregates_in, parsed
from eventide.plan.lazy import lazily
from eventide.plan.may_fail import may_fail
from eventide.plan.row_arguments import RowArgument, row_arguments
from eventide.plan.spark_types import Types

HAS_TIME = "pmod(__t, 2) < 2"
"""True for every row with a time. No optimizer sees that, so none takes away the CASE that depends on it."""


def fails(sql: str, guard: str = HAS_TIME) -> str:
    """TRUE where the expression raises an error, among rows for which `guard` holds; FALSE for all others."""
    return _without_number(computed([sql]), guard)


def computed(expressions: Iterable[str]) -> str:
    """A number, whatever the expressions give, that cannot be told without computing them.

    >>> computed(["a / b", "s"])
    'size(array(a / b)) + size(array(s))'
    """
    return " + ".join(f"size(array({sql}))" for sql in expressions)


@cache
def careful(query: Bound) -> Bound:
    """The query over the rows that do not break it."""
    rows = RowExpressions(query)
    condition = rows.broken
    if condition is None:
        return query
    where = "TRUE" if rows.where is None else rows.spoken(rows.where)
    unbroken = f"CASE WHEN __t IS NULL THEN FALSE WHEN {condition} THEN FALSE ELSE {where} END"
    return replace(
        query,
        query=replace(query.query, where=unbroken),
        keys=tuple(replace(key, sql=rows.in_order(key.sql)) for key in query.keys),
        partials=tuple(replace(partial, reduce=rows.in_order(partial.reduce)) for partial in query.partials),
        careful=True,
    )


@dataclass(frozen=True)
class RowExpressions:
    """What a query computes for single rows."""

    query: Bound

    @cached_property
    def types(self) -> Types:
        """The types of columns and what is made of them."""
        return Types({column.name: column.type for column in self.query.stream.columns})

    @cached_property
    def where(self) -> exp.Expression | None:
        """The condition on rows."""
        text = self.query.query.where
        return None if text is None else parsed(text, "a condition")

    @cached_property
    def groups(self) -> tuple[RowArgument, ...]:
        """Groups that may fail."""
        return self._that_may_fail(RowArgument(parsed(key.sql, "a group")) for key in self.query.keys)

    @cached_property
    def arguments(self) -> tuple[RowArgument, ...]:
        """Arguments and FILTERs of aggregates that may fail, as the user wrote them."""
        asked = self.query.query
        texts = [item.sql for item in asked.select] + [one.sql for one in asked.order]
        texts += [asked.having] if asked.having else []
        calls = [call for text in texts for call in aggregates_in(parsed(text, "a selected expression"))]
        return self._that_may_fail(argument for call in calls for argument in row_arguments(call))

    @property
    def broken(self) -> str | None:
        """The condition under which a row with a time breaks the query; None where no row does."""
        spoken = (self.spoken(argument.lazy) for argument in (*self.groups, *self.arguments, *self._reduced))
        parts = dict.fromkeys(spoken)
        if self.where is None:
            return _without_number(computed(parts), HAS_TIME) if parts else None
        where = self.spoken(self.where)
        if not parts:
            return fails(where) if may_fail(self.where, self.types) else None
        return _without_number(f"CASE WHEN {where} THEN {computed(parts)} ELSE 0 END", HAS_TIME)

    @property
    def conditions(self) -> tuple[tuple[str, str], ...]:
        """Each expression that may fail, as the user wrote it, and the condition that it does."""
        return tuple((spelled(each.node), fails(self.spoken(each.lazy))) for each in self._spelled)

    @property
    def reason(self) -> str:
        """For a broken row: the query, the expression that fails, and why, as far as the words tell."""
        every = ", ".join(item.sql for item in (*self.query.query.groups, *self.query.query.select))
        rest = self._text(f"one of {every} fails")
        said = [self._told(argument) for argument in self._spelled]
        return f"CASE {' '.join(said)} ELSE {rest} END" if said else rest

    def spoken(self, node: exp.Expression) -> str:
        """The expression in Spark's order of evaluation."""
        return lazily(node, self.types).sql(SPARK)

    def in_order(self, sql: str) -> str:
        """The same for an expression that is not yet read; plain columns stay as they are."""
        node = parsed(sql, "an expression")
        return self.spoken(node) if may_fail(node, self.types) else sql

    @cached_property
    def _spelled(self) -> tuple[RowArgument, ...]:
        """All that the user wrote and that may fail, in the order in which it is computed."""
        where = () if self.where is None else (RowArgument(self.where),)
        every = (*where, *self.groups, *self.arguments)
        return tuple(argument for argument in every if may_fail(argument.node, self.types))

    @cached_property
    def _reduced(self) -> tuple[RowArgument, ...]:
        """What is computed for the partials of a slice, beyond what the user wrote."""
        calls = [parsed(partial.reduce, "a partial") for partial in self.query.partials]
        return self._that_may_fail(argument for call in calls for argument in row_arguments(call))

    def _that_may_fail(self, arguments: Iterable[RowArgument]) -> tuple[RowArgument, ...]:
        return tuple(argument for argument in arguments if may_fail(argument.lazy, self.types))

    def _told(self, argument: RowArgument) -> str:
        """When it fails: the text about the innermost piece of it that does."""
        *inner, whole = blamed(argument.node, self.types)
        told = {
            fails(self.spoken(replace(argument, node=piece.node).lazy)): self._text(
                f"{spelled(piece.node)} fails{': ' if piece.why else ''}{piece.why}"
            )
            for piece in (*inner, whole)
        }
        [*conditions, last] = told
        cases = " ".join(f"WHEN {condition} THEN {told[condition]}" for condition in conditions)
        return f"WHEN {last} THEN " + (f"CASE {cases} ELSE {told[last]} END" if cases else told[last])

    def _text(self, said: str) -> str:
        return exp.Literal.string(f"query {self.query.told_as!r}: {said}").sql(SPARK)


def _without_number(number: str, guard: str) -> str:
    return f"(try_add(DATE '2000-01-01', CASE WHEN {guard} THEN {number} ELSE 0 END) IS NULL)"
