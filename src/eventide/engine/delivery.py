"""What was reduced of a round's rows, given to the query or operator that it is for.

Law: whatever the way, a query or operator judges by itself which rows are late. Where a query reads several inputs
through a merge, all that comes in a round is as if it had come at once.
"""

from __future__ import annotations

import pyarrow as pa

from eventide.engine.cluster_slices import Chunk
from eventide.engine.slices import slice_schema
from eventide.engine.taken import Taken
from eventide.engine.work import Round
from eventide.plan.binding import Way


def deliver(work: Round, way: Way, chunk: pa.Table | Chunk, clock: int | None = None) -> Taken:
    """Give a chunk to whom it is for; with a `clock`, rows without a time of their own are stamped with it."""
    if way.into_port:
        assert isinstance(chunk, pa.Table)
        if clock is not None:
            chunk = work.operators[way.step].stamped(way.name, chunk, clock)
        work.operators[way.step], taken = work.operators[way.step].take(way.name, chunk)
        work.came[way.step] = work.came.get(way.step, 0) + taken.wanted
        return taken
    run = work.runs[way.step]
    if clock is not None:
        chunk = run.reading(way.bound).stamped(chunk, clock)
    if isinstance(chunk, pa.Table):
        chunk = chunk.select(slice_schema(run.query).names)
    work.runs[way.step], taken = run.take(chunk)
    work.came[way.step] = work.came.get(way.step, 0) + taken.wanted
    before = work.taken.get(way.step)
    work.taken[way.step] = taken if before is None else before.with_more(taken)
    return taken
