"""Columns that CREATE STREAM computes: `ts AS timestamp_millis(ms)`, and TIMESTAMP BY an expression.

Law: an expression is over the columns that are read, one row at a time, and its type is known before anything runs: by
its words, or because it is declared (`ts TIMESTAMP AS ..`). TIMESTAMP BY an expression is the same as a column of the
name `row_time` that is computed by it, and TIMESTAMP BY that.
"""

from __future__ import annotations

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.language.grammar.nodes import Clause, ComputedColumn, CreateStream
from eventide.language.grammar.source_text import SourceText
from eventide.language.grammar.spelling import meant
from eventide.language.scope.expression_text import has_aggregate, spark_text
from eventide.plan.expressions.columns import Column, spark_type
from eventide.plan.expressions.parse import refused_call
from eventide.plan.expressions.spark_types import SparkTypes

ROW_TIME = "row_time"

Computed = tuple[tuple[str, str], ...]
"""The names of columns, each with its expression."""


def computed_columns(
    tree: CreateStream, read: tuple[Column, ...], clauses: dict[str, Clause], source: SourceText
) -> tuple[tuple[Column, ...], Computed]:
    """All columns of a stream, in their order, and how some are computed; TIMESTAMP BY in `clauses` names one then."""
    known = {column.name.lower(): column for column in read}
    columns: list[Column] = []
    computed: list[tuple[str, str]] = []
    for one in tree.args["columns"]:
        if not isinstance(one, ComputedColumn):
            columns.append(known[one.name.lower()])
            continue
        if one.name.lower() in {column.name.lower() for column in (*columns, *read)}:
            raise source.error(f"the column {one.name!r} is declared twice", one)
        columns.append(Column(one.name, _type(one.expression, one.args.get("kind"), one.name, read, source)))
        computed.append((one.name, spark_text(one.expression)))
    by = clauses.get("TIMESTAMP BY")
    if by is not None and not isinstance(by.expressions[0], exp.Identifier):
        expression = by.expressions[0]
        if ROW_TIME in {column.name.lower() for column in columns}:
            raise source.error(
                f"the time of the stream would be a column {ROW_TIME!r}, and there is one",
                by,
                "compute it as a column: ts AS .., and TIMESTAMP BY ts",
            )
        columns.append(Column(ROW_TIME, _type(expression, None, ROW_TIME, read, source)))
        computed.append((ROW_TIME, spark_text(expression)))
        named = Clause(this=by.this, expressions=[exp.to_identifier(ROW_TIME)])
        named.meta.update(by.meta)
        clauses["TIMESTAMP BY"] = named
    if computed and not read:
        raise source.error("every column of this stream is computed, and none is read", tree, "declare what is read")
    return tuple(columns), tuple(computed)


def _type(expression: exp.Expr, kind: exp.Expr | None, name: str, read: tuple[Column, ...], source: SourceText) -> str:
    names = {column.name.lower() for column in read}
    for column in expression.find_all(exp.Column):
        if column.parts[0].name.lower() not in names:
            raise source.error(
                f"there is no column {column.parts[0].name!r} that is read",
                column,
                meant(column.parts[0].name, [one.name for one in read]),
            )
    if has_aggregate(expression) or expression.find(exp.Query, exp.Window) is not None:
        raise source.error("a computed column is over one row", expression, "aggregate in a query over the stream")
    if (refused := refused_call(expression)) is not None:
        raise source.error(refused[1], refused[0], refused[2])
    found: exp.DataType | str | None = kind if isinstance(kind, exp.DataType) else None
    if found is None and isinstance(expression, exp.Expression):
        found = SparkTypes({column.name: column.type for column in read}).of(expression)
    if found is None:
        raise source.error(
            f"the words do not tell the type of {name!r}",
            expression,
            f"declare it: {name} TIMESTAMP AS {spark_text(expression)}",
        )
    try:
        return spark_type(found)
    except (ValueError, KeyError, DeclarationError) as error:
        raise source.error(f"{name!r} can be no column: {error}", kind or expression) from error
