"""Write expressions as Spark's SQL, name result columns, and read other spellings of aggregates.

*Text.* Names are quoted where they must be, and parts stand in parentheses where others stand beside them.

>>> column_of("from").sql(SPARK), column_of("speed").sql(SPARK), spark_text(wrapped(exp.column("a") + exp.column("b")))
('`from`', 'speed', '(a + b)')

*Names.* Result columns that were given no name get one. A name says what it names, is a plain identifier, and no two
columns of a query share one.

>>> from eventide.plan.expressions.parse import parsed
>>> [name_for(parsed(sql, "q")) for sql in ("MAX(speed)", "count(*)", "max(p) - min(p)", "s.field", "avg(a.b) / 2")]
['max_speed', 'count', 'max_p_min_p', 'field', 'avg_b_2']

*Aggregates.* They are read in the words of the papers, and of those who mistype them.

>>> from eventide.plan.expressions.parse import parsed
>>> has_aggregate(parsed("max(x) - 1", "q")), has_aggregate(parsed("upper(x)", "q")), meant_aggregate("avgg")
(True, False, 'avg')
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sqlglot import exp

from eventide.language.grammar.spelling import nearest
from eventide.plan.declared.query import RESERVED
from eventide.plan.expressions.parse import OTHER_AGGREGATES, aggregates_in, name_of
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
    """The expression, in parentheses if it needs them beside other operators."""
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
    is_identifier = PLAIN.fullmatch(name) and name.upper() not in RESERVED_WORDS
    return exp.to_identifier(name, quoted=not is_identifier)


LONGEST = 60


def name_for(expression: exp.Expr) -> str:
    """A name from the words of an expression."""
    words = list(_words(expression))
    name = re.sub(r"[\W_]+", "_", "_".join(words)).strip("_")[:LONGEST].strip("_") or "value"
    name = f"_{name}" if name[0].isdigit() else name
    return f"{name}_value" if name.lower() in RESERVED else name


def unused(name: str, used: Iterable[str]) -> str:
    """The name, with a number behind it if it is taken.

    >>> unused("max_speed", ["max_speed", "max_speed_2"])
    'max_speed_3'
    """
    there = {one.lower() for one in used}
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


KNOWN = sorted(
    {name.lower() for call in exp.ALL_FUNCTIONS if issubclass(call, exp.AggFunc) for name in call.sql_names()}
    | OTHER_AGGREGATES
)

PAPER_NAMES = {"average": exp.Avg}
"""What the papers call an aggregate that Spark calls otherwise."""


def has_aggregate(expression: exp.Expr) -> bool:
    """Whether an expression has an aggregate in it."""
    return isinstance(expression, exp.Expression) and bool(aggregates_in(expression))


def inside_aggregates(expression: exp.Expr) -> set[int]:
    """The nodes inside aggregates, by identity."""
    assert isinstance(expression, exp.Expression)
    return {id(node) for call in aggregates_in(expression) for node in call.walk()}


def meant_aggregate(name: str) -> str | None:
    """The aggregate whose name is nearest."""
    return nearest(name, KNOWN)


def in_spark_words(node: exp.Expr) -> exp.Expr:
    """The node, with a paper's name for an aggregate replaced by Spark's."""
    if isinstance(node, exp.Anonymous) and node.name.lower() in PAPER_NAMES and len(node.expressions) == 1:
        found = PAPER_NAMES[node.name.lower()](this=node.expressions[0])
        found.meta.update(node.meta)
        return found
    return node
