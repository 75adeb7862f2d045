"""Every spelling of a heartbeat policy compiles to exactly the policy it names; and what scripts are warned of."""

from __future__ import annotations

import pytest

from eventide.errors import LanguageError
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.clock_skew import ClockSkew
from eventide.eventtime.policies.delay_quantile import DelayQuantile
from eventide.eventtime.policies.drop_ratio.learned import Learned
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.kim import Kim, KimAdhoc
from eventide.eventtime.policies.on_demand import OnDemand
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.eventtime.policies.skew.bounds import RowBound, TimeBound
from eventide.eventtime.policies.skew.declared import DeclaredSkew, declared_loss
from eventide.eventtime.policies.skew.estimated import Adaptivity, ClockSpan, EstimatedSkew
from eventide.eventtime.policies.skew.grouping import group
from eventide.eventtime.policies.skew.matrix import InOrder, SkewMatrix
from eventide.eventtime.policies.skew.per_source import distributed_sensors, global_counter
from eventide.eventtime.policies.slack import Slack
from eventide.eventtime.policies.wrappers.cap import Cap
from eventide.eventtime.policies.wrappers.expected_sources import Expected
from eventide.eventtime.policies.wrappers.idleness import Idle
from eventide.eventtime.policies.wrappers.source_groups import MergedSources
from eventide.eventtime.policies.wrappers.timeout import Timeout
from eventide.language.script import read_script
from eventide.plan.declared.stream import Stream

SECOND = 1_000_000
POLICIES: dict[str, Policy] = {
    "": DropRatio(0.01),
    "SLACK 10": Slack(10),
    "SLACK 10 ROWS": Slack(10),
    "SLACK 10 s": FixedDelay(10 * SECOND),
    "DELAY 10": FixedDelay(10 * SECOND),
    "WATERMARK FOR ts AS ts - INTERVAL '10' SECOND": FixedDelay(10 * SECOND),
    "WATERMARK FOR ts AS ts - INTERVAL 10 SECONDS": FixedDelay(10 * SECOND),
    "WATERMARK FOR ts AS ts": FixedDelay(0),
    "WATERMARK ts DELAY OF INTERVAL 10 SECONDS": FixedDelay(10 * SECOND),
    "WATERMARK ts DELAY OF 10 seconds IDLE AFTER 30 s": Idle(FixedDelay(10 * SECOND), 30 * SECOND),
    "DRATIO 5%": DropRatio(0.05),
    "DRATIO 0.05": DropRatio(0.05),
    "LEARNED FROM 'a.csv' DRATIO 5% SLACK 20": Cap(DropRatio(0.05, Learned("a.csv")), rows=20),
    "DRATIO 5% SLACK 20": Cap(DropRatio(0.05), rows=20),
    "SLACK 1 minute DRATIO 5%": Cap(DropRatio(0.05), behind_largest=60 * SECOND),
    "DRATIO 5% SLACK 0": DropRatio(0.05),
    "CLOCK SKEW 2 s": ClockSkew(2 * SECOND),
    "CLOCK SKEW -2 s": ClockSkew(-2 * SECOND),
    "DRATIO 5% ESTIMATOR KIM": Kim(0.05),
    "DRATIO 5% SLACK 0 ESTIMATOR kim": Kim(0.05, slack=0),
    "DRATIO 5% ESTIMATOR ADHOC": KimAdhoc(0.05),
    "DRATIO 5% SLACK 9 ESTIMATOR QUANTILE": Cap(DelayQuantile(0.95), rows=9),
    "ON DEMAND 2 s": OnDemand(2 * SECOND),
    "OWN PROGRESS": OwnProgress(),
    "OWN PROGRESS SLACK 2 s": OwnProgress(2 * SECOND),
    "ESTIMATED BOUNDS": EstimatedSkew(),
    "ESTIMATED BOUNDS (MAXIMUM, UNIT 500ms, AHEAD 4, PAIRWISE)": EstimatedSkew(
        Adaptivity(None), SECOND // 2, 4, pairwise=True
    ),
    "ESTIMATED BOUNDS (WINDOW 50, WEIGHT 0.25, TOLERATED 5%)": EstimatedSkew(Adaptivity(50, 0.25, 0.05)),
    "ESTIMATED BOUNDS (WINDOW 2 minutes, WEIGHT 1, STEADY)": EstimatedSkew(
        Adaptivity(ClockSpan(120 * SECOND), 1, None)
    ),
    "DRATIO 1% TIMEOUT 1 minute": Timeout(DropRatio(0.01), 60 * SECOND),
    "IDLE AFTER 30 s OWN PROGRESS TIMEOUT 60": Timeout(Idle(OwnProgress(), 30 * SECOND), 60 * SECOND),
    "PUNCTUATED BY done": Punctuated(),
    "OWN PROGRESS PUNCTUATED BY done TIMEOUT 5 s": Timeout(Punctuated(OwnProgress()), 5 * SECOND),
    "PUNCTUATED BY done SLACK 10": Punctuated(Slack(10)),
    "TIMEOUT 5 s": Timeout(DropRatio(0.01), 5 * SECOND),
    "EXPECTING (a, 'b')": Expected(DropRatio(0.01), (0, 1)),
    "EXPECTING (a) GIVE UP AFTER 5 s DELAY 1": Expected(FixedDelay(SECOND), (0,), 5 * SECOND),
    "EXPECTING (a) ON DEMAND 1 IDLE AFTER 5 s TIMEOUT 9": Timeout(
        Expected(Idle(OnDemand(SECOND), 5 * SECOND), (0,), 5 * SECOND), 9 * SECOND
    ),
    "OWN PROGRESS IDLE AFTER 5 s EXPECTING (7, a, 7) GIVE UP AFTER 9": Expected(
        Idle(OwnProgress(), 5 * SECOND), (0, 1), 9 * SECOND
    ),
}
BOUNDS = """BOUNDS (
    SOURCE 'A' LATENCY 2 s, b TRAILS 'A' BY 5 s AFTER 1 s, 'A' TRAILS 'A' BY 0, b TRAILS b BY 1 AFTER 3 ROWS)"""


