"""Functions that look across rows, or make several of one: no expression over single rows may have them.

Law: an expression of a query gives one value for one row, from that row alone, or it is an aggregate. Whatever else is
refused before anything runs: it would see the rows of one round, or of one task, and its answer would depend on how
rows were cut into rounds.

>>> from eventide.plan.expressions.parse import parsed
>>> parsed("lag(speed)", "query 'q'")
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: query 'q': LAG compares a row with others, and cannot be run yet: to meet \
rows before it, join the stream with itself: ON a.ts BETWEEN b.ts AND b.ts + INTERVAL 1 MINUTE
"""

from __future__ import annotations

from sqlglot import exp

FIRST_N = "for the first n of each window: ORDER BY value LIMIT n, behind GROUP BY"
NEIGHBOUR = "to meet rows before it, join the stream with itself: ON a.ts BETWEEN b.ts AND b.ts + INTERVAL 1 MINUTE"
IN_ARRAYS = "work within the row, with transform(..), filter(..) or aggregate(..), or let one row come for each element"
FIXED_LENGTH = "give windows of a fixed length, [RANGE 5 minutes]"

COMPARES = "compares a row with others, and cannot be run yet"
MULTIPLIES = "makes several rows of one, and an expression gives one value"
PLACES = "tells where a row happens to lie, which changes when a round is run again"

REFUSED: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "nth_value"), (COMPARES, FIRST_N)
    ),
    **dict.fromkeys(("lag", "lead"), (COMPARES, NEIGHBOUR)),
    **dict.fromkeys(
        (
            "explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack",
            "json_tuple", "variant_explode", "variant_explode_outer",
        ),
        (MULTIPLIES, IN_ARRAYS),
    ),
    **dict.fromkeys(
        ("monotonically_increasing_id", "spark_partition_id"), (PLACES, "take a column that names the row")
    ),
    "session_window": ("makes windows out of the rows of a round, and cannot be run yet", FIXED_LENGTH),
    **dict.fromkeys(
        ("window", "window_time"),
        ("is a window, and no value", "the window of a query is in every result, as window_start and window_end"),
    ),
}  # fmt: skip
"""What is wrong with each of these functions of Spark, and what to write instead."""

WINDOWS = frozenset(("window", "window_time"))
"""Functions that a query may have where it says its window."""


def refused_call(tree: exp.Expr, apart_from: frozenset[str] = frozenset()) -> tuple[exp.Expr, str, str] | None:
    """The first call of such a function, what is wrong with it, and the way out; None where there is none."""
    for node in tree.walk():
        if isinstance(node, exp.Window):
            return node, "OVER cannot be run yet", "aggregate in a window, FROM s [RANGE 5 minutes]"
        if not isinstance(node, exp.Func):
            continue
        names = [node.name] if isinstance(node, exp.Anonymous) else type(node).sql_names()
        for name in names:
            if name.lower() in REFUSED and name.lower() not in apart_from:
                what, instead = REFUSED[name.lower()]
                return node, f"{name.upper()} {what}", instead
    return None
