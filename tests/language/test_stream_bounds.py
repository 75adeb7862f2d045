"""CREATE BOUNDS: what it means, what may stall, and what is refused."""

from __future__ import annotations

import pytest

from eventide.errors import LanguageError
from eventide.eventtime.policies.skew.between_streams import BetweenStreams, Member
from eventide.eventtime.policies.skew.bounds import TimeBound
from eventide.eventtime.policies.skew.declared import DeclaredSkew
from eventide.eventtime.policies.skew.matrix import SkewMatrix
from eventide.eventtime.policies.slack import Slack
from eventide.eventtime.policies.wrappers.timeout import Timeout
from eventide.language.script import read_script

STREAMS = """CREATE STREAM temp (t BIGINT, k STRING) SOURCE BY k;
CREATE STREAM pressure (t BIGINT);
CREATE STREAM main0.wind (t BIGINT);
CREATE STREAM slow (t BIGINT) DELAY 5;
CREATE STREAM clocked (ts TIMESTAMP);
CREATE STREAM stamped (v INT) TIMESTAMP BY ARRIVAL;
CREATE STREAM recorded (t BIGINT, at TIMESTAMP) TIMESTAMP BY t ARRIVAL BY at;
"""


def test_a_stream_stands_for_all_its_sources_those_that_are_named_themselves_included() -> None:
    text = STREAMS + "CREATE BOUNDS (temp TRAILS pressure BY 5, temp.'s-1' TRAILS pressure BY 1) TIMEOUT 2 s"
    temp, pressure, *_ = read_script(text).program.streams
    five, one = TimeBound(0, 5), TimeBound(0, 1)
    entries: list[list[list[TimeBound]]] = [[[], [], []], [[five], [], [five, one]], [[], [], []]]
    policy = Timeout(DeclaredSkew(SkewMatrix.of(entries, [0, 0, 0])), after=2_000_000)
    members = (Member("temp"), Member("pressure"), Member("temp", "s-1"))
    assert temp.policy == BetweenStreams(policy, members, "temp")
    assert pressure.policy == BetweenStreams(policy, members, "pressure")
    assert (temp.known, pressure.known) == (("s-1",), ())


def test_a_stream_of_an_interface_is_named_by_two_words() -> None:
    text = STREAMS + "CREATE BOUNDS (main0.wind TRAILS temp.x BY 5, SOURCE temp LATENCY 3 s)"
    policy = read_script(text).program.stream("main0_wind").policy
    assert isinstance(policy, BetweenStreams)
    assert policy.members == (Member("main0_wind"), Member("temp", "x"), Member("temp"))
    assert isinstance(policy.inner, DeclaredSkew)
    assert policy.inner.skew.latency == (0, 3_000_000, 3_000_000)


def test_every_pair_that_may_stall_is_named() -> None:
    both = "temp TRAILS temp BY 0, pressure TRAILS pressure BY 0, temp TRAILS pressure BY 5"
    [warning] = [str(one) for one in read_script(STREAMS + f"CREATE BOUNDS ({both})").warnings if "pause" in str(one)]
    assert "those of 'pressure' for 'temp', which may trail them for ever" in warning
    assert "those of 'temp' for 'pressure', which nothing bounds in time" in warning
    assert "'temp' for 'temp'" not in warning
    for enough in (
        f"({both}) TIMEOUT 5 s",
        f"({both}, temp TRAILS pressure BY 0 AFTER 5 s, pressure TRAILS temp BY 0 AFTER 9 s)",
    ):
        assert not [one for one in read_script(STREAMS + f"CREATE BOUNDS {enough}").warnings if "pause" in str(one)]


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ("(temp TRAILS presure BY 5)", r"8:28: there is no stream 'presure'.*\n.*\n.*\n.*did you mean 'pressure'"),
        ("(temp TRAILS pressure BY 5, temp TRAILS nobody.x BY 5)", "there is no stream 'nobody'"),
        ("(pressure.x TRAILS temp BY 5)", "it has no column that names them"),
        ("(temp.a.b TRAILS pressure BY 5)", "a stream and one source of it"),
        ("(slow TRAILS pressure BY 5)", "DELAY in CREATE STREAM says how stream 'slow' finds its heartbeats"),
        ("(clocked TRAILS pressure BY 5)", "times of one are numbers, of the other instants"),
        ("(stamped TRAILS stamped BY 5)", "its rows are stamped by the clock"),
        ("(recorded TRAILS pressure BY 5)", "they go by different clocks"),
        ("(ALL TRAILS ALL BY 5)", "these bounds name no stream"),
        ("(temp TRAILS pressure BY -5)", "cannot trail by less than 0"),
        ("(temp TRAILS pressure BY 5) TIMEOUT 0", "would never wait"),
        ("(temp TRAILS pressure BY 5) IDLE AFTER 5 s", "expected TIMEOUT, DRATIO or the end"),
        ("(temp pressure BY 5)", "expected TRAILS"),
        ("", "expected"),
        (
            "(temp TRAILS pressure BY 5); CREATE BOUNDS (temp TRAILS main0.wind BY 5)",
            "CREATE BOUNDS says how stream 'temp' finds its heartbeats",
        ),
    ],
)
def test_what_bounds_cannot_say_is_refused_at_its_place(bounds: str, message: str) -> None:
    with pytest.raises(LanguageError, match=message):
        read_script(STREAMS + f"CREATE BOUNDS {bounds}")


def test_a_policy_in_a_window_and_bounds_of_its_stream_are_refused() -> None:
    text = "SELECT count(*) FROM temp [RANGE 5 SLACK 3]; CREATE BOUNDS (temp TRAILS pressure BY 5)"
    with pytest.raises(LanguageError, match="query 'query_1' says how stream 'temp' finds its heartbeats"):
        read_script(STREAMS + text)


def test_a_query_may_have_a_controller_of_its_own_over_a_stream_with_bounds() -> None:
    text = "CREATE BOUNDS (temp.x TRAILS pressure BY 5); SELECT count(*) FROM temp [RANGE 5 SLACK 3]"
    program = read_script(STREAMS + text).program
    [twin] = [stream for stream in program.streams if stream.twin_of == "temp"]
    assert (twin.policy, twin.known, (twin,) in program.reduced_together) == (Slack(3), (), True)
