"""Slow flush of rows that wait: how far time goes in a round, where all that it lets go would be too many.

Laws. *About so many*: a round goes as far as the rows that it lets go are about `limit`; rows of one instant go
together, and at least one goes. *Nothing else changes*: what waits longer is not promised to be over, so a row that
comes for it meanwhile still counts, and whoever reads hears of no later time. (Gigascope paper, sections 4.4 and 5.5.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from eventide.engine.relations.executor import Executor, Statement, one_row
from eventide.engine.relations.segments import Segments
from eventide.eventtime.instant import shift

Floors = tuple[int, ...]
Both = tuple[Floors, Floors]

PARTS = 1 << 64
"""A way from one floor to another is cut so finely that no instant lies between two cuts."""


def nth_value(executor: Executor, rows: Segments, column: str, first: int, last: int, limit: int) -> int | None:
    """The value of the `limit`-th row between two, in the order of a column; None where there are no more rows."""
    near = rows.within(column, first, last)
    if first > last or near.rows <= limit:
        return None
    least = f"SELECT ready.{column} AS at FROM ready CROSS JOIN span"
    inside = f"ready.{column} >= span.__first AND ready.{column} <= span.__last"
    # One more than may go: where there is none, all of them may.
    statement = Statement(f"{least} WHERE {inside} ORDER BY at LIMIT {limit + 1}")
    found = sorted(
        executor.table(statement, {"ready": near, "span": one_row(first=first, last=last)})["at"].to_pylist()
    )
    return None if len(found) <= limit else found[limit - 1]


def floors_within(
    executor: Executor,
    kept: Mapping[int, Segments],
    was: Both,
    now: Both,
    done: Callable[[Both], Both],
    limit: int,
) -> Both:
    """Floors between two of a join that free about `limit` rows of each side in `kept`, which are emitted alone.

    `done` tells of floors below which band values rows of each side are done with; a side's bands are its columns
    `__k1` and so on.
    """
    most = {}
    for side, rows in kept.items():
        for place, (first, last) in enumerate(zip(done(was)[side], done(now)[side], strict=True)):
            at = nth_value(executor, rows, f"__k{place + 1}", first, shift(last, -1), max(1, limit))
            if at is not None:
                most[side, place] = at + 1

    def fits(floors: Both) -> bool:
        edges = done(floors)
        return all(edges[side][place] <= edge for (side, place), edge in most.items())

    return furthest(was, now, fits) if most else now


def furthest(was: Both, now: Both, fits: Callable[[Both], bool]) -> Both:
    """The floors furthest on the way from `was` to `now` that still fit, as those of the beginning do.

    >>> furthest(((0,), (10,)), ((100,), (10,)), lambda floors: floors[0][0] <= 42)
    ((42,), (10,))
    """
    low, high = 0, PARTS
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(_between(was, now, middle)) else (low, middle - 1)
    return _between(was, now, low)


def _between(was: Both, now: Both, part: int) -> Both:
    left, right = (
        tuple(old + (new - old) * part // PARTS for old, new in zip(*two, strict=True))
        for two in zip(was, now, strict=True)
    )
    return left, right
