"""Find rows that make an expression of a query fail, leave them out, and say why.

Law: a row is broken for a query if an expression of it (WHERE, a group, what is aggregated, its FILTER) raises an error
for that row; a row that WHERE leaves out is not broken by the rest. The fail-safe form of a query leaves its broken
rows out, and has the answer of the query itself over all others.

How a failure is asked for: `try_add` to a date gives NULL for whatever fails inside of it, on Spark, and so does TRY on
DuckDB. The CASE inside keeps both from computing an expression that occurs twice ahead of the statement.

>>> fails("CAST(s AS INT)", "t IS NOT NULL")
"(try_add(DATE '2000-01-01', CASE WHEN t IS NOT NULL THEN size(array(CAST(s AS INT))) ELSE 0 END) IS NULL)"

*Blame.* Which piece of an expression failed, and why? Pieces are tried from the inside out, each after those it always
computes first; so the first that fails is the one to blame. What is computed only for some rows (a branch of CASE) is
blamed as a whole.

>>> from eventide.plan.expressions.parse import parsed
>>> types = SparkTypes({"a": "INT", "s": "STRING"})
>>> [(p.node.sql("spark"), p.why) for p in failing_expressions(parsed("a + CAST(s AS INT)", "q"), types)]
[('CAST(s AS INT)', 'the value is no INT'), ('a + CAST(s AS INT)', 'the result does not fit INT')]

*Aggregates.* A call computes for each row its FILTER, its arguments, and what it orders by. FILTER comes first; for a
row that it leaves out, nothing else is computed. Plain columns and constants are left out: there is nothing to compute.

>>> from eventide.plan.expressions.parse import parsed
>>> [a.lazy.sql("spark") for a in row_arguments(parsed("sum(a / b) FILTER (WHERE c > 0)", "q"))]
['c > 0', 'CASE WHEN c > 0 THEN a / b END']
>>> [a.lazy.sql("spark") for a in row_arguments(parsed("percentile_cont(0.5) WITHIN GROUP (ORDER BY a + 1)", "q"))]
['a + 1']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property

from sqlglot import exp

from eventide.plan.bound.query import BoundQuery
from eventide.plan.expressions.aggregate_call import decimal_of
from eventide.plan.expressions.columns import literal
from eventide.plan.expressions.parse import SPARK, WRAPPERS, aggregates_in, name_of, parsed
from eventide.plan.expressions.spark_types import DIGITS, RANKS, SparkTypes
from eventide.plan.sql.evaluation_order import in_evaluation_order, may_fail

DIVIDING = (exp.Div, exp.IntDiv, exp.Mod)
FITTING = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs)


@dataclass(frozen=True)
class FailingExpression:
    """A piece, and why it fails if nothing inside of it does; an empty text where the words do not tell."""

    node: exp.Expression
    why: str


def spelled(node: exp.Expression) -> str:
    """The piece as the user knows it: functions keep the letters they were written in.

    >>> from eventide.plan.expressions.parse import parsed
    >>> spelled(parsed("my_own(a)", "q"))
    'my_own(a)'
    """
    return node.sql(SPARK, normalize_functions=False)


def failing_expressions(node: exp.Expression, types: SparkTypes) -> list[FailingExpression]:
    """The pieces that may fail, the whole as the last of them."""
    if not may_fail(node, types) or isinstance(node, exp.Lambda):
        return []
    inside = [piece for part in _always_computed(node) for piece in failing_expressions(part, types)]
    return inside if isinstance(node, exp.Paren) else [*inside, FailingExpression(node, _why(node, types))]


def _always_computed(node: exp.Expression) -> Iterable[exp.Expression]:
    if isinstance(node, exp.Case):
        first = node.args.get("this")
        return [node.args["ifs"][0].this] if first is None else [first]
    if isinstance(node, exp.If | exp.And | exp.Or | exp.Coalesce):
        return [node.this]
    return [part for part in node.iter_expressions() if isinstance(part, exp.Expression)]


def _why(node: exp.Expression, types: SparkTypes) -> str:
    if isinstance(node, exp.Cast):
        return f"the value is no {types.of(node)}"
    if isinstance(node, exp.Bracket):
        return "there is no such element"
    numbers = all(_is_number(types.of(part)) for part in node.iter_expressions())
    if isinstance(node, DIVIDING) or (isinstance(node, exp.Anonymous) and name_of(node) == "pmod"):
        return "division by zero" if numbers else ""
    if isinstance(node, FITTING) and numbers:
        kind = types.of(node)
        return f"the result does not fit {kind}" if kind in DIGITS or decimal_of(kind or "") else ""
    return ""


def _is_number(kind: str | None) -> bool:
    return kind is not None and (kind in RANKS or decimal_of(kind) is not None)


STRUCTURE = (exp.Distinct, exp.Order, exp.Ordered, exp.IgnoreNulls, exp.RespectNulls)
"""What only arranges arguments."""


@dataclass(frozen=True)
class RowArgument:
    """An expression that is computed where the condition holds, or for every row."""

    node: exp.Expression
    condition: exp.Expression | None = None

    @property
    def lazy(self) -> exp.Expression:
        """The expression, computed only where it is wanted."""
        return self.node if self.condition is None else exp.Case().when(self.condition, self.node)


def row_arguments(aggregate: exp.Expression) -> tuple[RowArgument, ...]:
    """The arguments that are computed for each row, in their order."""
    condition: exp.Expression | None = None
    beside: list[exp.Expression] = []
    while isinstance(aggregate, WRAPPERS):
        if isinstance(aggregate, exp.Filter):
            condition = aggregate.expression.this
        elif isinstance(aggregate, exp.WithinGroup):
            beside.append(aggregate.expression)
        aggregate = aggregate.this
    computed = [part for part in _leaves([*aggregate.iter_expressions(), *beside]) if _computes(part)]
    first = () if condition is None else (RowArgument(condition),)
    return (*first, *(RowArgument(part, condition) for part in computed))


def _leaves(parts: Iterable[exp.Expr]) -> Iterator[exp.Expression]:
    for part in parts:
        if isinstance(part, STRUCTURE):
            yield from _leaves(part.iter_expressions())
        elif isinstance(part, exp.Expression):
            yield part


def _computes(part: exp.Expression) -> bool:
    bare = part.unnest()
    return not isinstance(bare, exp.Column) and bare.find(exp.Column) is not None


HAS_TIME = "pmod(__t, 2) < 2"
"""True for every row with a time. No optimizer sees that, so none takes away the CASE that depends on it."""


def fails(sql: str, guard: str = HAS_TIME) -> str:
    """TRUE where the expression raises an error, among rows for which `guard` holds; FALSE for all others."""
    return _without_number(computed([sql]), guard)


def computed(expressions: Iterable[str]) -> str:
    """A number, whatever the expressions give, that is not known without computing them.

    >>> computed(["a / b", "s"])
    'size(array(a / b)) + size(array(s))'
    """
    return " + ".join(f"size(array({sql}))" for sql in expressions)


@cache
def fail_safe_form(query: BoundQuery) -> BoundQuery:
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
        fail_safe=True,
    )


@dataclass(frozen=True)
class RowExpressions:
    """What a query computes for single rows."""

    query: BoundQuery

    @cached_property
    def types(self) -> SparkTypes:
        """The types of columns and what is made of them."""
        return SparkTypes({column.name: column.type for column in self.query.stream.columns})

    @cached_property
    def where(self) -> exp.Expression | None:
        """The condition on rows, if there is one."""
        text = self.query.query.where
        return None if text is None else parsed(text, "a condition")

    @cached_property
    def groups(self) -> tuple[RowArgument, ...]:
        """The groups, and the gap of a session, whose expressions may fail."""
        texts = [*(key.sql for key in self.query.keys), *([self.query.gap or ""] if self.query.has_own_gaps else [])]
        return self._that_may_fail(RowArgument(parsed(text, "a group")) for text in texts)

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
        cases_of = [self._reason(argument) for argument in self._spelled]
        return f"CASE {' '.join(cases_of)} ELSE {rest} END" if cases_of else rest

    def spoken(self, node: exp.Expression) -> str:
        """The expression in Spark's order of evaluation."""
        return in_evaluation_order(node, self.types).sql(SPARK)

    def in_order(self, sql: str) -> str:
        """An expression, given as text, in Spark's order of evaluation; plain columns stay as they are."""
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

    def _reason(self, argument: RowArgument) -> str:
        """When it fails: the text about the innermost piece of it that does."""
        *inner, whole = failing_expressions(argument.node, self.types)
        reasons_of = {
            fails(self.spoken(replace(argument, node=piece.node).lazy)): self._text(
                f"{spelled(piece.node)} fails{': ' if piece.why else ''}{piece.why}"
            )
            for piece in (*inner, whole)
        }
        [*conditions, last] = reasons_of
        cases = " ".join(f"WHEN {condition} THEN {reasons_of[condition]}" for condition in conditions)
        return f"WHEN {last} THEN " + (f"CASE {cases} ELSE {reasons_of[last]} END" if cases else reasons_of[last])

    def _text(self, cases_of: str) -> str:
        return literal(f"query {self.query.display_name!r}: {cases_of}")


def _without_number(number: str, guard: str) -> str:
    return f"(try_add(DATE '2000-01-01', CASE WHEN {guard} THEN {number} ELSE 0 END) IS NULL)"
