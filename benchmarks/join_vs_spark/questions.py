"""The two joins that both sides answer, and who is right.

*Epochs*: each of two streams is counted by key and windows of ten seconds, and the counts are joined by window and key,
full outer (the flows of the Gigascope paper, section 7.2). *Interval*: rows of two streams that have the same key and
times at most a tenth of a second apart, inner.

>>> EPOCHS.name, INTERVAL.columns[0]
('epochs', 'k')
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb

from benchmarks.disorder import COLUMNS, SECOND, Disordered
from benchmarks.harness import database
from eventide.eventtime.policies.clock_skew import ClockSkew
from eventide.plan.declared.join import Band, Join, JoinKind, Side
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Input, Stream, columns
from eventide.plan.declared.window import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

JOINED = "joined"
EPOCH = 10 * SECOND
NEAR = SECOND // 10

Frames = Callable[["DataFrame", "DataFrame", int], "DataFrame"]


@dataclass(frozen=True)
class Inputs:
    """The files of both streams; `delay` is above the largest delay of either."""

    left: Disordered
    right: Disordered

    @property
    def rows(self) -> int:
        """Rows of both."""
        return self.left.rows + self.right.rows

    @property
    def delay(self) -> int:
        """What every side waits for."""
        return max(self.left.delay, self.right.delay)


@dataclass(frozen=True)
class Question:
    """A join in Eventide's words and in Spark's; `truth` is its answer over tables `a` and `b`, all at once."""

    name: str
    columns: tuple[str, ...]
    plan: Callable[[tuple[Stream, Stream]], Program]
    frames: Frames
    truth: str

    def program(self, inputs: Inputs, max_files: int) -> Program:
        """The question over these files. Time trails the arrivals by the delay, in silence too."""
        return self.plan((_stream("a", inputs.left, inputs, max_files), _stream("b", inputs.right, inputs, max_files)))


def _stream(name: str, data: Disordered, inputs: Inputs, max_files: int) -> Stream:
    return Stream(
        name,
        columns(f"{COLUMNS}, arrived TIMESTAMP"),
        time="ts",
        arrival="arrived",
        policy=ClockSkew(inputs.delay),
        input=Input("parquet", str(data.folder), max_files=max_files),
    )


def _flows(streams: tuple[Stream, Stream]) -> Program:
    counted = named_as(cnt="count(*)")
    flows = tuple(Query(f"flow_{s.name}", s.name, Window(EPOCH), counted, groups=named_as("k")) for s in streams)
    both = Join(
        JOINED,
        Side("flow_a", keys=("k",)),
        Side("flow_b", keys=("k",)),
        (Band("window_end", "window_end"),),
        JoinKind.FULL,
        select=named_as(k="coalesce(flow_a.k, flow_b.k)", a_cnt="flow_a.cnt", b_cnt="flow_b.cnt"),
    )
    return Program(streams, flows, (both,))


def _near(streams: tuple[Stream, Stream]) -> Program:
    pairs = Join(
        JOINED,
        Side("a", keys=("k",)),
        Side("b", keys=("k",)),
        (Band("ts", "ts", -NEAR, NEAR),),
        select=named_as(k="a.k", a_ts="a.ts", a_v="a.v", b_ts="b.ts", b_v="b.v"),
    )
    return Program(streams, operators=(pairs,))


def _native_flows(left: DataFrame, right: DataFrame, delay: int) -> DataFrame:
    from pyspark.sql import functions as f

    def flow(rows: DataFrame, name: str) -> DataFrame:
        epochs = rows.withWatermark("ts", f"{delay // SECOND} seconds").groupBy(
            f.window("ts", f"{EPOCH // SECOND} seconds"), f.col("k").alias(f"{name}_k")
        )
        return epochs.agg(f.count("*").alias(f"{name}_cnt")).withColumnRenamed("window", f"{name}_window")

    both = flow(left, "a").join(flow(right, "b"), f.expr("a_window = b_window AND a_k = b_k"), "fullOuter")
    end = "coalesce(a_window.end, b_window.end) AS window_end"
    return both.selectExpr(end, "coalesce(a_k, b_k) AS k", "a_cnt", "b_cnt")


def _native_near(left: DataFrame, right: DataFrame, delay: int) -> DataFrame:
    from pyspark.sql import functions as f

    def side(rows: DataFrame, name: str) -> DataFrame:
        named = rows.withWatermark("ts", f"{delay // SECOND} seconds")
        return named.selectExpr(f"ts AS {name}_ts", f"k AS {name}_k", f"v AS {name}_v")

    apart = f"INTERVAL {NEAR} MICROSECONDS"
    near = f"a_k = b_k AND b_ts BETWEEN a_ts - {apart} AND a_ts + {apart}"
    return side(left, "a").join(side(right, "b"), f.expr(near)).selectExpr("a_k AS k", "a_ts", "a_v", "b_ts", "b_v")


EPOCHS = Question(
    "epochs",
    ("window_end", "k", "a_cnt", "b_cnt"),
    _flows,
    _native_flows,
    f"""
    WITH flow_a AS (SELECT epoch_us(ts) // {EPOCH} AS e, k, count(*) AS cnt FROM a GROUP BY ALL),
        flow_b AS (SELECT epoch_us(ts) // {EPOCH} AS e, k, count(*) AS cnt FROM b GROUP BY ALL)
    SELECT make_timestamptz((e + 1) * {EPOCH}) AS window_end, k, flow_a.cnt AS a_cnt, flow_b.cnt AS b_cnt
    FROM flow_a FULL JOIN flow_b USING (e, k)
    """,
)
INTERVAL = Question(
    "interval",
    ("k", "a_ts", "a_v", "b_ts", "b_v"),
    _near,
    _native_near,
    f"""
    SELECT a.k, a.ts AS a_ts, a.v AS a_v, b.ts AS b_ts, b.v AS b_v FROM a JOIN b
    ON a.k = b.k AND epoch_us(b.ts) BETWEEN epoch_us(a.ts) - {NEAR} AND epoch_us(a.ts) + {NEAR}
    """,
)
QUESTIONS = (EPOCHS, INTERVAL)


@dataclass(frozen=True)
class Compared:
    """How many rows a side told, how many of the truth it did not tell, and how many are not true."""

    told: int
    missing: int
    wrong: int


class Truth:
    """All the right answers of a question over some files."""

    def __init__(self, question: Question, inputs: Inputs) -> None:
        self._columns = ", ".join(question.columns)
        self._connection: duckdb.DuckDBPyConnection = database()
        for name, data in (("a", inputs.left), ("b", inputs.right)):
            self._connection.execute(f"CREATE VIEW {name} AS FROM read_parquet('{data.folder}/*.parquet')")
        self._connection.execute(f"CREATE TABLE truth AS SELECT {self._columns} FROM ({question.truth})")

    def compare(self, results: Sequence[str]) -> Compared:
        """Compare files of results with the truth, row by row."""
        statement = f"CREATE OR REPLACE TABLE given AS SELECT {self._columns} FROM read_parquet($files)"
        self._connection.execute(statement, {"files": list(results)})
        return Compared(
            self._count("given"),
            self._count("(FROM truth EXCEPT ALL FROM given)"),
            self._count("(FROM given EXCEPT ALL FROM truth)"),
        )

    def _count(self, rows: str) -> int:
        (count,) = self._connection.execute(f"SELECT count(*) FROM {rows}").fetchone() or (0,)
        return int(count)
