"""Read CREATE FUNCTION: a function of the user in a Python file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eventide.language.grammar.nodes import CreateFunction
from eventide.language.grammar.source_text import SourceText
from eventide.plan.expressions.columns import spark_type


@dataclass(frozen=True)
class Function:
    """A function of the user in a Python file; an expensive one is called for as few rows as possible."""

    name: str
    file: str
    returns: str | None = None
    expensive: bool = False


def function_of(tree: CreateFunction, known: Mapping[str, Function], source: SourceText) -> Function:
    """The function that a statement declares; `known` are those before it, by their names in small letters."""
    name = str(tree.this.name)
    if name.lower() in known:
        raise source.error(f"there is already a function {name!r}", tree.this)
    clauses = {str(clause.this): clause for clause in tree.args["clauses"]}
    if "FROM" not in clauses:
        raise source.error(f"where is the function {name!r}?", tree.this, "add FROM 'file.py'")
    returns = spark_type(clauses["RETURNS"].expressions[0]) if "RETURNS" in clauses else None
    return Function(name, clauses["FROM"].expressions[0].name, returns, "EXPENSIVE" in clauses)
