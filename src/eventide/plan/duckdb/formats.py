"""Times written and read by a pattern, and names of days and months, in DuckDB as in Spark.

Law: a pattern is constant, and of letters that both engines write alike; any other is refused, by name. Names are those
of English, as in Spark's own locale.
"""

from __future__ import annotations

import re

from sqlglot import exp

from eventide.plan.duckdb.generator import Rule, SparkToDuckDB, by_type

WRITTEN = {
    "yyyy": "%Y", "yy": "%y", "M": "%-m", "MM": "%m", "MMM": "%b", "MMMM": "%B", "d": "%-d", "dd": "%d", "D": "%-j",
    "DDD": "%j", "H": "%-H", "HH": "%H", "h": "%-I", "hh": "%I", "m": "%-M", "mm": "%M", "s": "%-S", "ss": "%S",
    "SSS": "%g", "SSSSSS": "%f", "a": "%p", "E": "%a", "EE": "%a", "EEE": "%a", "EEEE": "%A",
}  # fmt: skip
"""Letters of a pattern for times, and how DuckDB writes the same."""

READ = {
    "yyyy": r"\d{4}", "MM": r"\d{2}", "dd": r"\d{2}", "HH": r"\d{2}", "mm": r"\d{2}", "ss": r"\d{2}", "SSS": r"\d{3}",
    "SSSSSS": r"\d{6}",
}  # fmt: skip
"""Letters that may be read, and what must stand there."""

_PIECE = re.compile(r"'([^']*)'|([A-Za-z])\2*|[^A-Za-z']")
_DAY_NAMES = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
UNITS = {
    "MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000, "WEEK": 604_800_000_000,
}  # fmt: skip


def strftime_pattern(self: SparkToDuckDB, written: exp.Expression | None, function: str) -> str:
    """The pattern as DuckDB has it, as a text of SQL."""
    pattern = written.name if isinstance(written, exp.Literal) and written.is_string else None
    if not pattern:
        return self.refuse(f"{function} with a pattern that is no constant")
    place, found = 0, ""
    while place < len(pattern):
        piece = _PIECE.match(pattern, place)
        if piece is None or (piece[2] is not None and piece[0] not in WRITTEN):
            return self.refuse(f"{function} with {pattern[place:]!r} in its pattern")
        found += WRITTEN[piece[0]] if piece[2] is not None else _plain(piece)
        place = piece.end()
    return _text(found)


def _plain(piece: re.Match[str]) -> str:
    """Letters that stand for themselves; two quotes are one."""
    text = piece[0] if piece[1] is None else piece[1] or "'"
    return text.replace("%", "%%")


def _shown(self: SparkToDuckDB, instant: str, pattern: str) -> str:
    return f"strftime(timezone('UTC', {instant}), {pattern})"


def _instant(self: SparkToDuckDB, node: exp.Expression) -> str:
    return by_type("timestamp", self.kind(node), self.sql(node))


def _formatted(self: SparkToDuckDB, node: exp.TimeToStr) -> str:
    time = node.this.this if isinstance(node.this, exp.TimeStrToTime) else node.this
    pattern = strftime_pattern(self, node.args.get("format"), "DATE_FORMAT")
    return _shown(self, _instant(self, time), pattern)


def _from_unix(self: SparkToDuckDB, node: exp.UnixToStr) -> str:
    pattern = strftime_pattern(self, node.args.get("format"), "FROM_UNIXTIME")
    return _shown(self, f"make_timestamptz(CAST({self.sql(node.this)} AS BIGINT) * 1000000)", pattern)


def _named(pattern: str) -> Rule:
    return lambda self, node: _shown(self, _instant(self, node.this), f"'{pattern}'")


def _next_day(self: SparkToDuckDB, node: exp.NextDay) -> str:
    """The first day of that name after a date."""
    name = node.expression.name.upper() if isinstance(node.expression, exp.Literal) else ""
    day = next((n for n, full in enumerate(_DAY_NAMES, 1) if name in (full, full[:3], full[:2])), None)
    if day is None:
        return self.refuse("NEXT_DAY of what is no constant name of a day")
    date = f"CAST({self.sql(node.this)} AS DATE)"
    return f"CAST({date} + CAST(({day} - isodow({date}) + 6) % 7 + 1 AS INTEGER) AS DATE)"


def _difference(self: SparkToDuckDB, node: exp.TimestampDiff) -> str:
    """Whole units of a fixed length between two instants, cut towards zero."""
    unit = self.sql(node, "unit").strip("'").upper()
    if unit not in UNITS:
        return self.refuse(f"TIMESTAMPDIFF in units of {unit}")
    one, other = (f"epoch_us({_instant(self, part)})" for part in (node.this, node.expression))
    return f"CAST(({one} - {other}) // {UNITS[unit]} AS BIGINT)"


def read_time(self: SparkToDuckDB, node: exp.StrToTime | exp.TsOrDsToDate) -> str:
    """TO_TIMESTAMP or TO_DATE with a pattern of numbers that have so many digits each; Spark takes no others then."""
    written, place, wanted, read = node.args["format"], 0, "", ""
    pattern = written.name if isinstance(written, exp.Literal) else "?"
    while place < len(pattern):
        piece = _PIECE.match(pattern, place)
        if piece is None or (piece[2] is not None and piece[0] not in READ):
            return self.refuse("TO_TIMESTAMP with a pattern other than of yyyy, MM, dd, HH, mm, ss and SSS")
        is_time = piece[2] is not None
        wanted += READ[piece[0]] if is_time else re.escape(piece[0] if piece[1] is None else piece[1] or "'")
        read += WRITTEN[piece[0]] if is_time else _plain(piece)
        place = piece.end()
    given = self.sql(node.this)
    # What has fewer digits is no time to Spark, and one to DuckDB.
    checked = f"CASE WHEN {given} IS NULL OR regexp_full_match({given}, {_text(wanted)}) THEN {given} ELSE '' END"
    return f"CAST(strptime({checked}, {_text(read)}) AS TIMESTAMPTZ)"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


FORMAT_RULES: dict[type[exp.Expr], Rule] = {
    exp.Dayname: _named("%a"),
    exp.Monthname: _named("%b"),
    exp.NextDay: _next_day,
    exp.TimeToStr: _formatted,
    exp.TimestampDiff: _difference,
    exp.UnixToStr: _from_unix,
}
