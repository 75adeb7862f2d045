"""Where the results of a query go: `INTO 'dir' FORMAT parquet`, `INTO csv 'dir'`, `INTO CONSOLE`.

Law: a query without INTO goes to the console; a directory without a format holds Parquet.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from eventide.language.nearest import meant
from eventide.language.nodes import Clause
from eventide.language.source_text import SourceText
from eventide.language.streams import option_pairs

DIRECTORIES = ("parquet", "json", "csv")
OTHERS = ("console", "memory")


@dataclass(frozen=True)
class Output:
    """Where the results of a query go: `kind` is `console`, `memory`, `parquet`, `json` or `csv`."""

    query: str
    kind: str = "console"
    path: str | None = None
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def output_of(query: str, written: list[Clause], source: SourceText) -> Output:
    """The output that the clauses behind a SELECT name."""
    clauses = {str(clause.this): clause for clause in written if clause.this != "EMIT IMMEDIATELY"}
    into = clauses.get("INTO")
    if into is None:
        for clause in clauses.values():
            raise source.error(f"{clause.this} without INTO", clause, "write INTO 'directory' FORMAT parquet")
        return Output(query)
    names = [part for part in into.expressions if isinstance(part, exp.Identifier)]
    paths = [part for part in into.expressions if isinstance(part, exp.Literal)]
    if "FORMAT" in clauses:
        if names:
            raise source.error("the format is given twice", clauses["FORMAT"])
        names = clauses["FORMAT"].expressions
    kind = names[0].name.lower() if names else "parquet"
    path = paths[0].name if paths else None
    if kind not in (*DIRECTORIES, *OTHERS):
        way = None if path or "FORMAT" in clauses else f"a directory stands in quotes: INTO '{names[0].name}'"
        raise source.error(f"results cannot go to {kind!r}", names[0], way or meant(kind, (*DIRECTORIES, *OTHERS)))
    if kind in DIRECTORIES and not path:
        raise source.error(f"{kind} needs a directory", into, f"write INTO 'directory' FORMAT {kind}")
    if kind in OTHERS and path is not None:
        raise source.error(f"{kind} writes no files", paths[0], "leave the path out")
    return Output(query, kind, path, option_pairs(clauses.get("OPTIONS"), source))
