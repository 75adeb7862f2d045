"""When a query gives early results, in words.

>>> in_words(Prods(every=5, discarding=True), str)
'every 5, if rows have come; only what came since the last ones'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from eventide.eventtime.pattern import BETWEEN
from eventide.plan.declared.query import Prods


def in_words(prods: Prods, say: Callable[[int], str]) -> str:
    """When early answers are given, in words; `say` speaks of lengths.

    >>> in_words(Prods(points=(0.75, 0.9), estimate=True), str)
    'at 75 % and 90 % of the slide; sums and counts extrapolated'
    """
    parts = [] if prods.every is None else [f"every {say(prods.every)}, if rows have come"]
    parts += [] if prods.every_rows is None else [f"every {prods.every_rows:,} rows"]
    if prods.points:
        parts.append(f"at {' and '.join(f'{100 * point:g} %' for point in prods.points)} of the slide")
    if prods.within is not None:
        sure = f"{100 * prods.within.confidence:g} %"
        bounds = f"between {100 * prods.within.earliest:g} % and {100 * prods.within.latest:g} % of the slide"
        parts.append(f"as early as {100 * prods.within.error:g} % error permits, {bounds}, with {sure} confidence")
    parts += [] if prods.by is None else [f"at every row of {prods.by}, up to its time"]
    parts += ["at the prods among the rows that it reads"] if prods.in_stream else []
    parts += [f"only groups with {_patterns_in_words(prods.where)}"] if prods.where else []
    parts += ["sums and counts extrapolated"] if prods.estimate else []
    parts += ["only what came since the last ones"] if prods.discarding else []
    compared = [f"{value} by {how if isinstance(how, str) else _called(how)}" for value, how in prods.compare]
    return "; ".join([*parts, *([f"compared: {', '.join(compared)}"] if compared else [])])


def _patterns_in_words(patterns: Mapping[str, Any]) -> str:
    """Patterns of groups as people say them.

    >>> _patterns_in_words({"segment": {"between": ["3", "7"]}, "lane": ["1", None]})
    "segment from 3 to 7, lane '1' or NULL"
    """

    def words(one: Any) -> str:
        if isinstance(one, dict):
            low, high = one[BETWEEN]
            return " ".join([*([] if low is None else [f"from {low}"]), *([] if high is None else [f"to {high}"])])
        return "NULL" if one is None else repr(one)

    said = ((name, data if isinstance(data, list) else [data]) for name, data in patterns.items())
    return ", ".join(f"{name} {' or '.join(map(words, data))}" for name, data in said)


def _called(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
