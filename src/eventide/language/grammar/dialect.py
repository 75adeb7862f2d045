"""The dialect: Spark's, and on this page all that we add to it.

Statements: CREATE STREAM, CREATE QUERY, `Query name: SELECT`, CREATE BOUNDS, CREATE INTERFACE SET, CREATE FUNCTION,
CREATE ALERT, DROP, SHOW, EXPLAIN, SET. In a SELECT: a window in brackets behind a stream, or `WINDOW [...]` before or
after WHERE; `[interface].stream`; Gigascope's OUTER_JOIN before FROM; a name for an expression in GROUP BY; `word
foundIn(text)` for `foundIn(word, text)`; behind it, PROD and when, STATE TTL, CLOSE BY SOURCE, EMIT and INTO.

>>> read("select Max(speed) from S Window[Range=30 Second, Slide=10 Second]").sql(EVENTIDE)
'SELECT MAX(speed) FROM S [RANGE 30 second SLIDE 10 second]'
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.tokenizer_core import Token, TokenType

from eventide.language.grammar.clause_words import (
    BEGINNINGS,
    BOUNDS_CLAUSES,
    FUNCTION_CLAUSES,
    INTO_CLAUSES,
    PROD_CLAUSES,
    QUEUE_CLAUSES,
    STATE_CLAUSES,
    STREAM_CLAUSES,
    WINDOW_CLAUSES,
)
from eventide.language.grammar.clauses import MisreadError
from eventide.language.grammar.nodes import (
    ComputedColumn,
    CreateBounds,
    CreateFunction,
    CreateInterfaces,
    CreateQuery,
    CreateStream,
    EventideNode,
    Order,
    StreamWindow,
)
from eventide.language.grammar.window_tables import WindowTableParser
from eventide.plan.expressions.spark_dialect import Spark4

TABLE_CLAUSES = {
    **{words: STREAM_CLAUSES[words] for words in ("FROM", "OPTIONS", "FORMAT")},
    "REFRESH EVERY": ("amount",),
}
STATEMENTS = (
    "CREATE STREAM",
    "CREATE TABLE",
    "CREATE QUERY",
    "CREATE BOUNDS",
    "CREATE INTERFACE SET",
    "CREATE FUNCTION",
    "CREATE ALERT",
    "SELECT",
    "DROP",
    "SHOW",
    "EXPLAIN",
    "SET",
)
BEHIND = (("EMIT", "IMMEDIATELY"), ("EMIT", "IN"), ("EMIT", "CHANGES"), ("CLOSE", "BY"))
"""Words that open a clause where a name of what is read might stand."""
JOIN_WORDS = ("INNER_JOIN", "LEFT_OUTER_JOIN", "RIGHT_OUTER_JOIN", "OUTER_JOIN")
"""Gigascope's words before FROM; WHERE is then the condition of the join."""


