"""Make the schedule of a replay: read the recording once, move its rows in time, write it in order of delivery.

Laws. Every row of the recording is in the schedule exactly once, malformed ones too, except those that a silence
swallows. The schedule of a declaration is made once and found again by a name that is made of the declaration and of
the recording's files (names, sizes, times of writing); a half-made one is never found. The column of arrival, if the
stream has one, tells the time of delivery in the time of the recording: as if the row had truly arrived then.

*Input.* `Input("replay", path=..., options=...)` is the same for both engines. Options: `format` of the recording (by
default told by its ending), `by` (`arrival`, `event` or a column; by default the arrival column if the stream has one),
`speed` (a number, or `max`), `seed`, and `delays`, `bursts`, `silences`, each a JSON list of objects with the fields of
`Delay`, `Burst` and `Silence`.

>>> from eventide.plan.declared.stream import columns
>>> given = Input("replay", "cars.csv.gz", options=(("speed", "max"), ("delays", '[{"mean": 5, "sources": ["a"]}]')))
>>> replay_of(Stream("s", columns("ts TIMESTAMP, car STRING"), time="ts", source=("car",), input=given))
Replay(path='cars.csv.gz', by='ts', format='csv', speed=None, delays=(Delay(mean=5, distribution='constant', \
spread=None, share=1.0, at_most=None, sources=('a',)),), bursts=(), silences=(), seed=0)
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.errors import DeclarationError, InputError
from eventide.plan.declared.stream import Input, Stream, TimeKind, Timestamps, kind_of
from eventide.plan.sql.stream_rows import MALFORMED
from eventide.sources.arrow_types import schema_of
from eventide.sources.files.files import Files
from eventide.sources.files.listing import Listing
from eventide.sources.options import input_of, needs_path
from eventide.sources.replay.replay import Burst, Delay, Replay, Silence, extra_delay, moved_sql
from eventide.sources.replay.schedule import BATCH, DUE, Schedule

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


DAY = 86_400_000_000
AT_ONCE = 16 * BATCH
"""Rows that are read, and written, at once."""


def planned(stream: Stream, folder: str | None = None) -> Schedule:
    """The schedule of the replay that a stream declares, made if it is not in the folder yet."""
    replay = replay_of(stream)
    options = {name.lower(): value for name, value in (stream.input.options if stream.input else ())}
    home = Path(folder or options.get("schedules") or Path(tempfile.gettempdir()) / f"eventide-replays-{os.getuid()}")
    try:
        home.mkdir(parents=True, exist_ok=True)
        path = home / f"{_fingerprint(stream, replay)}.arrow"
        if not path.exists():
            _write(stream, replay, path)
    except OSError as failure:
        raise InputError(
            f"stream {stream.name!r}: the schedule of the replay cannot be written to {home}: {failure.strerror}; "
            "give another folder with the option schedules"
        ) from failure
    return Schedule(str(path))


def _fingerprint(stream: Stream, replay: Replay) -> str:
    listing = Listing(f"stream {stream.name!r}", replay.path)
    files = [(name, os.stat(name).st_size, os.stat(name).st_mtime_ns) for name in listing.unread()]
    described = repr((replay, stream.columns, stream.arrival, stream.source, os.path.abspath(replay.path), files, 1))
    return hashlib.sha256(described.encode()).hexdigest()[:32]


def _write(stream: Stream, replay: Replay, path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as workshop:
        with duckdb.connect(str(Path(workshop) / "recording.duckdb")) as engine:
            engine.execute("SET TimeZone = 'UTC'")
            start = _load(engine, stream, replay)
            draft = Path(workshop) / "draft.arrow"
            last_due = _sorted_out(engine, stream, replay, start, draft)
        rows = 0
        with pa.memory_map(str(draft)) as source:
            reader = pa.ipc.open_file(source)
            rows = sum(reader.get_batch(number).num_rows for number in range(reader.num_record_batches))
        index = Path(workshop) / "index"
        index.write_text(json.dumps({"rows": rows, "last_due": last_due}), encoding="utf-8")
        # The index first: a schedule that can be seen has one.
        os.replace(index, f"{path}.index")
        os.replace(draft, path)


def _load(engine: duckdb.DuckDBPyConnection, stream: Stream, replay: Replay) -> int:
    """All rows into a table, with their times, delays and sources; the smallest time."""
    # The column of arrival is read only if the rows are delivered by it; otherwise it is made here.
    unread = stream.arrival if stream.arrival != replay.by else None
    columns = tuple(column for column in stream.columns if column.name != unread)
    recording = replace(
        stream,
        columns=columns,
        time=None,
        arrival=None,
        source=(),
        timestamps=Timestamps.INTERNAL,
        input=replay_input(replay),
    )
    kind = _kind(stream, replay)
    files = Files(recording)
    rows, before, smallest = 0, None, None
    while (table := files.take(AT_ONCE, 0.0)) is not None:
        times = _micros(table.column(replay.by), kind)
        if times.null_count < len(times):
            lowest = pc.min(times).as_py()
            smallest = lowest if smallest is None else min(smallest, lowest)
        times = pc.fill_null_forward(pa.concat_arrays([pa.array([before], pa.int64()), times])).slice(1)
        before = times[-1].as_py()
        numbers = np.arange(rows, rows + table.num_rows)
        names = _source_names(stream, table)
        extra = extra_delay(replay, numbers, None if names is None else names.to_numpy(zero_copy_only=False))
        batch = table.append_column("_replay_row", pa.array(numbers)).append_column("_replay_at", times)
        batch = batch.append_column("_replay_extra", pa.array(extra))
        batch = batch.append_column("_replay_source", pa.nulls(table.num_rows, pa.string()) if names is None else names)
        engine.register("batch", batch)
        engine.execute(f"{'INSERT INTO recording' if rows else 'CREATE TABLE recording AS'} SELECT * FROM batch")
        rows += table.num_rows
    files.close()
    if not rows:
        raise InputError(f"stream {stream.name!r}: the recording {replay.path} has no rows to replay")
    return smallest or 0


def _kind(stream: Stream, replay: Replay) -> TimeKind:
    """What times look like in the column the rows are delivered by, which the column of arrival must share."""
    column = stream.column(replay.by)
    kind = kind_of(column)
    if kind is None:
        raise DeclarationError(
            f"stream {stream.name!r} cannot be replayed by {column.name!r}: it is {column.type}, and time must be "
            "TIMESTAMP, TIMESTAMP_NTZ, DATE or a whole number"
        )
    if stream.arrival is not None and (kind_of(stream.column(stream.arrival)) is TimeKind.SEQUENCE) != (
        kind is TimeKind.SEQUENCE
    ):
        raise DeclarationError(
            f"stream {stream.name!r}: its replay by {column.name!r} ({column.type}) cannot tell arrivals in "
            f"{stream.arrival!r} ({stream.column(stream.arrival).type}): both must be times, or both numbers"
        )
    return kind


def _micros(column: pa.ChunkedArray, kind: TimeKind) -> pa.Array:
    """Times as whole numbers: microseconds, or the numbers themselves."""
    if kind is TimeKind.DATE:
        return pc.multiply(column.cast(pa.int32()).cast(pa.int64()), DAY).combine_chunks()
    return column.cast(pa.int64()).combine_chunks()


def _source_names(stream: Stream, table: pa.Table) -> pa.Array | None:
    """The names of the sources: the text of their columns, joined."""
    if not stream.source:
        return None
    texts = [pc.fill_null(table.column(name).cast(pa.string()), "NULL") for name in stream.source]
    joined = texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, "|")
    return joined.combine_chunks()


def _sorted_out(
    engine: duckdb.DuckDBPyConnection, stream: Stream, replay: Replay, start: int, draft: Path
) -> list[int]:
    """Write all rows in the order of delivery; the last due time of every batch."""
    relation = (
        f"(SELECT * REPLACE (coalesce(_replay_at, {start}) - {start} AS _replay_at), "
        f"coalesce(_replay_at, {start}) AS _replay_first FROM recording)"
    )
    due = "0" if replay.speed is None else f"CAST(floor(_replay_at / {replay.speed!r}) AS BIGINT)"
    named = [
        _arrival(stream, start) if column.name == stream.arrival else _quoted(column.name) for column in stream.columns
    ]
    query = (
        f"SELECT {', '.join(named)}, {MALFORMED}, CAST({due} AS BIGINT) AS {DUE} "
        f"FROM {moved_sql(replay, relation)} WHERE _replay_at IS NOT NULL "
        "ORDER BY _replay_at, _replay_first, _replay_row"
    )
    schema = schema_of(stream.columns).append(pa.field(DUE, pa.int64()))
    last_due: list[int] = []
    with pa.OSFile(str(draft), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for batch in _batches(engine.sql(query).to_arrow_reader(AT_ONCE), schema):
            writer.write_batch(batch)
            last_due.append(batch.column(DUE)[-1].as_py())
    return last_due


def _batches(reader: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of exactly `BATCH` rows, the last one shorter."""
    waiting: list[pa.Table] = []
    for batch in reader:
        waiting.append(pa.Table.from_batches([batch]).cast(schema))
        if sum(table.num_rows for table in waiting) >= AT_ONCE:
            whole = pa.concat_tables(waiting).combine_chunks()
            cut = whole.num_rows - whole.num_rows % BATCH
            yield from whole.slice(0, cut).to_batches(BATCH)
            waiting = [whole.slice(cut)]
    if waiting:
        yield from (b for b in pa.concat_tables(waiting).combine_chunks().to_batches(BATCH) if b.num_rows)


def _arrival(stream: Stream, start: int) -> str:
    """SQL for the time of delivery in the column of arrival."""
    assert stream.arrival is not None
    column = stream.column(stream.arrival)
    moment = f"({start} + _replay_at)"
    kinds = {"TIMESTAMP": "TIMESTAMPTZ", "TIMESTAMP_NTZ": "TIMESTAMP", "DATE": "DATE"}
    if column.type in kinds:
        return f"CAST(make_timestamp({moment}) AS {kinds[column.type]}) AS {_quoted(column.name)}"
    return f"CAST({moment} AS {column.type}) AS {_quoted(column.name)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
