"""A replay as the input of a stream: `Input("replay", path=..., options=...)`, the same for both engines.

Options: `format` of the recording (by default told by its ending), `by` (`arrival`, `event` or a column; by default the
arrival column if the stream has one), `speed` (a number, or `max`), `seed`, and `delays`, `bursts`, `silences`, each a
JSON list of objects with the fields of `Delay`, `Burst` and `Silence`.

>>> from eventide.plan.declared.stream import columns
>>> given = Input("replay", "cars.csv.gz", options=(("speed", "max"), ("delays", '[{"mean": 5, "sources": ["a"]}]')))
>>> replay_of(Stream("s", columns("ts TIMESTAMP, car STRING"), time="ts", source=("car",), input=given))
Replay(path='cars.csv.gz', by='ts', format='csv', speed=None, delays=(Delay(mean=5, distribution='constant', \
spread=None, share=1.0, at_most=None, sources=('a',)),), bursts=(), silences=(), seed=0)
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from eventide.errors import DeclarationError
from eventide.plan.declared.stream import Input, Stream
from eventide.sources.input_of import input_of, needs_path
from eventide.sources.replay import Burst, Delay, Replay, Silence

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
    raise DeclarationError(f"{owner}: what {path} holds cannot be told by its name: give the option format")


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