def stream(clauses: str, columns: str = "ts TIMESTAMP, k STRING, done BOOLEAN") -> Stream:
    return read_script(f"CREATE STREAM s ({columns}) SOURCE BY k {clauses}").program.streams[0]


@pytest.mark.parametrize("clauses", POLICIES)
def test_a_policy_is_exactly_what_is_written(clauses: str) -> None:
    assert stream(clauses).policy == POLICIES[clauses]


def test_a_sequence_counts_in_its_own_numbers() -> None:
    assert stream("DELAY 10", "t BIGINT, k STRING").policy == FixedDelay(10)
    assert stream("DRATIO 1% TIMEOUT 5 s", "t BIGINT, k STRING").policy == Timeout(DropRatio(0.01), 5 * SECOND)
    found = stream("CLOCK SKEW 5 TIMEOUT 7 ARRIVAL BY n TIMESTAMP BY t", "t BIGINT, n BIGINT, k STRING")
    assert found.policy == Timeout(ClockSkew(5), 7)


def test_a_watermark_names_the_column_that_tells_the_time() -> None:
    for clause in ("WATERMARK FOR b AS b - INTERVAL '5' SECOND", "WATERMARK b DELAY OF INTERVAL 5 SECONDS"):
        found = stream(clause, "a TIMESTAMP, b TIMESTAMP, k STRING")
        assert (found.time, found.policy) == ("b", FixedDelay(5 * SECOND))
        assert stream(f"{clause} TIMESTAMP BY B", "a TIMESTAMP, b TIMESTAMP, k STRING") == found
    assert stream("WATERMARK FOR t AS t - 7", "t BIGINT, k STRING").policy == FixedDelay(7)


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ("WATERMARK FOR ts AS at - INTERVAL 5 SECONDS", "the watermark is for 'ts', and this is another column: 'at'"),
        ("WATERMARK ts DELAY OF 5 s TIMESTAMP BY ARRIVAL", "and this is another column: 'ARRIVAL'"),
        ("WATERMARK FOR tz AS tz", "there is no column 'tz'"),
        ("WATERMARK FOR k AS k", "time must be TIMESTAMP"),
        ("WATERMARK ts DELAY OF 5 s DRATIO 1%", "two ways to find heartbeats"),
        ("WATERMARK ts DELAY OF 5 s WATERMARK FOR ts AS ts", "two ways to find heartbeats"),
        ("WATERMARK ts DELAY OF 5 s SLACK 3", "SLACK does not go with WATERMARK"),
        ("WATERMARK ts DELAY OF -5", "give 0 or more"),
        ("WATERMARK ts 5 s", "expected DELAY"),
    ],
)
def test_a_watermark_that_says_two_things_is_refused(clauses: str, message: str) -> None:
    with pytest.raises(LanguageError, match=message):
        stream(clauses)


