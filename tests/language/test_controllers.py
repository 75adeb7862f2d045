"""A policy in the window of a query is that query's own: twins of streams, what they are called, what is refused."""

from __future__ import annotations

import pytest

from eventide.errors import LanguageError
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.kim import Kim
from eventide.eventtime.policies.slack import Slack
from eventide.eventtime.policies.wrappers.cap import Cap
from eventide.eventtime.policies.wrappers.idleness import Idle
from eventide.eventtime.policies.wrappers.timeout import Timeout
from eventide.language.script import Script, read_script

S = "CREATE STREAM s (ts TIMESTAMP, sent TIMESTAMP, n BIGINT, k STRING) SOURCE BY k TIMESTAMP BY ts {};\n"
Q = "CREATE QUERY {} AS SELECT count(*) AS c FROM s [RANGE 5 {}];\n"


def script(of_stream: str, **windows: str) -> Script:
    return read_script(S.format(of_stream) + "".join(Q.format(name, window) for name, window in windows.items()))


def twins(read: Script) -> dict[str, Policy]:
    return {stream.name: stream.policy for stream in read.program.streams if stream.twin_of == "s"}


def test_each_policy_in_a_window_but_that_of_the_stream_makes_a_twin() -> None:
    read = script("", a="SLACK 10", b="DRATIO 5% SLACK 20", c="", d="SLACK 20 DRATIO 5%", e="DRATIO 0.5% ESTIMATOR KIM")
    assert read.program.streams[0].policy == Slack(10)
    assert twins(read) == {
        "s_dratio_5_slack_20": Cap(DropRatio(0.05), rows=20),
        "s_dratio_0_5_estimator_kim": Kim(0.005),
    }
    reads = {query.name: query.stream for query in read.program.queries}
    assert reads["a"] == reads["c"] == "s"
    assert reads["b"] == reads["d"] == "s_dratio_5_slack_20"


@pytest.mark.parametrize("of_stream", ["SLACK 5", "DELAY 9 s", "CLOCK SKEW 5 s", "OWN PROGRESS", "DRATIO 7%"])
def test_what_a_stream_says_itself_stays_its_own(of_stream: str) -> None:
    alone, read = script(of_stream, a="").program.streams[0], script(of_stream, a="", b="SLACK 10")
    assert (read.program.streams[0], twins(read)) == (alone, {"s_slack_10": Slack(10)})


def test_a_twin_waits_for_sources_and_silences_as_its_stream_does() -> None:
    read = script("DELAY 9 s IDLE AFTER 3 s TIMEOUT 4 s", a="SLACK 10")
    assert twins(read) == {"s_slack_10": Timeout(Idle(Slack(10), 3_000_000), 4_000_000)}


def test_a_window_may_go_by_any_column_that_tells_a_time() -> None:
    read = script("DELAY 9 s", a="WATTR sent", b="WATTR sent SLACK 60 s", c="WATTR n SLACK 3", d="WATTR ts")
    assert twins(read) == {
        "s_sent": DropRatio(0.01),
        "s_sent_slack_60_s": FixedDelay(60_000_000),
        "s_n_slack_3": Slack(3),
    }
    assert [stream.time for stream in read.program.streams] == ["ts", "sent", "sent", "n"]
    windows = {query.name: query.window for query in read.program.queries}
    assert [getattr(windows[name], "range", None) for name in "acd"] == [5_000_000, 5, 5_000_000]


def test_a_twin_whose_queries_are_dropped_is_gone_and_its_stream_stays_while_it_has_one() -> None:
    text = S.format("SLACK 5") + Q.format("a", "") + Q.format("b", "SLACK 9")
    assert not twins(read_script(text + "DROP QUERY b;"))
    with pytest.raises(LanguageError, match="the query 'b' reads it"):
        read_script(text + "DROP QUERY a; DROP STREAM s;")


def test_rows_may_come_in_the_order_that_a_controller_makes() -> None:
    read = read_script(
        S.format("SLACK 5") + "SELECT ts, n FROM s [SLACK 9]; SELECT n, lag(n) OVER (ORDER BY ts) FROM s [SLACK 9];"
    )
    assert {operator.inputs for operator in read.program.operators} == {("s_slack_9",)}


def test_a_twin_is_warned_of_where_its_query_asks_for_it() -> None:
    [held] = [w for w in script("DELAY 0 s", a="", b="SLACK 9").warnings if "rows are held back" in w.message]
    assert (held.line, held.column) == (3, 56)
    assert not [w for w in script("TIMEOUT 5 s", a="", b="SLACK 9").warnings if "rows are held back" in w.message]


@pytest.mark.parametrize(
    ("of_stream", "window", "message"),
    [
        ("", "WATTR k", "'k' does not tell the time"),
        ("", "WATTR sent SLACK", "expected"),
        ("", "WATTR n SLACK 5 s", "the time of this stream is a sequence of numbers"),
        ("SLACK 5", "ESTIMATOR KIM", "ESTIMATOR without DRATIO"),
    ],
)
def test_what_a_controller_cannot_be_is_refused_at_its_place(of_stream: str, window: str, message: str) -> None:
    with pytest.raises(LanguageError, match=message) as refused:
        script(of_stream, a="", b=window)
    assert refused.value.line == 3


def test_promises_speak_of_the_time_of_their_stream() -> None:
    text = "CREATE STREAM p (t BIGINT, u BIGINT, done BOOLEAN) TIMESTAMP BY t {} BY done;"
    text += "SELECT count(*) FROM p [RANGE 5 WATTR u];"
    for clause in ("PUNCTUATED", "PRODDED"):
        with pytest.raises(LanguageError, match="stream 'p' cannot go by 'u', too: rows in which 'done' is TRUE"):
            read_script(text.format(clause))


def test_a_controller_is_for_a_stream_and_not_for_results_or_pairs() -> None:
    for reads in ("a [RANGE 10 SLACK 3]", "(SELECT * FROM s AS x JOIN s AS y ON x.ts = y.ts) [RANGE 9 SLACK 3]"):
        with pytest.raises(LanguageError, match=r"SLACK is for a stream, and this"):
            read_script(S.format("") + Q.format("a", "") + f"SELECT count(*) AS m FROM {reads};")
