from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from eventide.errors import CheckpointError
from eventide.eventtime.heartbeat import HeartbeatGenerator, Snapshot
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.plan.declared.fingerprint import described, differences, refuse_changes
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as, order_by
from eventide.plan.declared.stream import Future, Input, Stream, Timestamps, columns
from eventide.plan.declared.window import RowWindow, SameWindow, Window
from tests.eventtime.policy_examples import EXAMPLES

STREAM = Stream(
    "s",
    columns("t BIGINT, arrived BIGINT, device STRING, v INT"),
    time="t",
    source=("device",),
    future=Future(60),
    input=Input("json", path="in", max_files=3),
)
QUERY = Query(
    "q", "s", Window(300, 60), named_as(total="sum(v)", n="count(*)"), named_as("device"), where="v > 0", having="n > 1"
)
PROGRAM = Program((STREAM,), (QUERY,))


def changes(program: Program) -> list[str]:
    """What differs from the program above, as a checkpoint would tell it: the old side went through JSON."""
    return differences(json.loads(json.dumps(described(PROGRAM))), described(program))


def of_stream(**changed: object) -> list[str]:
    return changes(Program((replace(STREAM, **changed),), (QUERY,)))  # type: ignore[arg-type]


def of_query(**changed: object) -> list[str]:
    return changes(Program((STREAM,), (replace(QUERY, **changed),)))  # type: ignore[arg-type]


def test_the_same_program_differs_in_nothing() -> None:
    assert changes(Program((replace(STREAM),), (replace(QUERY),))) == []


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"window": Window(600, 60)}, "query 'q': RANGE was 300, is now 600"),
        ({"window": Window(300, 30)}, "query 'q': SLIDE was 60, is now 30"),
        ({"window": Window(300, 60, offset=7)}, "query 'q': the offset of its windows was 0, is now 7"),
        ({"where": "v > 1"}, "query 'q': WHERE was v > 0, is now v > 1"),
        ({"where": None}, "query 'q': WHERE was v > 0, is now not declared"),
        ({"having": "n > 2"}, "query 'q': HAVING was n > 1, is now n > 2"),
        ({"retain": 900}, "query 'q': how long windows are retained was 0, is now 900"),
        ({"groups": ()}, "query 'q': group 'device' is gone"),
        ({"groups": named_as(device="upper(device)")}, "query 'q': group 'device' was device, is now upper(device)"),
        ({"select": named_as(total="sum(v)")}, "query 'q': value 'n' is gone"),
        ({"select": named_as(total="max(v)", n="count(*)")}, "query 'q': value 'total' was sum(v), is now max(v)"),
        ({"order": order_by("n DESC")}, "query 'q': ORDER BY was not declared, is now n DESC NULLS LAST"),
        ({"limit": 3}, "query 'q': LIMIT was not declared, is now 3"),
        ({"sample": 0.5}, "query 'q': the share of rows that it takes was not declared, is now 0.5"),
        (
            {"select": named_as(n="count(*)", total="sum(v)")},
            "query 'q': the order of the values was total, n, is now n, total",
        ),
    ],
)
def test_every_change_of_a_query_is_a_sentence(changed: dict[str, object], sentence: str) -> None:
    assert of_query(**changed) == [sentence]


def test_a_window_over_rows_is_another_window() -> None:
    assert of_query(window=RowWindow(300, 60)) == ["query 'q': its window was a span of time, is now a count of rows"]


def test_what_a_query_reads_and_in_which_windows_is_remembered() -> None:
    above = replace(QUERY, name="above", stream="q", groups=(), where=None, having=None, order=order_by("sum(n)"))
    old = described(Program((STREAM,), (QUERY, replace(above, window=SameWindow(), select=named_as(n="sum(n)")))))
    new = described(Program((STREAM,), (QUERY, replace(above, window=Window(10), select=named_as(n="sum(n)")))))
    [sentence, *lengths] = differences(old, new)
    assert sentence == "query 'above': its window was that of the query it reads, is now a span of time"
    assert lengths[0] == "query 'above': RANGE was not declared, is now 10"
    written_otherwise = replace(above, window=SameWindow(), select=named_as(n="sum(n)"), order=order_by("SUM( n )"))
    assert differences(old, described(Program((STREAM,), (QUERY, written_otherwise)))) == []
    of_stream = replace(above, stream="s", window=Window(10), select=named_as(n="sum(v)"))
    assert "query 'above': what it reads was q, is now s" in differences(
        new, described(Program((STREAM,), (QUERY, replace(of_stream, order=order_by("sum(n)")))))
    )


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"columns": columns("t BIGINT, arrived BIGINT, device STRING, v BIGINT")},
            "stream 's': column 'v' was INT, is now BIGINT",
        ),
        (
            {"columns": columns("t BIGINT, arrived BIGINT, device STRING, v INT, w INT")},
            "stream 's': column 'w' is new",
        ),
        ({"columns": columns("t BIGINT, device STRING, v INT")}, "stream 's': column 'arrived' is gone"),
        (
            {"columns": columns("t BIGINT, device STRING, arrived BIGINT, v INT")},
            "stream 's': the order of the columns was t, arrived, device, v, is now t, device, arrived, v",
        ),
        ({"time": "arrived"}, "stream 's': its time column was t, is now arrived"),
        ({"source": ()}, "stream 's': its source was device, is now not declared"),
        ({"arrival": "arrived"}, "stream 's': its arrival column was not declared, is now arrived"),
        (
            {"policy": FixedDelay(5)},
            "stream 's': its policy was DropRatio(ratio=0.01), is now FixedDelay(delay=5)",
        ),
        ({"future": Future(0)}, "stream 's': how far rows may be ahead was 60, is now 0"),
        (
            {"future": Future(60, reject=True)},
            "stream 's': whether rows of the future are rejected was False, is now True",
        ),
        (
            {"future": None},
            "stream 's': what happens to rows of the future was ahead 60, reject False, is now not declared",
        ),
        ({"input": Input("csv", path="in")}, "stream 's': the format of its input was json, is now csv"),
    ],
)
def test_every_change_of_a_stream_is_a_sentence(changed: dict[str, object], sentence: str) -> None:
    assert of_stream(**changed) == [sentence]