def test_bounds_of_named_sources_are_a_matrix_and_the_names_in_its_order() -> None:
    found = stream(BOUNDS)
    entries: list[list[list[TimeBound | RowBound]]] = [
        [[TimeBound(0, 0)], [TimeBound(SECOND, 5 * SECOND)]],
        [[], [RowBound(3, SECOND)]],
    ]
    assert found.policy == DeclaredSkew(SkewMatrix.of(entries, [2 * SECOND, 0]))
    assert found.known == ("A", "b")
    assert stream("BOUNDS (1 TRAILS 2 BY 5)").known == ("1", "2")


def test_all_stands_for_every_named_source() -> None:
    found = stream("BOUNDS (SOURCE a, SOURCE b, ALL TRAILS ALL BY 9, a TRAILS b BY 3 EXCEEDED 1%)")
    all_, one = TimeBound(0, 9 * SECOND), TimeBound(0, 3 * SECOND, 0.01)
    assert found.policy == DeclaredSkew(SkewMatrix.of([[[all_], [all_]], [[all_, one], [all_]]], [0, 0]))


UNSURE = (
    "BOUNDS (SOURCE a LATENCY 9 s, SOURCE a LATENCY 2 s EXCEEDED 1%, SOURCE a LATENCY 1 s EXCEEDED 2%, "
    "a TRAILS a BY 8, a TRAILS a BY 5 EXCEEDED 1.5%, a TRAILS a BY 3 EXCEEDED 2%) {}"
)


