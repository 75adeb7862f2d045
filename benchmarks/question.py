"""The query that every side answers, who is right, and the end of a benchmark whose sides disagree.

Sum, count and maximum of a whole number, by a key, over windows of time. `Truth` computes all windows with DuckDB from
the files, at once and not as a stream; each side's results must be exactly those, row by row. Spark closes a window
only when its watermark passes the end, so the last windows of a bounded run it never gives: up to the last end that it
gave, nothing may be missing. Eventide closes everything, and must give everything.

>>> QUESTIONS[0].panes_per_window
60
"""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from benchmarks.disorder import COLUMNS, SECOND, Disordered
from benchmarks.harness import database
from benchmarks.places import result_files
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Input, Stream, columns
from eventide.plan.declared.window import Window

ASKED = {"total": "sum(v)", "n": "count(*)", "most": "max(v)"}
QUERY = "answers"
STREAM = "readings"


@dataclass(frozen=True)
class Question:
    """A window of `range` seconds every `slide` seconds."""

    name: str
    range: int
    slide: int

    @property
    def panes_per_window(self) -> int:
        """How many slices a window is made of: what Spark's `window` copies every row by."""
        return self.range // self.slide

    @property
    def query(self) -> Query:
        """The question in Eventide's words."""
        window = Window(self.range * SECOND, self.slide * SECOND)
        return Query(QUERY, STREAM, window, named_as(**ASKED), groups=named_as("k"))

    def program(self, data: Disordered, max_files: int | None, policy: Policy | None = None) -> Program:
        """The question over these files, `max_files` of them a round."""
        return Program((stream(STREAM, data, max_files, policy),), (self.query,))


QUESTIONS = (Question("sliding60", 600, 10), Question("sliding6", 60, 10), Question("tumbling", 10, 10))
SLIDING60, SLIDING6, TUMBLING = QUESTIONS


def stream(name: str, data: Disordered, max_files: int | None, policy: Policy | None = None) -> Stream:
    """The files as a stream whose time trails by more than any row is late, unless another policy is given."""
    return Stream(
        name,
        columns(COLUMNS),
        time="ts",
        policy=policy or FixedDelay(data.delay),
        input=Input("parquet", str(data.folder), max_files=max_files),
    )


class Truth:
    """All the right answers of a question over some files."""

    def __init__(self, question: Question, data: Disordered) -> None:
        self.question = question
        self._connection = database()
        slide, length = question.slide * SECOND, question.range * SECOND
        self._connection.execute(
            f"""
            CREATE TABLE truth AS
            WITH panes AS (
                SELECT epoch_us(ts) // {slide} * {slide} AS pane, k, sum(v)::BIGINT AS total, count(*) AS n,
                    max(v) AS most
                FROM read_parquet('{data.folder}/*.parquet') GROUP BY ALL
            )
            SELECT pane - back * {slide} + {length} AS window_end, k, sum(total)::BIGINT AS total, sum(n)::BIGINT AS n,
                max(most) AS most
            FROM panes, range({question.panes_per_window}) AS steps(back) GROUP BY ALL
            """
        )

    def check(self, side: str, results: str, complete: bool) -> int:
        """End the benchmark unless the files `results` (a pattern) hold exactly the truth; give the rows compared.

        `complete`: all of it; otherwise all of it up to the last window that the side gave.
        """
        connection = self._connection
        files = result_files(results)
        if not files:
            raise SystemExit(f"{side} gave no results for {self.question.name}: nothing can be compared")
        connection.execute(
            """
            CREATE OR REPLACE TABLE given AS
            SELECT epoch_us(window_end) AS window_end, k, total, n, most FROM read_parquet($files)
            """,
            {"files": files},
        )
        bound = "" if complete else "WHERE window_end <= (SELECT max(window_end) FROM given)"
        wanted = f"SELECT * FROM truth {bound}"
        missing, lacking = _differing(connection, f"({wanted}) EXCEPT ALL FROM given")
        surplus, wrong = _differing(connection, f"FROM given EXCEPT ALL ({wanted})")
        if missing or surplus:
            example = f"{lacking} is missing" if missing else f"{wrong} is too many"
            raise SystemExit(
                f"{side} does not give the right answers to {self.question.name}: {missing} rows are missing and "
                f"{surplus} are too many; of (window_end, k, total, n, most) {example}"
            )
        (rows,) = connection.execute("SELECT count(*) FROM given").fetchone() or (0,)
        return int(rows)


def _differing(connection: duckdb.DuckDBPyConnection, difference: str) -> tuple[int, tuple[object, ...] | None]:
    """How many rows there are in a difference, and the first of them."""
    rows = connection.execute(difference).fetchall()
    return len(rows), min(rows, default=None)