class Eventide(Spark4):
    """Spark's SQL with streams."""

    class Tokenizer(Spark4.Tokenizer):
        """Cuts a text into words; no statement is passed on unread."""

        COMMANDS: ClassVar[set[TokenType]] = set()

    class Parser(WindowTableParser):
        """Makes trees of words."""

        RANGE_PARSERS = {  # noqa: RUF012 - as sqlglot declares it
            **Spark4.Parser.RANGE_PARSERS,
            TokenType.VAR: lambda self, this: self._parse_function_behind(this),
        }

        def _parse_statement(self) -> exp.Expr | None:
            if self._index > 0:
                # The inside of a WITH is read as a statement, too.
                if not self._at_query():
                    self._refuse("expected SELECT", ("SELECT",))
                return super()._parse_statement()
            if self._match_text_seq("CREATE", "STREAM"):
                stream = self._parse_stream_name()
                return CreateStream(
                    this=stream, columns=self._parse_columns(), clauses=self._parse_each(STREAM_CLAUSES)
                )
            if self._match_text_seq("CREATE", "TABLE"):
                table, columns = self._parse_stream_name(), self._parse_columns()
                return CreateStream(this=table, columns=columns, clauses=self._parse_each(TABLE_CLAUSES), kind="TABLE")
            if self._match_text_seq("CREATE", "BOUNDS"):
                bounds = self._parse_list(lambda: self._parse_bound(self._parse_member))
                return CreateBounds(expressions=bounds, clauses=self._parse_each(BOUNDS_CLAUSES))
            if self._match_text_seq("CREATE", "INTERFACE", "SET"):
                name = self._parse_name()
                self._expect("AS")
                return CreateInterfaces(this=name, expressions=self._parse_csv(self._parse_name))
            if self._match_text_seq("CREATE", "FUNCTION"):
                return CreateFunction(this=self._parse_name(), clauses=self._parse_each(FUNCTION_CLAUSES))
            if self._match_text_seq("CREATE", "ALERT"):
                return self._parse_alert(self._parse_name())
            if self._match_text_seq("CREATE", "QUERY"):
                name = self._parse_name()
                self._expect("AS")
                return self._parse_query(name)
            if self._curr.text.upper() == "QUERY" and self._match_text_seq("QUERY"):
                name = self._parse_name()
                self._expect(":")
                return self._parse_query(name)
            if self._match_text_seq("DROP"):
                return Order(
                    this="DROP", kind=self._parse_word("QUERY", "STREAM", "TABLE"), expression=self._parse_stream_name()
                )
            if self._match_text_seq("SHOW"):
                return Order(this="SHOW", kind=self._parse_word("STREAMS", "QUERIES"))
            if self._match_text_seq("EXPLAIN"):
                query = self._parse_query(None) if self._at_query() else self._parse_name()
                return Order(this="EXPLAIN", expression=query)
            if self._match_text_seq("SET"):
                key = self._parse_setting_name()
                self._expect("=")
                return Order(this="SET", kind=key, value=self._parse_setting())
            if self._at_query():
                return self._parse_query(None)
            if self._match_text_seq("CREATE"):
                self._refuse(
                    "expected STREAM, TABLE, QUERY, BOUNDS, INTERFACE SET, FUNCTION or ALERT",
                    ("STREAM", "TABLE", "QUERY", "BOUNDS", "INTERFACE", "FUNCTION", "ALERT"),
                )
            self._refuse(f"expected a statement: {', '.join(STATEMENTS)}", STATEMENTS)

        def _parse_member(self) -> exp.Expr:
            """A stream, or a source of it behind a dot: `temp`, `temp.'s-1'`."""
            found = self._parse_source_name()
            while self._match(TokenType.DOT):
                found = exp.Dot(this=found, expression=self._parse_source_name())
            return found

        def _at_query(self) -> bool:
            return self._curr.token_type in (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN)

        def _parse_query(self, name: exp.Expr | None) -> CreateQuery:
            if not self._at_query():
                self._refuse("expected SELECT", ("SELECT",))
            select = (
                self._parse_select() if self._curr.token_type is not TokenType.L_PAREN else self._parse_wrapped_query()
            )
            into = self._parse_each({**PROD_CLAUSES, **QUEUE_CLAUSES, **STATE_CLAUSES, **INTO_CLAUSES})
            return CreateQuery(this=name, expression=select, into=into)

        def _parse_wrapped_query(self) -> exp.Expr | None:
            return self._parse_query_modifiers(self._parse_set_operations(self._parse_expression()))

        def _parse_table(self, schema: bool = False, *rest: Any, **options: Any) -> exp.Expr | None:
            if not schema and self._at_window_table():
                given = self._parse_window_table()
                given.set("alias", self._parse_table_alias(options.get("alias_tokens")))
                return given
            interface = None if schema else self._parse_interface()
            table = super()._parse_table(schema, *rest, **options)
            if interface is not None and isinstance(table, exp.Table) and not table.args.get("db"):
                table.set("db", interface)
            if table is not None and not schema and self._at_window():
                self._match(TokenType.WINDOW)
                table.set("stream_window", self._parse_stream_window())
                if isinstance(table, exp.Table | exp.Subquery) and not table.args.get("alias"):
                    table.set("alias", self._parse_table_alias(options.get("alias_tokens")))
            return table

        def _parse_from(self, *rest: Any, **options: Any) -> exp.From | None:
            word = self._curr.text.upper() if self._at_join_word() else None
            if word is not None:
                self._advance()
            origin = super()._parse_from(*rest, **options)
            if word is not None and origin is not None:
                origin.set("join_kind", word)
            return origin

        def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
            return this if self._at_join_word() else super()._parse_alias(this, explicit)

        def _parse_table_alias(self, alias_tokens: Any = None) -> exp.TableAlias | None:
            word = self._curr.text.upper()
            after = self._next.text.upper() if self._next else ""
            follows = word == "LIMIT" or (word, after) in BEHIND
            follows = follows or self._at_early_word(word)
            # On a line of its own, such a word begins the next statement.
            begins = word in BEGINNINGS and bool(self._prev) and self._curr.line > self._prev.line
            return None if follows or begins else super()._parse_table_alias(alias_tokens)

        def _at_early_word(self, word: str) -> bool:
            """Whether ESTIMATE, DISCARDING or COMPARE .. WITH stands behind what is read, and is no name for it."""
            after = self._next.text.upper() if self._next else ""
            if word in ("ESTIMATE", "DISCARDING"):
                return not after or any(clause.split()[0] == after for clause in (*PROD_CLAUSES, *INTO_CLAUSES))
            behind = self._tokens[self._index + 2 : self._index + 3]
            return word == "COMPARE" and bool(behind) and behind[0].text.upper() == "WITH"

        def _at_join_word(self) -> bool:
            return self._curr.text.upper() in JOIN_WORDS and self._next.token_type is TokenType.FROM

        def _parse_bracket(self, this: exp.Expr | None = None) -> exp.Expr | None:
            # Behind a stream a bracket opens a window, not the place of an element.
            return this if isinstance(this, exp.Table) else super()._parse_bracket(this)

        def _parse_window_clause(self) -> list[exp.Expr] | None:
            if self._curr.token_type is TokenType.WINDOW and self._at_window():
                self._advance()
                return [self._parse_stream_window()]
            return super()._parse_window_clause()

        def _parse_stream_window(self) -> StreamWindow:
            self._expect("[")
            clauses = self._parse_each(WINDOW_CLAUSES, until=TokenType.R_BRACKET)
            self._expect("]")
            return StreamWindow(expressions=clauses)

        def _parse_column_declaration(self) -> exp.Expr:
            name, start = self._parse_name(), self._prev
            kind = None
            if self._curr.token_type is not TokenType.ALIAS:
                kind = self._parse_declared_type()
                self._match_text_seq("GENERATED", "ALWAYS")
            if not self._match(TokenType.ALIAS):
                return self.expression(exp.ColumnDef(this=name, kind=kind))
            computed = ComputedColumn(this=name, kind=kind, expression=self._parse_computed())
            computed.update_positions(start)
            return computed

        def _parse_computed(self) -> exp.Expr:
            at, found = self._curr, self._parse_disjunction()
            if not isinstance(found, exp.Expr):
                self._refuse("expected an expression over the columns that are read", (), at)
            return found

        def _parse_part(self, part: str) -> list[Any]:
            if part == "condition":
                return [self._parse_computed()]
            if part == "ranges":
                return [exp.Var(this="FOR"), self._parse_computed()] if self._match_text_seq("FOR") else []
            if part != "time":
                return super()._parse_part(part)
            opens = self._curr.token_type is TokenType.L_PAREN
            calls = bool(self._next) and self._next.token_type is TokenType.L_PAREN
            return [self._parse_computed() if opens or calls else self._parse_name()]

        def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
            # The first that is tried for each element of GROUP BY, so `expression AS name` is read here.
            found: Any = super()._parse_cube_or_rollup(with_prefix)
            if found is None and not with_prefix:
                found = self._parse_disjunction()
                if found is not None and self._match(TokenType.ALIAS):
                    found = self.expression(exp.Alias(this=found, alias=self._parse_name()))
            return found  # type: ignore[no-any-return]

        def _parse_function_behind(self, this: exp.Expr | None) -> exp.Expr | None:
            name = self._prev
            if this is None or not self._match(TokenType.L_PAREN):
                self._retreat(self._index - 1)
                return None
            if name.text.upper() in self.FUNCTIONS:
                raise MisreadError(f"unexpected {name.text!r}", name.start, "put a comma before it")
            given = self._parse_csv(self._parse_disjunction)
            self._match_r_paren()
            return self.expression(exp.Anonymous(this=name.text, expressions=[this, *given]), name)

    class Generator(Spark4.Generator):
        """Makes words of trees."""

        TRANSFORMS = {  # noqa: RUF012
            **Spark4.Generator.TRANSFORMS,
            **{node: lambda self, e: e.sql(EVENTIDE) for node in EventideNode.__subclasses__()},
        }

        def table_sql(self, expression: exp.Table, sep: str = " AS ") -> str:
            """A table, and the window behind it."""
            window = expression.args.get("stream_window")
            return super().table_sql(expression, sep) + (f" {window.sql(EVENTIDE)}" if window else "")

        def from_sql(self, expression: exp.From) -> str:
            """FROM, and Gigascope's word for a join before it."""
            word = expression.args.get("join_kind")
            written = super().from_sql(expression)
            return f"{self.sep()}{word} {written.strip()}" if word else written

        def subquery_sql(self, expression: exp.Subquery, sep: str = " AS ") -> str:
            """A query in FROM, and the window behind it."""
            window = expression.args.get("stream_window")
            return super().subquery_sql(expression, sep) + (f" {window.sql(EVENTIDE)}" if window else "")


