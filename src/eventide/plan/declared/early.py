"""Early answers as a query declares them: PROD EVERY, PROD AT, PROD WITHIN .. ERROR, PROD BY, ESTIMATE, COMPARE.

Law: a declaration asks for early answers and changes no final one. `every` is a length on the clock, `points` are
shares of the slide, `within` lets the point find itself. Where the times of a stream are numbers of a sequence, its
own progress takes the place of the clock. `by` names a stream whose rows are prods; `in_stream` says that prods come
among the rows that the query reads (`plan.prodded`). With `estimate`, sums and counts are extrapolated beside their raw
values. `compare` has functions of the user for values: of early and final ones as Arrow arrays, to errors.

>>> Prods(points=(0.75, 0.9)).triggers(by_progress=False)
(AtPoints(points=(0.75, 0.9)),)
>>> Prods()
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: PROD needs to know when: write EVERY, AT, WITHIN or BY
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.eventtime.early.triggers import AtPoints, ByProgress, Earliness, EarlyTrigger, Every
from eventide.plan.expressions.aggregate_call import call_from
from eventide.plan.expressions.parse import aggregates_in, parsed

POINT, COMPLETENESS = "point", "completeness"
ERROR, ESTIMATE = "_error", "_estimate"
GROWING = ("sum", "try_sum", "count", "count_if")
"""Aggregates that are as much smaller as rows are missing."""


Compare = Callable[..., Any] | str
"""How an early value is compared with the final one: a function, or the name of one that a script declares."""


@dataclass(frozen=True)
class Prods:
    """When a query is asked for early answers, and whether sums and counts are extrapolated."""

    every: int | None = None
    points: tuple[float, ...] = ()
    within: Earliness | None = None
    estimate: bool = False
    by: str | None = None
    in_stream: bool = False
    compare: tuple[tuple[str, Compare], ...] = ()

    def __post_init__(self) -> None:
        asked = self.every is not None or bool(self.points) or self.within is not None
        if not (asked or self.by is not None or self.in_stream):
            raise DeclarationError("PROD needs to know when: write EVERY, AT, WITHIN or BY")
        for value, how in self.compare:
            if not (isinstance(how, str) or callable(how)):
                raise DeclarationError(f"{how!r} cannot compare {value!r}: give a function of early and final values")
        self.triggers(by_progress=False)

    @property
    def needs_slides(self) -> bool:
        """Whether it speaks of points of the slide, which windows over counts of rows do not have in time."""
        return bool(self.points) or self.within is not None

    def triggers(self, by_progress: bool) -> tuple[EarlyTrigger, ...]:
        """Who asks; `by_progress`: by the times that have arrived instead of the clock."""
        found: list[EarlyTrigger] = []
        if self.every is not None:
            found.append(Every(self.every))
        if self.points:
            found.append(AtPoints(self.points))
        return tuple(ByProgress(trigger) for trigger in found) if by_progress else tuple(found)


def in_words(prods: Prods, say: Callable[[int], str]) -> str:
    """When early answers are told, in words; `say` speaks of lengths.

    >>> in_words(Prods(points=(0.75, 0.9), estimate=True), str)
    'at 75 % and 90 % of the slide; sums and counts extrapolated'
    """
    parts = [] if prods.every is None else [f"every {say(prods.every)}, if rows have come"]
    if prods.points:
        parts.append(f"at {' and '.join(f'{100 * point:g} %' for point in prods.points)} of the slide")
    if prods.within is not None:
        bounds = f"between {100 * prods.within.earliest:g} % and {100 * prods.within.latest:g} % of the slide"
        parts.append(f"as early as {100 * prods.within.error:g} % error permits, {bounds}")
    parts += [] if prods.by is None else [f"at every row of {prods.by}, up to its time"]
    parts += ["at the prods among the rows that it reads"] if prods.in_stream else []
    parts += ["sums and counts extrapolated"] if prods.estimate else []
    compared = [f"{value} by {how if isinstance(how, str) else _called(how)}" for value, how in prods.compare]
    return "; ".join([*parts, *([f"compared: {', '.join(compared)}"] if compared else [])])


def _called(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def added_columns(values: tuple[str, ...], estimates: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that early answers have beside those of final ones, which have NULL in them.

    >>> added_columns(("total",), ("total",))
    ('point', 'completeness', 'total_error', 'total_estimate')
    """
    return (POINT, COMPLETENESS, *(f"{name}{ERROR}" for name in values), *(f"{name}{ESTIMATE}" for name in estimates))


def extrapolated(select: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Of values with their SQL, the names of those that grow with the rows: sums and counts, not of distinct values.

    >>> extrapolated([("total", "sum(v)"), ("n", "count(*)"), ("d", "count(DISTINCT v)"), ("r", "sum(v) / 2")])
    ('total', 'n')
    """
    found = []
    for name, sql in select:
        tree = parsed(sql, f"the value {name!r}")
        calls = aggregates_in(exp.Paren(this=tree))
        if len(calls) == 1 and calls[0] is tree:
            call = call_from(tree)
            if call.name in GROWING and not call.distinct:
                found.append(name)
    return tuple(found)
