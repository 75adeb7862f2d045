"""Partials: what a slice keeps of its rows so that aggregates can be told later.

Law of slices: rows reduce to partials, partials of the same group merge to partials, in any order and any grouping; the
value of an aggregate is a function of the merged partials. So the answer does not depend on how rows were cut into
rounds and panes. All SQL here is Spark's dialect; a partial column is spoken of by its name.

An aggregate that has no such form (an exact percentile, a user's own) is not here: its slices keep their rows.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Partial:
    """One column of a slice.

    `reduce` is an aggregate over the stream's columns (`sum(v)`); `merge` is an aggregate over partial columns
    (`sum(p0)`) that gives the same column for all of them together, of the same type.
    `over`: columns that must stand beside each partial row before merging, as window aggregates over all
    rows that are merged (`p1_mean` = `sum(p0 * p1) OVER merged`); `merge` may use their names.
    """

    name: str
    type: str
    reduce: str
    merge: str
    over: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Split:
    """A selected expression split in two: the partials it needs, and its value over the merged partials.

    `checks`: boolean expressions over merged partials that must hold, each with the reason told when it does not
    (`the sum of v overflows BIGINT`); the value is NULL where one fails, and that is reported, never silent.
    `driver_exact` is False where DuckDB cannot give Spark's answer from these partials: then only Spark merges them.
    """

    partials: tuple[Partial, ...]
    value: str
    type: str
    checks: tuple[tuple[str, str], ...] = ()
    driver_exact: bool = True