EVENTIDE = Eventide
OPENINGS = frozenset(
    " ".join(words.split()[:2]) for words in (*PROD_CLAUSES, *QUEUE_CLAUSES, *STATE_CLAUSES) if " " in words
)
"""What clauses begin with that may stand right behind the name of a table."""


def parse(tokens: list[Token], text: str) -> exp.Expr | None:
    """The tree of one statement, cut into words; a ParseError when there is none."""
    tokens = [_as_name(token, after) for token, after in pairwise((*tokens, None))]
    found = Eventide.Parser(dialect=Eventide, error_level=ErrorLevel.IMMEDIATE).parse(tokens, text)
    if len(found) != 1:
        raise ParseError("expected one statement")
    return found[0]


def _as_name(token: Token | None, after: Token | None) -> Token:
    """Before a parenthesis, WINDOW and SESSION are functions; before their words, PROD and SIDELINE name no table."""
    assert token is not None
    if after is not None and f"{token.text} {after.text}".upper() in OPENINGS:
        return Token(TokenType.INTO, token.text, token.line, token.col, token.start, token.end, token.comments)
    is_call = after is not None and after.token_type is TokenType.L_PAREN
    if is_call and (token.token_type is TokenType.WINDOW or token.text.upper() == "SESSION"):
        return Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end, token.comments)
    return token


def read(text: str) -> exp.Expr:
    """The tree of a text with one statement."""
    tree = parse(Eventide().tokenize(text), text)
    assert tree is not None
    return tree
