"""Expressions as words of Spark's SQL: names quoted where they must be, parentheses where others stand beside.

>>> column_of("from").sql(SPARK), column_of("speed").sql(SPARK), spark_text(wrapped(exp.column("a") + exp.column("b")))
('`from`', 'speed', '(a + b)')
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot import exp

from eventide.plan.expressions.spark_dialect import SPARK, Spark4

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MEANING_SOMETHING = {
    "ALL",
    "CASE",
    "DESCRIBE",
    "FALSE",
    "INTERVAL",
    "NULL",
    "TRUE",
    *Spark4.Parser.NO_PAREN_FUNCTION_PARSERS,
}
RESERVED_WORDS = MEANING_SOMETHING | {
    word
    for word, token in Spark4.Tokenizer.KEYWORDS.items()
    if token not in Spark4.Parser.ID_VAR_TOKENS or token in Spark4.Parser.NO_PAREN_FUNCTIONS
}
"""Words such as FROM and CURRENT_DATE, which name a column only in backticks."""


def spark_text(expression: exp.Expr) -> str:
    """The expression in Spark's SQL, without its comments: they are no part of what is computed."""
    return str(expression.sql(SPARK, comments=False))


def wrapped(expression: exp.Expr) -> exp.Expr:
    """The expression in parentheses, where others might be put beside it."""
    simple = isinstance(expression, exp.Column | exp.Literal | exp.Paren | exp.Func)
    return expression if simple and not isinstance(expression, exp.Connector) else exp.Paren(this=expression)


def column_of(name: str, of: str | None = None) -> exp.Column:
    """A column under its declared name, quoted where it must be; `of` is the input of a join that has it."""
    return exp.column(_named(name), table=_named(of) if of is not None else None)


def all_of(conditions: Iterable[exp.Expr]) -> str | None:
    """Conditions that must all hold, as one; None where there is none."""
    return " AND ".join(spark_text(wrapped(condition)) for condition in conditions) or None


def conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    """What AND holds together, one by one.

    >>> [one.sql() for one in conjuncts(exp.maybe_parse("a = 1 AND (b OR c) AND (d AND e)"))]
    ['a = 1', '(b OR c)', 'd', 'e']
    """
    inner = condition.this if isinstance(condition, exp.Paren) else condition
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if not isinstance(inner, exp.And):
        return [condition]
    found: list[exp.Expr] = []
    rest: list[exp.Expr] = [inner]
    # Not by recursion: a long chain of ANDs is one deep tree.
    while rest:
        node = rest.pop()
        bare = node
        while isinstance(bare, exp.Paren):
            bare = bare.this
        if isinstance(bare, exp.And):
            rest += [bare.expression, bare.this]
        else:
            found.append(node)
    return found


def _named(name: str) -> exp.Identifier:
    plain = PLAIN.fullmatch(name) and name.upper() not in RESERVED_WORDS
    return exp.to_identifier(name, quoted=not plain)
