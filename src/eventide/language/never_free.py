"""Joins that could never let go of a row, and what is to be added to them."""

from __future__ import annotations

from sqlglot import exp

from eventide.errors import LanguageError
from eventide.language.known import Level
from eventide.language.relations import Bounds
from eventide.language.source_text import SourceText
from eventide.language.words import spark_text


def unrelated(source: SourceText, node: exp.Expr, left: tuple[str, Level], right: tuple[str, Level]) -> LanguageError:
    """Nothing relates the times of the two sides."""
    names = []
    for alias, level in (left, right):
        carrying = sorted(level.times.items(), key=lambda item: item[1].shifted != 0)
        if not carrying:
            missing = f"the time of {alias!r}" if level.stream.time is None else f"{level.stream.time!r} of {alias!r}"
            return source.error(
                f"this join could never let go of a row: no column here carries {missing}",
                node,
                "select the time below the join, too"
                if level.stream.time is not None
                else "declare which column tells the time: TIMESTAMP BY column",
            )
        names.append((f"{alias}.{carrying[0][0]}", carrying[0][1].micros))
    (one, micros), (other, _) = names
    some = "INTERVAL 5 SECONDS" if micros else "5"
    return source.error(
        f"this join could never let go of a row: nothing relates the time of {left[0]!r} to that of {right[0]!r}",
        node,
        f"add {one} = {other}, or {one} BETWEEN {other} - {some} AND {other} + {some}",
    )


def one_sided(source: SourceText, said: tuple[exp.Expr, Bounds]) -> LanguageError:
    """Times are bounded from one side alone."""
    condition, bounds = said
    left = f"{bounds.left.alias}.{spark_text(bounds.left.expression)}"
    right = f"{bounds.right.alias}.{spark_text(bounds.right.expression)}"
    some = "INTERVAL 5 SECONDS" if bounds.left.times.micros else "5"
    if bounds.low is not None and bounds.high is not None:
        return source.error("no pair of rows can have these times", condition, "the first bound is above the second")
    # low <= right - left is known: right must not be far after left. And the other way round.
    add = f"{right} <= {left} + {some}" if bounds.high is None else f"{left} <= {right} + {some}"
    late, early = (right, left) if bounds.high is None else (left, right)
    return source.error(
        f"this join could never let go of a row: {late} may be any time after {early}", condition, f"add {add}"
    )
