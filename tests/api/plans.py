"""Plans, made comparable: what was written in Python and in SQL is the same when these are equal."""

from __future__ import annotations

from dataclasses import replace

from eventide.plan.declared.program import Operator, Program
from eventide.plan.declared.query import Named, Query
from eventide.plan.expressions.parse import parsed
from eventide.plan.expressions.spark_dialect import SPARK


def bare(program: Program) -> Program:
    """The same program without what its streams read, which Python gives by itself."""
    assert all(stream.input is not None for stream in program.streams)
    return replace(program, streams=tuple(replace(stream, input=None) for stream in program.streams))


def normal(program: Program) -> Program:
    """The same program with every expression as the parser writes it: `avg(x)` is `AVG(x)`, and `(x)` is `x`."""
    return replace(
        program,
        queries=tuple(_normal(query) for query in program.queries),
        operators=tuple(_normal_operator(operator) for operator in program.operators),
    )


def _normal_operator(operator: Operator) -> Operator:
    select = tuple(Named(each.name, _text(each.sql)) for each in operator.select)
    return replace(operator, select=select, where=operator.where and _text(operator.where))


def _normal(query: Query) -> Query:
    return replace(
        query,
        select=tuple(Named(each.name, _text(each.sql)) for each in query.select),
        groups=tuple(Named(each.name, _text(each.sql)) for each in query.groups),
        where=query.where and _text(query.where),
        having=query.having and _text(query.having),
        order=tuple(replace(each, sql=_text(each.sql)) for each in query.order),
    )


def _text(sql: str) -> str:
    return parsed(sql, "a test").unnest().sql(SPARK)
