"""The text of a script: its statements, places in it, and errors that show them.

>>> source = SourceText("SELECT 1;\\n  DROP QUERY q", "x.sql")
>>> [(piece.place.line, piece.place.column, piece.text) for piece in source.pieces()]
[(1, 1, 'SELECT 1'), (2, 3, 'DROP QUERY q')]

*Statements.* Each knows what it is about, where it stands, and its own text.

>>> DropStatement(Place(3, 1), "DROP QUERY q", "query", "q").place.line
3
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from eventide.errors import LanguageError
from eventide.language.grammar.clauses import MisreadError
from eventide.language.grammar.dialect import Eventide, parse
from eventide.masking import masked_text


@dataclass(frozen=True, order=True)
class Place:
    """A line and a column of a text, both counted from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class ScriptStatement:
    """Where a statement stands, and its text without the semicolon."""

    place: Place
    text: str


@dataclass(frozen=True)
class StreamStatement(ScriptStatement):
    """`CREATE STREAM name ...`; `name` is the stream's name in the program."""

    name: str


@dataclass(frozen=True)
class QueryStatement(ScriptStatement):
    """`CREATE QUERY name AS SELECT ...`, `Query name: SELECT ...`, or a SELECT alone (`named` is then false)."""

    name: str
    named: bool = True


@dataclass(frozen=True)
class InterfaceStatement(ScriptStatement):
    """`CREATE INTERFACE SET name AS a, b`."""

    name: str


@dataclass(frozen=True)
class BoundsStatement(ScriptStatement):
    """`CREATE BOUNDS (temp TRAILS pressure BY 5 s, ...) [TIMEOUT length]`."""


@dataclass(frozen=True)
class FunctionStatement(ScriptStatement):
    """`CREATE FUNCTION name FROM 'file.py' [RETURNS type] [EXPENSIVE]`."""

    name: str


@dataclass(frozen=True)
class AlertStatement(ScriptStatement):
    """`CREATE ALERT name ON of WHEN condition`."""

    name: str


@dataclass(frozen=True)
class DropStatement(ScriptStatement):
    """`DROP QUERY name` or `DROP STREAM name`; `kind` is `query` or `stream`."""

    kind: str
    name: str


@dataclass(frozen=True)
class ShowStatement(ScriptStatement):
    """`SHOW STREAMS` or `SHOW QUERIES`; `kind` is `streams` or `queries`."""

    kind: str


@dataclass(frozen=True)
class ExplainStatement(ScriptStatement):
    """`EXPLAIN name`, or `EXPLAIN SELECT ...`, whose query runs as well."""

    name: str


@dataclass(frozen=True)
class SetStatement(ScriptStatement):
    """`SET key = value`."""

    key: str
    value: str


DEEPEST = 200
"""How many parentheses may be open at once; Python's own limit would come not much later."""

OPENING = re.compile(r"--[^\n]*|/\*|'|\"|`")
CLOSING = {"'": re.compile(r"(?:[^'\\]|\\.|'')*'", re.S), '"': re.compile(r'(?:[^"\\]|\\.|"")*"', re.S)}


@dataclass(frozen=True)
class StatementTokens:
    """The words of one statement, where it starts, and its own text."""

    tokens: tuple[Token, ...]
    place: Place
    text: str
    offset: int


@dataclass(frozen=True)
class SourceText:
    """A text and the name of its file, if it has one."""

    text: str
    file: str | None = None

    def place(self, offset: int) -> Place:
        """The line and column of an offset."""
        line = bisect_right(self._line_starts, max(0, offset))
        return Place(line, min(max(0, offset), len(self.text)) - self._line_starts[line - 1] + 1)

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(at + 1 for at, sign in enumerate(self.text) if sign == "\n")]

    def error(self, message: str, at: int | exp.Expr | None, hint: str | None = None) -> LanguageError:
        """An error at an offset or a node of a tree."""
        offset = at if isinstance(at, int) else offset_of(at)
        place = self.place(min(offset, len(self.text.rstrip())))
        line = masked_text(self.text.split("\n")[place.line - 1].rstrip("\r"))
        return LanguageError(message, self.file, place.line, min(place.column, len(line) + 1), line, hint)

    def pieces(self) -> Iterator[StatementTokens]:
        """The statements, one after the other."""
        try:
            tokens = Eventide().tokenize(self.text)
        except SqlglotError as error:
            raise self._unreadable() from error
        piece: list[Token] = []
        for token in (*tokens, None):
            if token is not None and token.token_type is not TokenType.SEMICOLON:
                piece.append(token)
            elif piece:
                start, end = piece[0].start, piece[-1].end + 1
                yield StatementTokens(tuple(piece), self.place(start), self.text[start:end], start)
                piece = []

    def tree(self, piece: StatementTokens) -> exp.Expr:
        """The tree of a statement."""
        self._check_depth(piece)
        try:
            found = parse(list(piece.tokens), self.text)
        except MisreadError as error:
            raise self.error(error.message, error.offset, error.hint) from error
        except SqlglotError as error:
            raise self.error(f"this cannot be read: {error}".split("\n")[0], piece.offset) from error
        except RecursionError as error:
            raise self._too_deep(piece.offset) from error
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            # The parser below was not made for every sequence of words.
            raise self.error("this statement cannot be read", piece.offset) from error
        if found is None:
            raise self.error("this statement cannot be read", piece.offset)
        return found

    def _check_depth(self, piece: StatementTokens) -> None:
        depth = 0
        for token in piece.tokens:
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.text, 0) if len(token.text) == 1 else 0
            if depth > DEEPEST:
                raise self._too_deep(token.start)

    def _too_deep(self, offset: int) -> LanguageError:
        return self.error("this is nested too deeply: use WITH, or a query over a query", offset)

    def _unreadable(self) -> LanguageError:
        """Find the quote or comment that is not closed."""
        offset = 0
        while found := OPENING.search(self.text, offset):
            opening = found.group()
            if opening.startswith("--"):
                offset = found.end()
                continue
            if opening in CLOSING:
                closed = CLOSING[opening].match(self.text, found.end())
                offset = closed.end() if closed else -1
            else:
                end = self.text.find("`" if opening == "`" else "*/", found.end())
                offset = end + len(opening) if end >= 0 else -1
            if offset < 0:
                what = "comment" if opening == "/*" else "text" if opening in CLOSING else "name"
                return self.error(f"this {what} is not closed", found.start(), f"it begins with {opening} here")
        return self.error("this text cannot be read", 0)


def offset_of(node: exp.Expr | None) -> int:
    """Where a node begins: the first place that it or a part of it knows."""
    if node is None:
        return 0
    known = [int(part.meta["start"]) for part in node.walk() if "start" in part.meta]
    if known:
        return min(known)
    return offset_of(node.parent) if node.parent is not None else 0
