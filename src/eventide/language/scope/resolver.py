"""Names in expressions: each column becomes the expression that it stands for.

Law: a name is a column of what is read, or the name of the input and a column of that; a column that several inputs of
a join have must say which it means. What nobody knows is an error at its place, with the nearest name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from eventide.language.grammar.source_text import SourceText, offset_of
from eventide.language.grammar.spelling import meant
from eventide.language.scope.expression_text import wrapped
from eventide.language.scope.relations import Columns, Scope
from eventide.plan.declared.stream import WINDOW_END, WINDOW_START

EDGES = (WINDOW_START, WINDOW_END, "window")
"""What is called so in every result, and is known only when its window is told."""


@dataclass(frozen=True)
class Resolver:
    """Spells expressions out over the columns of what is read."""

    source: SourceText

    def spelled_out(self, expression: exp.Expr, level: Scope, also: Iterable[str] = ()) -> exp.Expr:
        """The expression over the columns of the stream; names in `also` stay."""
        for node in expression.find_all(exp.Query, exp.Max, exp.Min, exp.Is, exp.Star):
            self._check(node, expression)
        names = {name.lower() for name in also}
        found = expression.copy()
        root = exp.Paren(this=found)
        for column in list(root.find_all(exp.Column)):
            if not isinstance(column.this, exp.Star) and not is_lambda_name(column):
                column.replace(self._resolved(column, level, names))
        result = root.this
        result.pop()
        return result  # type: ignore[no-any-return]

    def _check(self, node: exp.Expr, expression: exp.Expr) -> None:
        """Refuse what no expression over single columns can hold."""
        if isinstance(node, exp.Query):
            raise self.source.error("a query inside an expression cannot be run yet", node, "join what it gives")
        if isinstance(node, exp.Max | exp.Min) and node.expressions:
            several = "greatest" if isinstance(node, exp.Max) else "least"
            raise self.source.error("an aggregate takes one value", node, f"of several values take {several}(..)")
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Literal | exp.Column):
            raise self.source.error("IS is for NULL, TRUE and FALSE", node.expression, "write = instead")
        if isinstance(node, exp.Star):
            around = node.parent if not isinstance(node.parent, exp.Column) else node.parent.parent
            if not isinstance(around, exp.Count):
                raise self.source.error(
                    "* stands for all columns, and no expression takes them all", expression, "name the columns"
                )

    def _resolved(self, column: exp.Column, level: Scope, also: set[str]) -> exp.Expr:
        columns, parts = place_of(column, level)
        name = parts[0].name.lower()
        if name not in columns:
            if len(parts) == 1 and name in also:
                return exp.column(parts[0].copy())
            if columns is level.columns and name in level.shared:
                owners = level.shared[name]
                raise self.source.error(
                    f"{parts[0].name!r} is a column of {' and of '.join(owners)}",
                    parts[0],
                    f"say which: {' or '.join(f'{owner}.{parts[0].name}' for owner in owners)}",
                )
            if columns is level.columns and level.owned and len(parts) > 1:
                inputs = list(dict.fromkeys(level.owned))
                raise self.source.error(
                    f"no input of this join is called {parts[0].name!r}, and no column",
                    parts[0],
                    meant(parts[0].name, inputs),
                )
            if name in EDGES:
                raise self.source.error(
                    f"{name!r} is in every result as it is, and cannot be computed with or named otherwise here",
                    parts[0],
                    "read the results: SELECT window_start AS .. FROM (SELECT .. FROM .. [RANGE ..])",
                )
            owner = min(level.aliases, default=None)
            if columns is level.columns and len(parts) > 1 and parts[1].name.lower() in columns and owner is not None:
                raise self.source.error(
                    f"nothing here is called {parts[0].name!r}", parts[0], f"did you mean {owner}.{parts[1].name}?"
                )
            known = [spelled for spelled, _ in columns.values()] + [other for other in also if other not in columns]
            known += [f"{level.shared[key][0]}.{key}" for key in level.shared] if columns is level.columns else []
            raise self.source.error(f"there is no column {parts[0].name!r}", parts[0], meant(parts[0].name, known))
        place = offset_of(parts[0])
        inner = wrapped(columns[name][1].copy())
        inner.meta["start"] = place
        if len(parts) == 1:
            return inner
        if isinstance(inner, exp.Column) and inner.table:
            # A field of a struct, not a column of a table of a database.
            inner = exp.Paren(this=inner)
        for part in parts[1:]:
            inner = exp.Dot(this=inner, expression=part.copy())
        return inner


def place_of(column: exp.Column, level: Scope) -> tuple[Columns, list[exp.Expr]]:
    """Among which columns a name is to be looked up, and what is left of it without the name of its input."""
    parts = list(column.parts)
    first = parts[0].name.lower()
    second = parts[1].name.lower() if len(parts) > 1 else ""
    if level.owned:
        mine = level.owned.get(first)
        if second and mine is not None and (second in mine or first not in level.columns):
            return mine, parts[1:]
        if len(parts) > 2 and f"{first}_{second}" in level.owned:
            return level.owned[f"{first}_{second}"], parts[2:]
        return level.columns, parts
    if second and first in level.aliases and (second in level.columns or first not in level.columns):
        return level.columns, parts[1:]
    if len(parts) > 2 and f"{first}_{second}" in level.aliases:
        return level.columns, parts[2:]
    return level.columns, parts


def is_lambda_name(column: exp.Column) -> bool:
    """Whether this is a parameter of a lambda around it, and no column."""
    around = column.find_ancestor(exp.Lambda)
    while around is not None:
        if column.parts[0].name.lower() in {parameter.name.lower() for parameter in around.expressions}:
            return True
        around = around.find_ancestor(exp.Lambda)
    return False


def stars_in(item: exp.Expr, level: Scope, source: SourceText) -> list[tuple[str, exp.Expr]] | None:
    """The columns that `*` or `a.*` stands for; None where the item is no star."""
    star = isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))
    if not star:
        return None
    inner = item.this if isinstance(item, exp.Column) else item
    if any(inner.args.get(key) for key in ("except_", "replace", "rename")):
        raise source.error("* with EXCEPT cannot be run yet", item, "name the columns")
    owner = item.table.lower() if isinstance(item, exp.Column) else ""
    known = level.stars or {"": level.all_columns, **dict.fromkeys(level.aliases, level.all_columns)}
    if owner not in known:
        raise source.error(f"there is no input {owner!r}", item, meant(owner, filter(None, known)))
    return known[owner]
