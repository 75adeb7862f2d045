"""The door of the language: a text is read, and everything in it is checked, before anything runs.

Law: `read_script` gives a `Script` whose program is whole, or raises a `LanguageError` that shows the place. Nothing
else comes out of it, whatever the text.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from eventide.errors import LanguageError
from eventide.language.statements import Place, Statement
from eventide.plan.program import Program


@dataclass(frozen=True)
class Output:
    """Where the results of a query go: `kind` is `console`, `memory`, `parquet`, `json` or `csv`."""

    query: str
    kind: str = "console"
    path: str | None = None
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Warning:
    """What is no mistake but may not be meant: the message, and where."""

    message: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.message}"


@dataclass(frozen=True)
class Function:
    """A function of the user in a Python file; an expensive one is called for as few rows as possible."""

    name: str
    file: str
    returns: str | None = None
    expensive: bool = False


@dataclass(frozen=True)
class Script:
    """What a text says: the program, where its results go, settings, and the statements themselves in order."""

    program: Program
    outputs: tuple[Output, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    statements: tuple[Statement, ...] = ()
    warnings: tuple[Warning, ...] = ()
    functions: tuple[Function, ...] = ()


def read_script(text: str, file: str | None = None) -> Script:
    """Read a text and check all of it; `file` is its name in errors."""
    if not text.strip():
        return Script(Program(()))
    first = Place(1, 1)
    raise LanguageError("statements cannot be read yet", file, first.line, first.column, text.split("\n")[0])
