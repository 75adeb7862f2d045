"""How people spell names, numbers and units, and what they meant where they mistyped or come from another system.

Laws. A length of time is a whole number of microseconds; a plain number is in the stream's own units, the numbers of a
sequence or seconds. A hint stands beside an error that is there anyway: it goes by the word that cannot be read and
those before it, and never changes what is read.

>>> nearest("trafic", ["traffic", "cars"]), nearest("x", ["traffic"])
('traffic', None)
>>> micros(1.5, "min"), UNITS["hours"]
(90000000, 3600000000)
>>> meant_by(["CREATE"], "VIEW"), meant_by(["FROM", "traffic", "RANGE"], "5")
('a view is a query here: CREATE QUERY name AS SELECT ..', 'a window stands in brackets: [RANGE 5 minutes]')
>>> meant_by(["RANGE", "5"], "minuts"), meant_by(["SELECT", "a", "FORM"], "traffic"), meant_by(["SELECT"], "x")
('did you mean minutes?', 'did you mean FROM?', None)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from sqlglot import exp

from eventide.plan.expressions.parse import OTHER_AGGREGATES


def nearest(given: str, known: Iterable[str]) -> str | None:
    """The nearest of the known names, whatever its capital letters; None when none is near."""
    spelled = {name.lower(): name for name in known}
    close = get_close_matches(given.lower(), spelled, n=1)
    return spelled[close[0]] if close else None


def meant(given: str, known: Iterable[str]) -> str | None:
    """A suggestion for a name that nobody knows: the nearest one, or those there are.

    >>> meant("trafic", ["traffic", "cars"]), meant("x", ["traffic", "cars"]), meant("x", [])
    ("did you mean 'traffic'?", 'there are: traffic, cars', None)
    """
    names = list(known)
    close = nearest(given, names)
    if close is not None:
        return f"did you mean {close!r}?"
    return f"there are: {', '.join(names[:20])}" if names else None


_BASE = {
    "microsecond": (1, "us", "micros", "usec"),
    "millisecond": (1_000, "ms", "millis", "msec"),
    "second": (1_000_000, "s", "sec", "secs"),
    "minute": (60_000_000, "m", "min", "mins"),
    "hour": (3_600_000_000, "h", "hr", "hrs"),
    "day": (86_400_000_000, "d"),
    "week": (7 * 86_400_000_000, "w"),
}
LENGTHS: dict[str, int] = {
    word: int(length) for name, (length, *short) in _BASE.items() for word in (name, f"{name}s", *map(str, short))
}
"""How many microseconds each unit of time has."""

COUNTS = ("row", "rows", "tuple", "tuples")
QUOTAS = (*COUNTS, "file", "files", "offset", "offsets")
"""What a round may be limited by. OFFSET is a clause of a window, so it is no unit elsewhere."""

UNITS: dict[str, int] = {**LENGTHS, **dict.fromkeys(COUNTS, 0)}
"""Every word that may stand behind a number in any clause."""


def micros(number: float, unit: str) -> int:
    """A length of time in microseconds."""
    return round(number * LENGTHS[unit])


WINDOW_FUNCTIONS = {
    "tumble": "FROM {stream} [RANGE 5 minutes], or GROUP BY window({time}, '5 minutes')",
    "hop": "FROM {stream} [RANGE 5 minutes SLIDE 1 minute], or GROUP BY window({time}, '5 minutes', '1 minute')",
    "cumulate": "FROM {stream} [RANGE 1 hour STEP 5 minutes]",
    "tumbling": "FROM {stream} [RANGE 5 minutes]",
    "hopping": "FROM {stream} [RANGE 5 minutes SLIDE 1 minute]",
    "session": "FROM {stream} [SESSION 10 minutes], or GROUP BY session_window({time}, '10 minutes')",
    "session_window": "FROM {stream} [SESSION 10 minutes], or GROUP BY session_window({time}, '10 minutes')",
}
"""How other systems call windows, and what to write here."""

SQL_WORDS = ("SELECT", "FROM", "WHERE", "GROUP BY", "GROUP", "HAVING", "ORDER BY", "UNION", "JOIN", "ON", "LIMIT")
TYPES = (
    "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "STRING", "BOOLEAN", "BINARY", "DATE",
    "TIMESTAMP", "TIMESTAMP_NTZ", "ARRAY", "MAP", "STRUCT",
)  # fmt: skip
"""Those that may be meant by a type that nobody knows."""

BEHIND_A_WINDOW = ("WHERE", "GROUP BY", "GROUP", "HAVING", "ORDER BY", "ORDER", "LIMIT", "INTO", "PROD")
USUAL_AGGREGATES = ("avg", "sum", "count", "min", "max", "first", "last", "median", "stddev", "variance")


def meant_by(before: Sequence[str], word: str, after: str = "") -> str | None:
    """What was probably meant by a word that cannot be read, by the words before it and the one after it."""
    words_before = [text.upper() for text in before]
    last, here = words_before[-1] if words_before else "", word.upper()
    if not words_before and here == "INSERT":
        return "results go where INTO says, behind the query: CREATE QUERY name AS SELECT .. INTO 'dir'"
    if not words_before and here in ("UPDATE", "DELETE", "MERGE", "ALTER", "TRUNCATE", "USE"):
        return "a script declares streams and queries, and changes nothing else"
    if words_before[:1] == ["CREATE"] and len(words_before) < 4 and here in ("VIEW", "MATERIALIZED"):
        return "a view is a query here: CREATE QUERY name AS SELECT .."
    function = next((text.lower() for text in words_before[-4:] if text.lower() in WINDOW_FUNCTIONS), None)
    if function is not None:
        return instead_of(function, "stream", "ts")
    if "RANGE" in words_before[-2:] and "[" not in words_before[-4:] and (here.isdecimal() or here.lower() in LENGTHS):
        return "a window stands in brackets: [RANGE 5 minutes]"
    if last == "EMIT":
        return "results come when their window is over; PROD EVERY 10 seconds asks for early ones"
    if here == "SELECT" and last == "]":
        return "end the statement before it with ;"
    if "WATERMARK" in (here, after.upper(), last):
        return "how time moves is said in CREATE STREAM (..), behind the columns: DRATIO 1%, or DELAY 5 minutes"
    if last.replace(".", "", 1).isdecimal() and here.isalpha():
        if here.rstrip("S") in ("MONTH", "YEAR", "QUARTER"):
            return "months and years differ in length: say how many days"
        if (unit := nearest(here, LENGTHS)) is not None:
            return f"did you mean {unit.lower()}?"
    if words_before[:2] == ["CREATE", "STREAM"] and here == "WITH":
        return "write USING kafka OPTIONS (key 'value', ..), or FROM json 'dir'"
    return _slip(words_before, before, here, after.upper())


def _slip(words_before: Sequence[str], before: Sequence[str], here: str, after: str) -> str | None:
    """What was meant where a small word or sign is missing, too much, or another one."""
    last = words_before[-1] if words_before else ""
    if here == "=>":
        return "did you mean >=?"
    if here == ")" and words_before.count("(") <= words_before.count(")"):
        return "it closes nothing: leave it out"
    if here == "LIMIT" and not after:
        return "say how many: LIMIT 10"
    if last == "AS" and here in SQL_WORDS:
        return f"{here} is a word of SQL: put it in backticks, AS `{here.lower()}`"
    if last in ("GROUP", "ORDER", "GROUPBY", "ORDERBY"):
        return f"write {last.removesuffix('BY')} BY"
    if here == "," and "IN" in words_before[-2:]:
        return "put the values in parentheses: IN (1, 2)"
    if here == "[" and "]" in words_before:
        return "a query has one window"
    if last == "," and here in SQL_WORDS:
        return "leave the comma out"
    if last == "," and "CAST" in words_before[-4:]:
        return f"write CAST({before[-2]} AS {here})"
    if words_before[:1] == ["SELECT"] and "FROM" not in words_before:
        if here == "FROM" and "WHERE" in words_before:
            return "FROM stands before WHERE"
        if here == "[":
            return f"write FROM {before[-1]}"
    if last != "FROM" and nearest(last, ("FROM", "WHERE")) is not None and "FROM" not in words_before:
        return "did you mean FROM?"
    return None


def not_closed(before: Sequence[str], word: str) -> str | None:
    """A hint where a window lacks its bracket.

    >>> not_closed(["FROM", "s", "[", "RANGE", "5"], "GROUP BY"), not_closed(["[", "RANGE", "5", "]"], "GROUP BY")
    ('close the window before it with ]', None)
    """
    words_before = list(before)
    is_open = "[" in words_before and "]" not in words_before[len(words_before) - words_before[::-1].index("[") :]
    return "close the window before it with ]" if is_open and word.upper() in BEHIND_A_WINDOW else None


def instead_of(function: str, stream: str, time: str | None) -> str:
    """What to write in the place of another system's window.

    >>> instead_of("tumble", "traffic", "ts")
    "TUMBLE is not known here: write FROM traffic [RANGE 5 minutes], or GROUP BY window(ts, '5 minutes')"
    """
    return f"{function.upper()} is not known here: write " + WINDOW_FUNCTIONS[function].format(
        stream=stream, time=time or "ts"
    )


def window_function_in(select: exp.Expr) -> str | None:
    """The window function of another system that a query calls, if it does.

    >>> import sqlglot
    >>> window_function_in(sqlglot.parse_one("SELECT count(*) FROM s GROUP BY HOP(ts, 1, 5)"))
    'hop'
    """
    names = (call.name.lower() for call in select.find_all(exp.Anonymous))
    return next((name for name in names if name in WINDOW_FUNCTIONS), None)


def aggregate_meant(select: exp.Expr) -> tuple[exp.Expr, str] | None:
    """A function that nobody knows and that is spelled almost as an aggregate, and that one's name.

    >>> import sqlglot
    >>> aggregate_meant(sqlglot.parse_one("SELECT avrg(speed) FROM s"))[1]
    'avg'
    """
    for call in select.find_all(exp.Anonymous):
        close = nearest(call.name, (*USUAL_AGGREGATES, *sorted(OTHER_AGGREGATES)))
        if close is not None:
            return call, close
    return None