@pytest.mark.parametrize(
    ("clauses", "latency", "lags", "loss"),
    [
        ("", 1, {8, 5, 3}, 0.055),
        ("DRATIO 0.5%", 9, {8}, 0.0),
        ("DRATIO 1.5%", 2, {8}, 0.01),
        ("DRATIO 2.5%", 1, {8}, 0.02),
        ("DRATIO 3.5%", 1, {8, 5}, 0.035),
        ("DRATIO 6% TIMEOUT 5 s", 1, {8, 5, 3}, 0.055),
    ],
)
def test_bounds_that_may_fail_are_used_as_far_as_the_drop_ratio_affords_them(
    clauses: str, latency: int, lags: set[int], loss: float
) -> None:
    found = stream(UNSURE.format(clauses)).policy
    assert declared_loss(found) == pytest.approx(loss)
    skew = found.inner.skew if isinstance(found, Timeout) else found.skew  # type: ignore[attr-defined]
    assert skew.latency == (latency * SECOND,)
    assert {bound.lag // SECOND for bound in skew.bounds(0, 0)} == lags


def test_bounds_that_are_not_used_are_told() -> None:
    [one] = [told for told in warned(READ.format(UNSURE.format("DRATIO 3.5% TIMEOUT 5 s"))) if "not used" in told]
    assert "a bound of 'a' behind 'a' is not used: it may fail for 2 % of the rows" in one


def skew_of(clauses: str, columns: str = "ts TIMESTAMP, k STRING, done BOOLEAN") -> SkewMatrix:
    policy = stream(clauses, columns).policy
    assert isinstance(policy, DeclaredSkew)
    assert isinstance(policy.skew, SkewMatrix)
    return policy.skew


def test_the_two_systems_of_section_4_are_declared_by_their_own_values() -> None:
    counter = skew_of(
        "BOUNDS (SOURCE a LATENCY 1 s COUNTER FROM 2 s TO 4 s, SOURCE b COUNTER FROM 5 s TO 6 s, "
        "SOURCE c COUNTER FROM 1 s TO 30 s, SOURCE d)"
    )
    expected = global_counter([2 * SECOND, 5 * SECOND, SECOND], [4 * SECOND, 6 * SECOND, 30 * SECOND], [0, 0, 0])
    assert [[counter.bounds(i, j) for j in range(4)] for i in range(4)] == [
        *([*(expected.bounds(i, j) for j in range(3)), ()] for i in range(3)),
        [()] * 4,
    ]
    assert counter.latency == (SECOND, 0, 0, 0)
    clocks = skew_of(
        "BOUNDS (SOURCE ALL CLOCK WITHIN 1 s RATE AT LEAST 0.5, SOURCE a, SOURCE b CLOCK WITHIN 4 s RATE AT LEAST 1)"
    )
    sensors = distributed_sensors([SECOND, 4 * SECOND], [0, 0], [0.5, 1.0])
    assert all(clocks.bounds(i, j) == sensors.bounds(i, j) for i in range(2) for j in range(2))
    numbers = skew_of("BOUNDS (SOURCE a CLOCK WITHIN 8 RATE AT LEAST 2)", "t BIGINT, k STRING")
    assert numbers.bounds(0, 0) == (TimeBound(0, 8), TimeBound(4 * SECOND, 0)), "2 numbers in a second"


def test_bounds_may_be_those_of_groups_and_have_a_unit_of_the_clock() -> None:
    sensors = "BOUNDS (SOURCE a CLOCK WITHIN 1 s, SOURCE b CLOCK WITHIN 90 s, SOURCE c CLOCK WITHIN 2 s)"
    found = stream(f"{sensors} GROUPED INTO 2 CLOCK UNIT 500 ms")
    grouped = group(distributed_sensors([SECOND, 90 * SECOND, 2 * SECOND], [0, 0, 0]), (0, 1, 0))
    assert found.policy == MergedSources(DeclaredSkew(grouped, clock_unit=SECOND // 2), (0, 1, 0))
    assert found.known == ("a", "b", "c")


def test_sources_may_be_in_order_on_their_way_and_of_groups_those_of_one_source() -> None:
    bounds = "BOUNDS (SOURCE a LATENCY 3 s IN ORDER, SOURCE b, SOURCE c IN ORDER, ALL TRAILS ALL BY 1)"
    one = TimeBound(0, SECOND)
    each = SkewMatrix.of([[[one]] * 3] * 3, [3 * SECOND, 0, 0])
    assert stream(bounds).policy == DeclaredSkew(InOrder(each, (0, 2)))
    assert stream(bounds.replace("SOURCE b", "SOURCE ALL IN ORDER")).known == ("a", "c")
    grouped = group(each, (0, 0, 1))
    assert stream(f"{bounds} GROUPED (left (a, b), right (c))").policy == MergedSources(
        DeclaredSkew(InOrder(grouped, (1,))), (0, 0, 1)
    )


def test_groups_may_be_named_and_their_names_stand_for_their_sources() -> None:
    bounds = "BOUNDS (left TRAILS right BY 5, SOURCE left LATENCY 3 s, SOURCE b LATENCY 4 s, right TRAILS right BY 1)"
    found = stream(f"{bounds} GROUPED (left (a, b), right (c))")
    five, one = TimeBound(0, 5 * SECOND), TimeBound(0, SECOND)
    each = SkewMatrix.of([[[], [], []], [[], [], []], [[five], [five], [one]]], [3 * SECOND, 4 * SECOND, 0])
    assert found.policy == MergedSources(DeclaredSkew(group(each, (0, 0, 1))), (0, 0, 1))
    assert found.known == ("a", "b", "c")


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ("BOUNDS (a TRAILS a BY 1 IN ORDER)", "expected"),
        ("BOUNDS (SOURCE c) GROUPED (left (a, b))", "'c' has bounds and is in no group"),
        ("BOUNDS (SOURCE a) GROUPED (left (a, b), right (b))", "'b' is in two groups"),
        ("BOUNDS (SOURCE a) GROUPED (left (a), left (b))", "there are two groups 'left'"),
        ("BOUNDS (SOURCE a) GROUPED (left (a), a (b))", "'a' is a group and a source"),
        ("BOUNDS (SOURCE a) GROUPED (left (a)) GROUPED INTO 1", "looks for groups, and GROUPED names them"),
        ("BOUNDS (SOURCE a) GROUPED (left)", "expected"),
        ("DRATIO 1% GROUPED (left (a))", "GROUPED is for BOUNDS"),
        ("BOUNDS (SOURCE a) GROUPED INTO 2", "1 sources cannot be grouped into 2"),
        ("DRATIO 1% GROUPED INTO 2", "GROUPED INTO is for BOUNDS"),
        ("BOUNDS (SOURCE a) CLOCK UNIT 0", "would never wait"),
        ("BOUNDS (SOURCE a RATE AT LEAST 1)", "RATE AT LEAST goes with CLOCK WITHIN: give both"),
        ("BOUNDS (SOURCE a COUNTER FROM 1 s)", "COUNTER FROM goes with TO: give both"),
        ("BOUNDS (SOURCE a COUNTER FROM 3 s TO 1 s)", "COUNTER FROM is more than TO"),
        ("BOUNDS (SOURCE a CLOCK WITHIN 3 s RATE AT LEAST 5 s)", "takes a number above 0"),
        ("BOUNDS (SOURCE a CLOCK WITHIN 3 s RATE AT LEAST 1, SOURCE b CLOCK WITHIN 3 s)", "for some clocks only"),
        ("BOUNDS (SOURCE a LATENCY 1 s EXCEEDED 5%) DRATIO 1%", "every declared latency: declare a surer one"),
        ("BOUNDS (SOURCE a EXCEEDED 5%)", "EXCEEDED of what"),
        ("BOUNDS (SOURCE a LATENCY 1 s EXCEEDED 5%, a TRAILS a BY 0 AFTER 2 ROWS)", "and a bound counts them"),
        ("BOUNDS (SOURCE a LATENCY 1 s) DRATIO 1% SLACK 5", "two ways to find heartbeats"),
    ],
)
def test_shares_that_mean_nothing_are_refused(clauses: str, message: str) -> None:
    with pytest.raises(LanguageError, match=message):
        stream(clauses)


def test_expected_sources_have_the_numbers_in_which_they_are_named_or_those_of_the_bounds() -> None:
    assert stream("EXPECTING (z, 'a b', 3)").known == ("z", "a b", "3")
    bounded = stream("BOUNDS (SOURCE a, SOURCE b, ALL TRAILS ALL BY 0) EXPECTING (b)")
    assert (bounded.known, getattr(bounded.policy, "sources", None)) == (("a", "b"), (1,))


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ("GIVE UP AFTER 5 s", "GIVE UP AFTER without EXPECTING"),
        ("EXPECTING (c) BOUNDS (SOURCE a, ALL TRAILS ALL BY 0)", "'c' is expected, but BOUNDS does not name it"),
        ("EXPECTING (a) GIVE UP AFTER 0", "would never wait"),
        ("EXPECTING ()", "expected a name"),
    ],
)
def test_expectations_that_cannot_be_kept_are_refused(clauses: str, message: str) -> None:
    with pytest.raises(LanguageError, match=message):
        stream(clauses)


