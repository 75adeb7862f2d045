"""Read EXISTS and IN (SELECT ..) in WHERE as semi and anti joins.

Law: `WHERE EXISTS (SELECT .. FROM b WHERE ..)` chooses the rows that have a partner in b by that condition, NOT EXISTS
those that have none, `x IN (SELECT y FROM b WHERE ..)` those with a partner whose y is x. A name in the sub-query is a
column of b if b has one of that name.

>>> import sqlglot
>>> tree = sqlglot.parse_one("SELECT * FROM a WHERE v > 1 AND EXISTS (SELECT 1 FROM b WHERE b.t = a.t)", read="spark")
>>> as_semi_join(tree, SourceText(""), lambda table: set()).sql("spark")
'SELECT * FROM a LEFT SEMI JOIN b ON (b.t = a.t) WHERE v > 1'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from eventide.language.grammar.source_text import SourceText
from eventide.language.scope.expression_text import conjuncts, wrapped

PLAIN = ("expressions", "from_", "where")
"""What a sub-query may have."""

ColumnsOf = Callable[[exp.Expr], set[str]]
"""The columns of what a sub-query reads, in small letters."""


def as_semi_join(select: exp.Select, source: SourceText, columns_of: ColumnsOf) -> exp.Select:
    """The SELECT with a join in the place of EXISTS or IN; itself where it has none."""
    where = select.args.get("where")
    if where is None or where.find(exp.Query) is None:
        return select
    conditions = conjuncts(where.this)
    inside = [one for one in conditions if one.find(exp.Query) is not None]
    if len(inside) > 1 or select.args.get("joins"):
        raise source.error(
            "several sub-queries, or one beside joins, cannot be run yet",
            inside[-1],
            "put one into a sub-query in FROM",
        )
    node, negated = inside[0].unnest(), False
    if isinstance(node, exp.Not):
        node, negated = node.this.unnest(), True
    if isinstance(node, exp.In) and negated:
        raise source.error("NOT IN chooses nothing beside a NULL", node, "write NOT EXISTS (SELECT .. WHERE ..)")
    below = node.this if isinstance(node, exp.Exists) else node.args.get("query") if isinstance(node, exp.In) else None
    while isinstance(below, exp.Subquery | exp.Paren):
        below = below.this
    if not isinstance(below, exp.Select):
        at = inside[0].find(exp.Query)
        raise source.error("a query inside an expression cannot be run yet", at, "join what it gives")
    return _joined(
        select, [one for one in conditions if one is not inside[0]], node, below, negated, source, columns_of
    )


def _joined(
    select: exp.Select,
    rest: list[exp.Expr],
    node: exp.Expr,
    below: exp.Select,
    negated: bool,
    source: SourceText,
    columns_of: ColumnsOf,
) -> exp.Select:
    origin = below.args.get("from_")
    more = [key for key, part in below.args.items() if part and key not in PLAIN]
    if origin is None or more:
        raise source.error(
            "this sub-query has more than FROM and WHERE", below, "write it as a query, and name that in FROM"
        )
    table, around = origin.this, select.args["from_"].this
    below = below.copy()
    _owned(below, table, columns_of(table))
    conditions = conjuncts(below.args["where"].this) if below.args.get("where") is not None else []
    if isinstance(node, exp.In):
        if len(below.expressions) != 1:
            raise source.error("IN takes a query of one column", below)
        equal = exp.EQ(this=wrapped(node.this.copy()), expression=wrapped(below.expressions[0].unalias()))
        _owned(equal, around, columns_of(around))
        conditions.append(equal)
    if not conditions:
        raise source.error("this sub-query says nothing of the times of both", below, "add WHERE")
    found = select.copy()
    on = exp.and_(*(wrapped(one.copy()) for one in conditions), copy=False)
    join = exp.Join(this=table.copy(), side="LEFT", kind="ANTI" if negated else "SEMI", on=on)
    if (window := found.args["from_"].this.args.get("stream_window")) is not None:
        # Behind an input of a join it would be one of its bounds.
        found.args["from_"].this.set("stream_window", None)
        found.set("windows", [*(found.args.get("windows") or ()), window])
    found.set("joins", [join])
    found.set("where", exp.Where(this=exp.and_(*(one.copy() for one in rest), copy=False)) if rest else None)
    return found


def _owned(tree: exp.Expr, table: exp.Expr, columns: set[str]) -> None:
    """Say of columns that stand alone whose they are, where that has them."""
    for column in tree.find_all(exp.Column):
        if len(column.parts) == 1 and column.name.lower() in columns:
            column.set("table", exp.to_identifier(table.alias_or_name))


def scalars_in(tree: exp.Expr | None) -> Iterator[exp.Expr]:
    """The queries inside an expression that stand for a value, the outermost of them."""
    if tree is None:
        return
    if isinstance(tree, exp.Subquery | exp.All):
        yield tree
        return
    for key, child in ((child.arg_key, child) for child in tree.iter_expressions()):
        if not (isinstance(tree, exp.In) and key == "query") and not isinstance(tree, exp.Exists | exp.Query):
            yield from scalars_in(child)


def has_scalars(select: exp.Expr) -> bool:
    """Whether a SELECT has queries in its expressions that stand for values."""
    parts = (*select.expressions, select.args.get("having"), select.args.get("where"), select.args.get("order"))
    return any(next(scalars_in(part), None) is not None for part in parts)
