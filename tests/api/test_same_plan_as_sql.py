"""Python and SQL become the same plan: every example is written both ways."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import eventide
from eventide.api.query import ContinuousQuery
from eventide.api.stream import EventStream
from eventide.plan.expressions import parsed
from eventide.plan.program import Program
from eventide.plan.query import Named, Query
from eventide.plan.spark_grammar import SPARK

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("seen", pa.timestamp("us", "UTC")),
        ("detector", pa.string()),
        ("speed", pa.int32()),
    ]
)
DDL = "CREATE STREAM traffic (ts TIMESTAMP, seen TIMESTAMP, detector STRING, speed INT) FROM json 'in' TIMESTAMP BY ts"


def traffic(**more: object) -> EventStream:
    return eventide.stream(SCHEMA.empty_table(), time="ts", name="traffic", **more)  # type: ignore[arg-type]


def means(stream: EventStream) -> ContinuousQuery:
    return stream.window("5 minutes", "1 minute").groupBy("detector").agg(mean="avg(speed)").named("q")


EXAMPLES = {
    f"{DDL} SOURCE BY detector DRATIO 2%; CREATE QUERY q AS SELECT detector, avg(speed) AS mean FROM traffic "
    "[RANGE 5 minutes SLIDE 1 minute] GROUP BY detector": means(traffic(source="detector").drop_ratio(0.02)),
    f"{DDL} SLACK 20; CREATE QUERY q AS SELECT detector, avg(speed) AS mean FROM traffic "
    "[RANGE 5 minutes SLIDE 1 minute] GROUP BY detector": means(traffic().slack(rows=20)),
    f"{DDL} CLOCK SKEW 2 seconds; CREATE QUERY q AS SELECT detector, avg(speed) AS mean FROM traffic "
    "[RANGE 5 minutes SLIDE 1 minute] GROUP BY detector": means(traffic().clock_skew("2 seconds")),
    f"{DDL} ARRIVAL BY seen FUTURE 1 minute REJECT TIMEOUT 10 minutes; CREATE QUERY q AS SELECT detector, "
    "avg(speed) AS mean FROM traffic [RANGE 5 minutes SLIDE 1 minute] GROUP BY detector": means(
        traffic(arrival="seen").future("1 minute", reject=True).timeout("10 minutes")
    ),
    f"{DDL}; CREATE QUERY q AS SELECT detector, max(speed) - min(speed) AS spread, count(*) AS n FROM traffic "
    "WINDOW [RANGE = 60 s] WHERE speed > 0 GROUP BY detector HAVING count(*) > 2 ORDER BY spread DESC LIMIT 3": (
        traffic()
        .where("speed > 0")
        .window("60 seconds")
        .groupBy("detector")
        .having("count(*) > 2")
        .agg(spread="max(speed) - min(speed)", n="count(*)")
        .orderBy("spread DESC")
        .limit(3)
        .named("q")
    ),
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_python_and_sql_are_the_same_plan(text: str) -> None:
    from_sql = eventide.sql(text).plan
    assert from_sql.streams[0].input is not None
    bare = replace(from_sql, streams=(replace(from_sql.streams[0], input=None),))
    assert normal(bare) == normal(EXAMPLES[text].plan)


def normal(program: Program) -> Program:
    """The same program with every expression as the parser writes it: `avg(x)` is `AVG(x)`, and `(x)` is `x`."""
    return replace(program, queries=tuple(_normal(query) for query in program.queries))


def _normal(query: Query) -> Query:
    return replace(
        query,
        select=tuple(Named(each.name, _text(each.sql)) for each in query.select),
        groups=tuple(Named(each.name, _text(each.sql)) for each in query.groups),
        where=query.where and _text(query.where),
        having=query.having and _text(query.having),
        order=tuple(replace(each, sql=_text(each.sql)) for each in query.order),
    )


def _text(sql: str) -> str:
    return parsed(sql, "a test").unnest().sql(SPARK)
