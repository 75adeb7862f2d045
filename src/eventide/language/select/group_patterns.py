"""Read a condition on groups as patterns: what `PROD WHERE` and `eventide prod --where` take.

Law: the condition is a conjunction of patterns, one for each group: `=`, `IN`, `BETWEEN`, `>=`, `<=`, `IS NULL`, and OR
between patterns of one group. Values are read as texts that the type of the group spells out later; whatever else a
condition may say is refused where it stands.

>>> patterns_of_text("segment BETWEEN 3 AND 7 AND lane IN (1, 2) AND road = 'A1'")
{'segment': {'between': ['3', '7']}, 'lane': ['1', '2'], 'road': 'A1'}
>>> patterns_of_text("3 <= segment AND segment <= 7 AND (lane = 1 OR lane IS NULL)")
{'segment': {'between': ['3', '7']}, 'lane': ['1', None]}
"""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.eventtime.pattern import BETWEEN
from eventide.language.grammar.source_text import SourceText

WAYS = "write group = value, IN (..), BETWEEN .. AND .., >=, <= or IS NULL, with AND between groups"
FLIPPED = {exp.GTE: exp.LTE, exp.LTE: exp.GTE, exp.EQ: exp.EQ}


def patterns_of_text(text: str) -> dict[str, Any]:
    """The patterns that a text says, as data by the name of the group.

    >>> patterns_of_text("segment > 3")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: 'segment > 3' is no pattern of a group: write group = value, IN (..), BETWEEN .. \
AND .., >=, <= or IS NULL, with AND between groups
    """
    try:
        found = sqlglot.parse_one(text, read="spark")
    except sqlglot.errors.SqlglotError:
        raise DeclarationError(f"the condition {text!r} cannot be read: {WAYS}") from None
    try:
        return _patterns(found)
    except _NoPatternError as refused:
        raise DeclarationError(f"{refused.node.sql('spark')!r} {refused}: {WAYS}") from None


def patterns_of(condition: exp.Expr, source: SourceText) -> dict[str, Any]:
    """The patterns that a condition in a script says, as data by the name of the group."""
    try:
        return _patterns(condition)
    except _NoPatternError as refused:
        raise source.error(f"{refused.node.sql('spark')!r} {refused}", condition, WAYS) from None


class _NoPatternError(Exception):
    def __init__(self, node: exp.Expr, why: str = "is no pattern of a group") -> None:
        super().__init__(why)
        self.node = node


def _patterns(node: exp.Expr) -> dict[str, Any]:
    if isinstance(node, exp.Paren):
        return _patterns(node.this)
    if isinstance(node, exp.And):
        return _both(node)
    if isinstance(node, exp.Or):
        left, right = _patterns(node.left), _patterns(node.right)
        if left.keys() != right.keys() or len(left) != 1:
            raise _NoPatternError(node, "has OR between different groups")
        return {name: [*_listed(left[name]), *_listed(right[name])] for name in left}
    name, data = _pattern(node)
    return {name: data}


def _both(node: exp.And) -> dict[str, Any]:
    left, right = _patterns(node.left), _patterns(node.right)
    for name in left.keys() & right.keys():
        edges = [one[BETWEEN] for one in (left[name], right[name]) if isinstance(one, dict)]
        sides = [[edge for edge in pair if edge is not None] for pair in zip(*edges, strict=True)]
        if len(edges) != 2 or any(len(side) > 1 for side in sides):
            raise _NoPatternError(node, f"has two patterns for {name!r}")
        left[name] = {BETWEEN: [side[0] if side else None for side in sides]}
    return left | {name: data for name, data in right.items() if name not in left}


def _pattern(node: exp.Expr) -> tuple[str, Any]:
    if isinstance(node, exp.In) and node.expressions:
        return _name(node.this, node), [_value(one, node) for one in node.expressions]
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        edges = [_value(node.args[side], node) for side in ("low", "high")]
        return _name(node.this, node), {BETWEEN: edges}
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return _name(node.this, node), None
    kind = type(node)
    if kind in FLIPPED:
        this, other = node.this, node.expression
        if isinstance(other, exp.Column):
            this, other, kind = other, this, FLIPPED[kind]
        name, value = _name(this, node), _value(other, node)
        if kind is exp.EQ:
            return name, value
        return name, {BETWEEN: [value, None] if kind is exp.GTE else [None, value]}
    raise _NoPatternError(node)


def _listed(data: Any) -> list[Any]:
    return data if isinstance(data, list) else [data]


def _name(node: exp.Expr, around: exp.Expr) -> str:
    if not isinstance(node, exp.Column) or node.table:
        raise _NoPatternError(around)
    return node.name


def _value(node: exp.Expr, around: exp.Expr) -> str:
    sign = "-" if isinstance(node, exp.Neg) else ""
    found = node.this if isinstance(node, exp.Neg | exp.Cast) else node
    if isinstance(found, exp.Boolean):
        return "true" if found.this else "false"
    if not isinstance(found, exp.Literal):
        raise _NoPatternError(around)
    return f"{sign}{found.this}"
