"""Deliver a recording again: its schedule is made once, and its rows come as they fall due by the clock.

*Schedule.* The recording is read once, its rows are moved in time and written in the order of delivery. Every row of
the recording is in the schedule exactly once, malformed ones too, except those that a silence swallows. The schedule of
a declaration is made once and found again by a name that is made of the declaration and of the recording's files
(names, sizes, times of writing); a half-made one is never found. The column of arrival, if the stream has one, tells
the time of delivery in the time of the recording: as if the row had truly arrived then.

*Input of the local engine.* What is due by the clock is there to be taken. Rows come in the order of the schedule, none
before it is due. The position holds the moment at which the replay began, so that after a restart it goes on as if it
had never stopped: what fell due meanwhile is there at once.

>>> import os, tempfile; import pyarrow.parquet as pq
>>> from eventide.plan.declared.stream import Input, columns
>>> folder = tempfile.mkdtemp(); pq.write_table(pa.table({"t": [105, 100, 160]}), os.path.join(folder, "r.parquet"))
>>> given = Input("replay", os.path.join(folder, "r.parquet"), options=(("schedules", folder),))
>>> now = 1_000
>>> replayed = ReplayInput(Stream("s", columns("t BIGINT"), time="t", input=given), clock=lambda: now)
>>> replayed.take(9, 0)["t"].to_pylist(), replayed.take(9, 0)
([100], None)
>>> now = 1_059
>>> replayed.take(9, 0)["t"].to_pylist(), replayed.position(), replayed.ended
([105], {'rows': 2, 'start': 1000}, False)
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.errors import DeclarationError, InputError
from eventide.plan.declared.stream import Stream, TimeKind, Timestamps, kind_of
from eventide.plan.sql.stream_rows import MALFORMED
from eventide.sources.arrow_types import schema_of
from eventide.sources.files.files import Files
from eventide.sources.files.listing import Listing
from eventide.sources.local_input import CountedInput
from eventide.sources.replay.replay import Replay, extra_delay, moved_sql, replay_input, replay_of
from eventide.sources.replay.schedule import BATCH, DUE, Schedule

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


LOOK_AGAIN = 0.01
"""Seconds between two looks at the clock while waiting."""


def wall_clock() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


class ReplayInput(CountedInput):
    """The rows of a replay, as they fall due by a clock in microseconds."""

    def __init__(self, stream: Stream, clock: Callable[[], int] = wall_clock) -> None:
        super().__init__()
        self._schedule = planned(stream)
        self._clock = clock
        self._start: int | None = None

    @property
    def ended(self) -> bool:
        """Whether all rows were taken."""
        return self._rows == self._schedule.rows

    def take(self, max_rows: int, wait: float) -> pa.Table | None:
        """Take the rows that are due by the clock."""
        if self._start is None:
            self._start = self._clock()
        deadline = time.monotonic() + wait
        while not self.ended:
            due = self._schedule.due_by(self._clock() - self._start)
            if due > self._rows:
                stop = min(due, self._rows + max_rows)
                delivered = pa.Table.from_batches(self._schedule.read(self._rows, stop))
                self._rows = stop
                return delivered
            rest = deadline - time.monotonic()
            if rest <= 0:
                break
            time.sleep(min(rest, LOOK_AGAIN))
        return None

    def position(self) -> dict[str, Any]:
        """How many rows were taken, and when the replay began."""
        return {"rows": self._rows, "start": self._start}

    def seek(self, position: dict[str, Any]) -> None:
        """Go on from a saved position."""
        self._rows = int(position["rows"])
        self._noted = self._rows
        self._start = None if position["start"] is None else int(position["start"])

    def portion(self) -> dict[str, Any]:
        """How many rows were taken since this was last asked, and when the replay began."""
        return {**super().portion(), "start": self._start}

    def repeat(self, portion: dict[str, Any]) -> tuple[pa.Table | None, bool]:
        """Take as many rows again, which were due then, and go on by the clock of then."""
        self._start = None if portion["start"] is None else int(portion["start"])
        wanted = int(portion["rows"])
        start, self._rows = self._rows, min(self._rows + wanted, self._schedule.rows)
        delivered = pa.Table.from_batches(self._schedule.read(start, self._rows)) if self._rows > start else None
        return delivered, self._rows - start == wanted

    def close(self) -> None:
        """The file is closed when nobody reads it any more."""
