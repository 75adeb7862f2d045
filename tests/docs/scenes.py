"""What is there before the Python of a page begins, and what must have come of it in the end.

A scene gives the names that the page takes for granted; what stands after its `yield` is looked at when the last block
of the page has run.
"""

from __future__ import annotations

import doctest
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import eventide
from eventide.api.running_query import RunningQuery
from eventide.language.script import read_script
from eventide.plan.declared.stream import Stream
from eventide.results.results import Results
from eventide.testing.transcript import Transcript
from eventide.testing.transcript_format import table_of
from tests.docs.blocks import Block, tagged
from tests.docs.made_rows import rows_of, write_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Names = dict[str, Any]
FEW = 60
"""Rows that Spark is given: nobody waits for what they are."""
TRAFFIC = "CREATE STREAM traffic (ts TIMESTAMP, detector STRING, speed INT) FROM json 'incoming';"


@dataclass(frozen=True)
class Page:
    """The blocks of a page that are to run, in a folder of their own."""

    blocks: list[Block]
    session: SparkSession | None = None

    @property
    def spark(self) -> SparkSession:
        assert self.session is not None
        return self.session

    def names(self) -> Names:
        """What the sessions of the page have made before its first block."""
        found: Names = {}
        for block in tagged("python"):
            if block.page == self.blocks[0].page and block.line < self.blocks[0].line:
                for example in doctest.DocTestParser().get_examples(block.text):
                    exec(example.source, found)
        return found

    def frame(self, stream: Stream) -> DataFrame:
        """A streaming DataFrame over files with rows of a stream."""
        write_rows(stream, Path(), rows=FEW)
        assert stream.input is not None
        schema = ", ".join(f"{column.name} {column.type}" for column in stream.columns)
        return self.spark.readStream.schema(schema).json(f"file:{Path().absolute() / str(stream.input.path)}")


def until(true: Callable[[], object], alive: Callable[[], object]) -> None:
    """Wait for something, as long as somebody is at work on it."""
    while not true():
        assert alive()
        time.sleep(0.02)


def declared(text: str) -> Stream:
    return read_script(text).program.streams[0]


def has_taken_all(running: RunningQuery) -> None:
    """A query that is running takes all the rows there are, and is stopped."""
    until(lambda: running.status().streams[0].rows == FEW, lambda: running.isActive)
    running.stop()
    assert running.exception() is None


@contextmanager
def bursts(page: Page) -> Iterator[Names]:
    words = declared("CREATE STREAM words (ts TIMESTAMP, word STRING, about STRING) FROM json 'words';")
    # In SQL: a Python worker takes seconds to start.
    function = "found_in(word STRING, about STRING) RETURNS BOOLEAN RETURN right(word, 1) = right(about, 1)"
    page.spark.sql(f"CREATE TEMPORARY FUNCTION {function}")
    names: Names = {"words": eventide.stream(page.frame(words), time="ts", name="words")}
    yield names
    has_taken_all(names["running"])
    assert names["running"].together.engine.engine.program.operators[0].name == "query_queue"


@contextmanager
def commands(page: Page) -> Iterator[Names]:
    yield {}
    Path("mine.py").write_text(page.blocks[0].text, encoding="utf-8")
    rows = pa.table({"t": [1, 2, 3], "place": ["here", None, "there"], "distance": [5.0, 5.0, 500.0]})
    places = eventide.stream(rows, time="t")
    near = "CREATE FUNCTION isNear FROM 'mine.py'; SELECT count(*) AS near FROM places [RANGE 5] WHERE "
    found = eventide.sql(f"{near} isNear(place, distance)", places=places).run()
    assert found["query_1"].column("near").to_pylist() == [1]


@contextmanager
def operations(page: Page) -> Iterator[Names]:
    """Whoever has started it stops it with a signal, after the first round."""
    text = f"{TRAFFIC} CREATE QUERY speeds AS SELECT max(speed) AS top FROM traffic [RANGE 1 minute];"
    program = read_script(text).program
    write_rows(program.streams[0], Path(), rows=FEW)
    ended = threading.Event()

    def stop() -> None:
        while not ended.is_set() and not list(Path("checkpoint").glob("rounds/*.json")):
            time.sleep(0.02)
        if not ended.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

    stopping = threading.Thread(target=stop)
    stopping.start()
    try:
        yield {"program": program}
    finally:
        ended.set()
        stopping.join()
    assert list(Path("out").glob("speeds-*.parquet"))


@contextmanager
def prods(page: Page) -> Iterator[Names]:
    stream = declared("CREATE STREAM traffic (ts TIMESTAMP, detector STRING, volume INT) FROM json 'incoming';")
    rows = table_of(rows_of(stream), stream).drop_columns("_malformed")
    coming: queue.Queue[pa.RecordBatch | None] = queue.Queue()
    coming.put(rows.to_batches()[0])
    batches = pa.RecordBatchReader.from_batches(rows.schema, iter(coming.get, None))
    names: Names = {"traffic": eventide.stream(batches, time="ts", name="traffic")}
    yield names
    running = names["running"]
    until(lambda: running.prod().num_rows, lambda: running.isActive)
    coming.put(None)
    assert running.awaitTermination(60)
    assert running.exception() is None
    assert running.accuracy().windows > 0
    final = pa.array([135])
    assert names["scored"].plan.queries[0].prods.compare[0][1](pa.array([110]), final).to_pylist() == [0.25]


@contextmanager
def python_api(page: Page) -> Iterator[Names]:
    names: Names = {"df": page.frame(declared(TRAFFIC))}
    yield names
    counts = names["query"]
    until(lambda: counts.lastProgress and counts.lastProgress["numInputRows"] >= FEW, lambda: counts.isActive)
    counts.stop()
    has_taken_all(names["running"])
    assert list(Path("results").glob("speeds-*.parquet"))


@contextmanager
def queries(page: Page) -> Iterator[Names]:
    names = page.names()
    write_rows(names["traffic"], Path(), rows=FEW)
    yield names
    names["engine"].await_end()
    assert names["engine"].status().engine == "spark"


@contextmanager
def sinks(page: Page) -> Iterator[Names]:
    names: Names = {"spark": page.spark}
    yield names
    names["sink"].emit(Results.of_table("speeds", 42, pa.table({"round": [42], "mean": [51.5]})))
    assert pq.read_table("speeds").to_pylist() == [{"mean": 51.5, "round": 42}]


@contextmanager
def testing(page: Page) -> Iterator[Names]:
    """The page's first transcript is one of the reader's own."""
    folder = Path("tests/transcripts")
    folder.mkdir(parents=True)
    whole = next(block for block in tagged("yaml") if block.page == page.blocks[0].page)
    (folder / "speeds.yaml").write_text(whole.text, encoding="utf-8")
    names: Names = {"session": page.spark}
    yield names
    test = names["test_transcript_holds"]
    given = test.pytestmark[0].args[1]
    assert {type(transcript) for transcript, _ in given} == {Transcript}
    for transcript, variant in given:
        test(transcript, variant)


Scene = Callable[[Page], AbstractContextManager[Names]]
HERE: dict[str, Scene] = {"docs/commands.md": commands, "docs/prods.md": prods}
ON_SPARK: dict[str, Scene] = {
    "docs/bursts.md": bursts,
    "docs/operations.md": operations,
    "docs/python-api.md": python_api,
    "docs/queries.md": queries,
    "docs/sinks.md": sinks,
    "docs/testing.md": testing,
}