def test_sources_are_expected_by_the_name_in_one_column() -> None:
    for sources in ("", "SOURCE BY j, k"):
        with pytest.raises(LanguageError, match="expects sources by name"):
            read_script(f"CREATE STREAM s (t BIGINT, j STRING, k STRING) {sources} EXPECTING (a)")


QUERY = "SELECT max(v) FROM s [RANGE 5 {}];"
S = "CREATE STREAM s (ts TIMESTAMP, v INT) {};"


def test_slack_and_drop_ratio_in_a_window_are_the_policy_of_the_stream() -> None:
    script = read_script(S.format("TIMEOUT 9") + QUERY.format("DRATIO 5% SLACK 20"))
    assert script.program.streams[0].policy == Timeout(Cap(DropRatio(0.05), rows=20), 9 * SECOND)


def test_an_estimator_in_a_window_is_that_of_the_stream() -> None:
    script = read_script(S.format("") + QUERY.format("WATTR ts DRATIO 5% SLACK 20 ESTIMATOR KIM"))
    assert script.program.streams[0].policy == Kim(0.05, 20)
    script = read_script(S.format("") + QUERY.format("DRATIO 5% ESTIMATOR ADHOC"))
    assert script.program.streams[0].policy == KimAdhoc(0.05)
    with pytest.raises(LanguageError, match="ESTIMATOR without DRATIO"):
        read_script(S.format("") + QUERY.format("ESTIMATOR KIM"))


def test_queries_that_say_the_same_of_a_stream_share_it() -> None:
    same = read_script(S.format("") + QUERY.format("SLACK 60 s") + QUERY.format("") + QUERY.format("SLACK 1 minute"))
    assert [stream.policy for stream in same.program.streams] == [FixedDelay(60 * SECOND)]
    own = read_script(S.format("SLACK 5") + QUERY.format("SLACK 5")).program.streams
    assert [stream.policy for stream in own] == [Slack(5)]


def warned(text: str) -> list[str]:
    return [str(warning) for warning in read_script(text).warnings]


