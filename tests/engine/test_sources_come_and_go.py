"""Sources that appear, fall silent, end, return: time never goes back, nobody leaves the minimum but by a rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from eventide.engine.local.backend import LocalBackend
from eventide.engine.round.engine import Engine
from eventide.engine.stream_progress import StreamProgress
from eventide.errors import DeclarationError
from eventide.eventtime.arrays import as_plain
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.instant import NEVER
from eventide.eventtime.policies.on_demand import OnDemand
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.eventtime.policies.wrappers.cap import Cap
from eventide.eventtime.policies.wrappers.expected_sources import Expected
from eventide.eventtime.policies.wrappers.idleness import Idle
from eventide.eventtime.policies.wrappers.timeout import Timeout
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import Window

NAMES = ("a", "b", "c", "d")
KNOWN = ("a", "b")

Heard = dict[str, list[tuple[int, int]]]
"""Of each source, every round in which it spoke: the clock, and the largest time."""


def own_progress(heard: Heard, name: str, clock: int) -> int:
    """By hand: one less than the largest time it ever spoke of."""
    return max((time for _, time in heard[name]), default=NEVER + 1) - 1


def on_demand(heard: Heard, name: str, clock: int) -> int:
    """By hand: what it spoke of last, and the clock since then, less a skew of 3."""
    if not heard[name]:
        return NEVER
    then, time = heard[name][-1]
    return time + (clock - then) - 3 - 1


POLICIES: dict[str, tuple[Policy, Callable[[Heard, str, int], int], bool]] = {
    "own progress": (OwnProgress(), own_progress, False),
    "idle": (Idle(OwnProgress(), after=8), own_progress, False),
    "timeout": (Timeout(Idle(OwnProgress(), after=12), after=5), own_progress, False),
    "cap": (Cap(OwnProgress(), rows=3), own_progress, False),
    "on demand": (OnDemand(max_skew=3), on_demand, False),
    "idle on demand": (Idle(OnDemand(max_skew=3), after=8), on_demand, False),
    "expected": (Expected(OwnProgress(), sources=(0, 1)), own_progress, True),
    "expected for a while": (Timeout(Expected(Idle(OwnProgress(), 10), (0, 1), wait=15), 30), own_progress, True),
    "known": (OwnProgress(known=2), own_progress, True),
}

step = st.tuples(
    st.integers(0, 9),
    st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 60)), max_size=3),
    st.lists(st.sampled_from(NAMES), max_size=1),
    st.booleans(),
)


def cells(rows: list[tuple[str, int]]) -> pa.Table:
    """A round as the reduce step tells it: each row a cell."""
    times = pa.array([time for _, time in rows], pa.int64())
    ones = pa.array([1] * len(rows), pa.int64())
    return pa.table({"__lo": times, "__hi": times, "__n": ones, "who": pa.array([who for who, _ in rows], pa.string())})


@pytest.mark.parametrize(("policy", "promise", "waits"), POLICIES.values(), ids=POLICIES.keys())
@limits(max_examples=25)
@given(steps=st.lists(step, min_size=1, max_size=12))
def test_time_moves_only_past_sources_that_promise_it_or_are_left_out_by_a_rule(
    policy: Policy,
    promise: Callable[[Heard, str, int], int],
    waits: bool,
    steps: list[tuple[int, list[tuple[str, int]], list[str], bool]],
) -> None:
    stream = Stream(
        "s", columns("t BIGINT, who STRING"), time="t", source=("who",), policy=policy, known=KNOWN if waits else ()
    )
    time, clock = StreamProgress.start(stream), 0
    heard: Heard = {name: [] for name in NAMES}
    promised = dict.fromkeys(NAMES, NEVER)
    for later, rows, over, restart in steps:
        clock += later
        if rows:
            time.observe(clock, cells(rows), ("who",))
            for name in {name for name, _ in rows}:
                heard[name].append((clock, max(at for who, at in rows if who == name)))
        time.end_sources(over)
        before, after = time.heartbeat, time.promise(clock).combined
        assert after >= before
        names = time.sources.to_pylist()
        left_out = {names[source] for out in time.left_out() for source in out.sources if source < len(names)}
        waited_for = {name for name in NAMES if heard[name]} | set(KNOWN if waits else ())
        # What a source once promised holds, whatever it says later.
        promised = {name: max(promised[name], promise(heard, name, clock)) for name in NAMES}
        if after > before:
            for name in waited_for - left_out:
                assert promised[name] >= after, f"{name} left the minimum without a rule"
        time.reach(after, clock)
        if restart:
            time = StreamProgress.restored(stream, json.loads(json.dumps(time.saved(), default=as_plain)), time.sources)


def rows(*given: tuple[int, str]) -> dict[str, Any]:
    times, names = zip(*given, strict=True)
    return {"s": pa.table({"t": pa.array(times, pa.int64()), "who": pa.array(names, pa.string())})}


def test_the_status_names_the_rules_by_which_sources_are_left_out(tmp_path: Path) -> None:
    policy = Expected(Idle(OwnProgress(), after=10), sources=(0, 1), wait=20)
    stream = Stream("s", columns("t BIGINT, who STRING"), time="t", source=("who",), policy=policy, known=KNOWN)
    engine = Engine(
        Program((stream,), (Query("q", "s", Window(10), named_as(n="count(*)")),)), LocalBackend(), str(tmp_path)
    )
    engine.round(rows((5, "a"), (6, "c"), (7, "d")), clock=0)
    engine.round(rows((7, "a"), (8, "d")), clock=15)
    assert engine.status().streams[0].left_out[0]["rule"] == "idle after", "b is awaited, so no rule leaves it out"
    engine.round(rows((9, "a")), clock=20, over={"s": ["d"]})
    told = {out["rule"]: out for out in engine.status().streams[0].left_out}
    assert {rule: out["sources"] for rule, out in told.items()} == {
        "over": ["d"],
        "expected": ["b"],
        "idle after": ["c"],
    }
    assert told["expected"]["wait"] == 20
    engine.close()


def test_a_source_without_a_name_cannot_be_over(tmp_path: Path) -> None:
    program = Program((Stream("s", columns("t BIGINT"), time="t"),))
    engine = Engine(program, LocalBackend(), str(tmp_path))
    with pytest.raises(DeclarationError, match="one source without a name"):
        engine.round({}, clock=0, over={"s": ["a"]})
    assert engine.next_round == 0
    engine.close()


def test_a_round_that_dies_is_run_again_with_the_sources_that_were_over(tmp_path: Path) -> None:
    stream = Stream("s", columns("t BIGINT, who STRING"), time="t", source=("who",), policy=OwnProgress())
    program = Program((stream,), (Query("q", "s", Window(10), named_as(n="count(*)")),))

    def die(number: int, step: str) -> None:
        if (number, step) == (1, "emit"):
            raise KeyboardInterrupt

    engine = Engine(program, LocalBackend(), str(tmp_path), observer=die)
    engine.round(rows((5, "a"), (16, "b")), clock=0)
    with pytest.raises(KeyboardInterrupt):
        engine.round({}, clock=1, over={"s": ["a"]})
    engine.close()
    again = Engine(program, LocalBackend(), str(tmp_path))
    work = again.resume()
    assert work is not None
    assert work.heartbeats == {"s": 15}
    again.close()


PROMISING = Stream(
    "s",
    columns("t BIGINT, who STRING, done BOOLEAN, at BIGINT"),
    time="t",
    source=("who",),
    arrival="at",
    punctuation="done",
    policy=Punctuated(),
)
SPOKEN = pa.schema([("t", pa.int64()), ("who", pa.string()), ("done", pa.bool_()), ("at", pa.int64())])


@pytest.mark.parametrize(
    "policy",
    [
        Idle(Punctuated(), after=5),
        Timeout(Punctuated(), after=2),
        Timeout(Expected(Idle(Punctuated(), after=5), sources=(0, 1)), after=2),
    ],
    ids=str,
)
def test_a_source_that_only_promises_is_waited_for_as_one_that_speaks(tmp_path: Path, policy: Policy) -> None:
    program = Program((replace(PROMISING, policy=policy, known=("a", "b")),))
    engine = Engine(program, LocalBackend(), str(tmp_path))
    beats = []
    for clock in range(100, 120, 4):
        told = [(clock, "a", False, clock), (clock, "a", True, clock), (clock - 90, "b", True, clock)]
        table = pa.Table.from_pylist([dict(zip(SPOKEN.names, row, strict=True)) for row in told], SPOKEN)
        beats.append(engine.round({"s": table}, clock).heartbeats["s"])
    left_out = engine.status().streams[0].left_out
    engine.close()
    assert beats == [10, 14, 18, 22, 26]
    assert left_out == ()


def test_promises_move_the_clock_that_is_in_the_data(tmp_path: Path) -> None:
    engine = Engine(
        Program((replace(PROMISING, policy=Timeout(Punctuated(), after=5)),)), LocalBackend(), str(tmp_path)
    )
    for row in ((10, "a", False, 100), (3, "a", True, 150)):
        engine.round({"s": pa.Table.from_pylist([dict(zip(SPOKEN.names, row, strict=True))], SPOKEN)}, 0)
    assert engine.streams["s"].clock == 150
    engine.close()
