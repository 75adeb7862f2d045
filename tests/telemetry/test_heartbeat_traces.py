"""Heartbeats that are followed from a source: where they wait, for whom, and that what they let go is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.console import Steered
from eventide.console.plan_view import plan_view
from eventide.console.subject import Look, StoppedSubject
from eventide.endpoint.client import Client
from eventide.endpoint.lifecycle import listen
from eventide.engine.local.engine import LocalEngine
from eventide.engine.round.report import RoundReport
from eventide.language.script import read_script
from eventide.plan.binding import as_run
from eventide.report.stopped_run import read_progress
from eventide.report.traces import trace_lines, visit_words
from eventide.storage.storage import Storage
from eventide.telemetry.heartbeat_trace import IN_FLIGHT, HeartbeatTraces, Moment, Passage
from eventide.telemetry.tracing import Tracing, stopped_traces, traces_data
from tests.choice import chosen
from tests.commands.processes import Here

SCRIPT = """
CREATE STREAM s (t BIGINT, who STRING, v INT) TIMESTAMP BY t SOURCE BY who OWN PROGRESS;
CREATE QUERY few AS SELECT count(*) AS n FROM s [RANGE 20 SLIDE 10];
CREATE QUERY more AS SELECT sum(n) AS n FROM few [RANGE 40];
"""


MERGED = """
CREATE STREAM s (t BIGINT, who STRING, v INT) TIMESTAMP BY t SOURCE BY who OWN PROGRESS;
CREATE QUERY twice AS SELECT t, who, 2 * v AS v FROM s WHERE v >= 1;
CREATE QUERY pairs AS SELECT a.t AS t, a.v + b.v AS v FROM s AS a JOIN twice AS b
    ON a.who = b.who AND b.t BETWEEN a.t AND a.t + 5;
