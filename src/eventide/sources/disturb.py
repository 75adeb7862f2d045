"""The disturbances of a replay: when a row that was to be delivered at one time is delivered instead.

Laws. Nothing comes earlier than before. A delay depends only on the seed and on the number of the row in the recording,
so neither batches nor engines nor the version of any library change it (up to the rounding of a logarithm).

>>> draws = uniform(np.arange(5), seed=7, stream=0)
>>> bool((0 <= draws).all() and (draws < 1).all()), float(uniform(np.arange(5), 7, 0)[3]) == float(draws[3])
(True, True)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eventide.sources.replay import Burst, Delay, Replay, Silence

Numbers = NDArray[np.int64]


def uniform(rows: Numbers, seed: int, stream: int) -> NDArray[np.float64]:
    """A number in [0, 1) for each row, by mixing the bits of its number (SplitMix64)."""
    start = (seed * 0x9E3779B97F4A7C15 + stream * 0xD1342543DE82EF95 + 0x632BE59BD9B4E019) % 2**64
    bits = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(start)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    return (bits >> np.uint64(11)).astype(np.float64) / 2.0**53


def extra_delay(replay: Replay, rows: Numbers, sources: Any) -> Numbers:
    """Microseconds of extra delay for each row; `sources` are the names of their sources (NumPy), or None."""
    extra = np.zeros(len(rows), dtype=np.int64)
    for number, delay in enumerate(replay.delays):
        chosen = uniform(rows, replay.seed, 3 * number) < delay.share
        if delay.sources:
            chosen &= np.isin(sources, np.array(delay.sources, dtype=object))
        extra += np.where(chosen, amounts(delay, rows, replay.seed, 3 * number + 1), 0)
    return extra


def amounts(delay: Delay, rows: Numbers, seed: int, stream: int) -> Numbers:
    """What a delay would be for each row."""
    first = uniform(rows, seed, stream)
    if delay.distribution == "constant":
        drawn = np.full(len(rows), float(delay.mean))
    elif delay.distribution == "uniform":
        spread = delay.mean if delay.spread is None else delay.spread
        drawn = delay.mean + spread * (2 * first - 1)
    elif delay.distribution == "exponential":
        drawn = -delay.mean * np.log1p(-first)
    else:
        angle = 2 * np.pi * uniform(rows, seed, stream + 1)
        drawn = delay.mean + (delay.spread or 0) * np.sqrt(-2 * np.log1p(-first)) * np.cos(angle)
    longest = 2.0**61 if delay.at_most is None else float(delay.at_most)
    bounded: NDArray[np.float64] = np.clip(drawn, 0.0, longest)
    return bounded.astype(np.int64)


def burst_sql(burst: Burst) -> str:
    """SQL that moves `_replay_at`: held back, then in quick succession up to the end of the interval."""
    end = burst.start + burst.length
    return (
        f"CASE WHEN _replay_at >= {burst.start} AND _replay_at < {end} "
        f"THEN CAST({end} - ceil(({end} - _replay_at) / {burst.factor!r}) AS BIGINT) ELSE _replay_at END"
    )


def silence_sql(silence: Silence) -> str:
    """SQL that moves `_replay_at` out of a silence, or makes it NULL for a row that is never delivered."""
    end = silence.start + silence.length
    held = f"_replay_at >= {silence.start} AND _replay_at < {end}"
    if silence.sources:
        names = ", ".join("'" + name.replace("'", "''") + "'" for name in silence.sources)
        held += f" AND _replay_source IN ({names})"
    return f"CASE WHEN {held} THEN {end if silence.then == 'at once' else 'NULL'} ELSE _replay_at END"


def moved_sql(replay: Replay, relation: str) -> str:
    """SQL in which `_replay_at`, the time of delivery, has been moved by all that was declared."""
    steps = [burst_sql(burst) for burst in replay.bursts]
    steps += ["_replay_at + _replay_extra"] if replay.delays else []
    steps += [silence_sql(silence) for silence in sorted(replay.silences, key=lambda silence: silence.start)]
    for step in steps:
        relation = f"(SELECT * REPLACE ({step} AS _replay_at) FROM {relation})"
    return relation