READ = "CREATE STREAM s (ts TIMESTAMP, k STRING) FROM json 'in' SOURCE BY k\n {};SELECT count(*) FROM s [RANGE 5]"


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        (
            "SLACK 10",
            "1:15: the last 10 rows are held back: when the stream falls silent, they wait",
        ),
        ("DELAY 10", "add TIMEOUT"),
        ("ESTIMATED BOUNDS", "add TIMEOUT"),
        ("EXPECTING (a)", "2:2: an expected source that never speaks holds back all others; add GIVE UP AFTER"),
        ("OWN PROGRESS", "2:2: a source that falls silent holds back all others; add IDLE AFTER"),
        (
            "DRATIO 1% IDLE AFTER 30 s",
            "2:12: IDLE AFTER leaves out who is silent while others speak; when all are silent, the last window closes "
            "after ten times the longest silence so far where the ratio permits it, else after one longer than the "
            "stream has run: ON DEMAND or CLOCK SKEW in the place of DRATIO would let the clock close it",
        ),
        (
            "DRATIO 1%",
            "2:2: DRATIO finds from the rows how long to wait; when all are silent, the last window closes after ten",
        ),
        (
            "DRATIO 1% ESTIMATOR KIM",
            "2:2: DRATIO finds from the rows how long to wait; when all are silent, time stands, and the last window",
        ),
        (
            "BOUNDS (a TRAILS b BY 5 s, b TRAILS b BY 0, ALL TRAILS a BY 0)",
            "2:2: when all sources pause",
        ),
        ("BOUNDS (SOURCE a, SOURCE b, a TRAILS ALL BY 0)", "no bound covers source 'b'"),
    ],
)
def test_what_may_stall_is_told(clauses: str, message: str) -> None:
    assert any(message in warning for warning in warned(READ.format(clauses)))


@pytest.mark.parametrize(
    "clauses",
    [
        "",
        "SLACK 10 TIMEOUT 1 min",
        "OWN PROGRESS IDLE AFTER 1 min",
        "OWN PROGRESS IDLE AFTER 1 min EXPECTING (a, b)",
        "EXPECTING (a, b) GIVE UP AFTER 1 min",
        "CLOCK SKEW 5 s",
        "BOUNDS (SOURCE a, SOURCE b, ALL TRAILS ALL BY 5 s) TIMEOUT 1 min",
        "BOUNDS (SOURCE a, SOURCE b, ALL TRAILS ALL BY 5 s, ALL TRAILS ALL BY 0 AFTER 9 s)",
    ],
)
def test_nothing_is_told_where_nothing_stalls(clauses: str) -> None:
    assert warned(READ.format(clauses)) == []


def test_what_is_probably_not_meant_is_told() -> None:
    assert warned("CREATE STREAM s (ts TIMESTAMP) FROM json 'in'") == ["1:15: no query reads the stream 's'"]
    text = "CREATE STREAM s (v INT) FROM json 'in' TIMESTAMP BY ARRIVAL SLACK 5; SELECT count(*) FROM s [RANGE 5]"
    assert warned(text) == ["1:61: SLACK has no effect: rows are stamped as they arrive, so none is late"]
    base = "CREATE STREAM s (ts TIMESTAMP)"
    assert "does not say where its rows come from" in warned(base + ";SELECT count(*) FROM s [RANGE 5]")[0]
    base += " FROM json 'in';SELECT count(*) FROM s "
    assert "rows between two windows are in none" in warned(base + "[RANGE 5 SLIDE 6]")[0]
    assert "put together from 3601 panes" in warned(base + "[RANGE 3601 SLIDE 3600]")[0]


@pytest.mark.parametrize("path", ["in", "in/*.json", "in/2026.d/"])
def test_where_rows_may_stop_for_a_while_it_is_told_when_a_drop_ratio_closes_the_last_window(path: str) -> None:
    """Only IDLE AFTER was warned of, and the last window stayed open in silence all the same."""
    text = READ.replace("json 'in'", f"json '{path}'").format("DRATIO 1% SLACK 20")
    assert any("the last window closes after ten times" in warning for warning in warned(text))


@pytest.mark.parametrize(
    ("source", "clauses"), [("json 'in/rows.json'", ""), ("STDIN", ""), ("json 'in'", "ARRIVAL BY came")]
)
def test_what_is_read_to_its_end_and_recordings_close_every_window(source: str, clauses: str) -> None:
    text = READ.replace("json 'in'", source).replace("k STRING)", "k STRING, came TIMESTAMP)")
    declared = text.format(f"TIMESTAMP BY ts {clauses} DRATIO 1%")
    assert not any("the last window" in warning for warning in warned(declared))