CREATE QUERY few AS SELECT count(*) AS n FROM pairs [RANGE 20 SLIDE 10];
"""


class Played:
    """An engine that is traced, and is given rows by source; `rounds` has what each gave."""

    def __init__(self, engine: LocalEngine) -> None:
        self.engine = engine
        self.rounds: list[RoundReport] = []

    def round(self, **times: int) -> RoundReport:
        """A round with one row of each of these sources, after which its heartbeat is that time."""
        rows = pa.table(
            {
                "t": [time + 1 for time in times.values()],
                "who": list(times),
                "v": pa.array([1] * len(times), pa.int32()),
            }
        )
        self.rounds.append(self.engine.engine.round({"s": rows}))
        self.engine.noted(self.rounds[-1])
        return self.rounds[-1]


@contextmanager
def played(folder: Path, script: str = SCRIPT) -> Iterator[Played]:
    program = read_script(script).program
    with LocalEngine(program, str(folder / "state"), inputs={"s": Steered()}) as engine:
        yield Played(engine)


def test_a_heartbeat_waits_for_the_slower_source_and_then_for_its_windows(tmp_path: Path) -> None:
    with played(tmp_path) as run:
        tracing = Tracing(run.engine, every=0.0)
        run.round(a=1, b=5)
        run.round(a=25)
        trace = next(one for one in tracing.traces() if (one.source, one.time) == ("a", 25))
        assert [visit.step for visit in trace.waiting] == ["s"]
        [told] = [one for one in data_of(run, tracing)["traces"] if one["trace"] == trace.number]
        assert visit_words(told["visits"][0]) == "waits for b of stream s"
        run.round(b=30)
        run.round(a=41, b=41)
        trace = next(one for one in tracing.traces() if one.number == trace.number)
        left = {visit.step: visit.left and visit.left.round for visit in trace.visits}
        # [10, 30) and [20, 40) hold 25; the results of the latter, at 39, are in [0, 40) of the query above.
        assert left == {"s": 2, "few": 3, "more": 3}
        assert trace.over is not None
        assert all(visit.waited is not None and visit.waited >= 0 for visit in trace.visits)


def data_of(run: Played, tracing: Tracing) -> dict[str, Any]:
    engine = run.engine.engine
    return traces_data(tracing.traces(), engine.state.progress(engine.program, engine.scheduling))


@pytest.mark.parametrize(
    ("script", "seed"), chosen(product([SCRIPT, MERGED], range(6)), lambda case: case == (SCRIPT, 0))
)
def test_no_result_that_holds_it_comes_after_a_heartbeat_has_left(tmp_path: Path, script: str, seed: int) -> None:
    random = Random(seed)
    with played(tmp_path, script) as run:
        tracing = Tracing(run.engine, every=0.0)
        times = dict.fromkeys("abc", 0)
        for _ in range(15):
            speaks = random.sample("abc", random.randint(1, 3))
            times |= {who: times[who] + random.randint(0, 12) for who in speaks}
            run.round(**{who: times[who] for who in speaks})
        seen = 0
        for trace in tracing.traces():
            for visit in trace.visits:
                if visit.left is None or visit.step == "s":
                    continue
                # The time of a pair is that of its later row.
                edge = "window_end" if visit.step == "pairs" else "window_start"
                later = [work for work in run.rounds if work.number > visit.left.round]
                starts = [
                    start
                    for work in later
                    for batch in work.batches(visit.step)
                    for start in batch.column(edge).to_pylist()
                ]
                seen += len(starts)
                assert all(start > visit.time for start in starts)
        assert seen


@given(st.data())
def test_a_trace_is_what_brute_force_makes_of_the_rounds(data: st.DataObject) -> None:
    names = ["s", "a", "b", "c"]
    plan = {
        name: tuple(data.draw(st.sets(st.sampled_from(names[: names.index(name)]), min_size=1), label=name))
        for name in names[1:]
    }
    rounds = []
    now = dict.fromkeys(names, 0)
    for _ in range(data.draw(st.integers(1, 8), label="rounds")):
        now = {name: now[name] + data.draw(st.integers(0, 4)) for name in names}
        rounds.append(now)
    wanted = data.draw(st.integers(1, 12), label="heartbeat")
    traces = HeartbeatTraces()
    traces.sample("s", "who", wanted, Moment(0, 0, 0.0))
    for number, now in enumerate(rounds):
        at = Moment(number, number, None)
        traces.follow(Passage(at, plan, now.__getitem__, lambda _, time: time, lambda _: None))
    [trace] = (*traces.in_flight, *traces.finished)

    def leaves(name: str) -> int | None:
        """The round in which it leaves, by the definition."""
        first = arrives(name)
        if first is None:
            return None
        return next((n for n, now in enumerate(rounds) if n >= first and now[name] >= wanted), None)

    def arrives(name: str) -> int | None:
        if name == "s":
            return 0
        return min((left for read in plan[name] if (left := leaves(read)) is not None), default=None)

    found = {
        visit.step: (visit.arrived.round, None if visit.left is None else visit.left.round) for visit in trace.visits
    }
    assert found == {name: (first, leaves(name)) for name in names if (first := arrives(name)) is not None}
    assert (trace.over is not None) == all(left is not None for _, left in found.values())


def test_what_is_kept_is_bounded_and_the_longest_on_its_way_stays() -> None:
    traces = HeartbeatTraces()
    for n in range(500):
        traces.sample("s", "a", n, Moment(n, n, float(n)))
        traces.sample("other", "", n, Moment(n, n, float(n)))
    kept = len(traces.in_flight)
    assert kept <= 2 * IN_FLIGHT
    assert {one.stream for one in traces.in_flight if one.time == 0} == {"s", "other"}
    traces.follow(Passage(Moment(9, 9, 9.0), {}, lambda _: 10**6, lambda _, time: time, lambda _: 9.0))
    assert (traces.in_flight, len(traces.finished)) == ((), kept)


def test_nothing_is_sampled_before_somebody_asks(tmp_path: Path) -> None:
    with played(tmp_path) as run:
        endpoint = listen(run.engine)
        run.round(a=5, b=5)
        client = Client.of_checkpoint(endpoint.folder)
        assert client.ask("GET", "/traces") == {"traces": [], "waits": []}
        run.round(a=25)
        found = client.ask("GET", "/traces")
        assert [(one["stream"], one["source"], one["time"]) for one in found["traces"]] == [("s", "a", 25)]


def test_a_stopped_run_tells_where_its_heartbeats_stand(tmp_path: Path) -> None:
    with played(tmp_path) as run:
        run.round(a=25, b=15)
    program = as_run(read_script(SCRIPT).program, run.engine.engine.scheduling.heartbeats)
    progress = read_progress(program, str(tmp_path / "state"))
    found = traces_data(stopped_traces(progress), progress)
    lines = list(trace_lines(found, 2))
    assert lines == [
        "heartbeat 25 of a of s, round 0",
        "  s  waits for b of stream s",
        "heartbeat 15 of b of s, round 0",
        "  s    is through",
        "  few  waits for b, a of stream s",
    ]
    shown = plan_view(look_at(StoppedSubject(progress, Storage.at(tmp_path / "state", make=False))))
    assert [one["visits"][-1]["words"] for one in shown["traces"]] == [
        "waits for b of stream s",
        "waits for b, a of stream s",
    ]


def look_at(subject: StoppedSubject) -> Look:
    return Look(subject.standing(), subject.history, (), {})


def test_the_command_prints_traces_of_a_stopped_run(tmp_path: Path, here: Here) -> None:
    with played(tmp_path) as run:
        run.round(a=25, b=15)
    (tmp_path / "s.sql").write_text(SCRIPT, encoding="utf-8")
    state = str(tmp_path / "state")
    told = here("trace", str(tmp_path / "s.sql"), "--checkpoint", state, "--last", "1")
    assert (told.code, told.out.splitlines()[0]) == (0, "heartbeat 25 of a of s, round 0")
    assert "no engine runs there" in told.err
    assert here("trace", "--checkpoint", state).code == 2
    assert here("trace", "--checkpoint", state, "--last", "0").code == 2
