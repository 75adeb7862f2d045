"""The contract of sinks as a suite, for the sinks of Eventide and for a user's own.

`check_sink(make, read)` tries every sentence of the law (see `eventide.sinks.sink`) and raises an `AssertionError` that
says which one does not hold. `make()` opens the sink at one and the same place, as an engine does that starts again;
`read(query)` gives the rows that whoever reads that place sees now, as dictionaries. Values may come back as text: they
are compared as numbers and names. The place must be empty at first. `CHECKS` are the single checks, each a function of
`make` and `read`.

*On the cluster*: `from_cluster(make, spark, folder)` opens the sink of `make`; what it is given to emit it finds in
Parquet files below `folder`, as a DataFrame and in parts for Spark's tasks. So `check_sink(from_cluster(make, spark,
folder), read)` tries every sentence of the law with them.

>>> from eventide.sinks.sink import Memory
>>> memory = Memory()
>>> check_sink(make=lambda: memory, read=memory.rows)

A sink that only appends is found out:

>>> from dataclasses import replace
>>> class Appending(Memory):
...     def emit(self, results):
...         super().emit(replace(results, round=len(self.rows(results.query))))
>>> appending = Appending()
>>> check_sink(make=lambda: appending, read=appending.rows)
Traceback (most recent call last):
    ...
AssertionError: a round emitted again takes the place of what was there: of 'contract_again' there should be 5 rows, but 0 are missing and 5 are there that should not be, such as (0, 'device 0', 0)

That a sink stands being killed in the middle of its work, `eventide.testing.sink_kill` checks.
"""  # noqa: E501 - what is printed

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from eventide.engine.round.results import FileRows, ResultPiece, SparkParts
from eventide.errors import EngineError
from eventide.results.results import Results
from eventide.sinks.sink import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Make: TypeAlias = Callable[[], Sink]
Read: TypeAlias = Callable[[str], Iterable[Mapping[str, Any]]]
Check: TypeAlias = Callable[[Make, Read], None]
Row: TypeAlias = tuple[int, str, int]
"""What is compared of a row: its round, its `device`, its `total`."""

MINUTE = 60_000_000
SCHEMA = pa.schema(
    [
        ("query", pa.string()),
        ("kind", pa.string()),
        ("window_start", pa.timestamp("us", "UTC")),
        ("window_end", pa.timestamp("us", "UTC")),
        ("round", pa.int64()),
        ("rows", pa.int64()),
        ("heartbeat", pa.timestamp("us", "UTC")),
        ("device", pa.string()),
        ("total", pa.int64()),
    ]
)


def sample(query: str, round: int, rows: int, total: int = 0, batch_rows: int = 1000) -> Results:
    """Results as an engine gives them: `rows` devices in the window of that round, with totals from `total` on.

    >>> sample("q", 2, rows=2, total=10).table().select(["round", "device", "total"]).to_pylist()[1]
    {'round': 2, 'device': 'device 1', 'total': 11}
    """

    def batches() -> Iterator[pa.RecordBatch]:
        for first in range(0, rows, batch_rows):
            yield _batch(query, round, range(first, min(rows, first + batch_rows)), total)

    return Results(query, round, rows, SCHEMA, batches)


def expected(results: Results) -> Counter[Row]:
    """What a reader should see of these results."""
    compared = ["round", "device", "total"]
    return as_rows(row for batch in results.batches() for row in batch.select(compared).to_pylist())


def as_rows(read: Iterable[Mapping[str, Any]]) -> Counter[Row]:
    """What a reader does see, whatever types it came back in."""
    return Counter((int(row["round"]), str(row["device"]), int(row["total"])) for row in read)


def must_show(read: Read, query: str, law: str, *results: Results) -> None:
    """Raise unless exactly these results can be read."""
    there = as_rows(read(query))
    wanted = sum(map(expected, results), Counter[Row]())
    missing, surplus = wanted - there, there - wanted
    if missing or surplus:
        example = next(iter(surplus or missing))
        raise AssertionError(
            f"{law}: of {query!r} there should be {wanted.total()} rows, but {missing.total()} are missing and "
            f"{surplus.total()} are there that should not be, such as {example}"
        )


