"""Which streams are silent together, and what that lets time do, against a definition by hand."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.engine.common_time import restored, started
from eventide.eventtime.arrays import as_plain
from eventide.eventtime.instant import NEVER
from eventide.language.script import read_script
from eventide.plan.declared.common_time import CommonSilence, common_silences

STREAMS = """
CREATE STREAM a (t BIGINT, k INT) DELAY 3 TIMEOUT 2 s;
CREATE STREAM b (t BIGINT, k INT) DELAY 3 TIMEOUT 5 s;
CREATE STREAM c (t BIGINT, k INT) DELAY 3;
CREATE STREAM clocked (ts TIMESTAMP, k INT) DELAY 3 TIMEOUT 5 s;
CREATE STREAM stamped (k INT) TIMESTAMP BY ARRIVAL;
CREATE STREAM recorded (t BIGINT, k INT, at TIMESTAMP) TIMESTAMP BY t ARRIVAL BY at DELAY 3 TIMEOUT 5 s;
"""


@pytest.mark.parametrize(
    ("queries", "streams"),
    [
        ("SELECT count(*) FROM a [RANGE 5]", []),
        ("SELECT k FROM a UNION ALL SELECT k FROM b", [("a", "b")]),
        ("SELECT a.k FROM a JOIN c ON a.t = c.t", [("a", "c")]),
        ("SELECT a.k FROM a JOIN c ON a.t = 2 * c.t", []),
        ("SELECT k FROM a UNION ALL SELECT k FROM recorded", []),
        ("SELECT c.k FROM clocked [RANGE 5 s] c JOIN stamped [RANGE 5 s] s ON c.k = s.k", []),
        ("SELECT max(k) AS k FROM (SELECT k FROM a UNION ALL SELECT k FROM b) x [RANGE 5]", [("a", "b")]),
        (
            "SELECT x.k FROM (SELECT t, k FROM a UNION ALL SELECT t, k FROM b) x JOIN c ON x.t = c.t",
            [("a", "b"), ("a", "b", "c")],
        ),
    ],
)
def test_streams_are_silent_together_where_a_query_reads_them_on_one_scale(
    queries: str, streams: list[tuple[str, ...]]
) -> None:
    found = common_silences(read_script(STREAMS + queries).program)
    assert [silence.streams for silence in found] == streams
    assert all(silence == CommonSilence(silence.streams, 5_000_000 if "b" in silence.streams else 2_000_000)
               for silence in found)  # fmt: skip


SCRIPT = STREAMS.split("CREATE STREAM clocked")[0] + (
    "CREATE QUERY ab AS SELECT k FROM a UNION ALL SELECT k FROM b;"
    "CREATE QUERY ac AS SELECT k FROM a UNION ALL SELECT k FROM c;"
)
SECOND = 1_000_000
SILENCES = (("a", "a", 2), ("b", "b", 5), ("ab", "ab", 5), ("a", "ac", 2))
"""Which streams catch up when those have been silent for so long."""

rounds = st.lists(
    st.tuples(st.integers(0, 4), st.dictionaries(st.sampled_from("abc"), st.integers(0, 99), max_size=2)), max_size=9
)


@given(rounds, st.integers(0, 9))
def test_time_catches_up_as_the_definition_says(steps: list[tuple[int, dict[str, int]]], restart: int) -> None:
    program = read_script(SCRIPT).program
    streams = started(program)
    heard: dict[str, int] = {}
    largest: dict[str, int] = {}
    expected = dict.fromkeys("abc", NEVER)
    clock = 0
    for number, (wait, rows) in enumerate(steps):
        clock += wait
        if number == restart:
            saved = json.loads(json.dumps({name: one.saved() for name, one in streams.items()}, default=as_plain))
            streams = restored(program, saved, lambda name: pa.array([], pa.string()))
        for name, one in streams.items():
            if name in rows:
                one.observe(clock * SECOND, pa.table({"__n": [1], "__lo": [rows[name]], "__hi": [rows[name]]}), ())
                heard[name], largest[name] = clock, max(largest.get(name, NEVER), rows[name])
                expected[name] = max(expected[name], largest[name] - 3)
        for catching, silent, after in SILENCES:
            there = [name for name in silent if name in heard]
            if there and clock >= max(heard[name] for name in there) + after:
                for name in catching:
                    expected[name] = max(expected[name], *(largest[other] for other in there))
        for one in streams.values():
            one.reach(one.promise(clock * SECOND).combined, clock * SECOND)
        assert {name: one.heartbeat for name, one in streams.items()} == expected


def test_streams_that_share_bounds_go_on_in_whatever_order_they_are_declared() -> None:
    declared = ["CREATE STREAM a (t BIGINT);", "CREATE STREAM b (t BIGINT);"]
    bounds = "CREATE BOUNDS (a TRAILS a BY 0, b TRAILS b BY 0, b TRAILS a BY 5);"
    program = read_script("".join([*declared, bounds])).program
    streams = started(program)
    for name, time in (("a", 100), ("b", 90)):
        streams[name].observe(0, pa.table({"__n": [1], "__lo": [time], "__hi": [time]}), ())
    assert [streams[name].promise(0).combined for name in "ab"] == [100, 95]
    saved = json.loads(json.dumps({name: one.saved() for name, one in streams.items()}, default=as_plain))
    swapped = read_script("".join([*reversed(declared), bounds])).program
    again = restored(swapped, saved, lambda name: pa.array([], pa.string()))
    assert [again[name].promise(0).combined for name in "ab"] == [100, 95]
    again["a"].observe(1, pa.table({"__n": [1], "__lo": [120], "__hi": [120]}), ())
    assert [again[name].promise(1).combined for name in "ab"] == [120, 115]
