"""How the clauses of our statements are read: the parts that may follow the words of each (`clause_words`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NoReturn

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from eventide.language.grammar.clause_words import BEGINNINGS, WRAPPED, Parts, opening
from eventide.language.grammar.nodes import IN_ORDER, Amount, Clause, CreateAlert, Secret
from eventide.language.grammar.spelling import QUOTAS, TYPES, UNITS, meant_by, nearest, not_closed
from eventide.plan.expressions.spark_dialect import Spark4

FOREVER = "FOREVER"
"""In the place of a length: for as long as the query runs."""

BEHIND_A_SHARE = ("AND", "OR", "FOR")
"""Behind `5%` in a condition; behind a sign of division there would be a value."""

ATTACHED = re.compile(r"(\d+(?:\.\d*)?)([A-Za-z]+)")


class MisreadError(ParseError):
    """The text cannot be read at `offset`; `hint` may say what was meant."""

    def __init__(self, message: str, offset: int, hint: str | None = None) -> None:
        super().__init__(message, [])
        self.message, self.offset, self.hint = message, offset, hint


class ClauseParser(Spark4.Parser):
    """Spark's parser, and how the parts of clauses are read."""

    _amounts = False
    """Whether numbers may have units."""

    def raise_error(self, message: str, token: Any = None) -> None:
        """Say what is wrong at a token; by default at the one that could not be read."""
        if message.startswith("Expected END") and self._curr:
            token = self._curr
        found = token or self._curr or self._prev
        missing = "Required argument" in message or "missing for" in message
        if missing or message.startswith("Invalid expression"):
            message = f"unexpected {found.text!r}" if self._curr else "the statement ends too early"
        message = message.replace("Expecting", "Expected", 1)
        offset = found.end + 1 if not self._curr and found is self._prev else found.start
        hint = self._meant(found)
        if "TYPE after CAST" in message:
            message = "expected a type, such as INT, STRING or TIMESTAMP"
            hint = f"did you mean {close}?" if (close := nearest(found.text.upper(), TYPES)) else hint
        raise MisreadError(message[0].lower() + message[1:], offset, hint)

    def _refuse(self, message: str, known: Iterable[str] = (), token: Any = None) -> NoReturn:
        at = token or self._curr
        found = f", not {at.text!r}" if at else ""
        hint = f"did you mean {close}?" if at and (close := nearest(at.text.upper(), known)) else None
        if at and at.text.upper() in BEGINNINGS and at is self._curr and self._prev and at.line > self._prev.line:
            hint = "end the statement before it with ;"
        hint = self._meant(at) or hint
        end = at.start if at else (self._prev.end + 1 if self._prev else 0)
        raise MisreadError(message + found, end, hint)

    def _meant(self, at: Any) -> str | None:
        """What the word at fault was probably meant to be, by those before it."""
        if not at:
            return None
        before = [token.text for token in self._tokens if token.end < at.start]
        after = next((token.text for token in self._tokens if token.start > at.end), "")
        return not_closed(before, at.text) or meant_by(before, at.text, after)

    def _expect(self, word: str) -> None:
        if self._curr.text.upper() != word or self._curr.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            self._refuse(f"expected {word}", (word,))
        self._advance()

    def _parse_word(self, *words: str) -> str:
        found = self._curr.text.upper()
        if found not in words:
            self._refuse(f"expected {' or '.join(words)}", words)
        self._advance()
        return found

    def _parse_name(self) -> exp.Expr:
        # Any word may be a name: `timestamp`, `window` and `counter` are columns of the papers.
        if not self._curr or not (self._curr.token_type is TokenType.IDENTIFIER or self._curr.text[:1].isidentifier()):
            self._refuse("expected a name")
        if self._curr.token_type is TokenType.STRING:
            self._refuse("expected a name")
        self._advance()
        return self._named(self._prev)

    def _named(self, token: Token) -> exp.Identifier:
        return self.expression(exp.Identifier(this=token.text, quoted=token.token_type is TokenType.IDENTIFIER), token)

    def _parse_stream_name(self) -> exp.Table:
        interface = self._parse_interface()
        name = self._parse_name()
        if interface is None and self._match(TokenType.DOT):
            interface, name = name, self._parse_name()
        return exp.Table(this=name, db=interface)

    def _parse_interface(self) -> exp.Expr | None:
        """`[main0].` before a stream: the interface, or set of interfaces, it comes from."""
        if not self._match(TokenType.L_BRACKET):
            return None
        name = self._parse_name()
        self._expect("]")
        self._expect(".")
        return name

    def _at_window(self) -> bool:
        here, after = self._curr.token_type, self._next.token_type
        return here is TokenType.L_BRACKET or (here is TokenType.WINDOW and after is TokenType.L_BRACKET)

    def _parse_columns(self) -> list[exp.Expr]:
        self._expect("(")
        found = self._parse_csv(self._parse_column_declaration)
        if self._curr and self._curr.text[:1].isidentifier():
            raise MisreadError(f"expected ), not {self._curr.text!r}", self._curr.start, "put a comma before it")
        self._expect(")")
        return found

    def _parse_csv(self, parse_method: Callable[[], Any], sep: TokenType = TokenType.COMMA) -> list[Any]:
        """What is separated by commas; behind each there is something, though the parser would let it be missing."""

        def one() -> Any:
            comma = self._prev if self._prev and self._prev.token_type is sep else None
            found = parse_method()
            if found is None and comma is not None and self._prev is comma:
                self._refuse("expected something behind the comma")
            return found

        return super()._parse_csv(one, sep)

    def _parse_column_declaration(self) -> exp.Expr:
        name = self._parse_name()
        return self.expression(exp.ColumnDef(this=name, kind=self._parse_declared_type()))

    def _parse_declared_type(self) -> exp.Expr:
        if not self._curr or self._curr.token_type in (TokenType.COMMA, TokenType.R_PAREN):
            self._refuse("expected a type, such as INT, STRING or TIMESTAMP")
        token = self._curr
        kind = self._parse_types(allow_identifiers=False)
        if not isinstance(kind, exp.DataType):
            self._refuse("expected a type", TYPES, token)
        return kind

    def _parse_each(self, known: Mapping[str, Parts], until: TokenType | None = None) -> list[Clause]:
        """Clauses in any order; between them a comma, behind their words an equals sign, where people write so."""
        found: list[Clause] = []
        while self._curr and self._curr.token_type is not until:
            if found and until is not None:
                self._match(TokenType.COMMA)
            start = self._curr
            # PARTITION BY is one word to whoever cuts the text.
            words = next((w for w in known if self._match_text_seq(*w.split()) or self._match_text_seq(w)), None)
            if words is None:
                openings = dict.fromkeys(opening(words) for words in known)
                self._refuse(f"expected {', '.join(openings)} or the end", known)
            if any(clause.this == words for clause in found):
                raise MisreadError(f"{words} is given twice", start.start)
            self._match(TokenType.EQ)
            parts = known[words]
            clause = self.expression(Clause(this=words, wrapped=any(p.startswith(WRAPPED) for p in parts)))
            clause.set("expressions", [given for part in parts for given in self._parse_part(part)])
            if not clause.expressions:
                clause.set("wrapped", False)
            clause.update_positions(start)
            found.append(clause)
        return found

    def _parse_part(self, part: str) -> list[Any]:
        word = part.removesuffix("?")
        if word.isupper():
            if part.endswith("?"):
                return [exp.Var(this=word)] if self._match_text_seq(word) else []
            self._expect(word)
            return [exp.Var(this=word)]
        if part.endswith("?") and self._curr.token_type is not TokenType.L_PAREN:
            return []
        readers: dict[str, Callable[[], list[Any]]] = {
            "name": lambda: [self._parse_name()],
            "names": lambda: self._parse_csv(self._parse_name),
            "stream": lambda: [self._parse_stream_name()],
            "comparisons": lambda: self._parse_csv(self._parse_compared),
            "text": lambda: [self._parse_text()],
            "type": lambda: [self._parse_declared_type()],
            "amount": lambda: [self._parse_amount()],
            "less": lambda: [exp.Var(this="-"), self._parse_amount()] if self._match(TokenType.DASH) else [],
            "amounts": lambda: self._parse_csv(self._parse_amount),
            "quota": lambda: [self._parse_amount(QUOTAS)],
            "ttl": lambda: [exp.Var(this=FOREVER)] if self._match_text_seq(FOREVER) else [self._parse_amount()],
            "pairs": lambda: self._parse_list(self._parse_pair),
            "bounds": lambda: self._parse_list(self._parse_bound),
            "sources": lambda: self._parse_list(self._parse_source_name),
            "groups": lambda: self._parse_list(self._parse_group_of_sources),
            "input": self._parse_format_and_path,
            "output": self._parse_format_and_path,
        }
        return readers[word]()

    def _parse_list(self, one: Callable[[], Any]) -> list[Any]:
        self._expect("(")
        found = self._parse_csv(one)
        self._expect(")")
        return found

    def _parse_text(self) -> exp.Expr:
        if not self._match(TokenType.STRING):
            self._refuse("expected a text in quotes")
        return self.expression(exp.Literal(this=self._prev.text, is_string=True), self._prev)

    def _parse_format_and_path(self) -> list[Any]:
        """`json 'path'`, `'path'` alone, or a word alone (STDIN, CONSOLE)."""
        named = [] if self._curr.token_type is TokenType.STRING else [self._parse_name()]
        return [*named, self._parse_text()] if self._curr.token_type is TokenType.STRING else named

    def _parse_pair(self) -> Clause:
        """`key value`, `key = value`, `key secret('env:NAME')` or a key alone."""
        token = self._curr
        key = self._parse_text().name if token.token_type is TokenType.STRING else self._parse_setting_name()
        self._match(TokenType.EQ)
        value: list[Any] = []
        if self._curr.token_type is TokenType.STRING:
            value = [self._parse_text()]
        elif self._curr and self._curr.token_type not in (TokenType.COMMA, TokenType.R_PAREN):
            at_number = self._curr.text[:1].isdigit() or self._curr.token_type is TokenType.DASH
            value = [self._parse_amount() if at_number else self._parse_name()]
            if value[0].name.lower() == "secret" and self._match(TokenType.L_PAREN):
                value = [self.expression(Secret(this=self._parse_text()), token)]
                self._expect(")")
        clause = Clause(this=key, expressions=value)
        clause.update_positions(token)
        return clause

    def _parse_bound(self, name: Callable[[], exp.Expr] | None = None) -> Clause:
        """`source A [LATENCY 2 s ..] [IN ORDER]`, or `B TRAILS A BY 5 s [AFTER 2 s | AFTER 3 ROWS] [EXCEEDED 1%]`."""
        token, name = self._curr, name or self._parse_source_name
        words: tuple[str, ...] = ("LATENCY", "EXCEEDED", "CLOCK WITHIN", "RATE AT LEAST", "COUNTER FROM", "TO")
        if self._match_text_seq("SOURCE") or self._match_text_seq("STREAM"):
            clause = Clause(this="SOURCE", expressions=[name()])
        else:
            clause, words = Clause(this="", expressions=[name(), exp.Var(this="TRAILS")]), ("AFTER", "EXCEEDED")
            if not (self._match_text_seq("TRAILS") or self._match_text_seq("TRAIL")):
                self._refuse("expected TRAILS", ("TRAILS",))
            clause.append("expressions", name())
            self._expect("BY")
            clause.set("expressions", [*clause.expressions, exp.Var(this="BY"), self._parse_amount()])
        for word in words:
            if self._match_text_seq(*word.split()):
                clause.set("expressions", [*clause.expressions, exp.Var(this=word), self._parse_amount()])
        if clause.this == "SOURCE" and self._match_text_seq("IN", "ORDER"):
            clause.append("expressions", exp.Var(this=IN_ORDER))
        clause.update_positions(token)
        return clause

    def _parse_compared(self) -> Clause:
        """`total WITH off_by`: a value, and the function that compares an early one with the final one."""
        token = self._curr
        value = self._parse_name()
        self._expect("WITH")
        clause = Clause(this="", expressions=[value, exp.Var(this="WITH"), self._parse_name()])
        clause.update_positions(token)
        return clause

    def _parse_source_name(self) -> exp.Expr:
        if self._match(TokenType.NUMBER):
            return self.expression(exp.Literal(this=self._prev.text, is_string=True), self._prev)
        return self._parse_text() if self._curr.token_type is TokenType.STRING else self._parse_name()

    def _parse_group_of_sources(self) -> Clause:
        """`north (a, b)`: the name of a group, and its sources."""
        token = self._curr
        name = self._parse_name()
        sources = Clause(this="", wrapped=True, expressions=self._parse_list(self._parse_source_name))
        clause = Clause(this="", expressions=[name, sources])
        clause.update_positions(token)
        return clause

    def _parse_alert(self, name: exp.Expr) -> CreateAlert:
        """`name ON speeds WHEN lag > 30 seconds OR late_ratio > 0.5% FOR 1 minute`."""
        self._expect("ON")
        target = self._parse_name()
        self._expect("WHEN")
        at, self._amounts = self._curr, True
        condition = self._parse_disjunction()
        self._amounts = False
        if not isinstance(condition, exp.Expr):
            self._refuse("expected a condition, such as lag > 30 seconds", (), at)
        lasting = self._parse_amount() if self._match_text_seq("FOR") else None
        return CreateAlert(this=name, of=target, expression=condition, lasting=lasting)

    def _parse_unary(self) -> exp.Expr | None:
        return self._parse_amount() if self._amounts and self._at_amount() else super()._parse_unary()

    def _at_amount(self) -> bool:
        """Whether a number with a unit is next: of a length, or a share; `5 % x` is a remainder."""
        if not self._curr or self._curr.token_type is not TokenType.NUMBER or not self._next:
            return False
        if self._next.token_type is TokenType.MOD:
            after = self._tokens[self._index + 2 : self._index + 3]
            return not after or after[0].token_type is TokenType.R_PAREN or after[0].text.upper() in BEHIND_A_SHARE
        joined = self._next.start == self._curr.start
        return self._next.text.lower() in UNITS or (joined and self._next.token_type is TokenType.DCOLON)

    def _parse_setting_name(self) -> str:
        words = [self._parse_name().name]
        while self._match(TokenType.DOT):
            words.append(self._parse_name().name)
        return ".".join(words)

    def _parse_setting(self) -> str:
        if not self._curr:
            self._refuse("expected a value")
        start = self._curr
        if self._match(TokenType.STRING):
            if self._curr:
                self._refuse("expected the end of the statement")
            return start.text
        while self._curr:
            self._advance()
        return str(self.sql[start.start : self._prev.end + 1])

    def _parse_amount(self, units: Collection[str] = UNITS) -> Amount:
        """`10`, `60s`, `5 minutes`, `INTERVAL '5' MINUTES`, `'5 minutes'`, `100 ROWS`, `5%`."""
        token = self._curr
        self._match_text_seq("INTERVAL")
        sign = "-" if self._match(TokenType.DASH) else ""
        unit: str | None = None
        attached = ATTACHED.fullmatch(self._curr.text) if self._curr.token_type is not TokenType.STRING else None
        if self._curr.token_type is TokenType.STRING:
            words = self._curr.text.split()
            number, unit = words[0] if words else "", " ".join(words[1:]) or None
            if joined := ATTACHED.fullmatch(self._curr.text.strip()):
                number, unit = joined.groups()
            self._advance()
        elif attached:
            number, unit = attached.groups()
            self._advance()
        elif self._match(TokenType.NUMBER):
            number = self._prev.text
            if self._curr.token_type is TokenType.DCOLON and self._curr.start == self._prev.start:
                # Spark's grammar takes the s of 60s for SMALLINT.
                self._advance()
                unit = self._curr.text
                self._advance()
        else:
            self._refuse("expected a number or a length, such as 10, 60s or 5 minutes")
        if unit is None and self._match(TokenType.MOD):
            unit = "%"
        if unit is None and self._curr.text.lower() in units and self._curr.token_type is not TokenType.STRING:
            unit = self._curr.text
            self._advance()
        try:
            float(number)
        except ValueError:
            self._refuse("expected a number or a length, such as 10, 60s or 5 minutes", (), token)
        amount = Amount(this=sign + number, unit=unit.lower() if unit else None)
        amount.update_positions(token)
        return amount