def emitted_rows_can_be_read(make: Make, read: Read) -> None:
    """What `emit` was given can be read as soon as it has returned."""
    with _open(make) as sink:
        sink.rewind("contract_emit", -1)
        first, second = sample("contract_emit", 0, 3), sample("contract_emit", 1, 2)
        sink.emit(first)
        must_show(read, "contract_emit", "emitted rows can be read as soon as `emit` has returned", first)
        sink.emit(second)
        must_show(read, "contract_emit", "a later round leaves earlier ones alone", first, second)
    must_show(read, "contract_emit", "a closed sink still shows what it was given", first, second)


def a_round_emitted_again_takes_the_place(make: Make, read: Read) -> None:
    """The same round again, the same or other rows: what was there before is gone."""
    law = "a round emitted again takes the place of what was there"
    with _open(make) as sink:
        for results in (sample("contract_again", 0, 5), sample("contract_again", 0, 3, total=100)):
            sink.emit(results)
            sink.emit(results)
            must_show(read, "contract_again", law, results)


def rounds_without_rows_show_nothing(make: Make, read: Read) -> None:
    """No rows are no rows, also where there were some."""
    with _open(make) as sink:
        sink.emit(sample("contract_none", 0, 0))
        must_show(read, "contract_none", "a round without rows shows nothing")
        kept = sample("contract_none", 1, 4)
        sink.emit(kept)
        sink.emit(sample("contract_none", 2, 4))
        sink.emit(sample("contract_none", 2, 0))
        must_show(read, "contract_none", "a round emitted again without rows takes its rows away", kept)


def rewound_rounds_come_again(make: Make, read: Read) -> None:
    """After `rewind` the later rounds count as never emitted, once they have come again."""
    query = "contract_rewind"
    with _open(make) as sink:
        old = [sample(query, round, 3, total=10 * round) for round in range(6)]
        for results in old:
            sink.emit(results)
        sink.rewind(query, 2)
        new = [sample(query, 3, 1, total=-1), sample(query, 4, 0), sample(query, 5, 4, total=-9)]
        for results in new:
            sink.emit(results)
        must_show(read, query, "of rewound rounds only what came afterwards can be read", *old[:3], *new)
        sink.rewind(query, -1)
        for round in range(6):
            sink.emit(sample(query, round, 0))
        must_show(read, query, "`rewind` to -1 forgets everything")
        sink.rewind("contract_never_seen", 7)


def queries_do_not_disturb_each_other(make: Make, read: Read) -> None:
    """What is done to one query is not done to another, whatever their names share."""
    one, two, three = "contract_two", "contract_two_more", "contract_two-1"
    law = "queries do not disturb each other"
    with _open(make) as sink:
        kept = {query: sample(query, 0, 2, total=len(query)) for query in (two, three)}
        for results in kept.values():
            sink.emit(results)
        sink.emit(sample(one, 0, 3))
        sink.emit(sample(one, 0, 0))
        sink.rewind(one, -1)
        for query, results in kept.items():
            must_show(read, query, law, results)


def a_sink_made_anew_goes_on(make: Make, read: Read) -> None:
    """The engine stops and starts again: nothing is lost, and rounds that come again replace what is there."""
    law = "a sink made anew at the same place goes on where the last one stopped"
    query = "contract_anew"
    results = [sample(query, round, 2, total=round) for round in range(3)]
    with _open(make) as sink:
        for each in results[:2]:
            sink.emit(each)
        sink.emit(sample(query, 2, 9, total=-1))
    with _open(make) as sink:
        sink.rewind(query, 1)
        sink.emit(results[2])
        must_show(read, query, law, *results)
        sink.emit(sample(query, 1, 0))
        must_show(read, query, law, results[0], results[2])


def many_batches_are_one_round(make: Make, read: Read) -> None:
    """A round may come in many batches, small, large and empty ones."""
    law = "all batches of a round can be read"
    with _open(make) as sink:
        for round, (rows, batch_rows) in enumerate(((100, 1), (10_000, 997), (5_000, 5_000))):
            results = sample("contract_many", round, rows, batch_rows=batch_rows)
            sink.rewind("contract_many", -1)
            for earlier in range(round):
                sink.emit(sample("contract_many", earlier, 0))
            sink.emit(_with_empty_batches(results))
            must_show(read, "contract_many", law, results)


def a_round_that_breaks_off_shows_nothing(make: Make, read: Read) -> None:
    """If the results cannot be had to their end, `emit` raises, and what was visible stays."""
    query = "contract_broken"
    law = "when results break off, what could be read before is all that can be read"
    with _open(make) as sink:
        kept = sample(query, 0, 3)
        sink.emit(kept)
        for round in (0, 1):
            try:
                sink.emit(_breaking_off(sample(query, round, 4000, total=50)))
            except Exception:  # of whatever kind: a sink may say it in its own words
                must_show(read, query, law, kept)
            else:
                raise AssertionError("when results break off, `emit` raises: it did not")


