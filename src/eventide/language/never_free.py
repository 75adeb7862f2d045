"""Joins that could never let go of a row, and what is to be added to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from eventide.errors import LanguageError
from eventide.language.join_scope import qualified
from eventide.language.known import Level
from eventide.language.relations import Attribute, Bounds, length_of
from eventide.language.source_text import SourceText
from eventide.language.words import column_of, spark_text

Side = tuple[str, Level]
"""An input of a join: its name there, and what it is."""


def of_unknown_length(source: SourceText, conditions: Iterable[exp.Expr]) -> LanguageError | None:
    """An interval bounds no times if its length differs, as that of a month, or is not told in one unit."""
    for interval in (found for one in conditions for found in one.find_all(exp.Interval)):
        if length_of(interval) is None:
            return source.error(
                f"{spark_text(interval)} has no fixed length that is told in one unit, so it cannot bound times",
                interval,
                "write it in one unit from weeks to microseconds: INTERVAL 90 SECONDS",
            )
    return None


def unrelated(source: SourceText, node: exp.Expr, left: Sequence[Side], right: Side) -> LanguageError:
    """Nothing relates the times of the two sides; the left one may be several inputs that are joined already."""
    dated = next((side for side in left if side[1].times), left[0])
    names = []
    for alias, level in (dated, right):
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
        names.append((spark_text(column_of(carrying[0][0], alias)), carrying[0][1].micros))
    (one, micros), (other, also_micros) = names
    if micros != also_micros:
        times, numbers = (one, other) if micros else (other, one)
        return source.error(
            f"{times} is a time and {numbers} is a number, so no rows of this join belong together by time",
            node,
            "declare the time of both as a TIMESTAMP, or of both as a number",
        )
    some = "INTERVAL 5 SECONDS" if micros else "5"
    joined = " or ".join(repr(alias) for alias, _ in left)
    return source.error(
        f"this join could never let go of a row: nothing relates the time of {joined} to that of {right[0]!r}",
        node,
        f"add {one} = {other}, or {one} BETWEEN {other} - {some} AND {other} + {some}",
    )


def one_sided(source: SourceText, said: tuple[exp.Expr, Bounds], scope: Level) -> LanguageError:
    """Times are bounded from one side alone; `scope` has the columns of all inputs."""
    condition, bounds = said
    left, right = (as_written(one, scope) for one in (bounds.left, bounds.right))
    some = "INTERVAL 5 SECONDS" if bounds.left.times.micros else "5"
    if bounds.low is not None and bounds.high is not None:
        return source.error("no pair of rows can have these times", condition, "the first bound is above the second")
    # low <= right - left is known: right must not be far after left. And the other way round.
    add = f"{right} <= {left} + {some}" if bounds.high is None else f"{left} <= {right} + {some}"
    late, early = (right, left) if bounds.high is None else (left, right)
    return source.error(
        f"this join could never let go of a row: {late} may be any time after {early}", condition, f"add {add}"
    )


def as_written(attribute: Attribute, scope: Level) -> str:
    """An attribute of one side with the columns by the names that the user has for them: inputs that are joined already
    are one side, with columns of its own."""
    known = [
        (expression, column_of(name, alias))
        for alias, columns in scope.owned.items()
        for name, expression in columns.values()
    ]
    root = exp.Paren(this=qualified(attribute.expression, attribute.alias))
    for column in list(root.find_all(exp.Column)):
        # A sub-query may show a column only in another one that is made of it.
        made = [word for expression, word in known if column in expression.find_all(exp.Column)]
        same = [word for expression, word in known if expression == column]
        column.replace((same or made or [column])[0].copy())
    return spark_text(root.this)
