r"""Translate Java's regular expressions, which Spark has, to those of DuckDB (RE2).

Law: the same texts match, and the same pieces of them; a pattern that RE2 cannot say, or that is not a constant, is
refused. In Java `.` stands for no end of a line of any kind, and `$` stands before the last end of a line too.

>>> to_re2("a.c").text
'a[^\\n\\r\\x{85}\\x{2028}\\x{2029}]c'
>>> to_re2("(l+)(o)").groups, to_re2("l*").may_be_empty
(2, True)
>>> replacement("[$1]\\\\", groups=1)
'[\\1]\\\\'
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from eventide.plan.duckdb.generator import Rule, SparkToDuckDB, call

LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
AT_THE_END = rf"(?:\r\n|[{LINE_ENDS}])?\z"
CLASSES = {"s": r"\t\n\x{B}\f\r ", "d": "0-9", "w": "a-zA-Z_0-9"}
SAME_ESCAPES = "dDwWbBAztnrf"
OPENINGS = ("(?:", "(?i)", "(?s)", "(?is)", "(?si)")
"""What may begin with a question mark."""

PIECES = re.compile(
    r"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[pP]\{[A-Z][a-z]?\}|.)|\[|\]|\(\?[^:()]*[:)]|.", re.DOTALL
)  # fmt: skip


@dataclass(frozen=True)
class Pattern:
    """A pattern in RE2's words; `ends` tells that `$` is its last word, and no other `$` is in it."""

    text: str
    groups: int
    may_be_empty: bool
    ends: bool


class UnsupportedPatternError(ValueError):
    """A pattern that RE2 has no words for."""


def to_re2(java: str) -> Pattern:
    """Translate a pattern; raises `UnsupportedPatternError` where RE2 has no words for it."""
    pieces = PIECES.findall(java)
    if not java.isascii() and any(piece.startswith("(?") and "i" in piece for piece in pieces):
        # Java takes small for capital letters only from a to z.
        raise UnsupportedPatternError("(?i) with other letters than a to z")
    dot = "." if any(piece.startswith("(?") and "s" in piece for piece in pieces) else f"[^{LINE_ENDS}]"
    words: list[str] = []
    groups = dollars = depth = 0
    unanchored: list[str] = []
    for place, piece in enumerate(pieces):
        before = pieces[place - 1] if place else ""
        if depth:
            depth, word = _in_class(piece, before, first=depth == 1)
        elif piece == "[":
            depth, word = 1, "["
        elif piece.startswith("\\"):
            word = _escaped(piece)
        elif piece.startswith("(?"):
            if piece not in OPENINGS or (piece.endswith(")") and place):
                raise UnsupportedPatternError(piece)
            word = piece
        elif piece == "+" and before in ("+", "*", "?", "}"):
            raise UnsupportedPatternError(f"{before}+")
        elif piece == "$":
            dollars, word = dollars + 1, AT_THE_END
        else:
            groups += piece == "("
            word = dot if piece == "." else piece
        words.append(word)
        unanchored.append("" if piece in ("\\b", "\\B", "$", "^", "\\z", "\\A") else piece)
    return Pattern(
        "".join(words), groups, _may_be_empty("".join(unanchored)), bool(pieces) and pieces[-1] == "$" and dollars == 1
    )


def replacement(java: str, groups: int) -> str:
    """What replaces a match: `$1` of Java is RE2's `\\1`."""
    words: list[str] = []
    place = 0
    while place < len(java):
        sign = java[place]
        following = java[place + 1 : place + 2]
        if sign == "\\" and following:
            words.append("\\\\" if following == "\\" else following)
            place += 2
        elif (
            sign == "$"
            and following.isdigit()
            and int(following) <= groups
            and not java[place + 2 : place + 3].isdigit()
        ):
            words.append(f"\\{following}")
            place += 2
        elif sign in "\\$":
            raise UnsupportedPatternError(java)
        else:
            words.append(sign)
            place += 1
    return "".join(words)


def _escaped(piece: str) -> str:
    letter = piece[1:2]
    if letter == "u":
        return f"\\x{{{piece[2:]}}}"
    if letter in ("s", "S"):
        return f"[{'^' if letter == 'S' else ''}{CLASSES['s']}]"
    if (
        letter == "x"
        or (letter in "pP" and len(piece) > 2)
        or letter in SAME_ESCAPES
        or (letter and not letter.isalnum())
    ):
        return piece
    raise UnsupportedPatternError(piece)


def _in_class(piece: str, before: str, first: bool) -> tuple[int, str]:
    """A word between square brackets, and whether they are still open: 1 at their start, 2 later, 0 no more."""
    if piece == "]" and not first:
        return 0, "]"
    if piece in ("[", "]") or piece.startswith("(?") or (piece == "&" and before == "&"):
        raise UnsupportedPatternError(piece)
    if piece == "^" and first:
        return 1, "^"
    if piece == "\\s":
        return 2, CLASSES["s"]
    if piece.startswith("\\"):
        if piece in ("\\S", "\\b", "\\B", "\\A", "\\z"):
            raise UnsupportedPatternError(piece)
        return 2, _escaped(piece)
    return 2, piece


