"""Windows as functions in FROM, as Flink and RisingWave write them; they are read as the windows in brackets.

Law: `TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '5' MINUTES)`, in TABLE(..) or not, is `s [RANGE 5 minutes WATTR ts]`,
and so are the others below; RisingWave leaves out TABLE and DESCRIPTOR. Arguments come in their order, or by their
names.

| function | brackets |
|---|---|
| TUMBLE(s, ts, size [, offset]) | RANGE size [OFFSET offset] |
| HOP(s, ts, slide, size [, offset]) | RANGE size SLIDE slide [OFFSET offset] |
| CUMULATE(s, ts, step, size [, offset]) | RANGE size STEP step [OFFSET offset] |
| SESSION(s [PARTITION BY k], ts, gap) | SESSION gap [PARTITION BY k] |
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from eventide.language.grammar.clauses import ATTACHED, ClauseParser
from eventide.language.grammar.nodes import Clause, StreamWindow

ARGUMENTS = {
    "TUMBLE": ("SIZE", "OFFSET"),
    "HOP": ("SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("STEP", "SIZE", "OFFSET"),
    "SESSION": ("GAP",),
}
"""What comes behind the table and its time, in this order."""

OPTIONAL = ("OFFSET",)
CLAUSES = {"SIZE": "RANGE", "SLIDE": "SLIDE", "STEP": "STEP", "OFFSET": "OFFSET", "GAP": "SESSION"}
"""The clauses in brackets that they are."""

ORDER = ("SIZE", "SLIDE", "STEP", "GAP", "OFFSET")


class WindowTableParser(ClauseParser):
    """Reads a function of windows where a table may stand."""

    def _at_window_table(self) -> bool:
        first, second = self._curr, self._next
        if not first or not second or second.token_type is not TokenType.L_PAREN:
            return False
        inner = self._tokens[self._index + 2] if self._index + 2 < len(self._tokens) else first
        word = inner if first.text.upper() == "TABLE" else first
        return word.text.upper() in ARGUMENTS

    def _parse_window_table(self) -> exp.Table:
        """A table with its window."""
        wrapped = self._match_text_seq("TABLE")
        if wrapped:
            self._expect("(")
        token = self._curr
        function = token.text.upper()
        self._advance()
        self._expect("(")
        self._parse_argument_name("DATA")
        self._match_text_seq("TABLE")
        table = self._parse_stream_name()
        partition: list[Any] = []
        if self._match(TokenType.PARTITION_BY):
            partition = [self._parse_name()]
            while self._curr.token_type is TokenType.COMMA and self._next.text.upper() not in ("DESCRIPTOR", "TIMECOL"):
                self._advance()
                partition.append(self._parse_name())
        self._expect(",")
        self._parse_argument_name("TIMECOL")
        time = self._parse_time_column()
        amounts = self._parse_amounts(function)
        self._expect(")")
        if wrapped:
            self._expect(")")
        clauses = [Clause(this=CLAUSES[name], expressions=[amounts[name]]) for name in ORDER if name in amounts]
        clauses += [Clause(this="PARTITION BY", expressions=partition)] if partition else []
        clauses.append(Clause(this="WATTR", expressions=[time]))
        window = StreamWindow(expressions=clauses)
        window.meta["function"] = function
        window.update_positions(token)
        for clause in clauses:
            clause.update_positions(token)
        table.set("stream_window", window)
        return table

    def _parse_argument_name(self, name: str) -> bool:
        """`NAME =>`, where it is written."""
        if self._curr.text.upper() != name or self._next.token_type is not TokenType.FARROW:
            return False
        self._advance(2)
        return True

    def _parse_time_column(self) -> exp.Expr:
        if not self._match_text_seq("DESCRIPTOR"):
            return self._parse_name()
        self._expect("(")
        name = self._parse_name()
        self._expect(")")
        return name

    def _parse_amounts(self, function: str) -> dict[str, exp.Expr]:
        known, found = ARGUMENTS[function], dict[str, exp.Expr]()
        while self._match(TokenType.COMMA):
            at = self._curr
            left = [name for name in known if name not in found]
            named = next((name for name in left if self._parse_argument_name(name)), None)
            if named is None and not left:
                self._refuse(f"{function} takes {', '.join(known).lower()} behind the time", (), at)
            found[named or left[0]] = self._parse_gap() if "GAP" in known else self._parse_amount()
        for name in known:
            if name not in found and name not in OPTIONAL:
                self._refuse(f"{function} needs {' and '.join(n for n in known if n not in OPTIONAL).lower()}")
        return found

    def _parse_part(self, part: str) -> list[Any]:
        return [self._parse_gap()] if part == "gap" else super()._parse_part(part)

    def _parse_gap(self) -> exp.Expr:
        """One length for all rows, or an expression that gives each row its own."""
        plain = self._curr.token_type in (TokenType.NUMBER, TokenType.STRING, TokenType.DASH, TokenType.INTERVAL)
        if plain or ATTACHED.fullmatch(self._curr.text):
            return self._parse_amount()
        found = self._parse_disjunction()
        if not isinstance(found, exp.Expr):
            self._refuse("expected the gap of a session, such as 10 minutes")
        return found
