"""A local engine with the freeways of the demo, whose recording is given to it piece by piece."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from eventide.api.inputs import ArrowRows
from eventide.console.lifecycle import Console, open_console
from eventide.endpoint.discovery import Address
from eventide.endpoint.lifecycle import Endpoint, listen
from eventide.engine.local.engine import LocalEngine
from eventide.language.script import read_script
from eventide.report.why import window_words
from examples.freeway import EACH, MINUTE, SECOND, START, readings

SCRIPT = """
CREATE STREAM readings (
    detector STRING, highway STRING, direction STRING, ts TIMESTAMP, arrived TIMESTAMP, cars INT, speed DOUBLE
) TIMESTAMP BY ts ARRIVAL BY arrived SOURCE BY detector DRATIO 1% IDLE AFTER 1 minute;
CREATE QUERY speeds AS
    SELECT highway, direction, round(avg(speed), 1) AS mean, sum(cars) AS cars
    FROM readings [RANGE 5 minutes SLIDE 1 minute] GROUP BY highway, direction PROD AT 60 % ESTIMATE;
CREATE QUERY slowest AS
    SELECT highway, direction, min(mean) AS mean FROM speeds GROUP BY highway, direction
    ORDER BY mean LIMIT 1 PROD AT 60 %;
"""


class Keeping:
    """A sink that forgets: the console must not need one that remembers."""

    def emit(self, results: object) -> None:
        pass

    def rewind(self, query: str, last: int) -> None:
        pass

    def close(self) -> None:
        pass


@dataclass
class Freeway:
    """A running engine, its console, and how to let time go on."""

    engine: LocalEngine
    endpoint: Endpoint
    console: Console
    coming: queue.Queue[pa.RecordBatch | None]
    parts: list[pa.Table]
    given: int = 0
    sent: list[pa.RecordBatch] = field(default_factory=list)

    def go_on(self, minutes: float, seconds: int = 5) -> None:
        """Give the readings of so many minutes more, a round for every so many seconds of them."""
        end = min(len(self.parts), self.given + round(minutes * MINUTE / EACH))
        while self.given < end:
            last = min(end, self.given + seconds * SECOND // EACH)
            self.give(pa.concat_tables(self.parts[self.given : last]))
            self.given = last

    def give(self, rows: pa.Table) -> None:
        """Some rows, as a round of their own."""
        before = self.engine.status().round
        self.sent.append(rows.combine_chunks().to_batches()[0])
        self.coming.put(self.sent[-1])
        deadline = time.monotonic() + 60
        while self.engine.status().round == before:
            assert not self.engine.ended.is_set(), self.engine.failure
            assert time.monotonic() < deadline
            time.sleep(0.002)


@contextmanager
def freeway(folder: Path, script: str = SCRIPT, port: int = 0, after: Freeway | None = None) -> Iterator[Freeway]:
    """The engine, listening, before the first reading; or going on `after` another one in the same folder."""
    program = read_script(script).program
    coming: queue.Queue[pa.RecordBatch | None] = queue.Queue()
    for batch in () if after is None else after.sent:
        coming.put(batch)
    inputs = {"readings": ArrowRows(program.stream("readings"), iter(coming.get, None), waits=True)}
    sinks = {query.name: Keeping() for query in program.queries}
    with LocalEngine(program, str(folder / "state"), sinks, inputs) as engine:
        engine.start()
        endpoint = listen(engine, Address(port=port), window_words)
        console = open_console(engine, endpoint)
        given = 0 if after is None else after.given
        yield Freeway(engine, endpoint, console, coming, parts_of(readings()), given)
        coming.put(None)


def parts_of(rows: pa.Table) -> list[pa.Table]:
    """Readings by every five seconds of their arrival."""
    part = (pc.cast(rows.column("arrived"), pa.int64()).to_numpy() - START) // EACH
    return [found for n in range(int(part[-1]) + 1) if (found := rows.filter(pa.array(part == n))).num_rows]
