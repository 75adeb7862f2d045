"""The clauses of our statements: the words that open each, and what may follow them.

The tables are the grammar. Each entry names the parts behind its words; clauses come in any order. `clauses.py` reads
them.
"""

from __future__ import annotations

from collections.abc import Mapping

Parts = tuple[str, ...]
"""What follows: `name`, `names`, `text`, `type`, `amount`, `pairs`, ...; a WORD that must, a `WORD?` that may."""

STREAM_CLAUSES: Mapping[str, Parts] = {
    "FROM": ("input",),
    "USING": ("name",),
    "OPTIONS": ("pairs",),
    "FORMAT": ("name",),
    "LIMIT": ("quota", "PER", "ROUND"),
    "TIMESTAMP BY": ("time",),
    "SOURCE BY": ("names",),
    "EXPECTING": ("sources",),
    "GIVE UP AFTER": ("amount",),
    "ARRIVAL BY": ("name",),
    "FUTURE": ("amount", "REJECT?"),
    "SLACK": ("amount",),
    "DELAY": ("amount",),
    "WATERMARK FOR": ("name", "AS", "name", "less"),
    "WATERMARK": ("name", "DELAY", "OF", "amount"),
    "DRATIO": ("amount",),
    "LEARNED FROM": ("text",),
    "ESTIMATOR": ("name",),
    **dict.fromkeys(("CLOCK SKEW", "ON DEMAND"), ("amount",)),
    "BOUNDS": ("bounds",),
    **dict.fromkeys(("GROUPED INTO", "CLOCK UNIT"), ("amount",)),
    "GROUPED": ("groups",),
    "ESTIMATED BOUNDS": ("pairs?",),
    "PUNCTUATED BY": ("name", "ranges"),
    "PRODDED BY": ("name",),
    "OWN PROGRESS": (),
    "TIMEOUT": ("amount",),
    "IDLE AFTER": ("amount",),
}
WINDOW_CLAUSES: Mapping[str, Parts] = {
    **dict.fromkeys(("RANGE", "SLIDE", "STEP"), ("amount",)),
    "SESSION": ("gap",),
    "PARTITION BY": ("names",),
    "WATTR": ("name",),
    "OFFSET": ("amount",),
    "EMPTY WINDOWS": (),
    "ESTIMATOR": ("name",),
    **dict.fromkeys(("RETAIN", "SLACK", "DRATIO"), ("amount",)),
}
INTO_CLAUSES: Mapping[str, Parts] = {
    "CLOSE BY SOURCE": (),
    "INTO": ("output",),
    "FORMAT": ("name",),
    "OPTIONS": ("pairs",),
    **dict.fromkeys(("EMIT IMMEDIATELY", "EMIT IN ORDER OF TIME", "EMIT CHANGES"), ()),
}
PROD_CLAUSES: Mapping[str, Parts] = {
    "PROD EVERY": ("amount",),
    "PROD AT": ("amounts",),
    "PROD WITHIN": ("amount", "ERROR"),
    "PROD BETWEEN": ("amount", "AND", "amount"),
    "PROD SPEED": ("amount",),
    "PROD CONFIDENCE": ("amount",),
    "PROD BY": ("stream",),
    "PROD WHERE": ("condition",),
    **dict.fromkeys(("ESTIMATE", "DISCARDING"), ()),
    "COMPARE": ("comparisons",),
}
QUEUE_CLAUSES: Mapping[str, Parts] = {
    "SIDELINE ONE IN": ("amount",),
    "SIDELINE WITHIN": ("amount",),
    "SIDELINE BURSTS": (),
}
STATE_CLAUSES: Mapping[str, Parts] = {"STATE TTL": ("ttl",)}
BOUNDS_CLAUSES: Mapping[str, Parts] = {"TIMEOUT": ("amount",), "DRATIO": ("amount",)}
FUNCTION_CLAUSES: Mapping[str, Parts] = {"FROM": ("text",), "RETURNS": ("type",), "EXPENSIVE": ()}

WRAPPED = ("pairs", "bounds", "sources", "groups")
"""What stands in parentheses."""

BEGINNINGS = ("CREATE", "SELECT", "WITH", "QUERY", "DROP", "SHOW", "EXPLAIN", "SET")
"""What a statement begins with; in the middle of one, on a line of its own, a semicolon is missing before it."""


def opening(words: str) -> str:
    """How a clause is named in a list of all: clauses that begin alike go by their first word.

    >>> [opening(words) for words in ("PROD EVERY", "SIDELINE WITHIN", "CLOSE BY SOURCE")]
    ['PROD ..', 'SIDELINE ..', 'CLOSE BY SOURCE']
    """
    first = words.split()[0]
    return f"{first} .." if first in ("PROD", "SIDELINE") else words
