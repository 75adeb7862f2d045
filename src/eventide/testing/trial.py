"""A program on an engine, round by round, with everything that comes out at hand: results, late rows, rejects.

Law: `output` gives what has come out since it was asked last, each thing once; a restart in between (the engine is
closed and a new one continues from the checkpoint) neither adds to it nor takes away.

The local engine needs nothing; the Spark engine needs a session, and takes the rows as Arrow tables too.

>>> from tempfile import TemporaryDirectory
>>> from eventide.plan.declared.query import Query, named_as
>>> from eventide.plan.declared.stream import Stream, columns
>>> from eventide.plan.declared.window import Window
>>> s = Stream("s", columns("t BIGINT, v INT"), time="t")
>>> program = Program((s,), (Query("q", "s", Window(10), named_as(total="sum(v)")),))
>>> with TemporaryDirectory() as folder, Trial(program, Path(folder)) as trial:
...     trial.round({"s": pa.table({"t": [1, 4], "v": [5, 6]})}, clock=0, heartbeats={"s": 9})
...     trial.output().final[0].column("total").to_pylist()
[11]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.early.prodding import EarlyResults
from eventide.engine.local.backend import LocalBackend
from eventide.engine.operators.frontier import before
from eventide.engine.operators.placement import DRIVER_MEMORY
from eventide.engine.operators.window_aggregate import WindowAggregate
from eventide.engine.relations.backend import Backend
from eventide.engine.round.engine import Engine
from eventide.engine.scheduling.trace import Trace
from eventide.errors import DeclarationError
from eventide.eventtime.early.prod import Prod, Timing
from eventide.eventtime.scheduling.options import Scheduling
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query
from eventide.plan.declared.window import RowWindow
from eventide.results.results import Grammar, Kind, Results
from eventide.storage.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EngineName = Literal["local", "spark"]


@dataclass(frozen=True)
class TrialOutput:
    """What came out: tables of results by kind, of late rows and of rejects; empty ones are left out.

    `timing` tells of every prod how it came.
    """

    early: tuple[pa.Table, ...]
    final: tuple[pa.Table, ...]
    revised: tuple[pa.Table, ...]
    changed: tuple[pa.Table, ...]
    late: tuple[pa.Table, ...]
    rejected: tuple[pa.Table, ...]
    timing: tuple[Timing, ...] = ()


class RecordingSink:
    """A sink that keeps what it is shown, by query and round, as the contract of sinks says."""

    def __init__(self) -> None:
        self.tables: dict[tuple[str, int], pa.Table] = {}

    def emit(self, results: Results) -> None:
        """Keep the results of a round in place of what was kept for it before."""
        self.tables[results.query, results.round] = results.table()

    def rewind(self, query: str, last: int) -> None:
        """Forget the rounds after `last`."""
        self.tables = {key: table for key, table in self.tables.items() if key[0] != query or key[1] <= last}

    def close(self) -> None:
        """Nothing is held but memory."""


class Trial:
    """A running program; use it as a context, so that it is closed in the end.

    Many trials start faster where they share a `duckdb_executor`; without, a restart has nothing of the engine before.
    With 0 `driver_memory`, Spark keeps all slices on the cluster. `scheduling` and `trace` are the engine's.
    """

    def __init__(
        self,
        program: Program,
        checkpoint: Path,
        engine: EngineName = "local",
        spark: SparkSession | None = None,
        duckdb_executor: DuckDBExecutor | None = None,
        driver_memory: int = DRIVER_MEMORY,
        flush_rows: int | None = None,
        scheduling: Scheduling | None = None,
        trace: Trace | None = None,
    ) -> None:
        if engine not in ("local", "spark"):
            raise DeclarationError(f"there is no engine {engine!r}: write 'local' or 'spark'")
        if engine == "spark" and spark is None:
            raise DeclarationError("the Spark engine needs a session: give it as `spark`")
        self.program = program
        self._checkpoint = checkpoint
        self._spark = spark if engine == "spark" else None
        self._workbench = duckdb_executor
        self._driver_memory = driver_memory
        self._scheduling = scheduling
        self._trace = trace
        self._flush_rows = flush_rows
        self._shown = RecordingSink()
        self._seen: set[object] = set()
        self._asked: list[EarlyResults] = []
        self._grammars = {query.name: _grammar(query) for query in program.queries}
        self._engine = self._started()

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.close()

    def restart(self) -> None:
        """Let a new engine continue from the checkpoint."""
        self._engine.close()
        self._engine = self._started()

    def round(
        self,
        batch: Mapping[str, pa.Table],
        clock: int,
        heartbeats: Mapping[str, int],
        over: Mapping[str, list[str]] | None = None,
    ) -> None:
        """Run one round; the sources of each stream that are `over` end with it."""
        self._engine.round(dict(batch), clock, dict(heartbeats), over=over)

    def tick(self, clock: int) -> bool:
        """Let the clock alone close what it can; whether that took a round."""
        return self._engine.tick(clock) is not None

    def end(self, clock: int) -> None:
        """Close everything that is still open: the end of a bounded run."""
        self._engine.end(clock)

    def prod(self, query: str, prod: Prod | None = None) -> EarlyResults:
        """Ask a query for early results."""
        self._asked.append(self._engine.prod(query, prod))
        return self._asked[-1]

    def output(self) -> TrialOutput:
        """What came out since the last time; results that are not grammatical are an error."""
        new = {key: table for key, table in self._shown.tables.items() if self._is_new(key)}
        asked, self._asked = self._asked, []
        # Between two rounds, whoever asks is answered after the round.
        tables_of = [
            *((name, table) for (name, _), table in new.items()),
            *((answer.query, answer.table()) for answer in asked),
        ]
        of_time = [one for one in self._engine.state.operators.values() if isinstance(one, WindowAggregate)]
        for operator in of_time:
            self._grammars[operator.name].settle(operator.holes)
        for name, table in tables_of:
            if name in self._grammars:
                self._grammars[name].read(table)
        for operator in of_time:
            self._grammars[operator.name].promise(before(operator.emitted_before), operator.holes)
        tables = [table for _, table in tables_of]
        early, final, revised, changed = (_of_kind(tables, kind.value) for kind in Kind)
        timing = tuple(answer.timing for answer in asked)
        return TrialOutput(early, final, revised, changed, self._files("late"), self._files("rejects"), timing)

    def state(self) -> Mapping[str, Mapping[str, Any]]:
        """What is kept for each query, as the engine's status tells it."""
        return {query.name: asdict(query) for query in self._engine.status().queries}

    def emitted_before(self, query: str) -> int:
        """Every window of a query that ends by then has been emitted."""
        return int(self._engine.state.operators[query].snapshot()["emitted_before"])

    def _started(self) -> Engine:
        backend: Backend
        if self._spark is None:
            backend = LocalBackend(self._workbench)
        else:
            from eventide.engine.spark.backend import SparkBackend

            backend = SparkBackend(self._spark)
        # What others read is in what they emit.
        unread = [operator for operator in self.program.operators if not self.program.readers(operator.name)]
        sinks = {step.name: self._shown for step in (*self.program.queries, *unread)}
        return Engine(
            self.program,
            backend,
            # The machine outlives a trial, so no disk is waited for.
            Storage.at(self._checkpoint, sync=False),
            sinks,
            driver_memory=self._driver_memory,
            scheduling=self._scheduling,
            trace=self._trace,
            flush_rows=self._flush_rows,
        )

    def _is_new(self, key: object) -> bool:
        new = key not in self._seen
        self._seen.add(key)
        return new

    def _files(self, folder: str) -> tuple[pa.Table, ...]:
        files = [path for path in sorted((self._checkpoint / folder).glob("*/*.parquet")) if self._is_new(path)]
        tables = [pq.read_table(path, partitioning=None) for path in files]
        return tuple(table for table in tables if table.num_rows)


def _grammar(query: Query) -> Grammar:
    return Grammar(tuple(group.name for group in query.groups), of_time=not isinstance(query.window, RowWindow))


def _of_kind(tables: list[pa.Table], kind: str) -> tuple[pa.Table, ...]:
    chosen = (table.filter(pc.equal(table.column("kind"), kind)) for table in tables)
    return tuple(table for table in chosen if table.num_rows)
