"""One question for each operator, in Eventide's words, and its batch answer in Spark's SQL over the same files.

Streams `a` and `b` have columns `ts`, `k`, `v`; no two rows of a stream have the same time. Heartbeats trail the
largest time by a share of the whole story, so that what waits for them grows with the story. The interval joins reach
five seconds to both sides, however long the story is.

>>> [question.name for question in QUESTIONS]
['interval_join', 'full_outer_join', 'merge', 'rows', 'lookup', 'count_window', 'by_source']
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.disorder import COLUMNS, SECOND, Disordered
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.plan.declared.join import Band, Join, JoinKind, Lookup, Side
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Input, Stream, columns
from eventide.plan.declared.window import RowWindow, Window

ANSWERS = "answers"
NEAR = 5 * SECOND
WINDOW = 10 * SECOND
ROWS_A_WINDOW = 1000
SOURCES = 200

Streams = tuple[Stream, ...]


@dataclass(frozen=True)
class Question:
    """What an operator is asked. `inputs`: how many streams it reads; `batch`: the answer over tables `a` and `b`.

    `sources`: how many sources the keys of its rows are; 0 where keys are as many as the sizes say. `wide`: more rows
    are asked of it, because it does little with each. `ordered`: no round may tell a row from before an earlier round.
    """

    name: str
    inputs: int
    plan: Callable[[Streams], Program]
    columns: tuple[str, ...]
    batch: str
    sources: int = 0
    wide: bool = False
    ordered: bool = False

    def program(self, data: tuple[Disordered, ...], trailing: int) -> Program:
        """The question over these files, one of each stream a round; time trails by so much more than it has to."""
        return self.plan(tuple(self._stream(name, one, trailing) for name, one in zip("ab", data, strict=False)))

    def _stream(self, name: str, data: Disordered, trailing: int) -> Stream:
        delay = data.delay + trailing
        return Stream(
            name,
            columns(COLUMNS),
            time="ts",
            source=("k",) if self.sources else (),
            policy=OwnProgress(delay, known=self.sources) if self.sources else FixedDelay(delay),
            input=Input("parquet", str(data.folder), max_files=1),
        )


def _joined(kind: JoinKind) -> Callable[[Streams], Program]:
    def plan(streams: Streams) -> Program:
        pairs = Join(
            ANSWERS,
            Side("a", keys=("k",)),
            Side("b", keys=("k",)),
            (Band("ts", "ts", -NEAR, NEAR),),
            kind,
            select=named_as(k="coalesce(a.k, b.k)", a_ts="a.ts", a_v="a.v", b_ts="b.ts", b_v="b.v"),
        )
        return Program(streams, operators=(pairs,))

    return plan


def _merged(streams: Streams) -> Program:
    return Program(streams, operators=(Rows(ANSWERS, ("a", "b"), named_as("k", "v", at="ts")),))


def _plain(streams: Streams) -> Program:
    chosen = named_as("k", at="ts", twice="2 * v")
    return Program(streams, operators=(Rows(ANSWERS, ("a",), chosen, where="v < 500", ordered=False),))


def _looked_up(streams: Streams) -> Program:
    known = Lookup(
        ANSWERS,
        Side("a", keys=("k",)),
        Side("b", keys=("k",)),
        keeps_all=True,
        select=named_as(k="a.k", at="a.ts", v="a.v", since="b.ts", known="b.v"),
    )
    return Program(streams, operators=(known,))


AGGREGATES = named_as(n="count(*)", total="sum(v)", most="max(v)")


def _counted(streams: Streams) -> Program:
    return Program(streams, (Query(ANSWERS, "a", RowWindow(ROWS_A_WINDOW), AGGREGATES),))


def _by_source(streams: Streams) -> Program:
    # Groups within a source, so that there is about a slice for every row.
    groups = named_as("k", part="v % 500")
    return Program(streams, (Query(ANSWERS, "a", Window(WINDOW), AGGREGATES, groups, by_source=True),))


# A row meets those of its own stretch of time and of the two beside it: else all rows of a key would meet.
STRETCH = f"unix_micros(ts) DIV {NEAR}"
PAIRS = f"""
SELECT x.k, x.ts AS a_ts, x.v AS a_v, y.ts AS b_ts, y.v AS b_v
FROM (SELECT *, {STRETCH} AS stretch FROM a) AS x
JOIN (SELECT *, explode(sequence({STRETCH} - 1, {STRETCH} + 1)) AS stretch FROM b) AS y
ON x.k = y.k AND x.stretch = y.stretch AND abs(unix_micros(x.ts) - unix_micros(y.ts)) <= {NEAR}
"""
FULL = f"""
WITH pairs AS ({PAIRS})
SELECT * FROM pairs
UNION ALL SELECT k, ts, v, NULL, NULL FROM a LEFT ANTI JOIN pairs ON a.ts = pairs.a_ts
UNION ALL SELECT k, NULL, NULL, ts, v FROM b LEFT ANTI JOIN pairs ON b.ts = pairs.b_ts
"""
MERGED = "SELECT k, v, ts AS at FROM a UNION ALL SELECT k, v, ts FROM b"
PLAIN = "SELECT k, ts AS at, 2 * v AS twice FROM a WHERE v < 500"
# The last version of the key so far; one of the same time as the row holds already.
LOOKED_UP = """
SELECT k, at, v, known.ts AS since, known.v AS known FROM (
    SELECT k, at, v, is_row, last(version, true) OVER (
        PARTITION BY k ORDER BY at, is_row ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS known
    FROM (
        SELECT k, ts AS at, v, true AS is_row, CAST(NULL AS STRUCT<ts: TIMESTAMP, v: INT>) AS version FROM a
        UNION ALL SELECT k, ts, v, false, struct(ts, v) FROM b
    )
) WHERE is_row
"""
# A row's number: the rows of the seconds before its own, and its place within its second. No sort of all rows at once.
COUNTED = f"""
WITH seconds AS (SELECT unix_seconds(ts) AS second, count(*) AS n FROM a GROUP BY 1),
    before AS (SELECT second, sum(n) OVER (ORDER BY second) - n AS earlier FROM seconds),
    numbered AS (
        SELECT v, earlier + row_number() OVER (PARTITION BY second ORDER BY ts) - 1 AS number
        FROM a JOIN before ON unix_seconds(a.ts) = before.second
    )
SELECT number DIV {ROWS_A_WINDOW} AS w, count(*) AS n, sum(v) AS total, max(v) AS most FROM numbered GROUP BY 1
"""
BY_SOURCE = f"""
SELECT k, v % 500 AS part, timestamp_micros((unix_micros(ts) DIV {WINDOW} + 1) * {WINDOW}) AS window_end,
    count(*) AS n, sum(v) AS total, max(v) AS most
FROM a GROUP BY ALL
"""

PAIR = ("k", "a_ts", "a_v", "b_ts", "b_v")
QUESTIONS = (
    Question("interval_join", 2, _joined(JoinKind.INNER), PAIR, PAIRS),
    Question("full_outer_join", 2, _joined(JoinKind.FULL), PAIR, FULL),
    Question("merge", 2, _merged, ("k", "v", "at"), MERGED, wide=True, ordered=True),
    Question("rows", 1, _plain, ("k", "at", "twice"), PLAIN, wide=True),
    Question("lookup", 2, _looked_up, ("k", "at", "v", "since", "known"), LOOKED_UP),
    Question("count_window", 1, _counted, ("n", "total", "most"), COUNTED),
    Question("by_source", 1, _by_source, ("k", "part", "window_end", "n", "total", "most"), BY_SOURCE, SOURCES),
)
