"""A bounded run from start to end, the same for every engine.

Law: when `to_the_end` returns or raises, nothing of the engine runs any more.
"""

from __future__ import annotations

from time import perf_counter

from eventide.engine.local.engine import LocalEngine
from eventide.engine.spark.engine import SparkEngine


def to_the_end(engine: SparkEngine | LocalEngine) -> float:
    """Start, wait for the end; the seconds that it took."""
    # Whoever is interrupted here wants to take the folders away in which a round is being written.
    with engine:
        begin = perf_counter()
        engine.start(bounded=True)
        engine.await_end()
        return perf_counter() - begin