def _may_be_empty(unanchored: str) -> bool:
    try:
        return re.search(re.sub(r"\\[pP]\{\w+\}", "a", unanchored), "") is not None
    except re.error as error:
        raise UnsupportedPatternError(unanchored) from error


def _pattern(self: SparkToDuckDB, node: exp.Expression | None) -> Pattern:
    if not isinstance(node, exp.Literal) or not node.is_string:
        self.refuse("a regular expression that is not a constant text")
    assert node is not None
    try:
        return to_re2(node.name)
    except UnsupportedPatternError as error:
        self.refuse(f"{error} in the regular expression {node.name!r}")
        raise


def _like(self: SparkToDuckDB, node: exp.RegexpLike) -> str:
    if node.args.get("flag") is not None:
        return self.refuse("RLIKE with flags")
    pattern = _pattern(self, node.expression)
    return call("regexp_matches", self.sql(node.this), _text(pattern.text))


def _replace(self: SparkToDuckDB, node: exp.RegexpReplace) -> str:
    pattern, by = _pattern(self, node.expression), node.args.get("replacement")
    start = node.args.get("position")
    if start is not None and start.name != "1":
        return self.refuse("REGEXP_REPLACE from a place on")
    if by is not None and not (isinstance(by, exp.Literal) and by.is_string):
        return self.refuse("REGEXP_REPLACE by what is not a constant text")
    if pattern.may_be_empty:
        return self.refuse(f"REGEXP_REPLACE of {node.expression.name!r}, which matches no letters at all,")
    if "$" in node.expression.name and AT_THE_END in pattern.text and not (pattern.ends and pattern.groups < 9):
        return self.refuse("a $ inside of the pattern of REGEXP_REPLACE")
    try:
        text = replacement("" if by is None else by.name, pattern.groups)
    except UnsupportedPatternError as error:
        return self.refuse(f"REGEXP_REPLACE by {str(error)!r}")
    found = pattern.text
    if pattern.ends:
        # The end of the line belongs to no match in Java, so it is put back.
        found = found.removesuffix(AT_THE_END) + rf"(\r\n|[{LINE_ENDS}])?\z"
        text += f"\\{pattern.groups + 1}"
    return call("regexp_replace", self.sql(node.this), _text(found), _text(text), "'g'")


def _extract(self: SparkToDuckDB, node: exp.RegexpExtract) -> str:
    pattern, group = _pattern(self, node.expression), node.args.get("group")
    number = "1" if group is None else self.sql(group)
    if not number.isdigit() or int(number) > min(pattern.groups, 9):
        return self.refuse(f"REGEXP_EXTRACT of group {number}, which the pattern does not have,")
    if number == "0" and AT_THE_END in pattern.text:
        return self.refuse("a $ in the pattern of REGEXP_EXTRACT of group 0")
    return call("regexp_extract", self.sql(node.this), _text(pattern.text), number)


def _split(self: SparkToDuckDB, node: exp.RegexpSplit) -> str:
    if node.args.get("limit") is not None:
        return self.refuse("SPLIT with a limit")
    pattern = _pattern(self, node.expression)
    if (pattern.may_be_empty and node.expression.name) or AT_THE_END in pattern.text:
        return self.refuse(f"SPLIT by {node.expression.name!r}, which matches no letters at all,")
    return call("str_split_regex", self.sql(node.this), _text(pattern.text))


def _every(self: SparkToDuckDB, node: exp.RegexpExtractAll | exp.RegexpCount) -> str:
    """All matches of a pattern that takes some letters, or of a group of it."""
    pattern, group = _pattern(self, node.expression), node.args.get("group")
    if pattern.may_be_empty or AT_THE_END in pattern.text:
        return self.refuse(f"all matches of {node.expression.name!r}, which matches no letters at all,")
    number = "1" if group is None else self.sql(group)
    if isinstance(node, exp.RegexpCount):
        return f"CAST(len(regexp_extract_all({self.sql(node.this)}, {_text(pattern.text)})) AS INTEGER)"
    if not number.isdigit() or int(number) > min(pattern.groups, 9):
        return self.refuse(f"REGEXP_EXTRACT_ALL of group {number}, which the pattern does not have,")
    return call("regexp_extract_all", self.sql(node.this), _text(pattern.text), number)


def _text(unanchored: str) -> str:
    escaped = unanchored.replace("'", "''")
    return f"'{escaped}'"


PATTERN_RULES: dict[type[exp.Expr], Rule] = {
    exp.RegexpCount: _every,
    exp.RegexpExtract: _extract,
    exp.RegexpExtractAll: _every,
    exp.RegexpLike: _like,
    exp.RegexpReplace: _replace,
    exp.RegexpSplit: _split,
}
