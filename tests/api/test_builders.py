"""Builders make the plan nodes that one would write by hand, and refuse what cannot be meant."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eventide
from eventide.api.arguments import length
from eventide.api.stream import EventStream
from eventide.errors import DeclarationError
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.clock_skew import ClockSkew
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.slack import Slack
from eventide.eventtime.policies.wrappers.idleness import Idle
from eventide.eventtime.policies.wrappers.timeout import Timeout
from eventide.language.grammar.spelling import LENGTHS
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as, order_by
from eventide.plan.declared.stream import Future, Stream, TimeKind, Timestamps, columns
from eventide.plan.declared.window import RowWindow, Window

SECOND = 1_000_000
MINUTE = 60 * SECOND
ROWS = pa.table(
    {
        "ts": pa.array([dt.datetime(2026, 1, 1)], pa.timestamp("us", "UTC")),
        "arrived": pa.array([dt.datetime(2026, 1, 1)], pa.timestamp("us", "UTC")),
        "detector": ["A"],
        "lane": pa.array([1], pa.int32()),
        "speed": [50.0],
    }
)
COLUMNS = columns("ts TIMESTAMP, arrived TIMESTAMP, detector STRING, lane INT, speed DOUBLE")


def traffic() -> EventStream:
    return eventide.stream(ROWS, time="ts", source="detector", name="traffic")


def by_hand(policy: Policy, **more: object) -> Stream:
    return Stream("traffic", COLUMNS, "ts", ("detector",), policy=policy, **more)  # type: ignore[arg-type]


def test_a_query_is_the_plan_that_one_would_write_by_hand() -> None:
    built = (
        traffic()
        .drop_ratio(0.02)
        .where("speed > 0")
        .where("lane < 3")
        .window("5 minutes", "1 minute", offset="10 seconds", retain="1 hour")
        .groupBy("detector", side="lane % 2")
        .having("n > 2")
        .agg("avg(speed) AS mean", {"speed": "max"}, n="count(*)")
        .named("speeds")
    )
    query = Query(
        "speeds",
        "traffic",
        Window(5 * MINUTE, MINUTE, 10 * SECOND),
        (*named_as(mean="avg(speed)"), *named_as(**{"max(speed)": "max(speed)"}), *named_as(n="count(*)")),
        named_as("detector", side="lane % 2"),
        where="(speed > 0) AND (lane < 3)",
        having="n > 2",
        retain=60 * MINUTE,
    )
    assert built.plan == Program((by_hand(DropRatio(0.02)),), (query,))


def test_windows_come_over_time_over_rows_and_with_empty_ones() -> None:
    counted = named_as(n="count(*)")
    wanted = {
        traffic().window("90 s").agg(n="count(*)"): Query("query", "traffic", Window(90 * SECOND), counted),
        traffic().rows(100, 10).agg(n="count(*)"): Query("query", "traffic", RowWindow(100, 10), counted),
        traffic().rows(100).agg(n="count(*)"): Query("query", "traffic", RowWindow(100), counted),
        traffic().window(dt.timedelta(seconds=9), empty=True).agg(n="count(*)"): Query(
            "query", "traffic", Window(9 * SECOND, empty=True), counted
        ),
    }
    for built, query in wanted.items():
        assert built.plan == Program((by_hand(DropRatio(0.01)),), (query,))


def test_the_best_of_each_window_are_asked_for_as_in_pyspark() -> None:
    built = traffic().window("1 s").groupBy("lane").agg(mean="avg(speed)").orderBy("mean DESC", "lane").limit(3)
    query = Query("query", "traffic", Window(SECOND), named_as(mean="avg(speed)"), named_as("lane"))
    assert built.plan.queries == (replace(query, order=order_by("mean DESC", "lane"), limit=3),)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (lambda s: s, DropRatio(0.01)),
        (lambda s: s.slack(rows=20), Slack(20)),
        (lambda s: s.delay("10 seconds"), FixedDelay(10 * SECOND)),
        (lambda s: s.clock_skew("2 seconds"), ClockSkew(2 * SECOND)),
        (lambda s: s.policy(OwnProgress()), OwnProgress()),
        (lambda s: s.timeout("1 minute"), Timeout(DropRatio(0.01), MINUTE)),
        (
            lambda s: s.delay("1 s").idle_after("5 s").timeout("1 minute"),
            Timeout(Idle(FixedDelay(SECOND), 5 * SECOND), MINUTE),
        ),
    ],
)
def test_time_moves_by_what_was_said(said: Callable[[EventStream], EventStream], meant: Policy) -> None:
    assert said(traffic()).declared == by_hand(meant)


def test_the_other_fields_of_a_stream_are_what_was_said() -> None:
    assert traffic().future("1 minute", reject=True).declared == by_hand(DropRatio(0.01), future=Future(MINUTE, True))
    recorded = eventide.stream(ROWS, time="ts", source=["detector", "lane"], arrival="arrived", name="traffic")
    assert recorded.declared == Stream("traffic", COLUMNS, "ts", ("detector", "lane"), "arrived")
    stamped = eventide.stream(ROWS, time=None, name="traffic")
    assert stamped.declared == Stream("traffic", COLUMNS, timestamps=Timestamps.INTERNAL)


def test_a_builder_never_changes() -> None:
    start = traffic()
    windows = start.window("5 minutes")
    windows.where("speed > 0").groupBy("lane").agg(n="count(*)")
    start.drop_ratio(0.5)
    assert windows.agg(n="count(*)") == traffic_query(start)
    assert start.declared == by_hand(DropRatio(0.01))


def traffic_query(start: EventStream) -> object:
    return start.window("5 minutes").agg(n="count(*)")


REFUSED: dict[str, Callable[[], object]] = {
    "did you mean 'speed'": lambda: traffic().where("sped > 0"),
    "did you mean 'detector'": lambda: traffic().window("1 s").groupBy("dectector"),
    "did you mean 'lane'": lambda: traffic().window("1 s").agg(n="sum(lain)"),
    "no column 'm'": lambda: traffic().window("1 s").having("m > 1").agg(n="count(*)"),
    "did you mean 'ts'": lambda: eventide.stream(ROWS, time="tss"),
    "time must be TIMESTAMP": lambda: eventide.stream(ROWS, time="detector"),
    "'5 minuets' is no length of time: write '5 minutes'": lambda: traffic().window("5 minuets"),
    "months and years differ": lambda: traffic().window("1 month"),
    "has no unit: write '300 seconds'": lambda: traffic().window(300),
    "a RANGE above 0": lambda: traffic().window("0 s"),
    "a whole number, not '5 minutes'": lambda: eventide.stream(ROWS, time="lane").window("5 minutes"),
    "already goes by": lambda: traffic().timeout("1 minute").drop_ratio(0.01),
    "'no policy' is no policy": lambda: traffic().policy("no policy"),  # type: ignore[arg-type]
    "between 0 and 1": lambda: traffic().drop_ratio(3),
    "never ends without a window": lambda: traffic().groupBy("lane").agg(n="count(*)"),
    "or .rows": lambda: traffic().agg(n="count(*)"),
    "0.01 for 1 %": lambda: traffic().drop_ratio("1%"),  # type: ignore[arg-type]
    "a length of time is .delay": lambda: traffic().slack("5 s"),  # type: ignore[arg-type]
    "None is no length of time": lambda: traffic().window(None),  # type: ignore[arg-type]
    "a whole number of results": lambda: traffic().window("1 s").agg(n="count(*)").limit("3"),  # type: ignore[arg-type]
    "5 is no query": lambda: eventide.start(a=5),  # type: ignore[arg-type]
    "already has windows": lambda: traffic().window("1 s").rows(5),
    "what is to be distinct": lambda: traffic().window("1 s").distinct(),
    "a share above 0": lambda: traffic().sample(10),
    "selects nothing": lambda: traffic().window("1 s").agg(),
    "two columns are named 'lane'": lambda: traffic().window("1 s").groupBy("lane").agg(lane="count(*)"),
    "'round' is a column of every result": lambda: traffic().window("1 s").agg(round="count(*)"),
    "cannot read this SQL": lambda: traffic().where("speed >"),
    "a condition has no name": lambda: traffic().where("speed > 0 AS fast"),
    "cannot name a query": lambda: traffic().window("1 s").agg(n="count(*)").named("my query"),
    "cannot name a stream": lambda: eventide.stream(ROWS, time="ts", name="my stream"),
    "is no stream": lambda: eventide.stream("incoming", time="ts"),  # type: ignore[arg-type]
    "gives int, not Arrow batches": lambda: eventide.stream([1, 2], time="ts"),  # type: ignore[list-item]
    "holds nothing": lambda: eventide.stream([], time="ts"),
    "is no expression": lambda: traffic().where(True),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_meant_is_refused_where_it_is_said(message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        REFUSED[message]()


@given(st.lists(st.tuples(st.integers(0, 1000), st.sampled_from(sorted(LENGTHS))), min_size=1, max_size=4))
def test_a_length_is_the_sum_of_its_parts(parts: list[tuple[int, str]]) -> None:
    text = " ".join(f"{number} {unit}" for number, unit in parts)
    assert length(text, TimeKind.TIMESTAMP) == sum(number * LENGTHS[unit] for number, unit in parts)
