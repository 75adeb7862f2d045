"""Replays: recordings delivered again by their times, at any speed, with declared disturbances.

Laws. A row is delivered at the time its column `by` tells, counted from the smallest one in the recording: never
earlier, and later only by what is declared. Disturbances are in the time of the recording, in microseconds, and are
applied in the order bursts, delays, silences; `speed` comes last. The same declaration of the same recording always
gives the same schedule. Rows without a time are timed like the row before them in the recording.

(The Streamer of the NiagaraST prodding thesis, section 4.1: delivery by application timestamps, with random delays up
to a bound.)

>>> Replay("traffic.parquet", by="ts", speed=60, delays=(Delay(mean=10_000_000, distribution="uniform"),)).speed
60

*Disturbances.* When is a row delivered that was to be delivered at another time? Nothing comes earlier than before. A
delay depends only on the seed and on the number of the row in the recording, so neither batches nor engines nor the
version of any library change it (up to the rounding of a logarithm).

>>> draws = uniform(np.arange(5), seed=7, stream=0)
>>> bool((0 <= draws).all() and (draws < 1).all()), float(uniform(np.arange(5), 7, 0)[3]) == float(draws[3])
(True, True)

*Input.* `Input("replay", path=..., options=...)` is the same for both engines. Options: `format` of the recording (by
default by its ending), `by` (`arrival`, `event` or a column; by default the arrival column if the stream has one),
`speed` (a number, or `max`), `seed`, and `delays`, `bursts`, `silences`, each a JSON list of objects with the fields of
`Delay`, `Burst` and `Silence`.

>>> from eventide.plan.declared.stream import columns
>>> given = Input("replay", "cars.csv.gz", options=(("speed", "max"), ("delays", '[{"mean": 5, "sources": ["a"]}]')))
>>> replay_of(Stream("s", columns("ts TIMESTAMP, car STRING"), time="ts", source=("car",), input=given))
Replay(path='cars.csv.gz', by='ts', format='csv', speed=None, delays=(Delay(mean=5, distribution='constant', \
spread=None, share=1.0, at_most=None, sources=('a',)),), bursts=(), silences=(), seed=0)
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.plan.declared.stream import Input, Stream
from eventide.sources.options import input_of, needs_path


@dataclass(frozen=True)
class Delay:
    """Extra time on the way, for a share of the rows, or for all rows of some sources.

    `constant`: the mean. `uniform`: mean - spread to mean + spread; without a spread, 0 to twice the mean.
    `exponential`: of that mean. `normal`: of that mean, `spread` its standard deviation. Never less than 0 nor more
    than `at_most`.

    >>> Delay(mean=5, share=1.5)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: the share 1.5 of delayed rows is not between 0 and 1
    """

    mean: int
    distribution: str = "constant"
    spread: int | None = None
    share: float = 1.0
    at_most: int | None = None
    sources: tuple[str, ...] = ()

    KINDS: ClassVar[tuple[str, ...]] = ("constant", "uniform", "exponential", "normal")

    def __post_init__(self) -> None:
        if self.distribution not in self.KINDS:
            raise DeclarationError(
                f"delays are not distributed as {self.distribution!r}: use one of {', '.join(self.KINDS)}"
            )
        if not 0 <= self.share <= 1:
            raise DeclarationError(f"the share {self.share} of delayed rows is not between 0 and 1")
        if min(self.mean, self.spread or 0, self.at_most or 0) < 0:
            raise DeclarationError("a delay cannot be negative: nothing arrives before it was sent")


@dataclass(frozen=True)
class Burst:
    """Rows of an interval are held back and then come `factor` times as fast, the last ones at its end.

    >>> Burst(start=0, length=10_000_000, factor=0.5)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a burst 0.5 times as fast is none: give a factor above 1
    """

    start: int
    length: int
    factor: float

    def __post_init__(self) -> None:
        _checked_interval("a burst", self.start, self.length)
        if not (self.factor > 1 and math.isfinite(self.factor)):
            raise DeclarationError(f"a burst {self.factor} times as fast is none: give a factor above 1")


@dataclass(frozen=True)
class Silence:
    """Nothing is delivered in an interval, by some sources or by all; then all of it at once, or never.

    >>> Silence(start=0, length=5, then="later")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: what was held back in a silence comes 'at once' or 'never', not 'later'
    """

    start: int
    length: int
    sources: tuple[str, ...] = ()
    then: str = "at once"

    def __post_init__(self) -> None:
        _checked_interval("a silence", self.start, self.length)
        if self.then not in ("at once", "never"):
            raise DeclarationError(f"what was held back in a silence comes 'at once' or 'never', not {self.then!r}")


@dataclass(frozen=True)
class Replay:
    """A recording (a file, folder or pattern) and how to deliver it. `speed` None: as fast as it can be taken.

    Sources are named by the text of their columns, several of them joined by `|`.

    >>> Replay("x", by="ts", speed=0)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a replay at speed 0 never ends: give a speed above 0, or None for no waiting
    """

    path: str
    by: str
    format: str = "parquet"
    speed: float | None = 1.0
    delays: tuple[Delay, ...] = ()
    bursts: tuple[Burst, ...] = ()
    silences: tuple[Silence, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        if self.speed is not None and not (self.speed > 0 and math.isfinite(self.speed)):
            raise DeclarationError(
                f"a replay at speed {self.speed} never ends: give a speed above 0, or None for no waiting"
            )
        ordered = sorted(self.bursts, key=lambda burst: burst.start)
        for one, other in pairwise(ordered):
            if one.start + one.length > other.start:
                raise DeclarationError(
                    f"the bursts at {one.start} and {other.start} overlap: a row can be held back by one of them only"
                )


def _checked_interval(what: str, start: int, length: int) -> None:
    if start < 0 or length <= 0:
        raise DeclarationError(
            f"{what} from {start}, {length} long: give a start of 0 or more and a length above 0, in microseconds"
        )


Part = TypeVar("Part", Burst, Delay, Silence)

KNOWN = ("format", "by", "speed", "seed", "delays", "bursts", "silences", "schedules", "partitions")
ENDINGS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".orc": "orc",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}


def replay_of(stream: Stream) -> Replay:
    """The replay that a stream declares."""
    given = input_of(stream)
    owner = f"stream {stream.name!r}"
    path = needs_path(stream, given)
    options = {name.lower(): value for name, value in given.options}
    unknown = options.keys() - KNOWN
    if unknown:
        raise DeclarationError(f"{owner}: a replay has no option {min(unknown)}: it has {', '.join(KNOWN)}")
    return Replay(
        path=path,
        by=_column(owner, stream, options.get("by", "arrival" if stream.arrival else "event")),
        format=options.get("format") or _format(owner, path),
        speed=_speed(owner, options.get("speed", "1")),
        delays=_parts(owner, "delays", options.get("delays", "[]"), Delay),
        bursts=_parts(owner, "bursts", options.get("bursts", "[]"), Burst),
        silences=_parts(owner, "silences", options.get("silences", "[]"), Silence),
        seed=_whole(owner, "seed", options.get("seed", "0")),
    )


def _column(owner: str, stream: Stream, by: str) -> str:
    chosen = {"arrival": stream.arrival, "event": stream.time}.get(by, by)
    if chosen is None:
        raise DeclarationError(f"{owner}: a replay by {by} needs a column for it: declare it, or give another `by`")
    return stream.column(chosen).name


def _format(owner: str, path: str) -> str:
    name = path.lower().rstrip("*/")
    for packed in (".gz", ".bz2", ".xz", ".zst"):
        name = name.removesuffix(packed)
    ending = Path(name).suffix
    if ending in ENDINGS:
        return ENDINGS[ending]
    raise DeclarationError(f"{owner}: what {path} holds does not follow from its name: give the option format")


def _speed(owner: str, text: str) -> float | None:
    if text.lower() == "max":
        return None
    try:
        return float(text)
    except ValueError as failure:
        raise DeclarationError(f"{owner}: the speed {text!r} is no number: write 1, 60 or max") from failure


def _whole(owner: str, name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as failure:
        raise DeclarationError(f"{owner}: {name} {text!r} is no whole number") from failure


def _parts(owner: str, name: str, text: str, kind: type[Part]) -> tuple[Part, ...]:
    fields = ", ".join(kind.__dataclass_fields__)
    try:
        return tuple(_part(kind, one) for one in json.loads(text))
    except (ValueError, TypeError) as failure:
        if isinstance(failure, DeclarationError):
            raise
        raise DeclarationError(
            f"{owner}: the {name} {text} cannot be read: write a JSON list of objects with the fields {fields}"
        ) from failure


def _part(kind: type[Part], given: dict[str, Any]) -> Part:
    return kind(**{**given, **({"sources": tuple(given["sources"])} if "sources" in given else {})})


def replay_input(replay: Replay) -> Input:
    """Where the rows of the recording are read from."""
    return Input(replay.format, replay.path)


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