def test_timestamps_of_another_kind_are_named() -> None:
    assert of_stream(time=None, timestamps=Timestamps.INTERNAL) == [
        "stream 's': its time column was t, is now not declared",
        "stream 's': the kind of its timestamps was external, is now internal",
    ]


def test_a_declared_bound_of_zero_is_not_none() -> None:
    old = described(Program((replace(STREAM, future=None),), (QUERY,)))
    new = described(Program((replace(STREAM, future=Future(0)),), (QUERY,)))
    assert len(differences(old, new)) == 1


def test_where_rows_come_from_may_change() -> None:
    assert of_stream(input=Input("json", path="moved", options=(("multiLine", "true"),), max_rows=7)) == []


def test_the_same_sql_may_be_written_otherwise() -> None:
    assert of_query(select=named_as(total="SUM( v )", n="Count(*)"), where="v  >\n0") == []
    assert of_query(where="v > '0'") != []


def test_streams_and_queries_that_come_and_go_are_named() -> None:
    other, another = replace(STREAM, name="other"), replace(QUERY, name="another", stream="other")
    assert changes(Program((STREAM, other), (QUERY, another))) == ["stream 'other' is new", "query 'another' is new"]
    assert changes(Program((STREAM,))) == ["query 'q' is gone"]


def test_a_change_is_refused_with_all_differences_and_the_way_out() -> None:
    old = described(PROGRAM)
    refuse_changes(old, described(PROGRAM))
    changed = Program((replace(STREAM, policy=DropRatio(0.02)),), (replace(QUERY, window=Window(600, 60)),))
    with pytest.raises(CheckpointError) as refused:
        refuse_changes(old, described(changed))
    assert str(refused.value).splitlines() == [
        "this checkpoint was made by another program:",
        "  stream 's': its policy was DropRatio(ratio=0.01), is now DropRatio(ratio=0.02)",
        "  query 'q': RANGE was 300, is now 600",
        "Declare it as it was to continue, or give the changed program another checkpoint: it then starts anew from "
        "its inputs",
    ]


def test_a_field_that_came_later_and_declares_nothing_is_no_change() -> None:
    old = described(PROGRAM)
    del old["queries"]["q"]["retain"]
    del old["queries"]["q"]["window"]["empty"]
    assert differences(old, described(PROGRAM)) == []
    assert differences(old, described(Program((STREAM,), (replace(QUERY, retain=600),)))) == [
        "query 'q': how long windows are retained was not declared, is now 600"
    ]


class Homemade:
    """A policy of a user who wrote no `__repr__`."""

    def start(self) -> HeartbeatGenerator:
        return FixedDelay(5).start()

    def resume(self, snapshot: Snapshot) -> HeartbeatGenerator:
        return FixedDelay(5).resume(snapshot)


def test_a_policy_without_words_is_known_by_its_class() -> None:
    old = described(Program((replace(STREAM, policy=Homemade()),)))
    assert differences(old, described(Program((replace(STREAM, policy=Homemade()),)))) == []
    assert differences(old, described(Program((STREAM,)))) != []


TELL = """
import json
from eventide.plan.declared.fingerprint import described
from eventide.plan.declared.program import Program
from eventide.plan.declared.stream import Stream, columns
from tests.eventtime.policy_examples import EXAMPLES
streams = [Stream(f"s{n}", columns("t BIGINT"), time="t", policy=policy) for n, policy in enumerate(EXAMPLES.values())]
print(json.dumps(described(Program(tuple(streams)))))
"""


def test_every_policy_is_described_alike_by_every_process() -> None:
    told = []
    for seed in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": seed}
        told.append(
            subprocess.run([sys.executable, "-c", TELL], capture_output=True, text=True, check=True, env=env).stdout
        )
    assert differences(json.loads(told[0]), json.loads(told[1])) == []
    assert len({str(stream["policy"]) for stream in json.loads(told[0])["streams"].values()}) == len(EXAMPLES)