def closing_again_is_no_error(make: Make, read: Read) -> None:
    """`close` may come more than once: an engine closes the sink of each query, and two may share one."""
    sink = make()
    sink.close()
    sink.close()


CHECKS: tuple[Check, ...] = (
    emitted_rows_can_be_read,
    a_round_emitted_again_takes_the_place,
    rounds_without_rows_show_nothing,
    rewound_rounds_come_again,
    queries_do_not_disturb_each_other,
    a_sink_made_anew_goes_on,
    many_batches_are_one_round,
    a_round_that_breaks_off_shows_nothing,
    closing_again_is_no_error,
)


def check_sink(make: Make, read: Read) -> None:
    """Run every check; the first sentence of the law that does not hold is raised."""
    for check in CHECKS:
        check(make, read)


@contextmanager
def _open(make: Make) -> Iterator[Sink]:
    sink = make()
    if not isinstance(sink, Sink):
        raise AssertionError(f"a sink has `emit`, `rewind` and `close`: {type(sink).__name__} has not")
    try:
        yield sink
    finally:
        sink.close()


def _batch(query: str, round: int, numbers: range, total: int) -> pa.RecordBatch:
    size = len(numbers)
    columns: list[list[Any]] = [
        [query] * size,
        ["final"] * size,
        [round * MINUTE] * size,
        [(round + 1) * MINUTE] * size,
        [round] * size,
        [1] * size,
        [(round + 2) * MINUTE] * size,
        [f"device {number}" for number in numbers],
        [total + number for number in numbers],
    ]
    return pa.record_batch([pa.array(column, type) for column, type in zip(columns, SCHEMA.types, strict=True)], SCHEMA)


def _with_empty_batches(results: Results) -> Results:
    empty = pa.RecordBatch.from_pylist([], SCHEMA)

    def batches() -> Iterator[pa.RecordBatch]:
        yield empty
        for batch in results.batches():
            yield batch
            yield empty

    return Results(results.query, results.round, results.rows, SCHEMA, batches)


def _breaking_off(results: Results) -> Results:
    def batches() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(results.batches()):
            if number == 2:
                raise EngineError("the results end here, to see what the sink makes of it")
            yield batch

    return Results(results.query, results.round, results.rows, SCHEMA, batches)


FILE_BATCHES = 4
"""So many batches make a file, so that results have several."""


def from_cluster(make: Callable[[], Sink], spark: SparkSession, folder: Path) -> Callable[[], Sink]:
    """Opens the same sink, to be given results that are on the cluster."""
    return lambda: _FromCluster(make(), spark, folder)


def on_cluster(results: Results, spark: SparkSession, folder: Path) -> Results:
    """The same results in files; where they break off, a file is missing."""
    below = folder / uuid4().hex
    below.mkdir(parents=True)
    paths = list(_files(results, below))
    pieces = [ResultPiece(FileRows(LocalFileSystem(), str(path), 1, results.schema)) for path in paths]

    def frame() -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema

        schema = from_arrow_schema(results.schema, prefer_timestamp_ntz=True)
        return spark.read.schema(schema).parquet(*map(str, paths)) if paths else spark.createDataFrame([], schema)

    parts = SparkParts(pieces, part_bytes=1)
    return replace(results, frame=frame, parts=parts)


class _FromCluster:
    def __init__(self, sink: Sink, spark: SparkSession, folder: Path) -> None:
        self._sink, self._spark, self._folder = sink, spark, folder
        self.rewind, self.close = sink.rewind, sink.close

    def emit(self, results: Results) -> None:
        """Emit them from the cluster."""
        self._sink.emit(on_cluster(results, self._spark, self._folder))


def _files(results: Results, folder: Path) -> Iterator[Path]:
    batches, held = results.batches(), list[pa.RecordBatch]()
    number, ended, whole = 0, False, True
    while not ended:
        try:
            held.append(next(batches))
        except StopIteration:
            ended = True
        except Exception:
            ended, whole = True, False
        if held and (ended or len(held) == FILE_BATCHES):
            path = folder / f"{number}.parquet"
            pq.write_table(pa.Table.from_batches(held, results.schema), path)
            yield path
            number, held = number + 1, []
    if not whole:
        yield folder / "missing.parquet"
