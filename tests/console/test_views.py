"""What viewers are sent: small, paced, made once for all of them, and whole or only what is new."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.console import Steered
from eventide.console.losses_view import losses_sample
from eventide.console.snapshots import PAGES, Kind, Sent, Snapshots
from eventide.console.subject import LiveSubject, StoppedSubject, Subject
from eventide.engine.local.engine import LocalEngine
from eventide.language.script import read_script
from eventide.plan.binding import as_run
from eventide.plan.declared.program import Program
from eventide.report.stopped_run import read_progress
from eventide.storage.storage import Storage

SOURCES = 3_000
SCRIPT = """
CREATE STREAM s (t BIGINT, who STRING, v INT) TIMESTAMP BY t SOURCE BY who DELAY 5;
CREATE QUERY q AS SELECT v, count(*) AS n FROM s [RANGE 100] GROUP BY v;
"""


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def live(tmp_path: Path) -> Iterator[tuple[LocalEngine, LiveSubject, Clock]]:
    program = read_script(SCRIPT).program
    with LocalEngine(program, str(tmp_path / "state"), inputs={"s": Steered()}) as engine:
        subject = LiveSubject(engine)
        subject.begin()
        yield engine, subject, Clock()
        subject.end()


def give(engine: LocalEngine, times: list[int], names: list[str] | None = None) -> None:
    names = names or [f"source {n}" for n in range(len(times))]
    rows = pa.table({"t": times, "who": names, "v": pa.array([n % 3 for n in range(len(times))], pa.int32())})
    engine.noted(engine.engine.round({"s": rows}))


def told(snapshots: Snapshots, kind: Kind, seen: int | None = None) -> tuple[int, dict[str, Any]] | None:
    found = snapshots.next(kind, seen)
    return None if found is None else (found.number, json.loads(found.body))


def test_thousands_of_sources_take_a_few_kilobytes(live: tuple[LocalEngine, LiveSubject, Clock]) -> None:
    engine, subject, clock = live
    give(engine, [1000 + (n * 7) % 500 for n in range(SOURCES)])
    snapshots = Snapshots(subject, clock)
    found = snapshots.next(("time", ()), None)
    assert found is not None
    assert len(found.body) < 6_000
    stream = json.loads(found.body)["streams"][0]
    assert (stream["sources"], stream["matches"], len(stream["shown"])) == (SOURCES, SOURCES, 8)
    assert stream["band"] == sorted(stream["band"])


def test_the_furthest_behind_come_first_and_others_are_found_by_name(
    live: tuple[LocalEngine, LiveSubject, Clock],
) -> None:
    engine, subject, clock = live
    give(engine, [100, 40, 70, 90], ["a", "B lane", "c", "b lane"])
    snapshots = Snapshots(subject, clock)
    assert told(snapshots, ("time", (("sort", "name"),))) is not None
    _, found = told(snapshots, ("time", ())) or (0, {})
    # By one delay for all, a heartbeat is common: the least far in its own time is first.
    assert found["streams"][0]["shown"][0]["name"] == "B lane"
    _, found = told(snapshots, ("time", (("find", "b LANE"), ("sort", "name")))) or (0, {})
    assert [one["name"] for one in found["streams"][0]["shown"]] == ["B lane", "b lane"]


@pytest.mark.parametrize("page", sorted(PAGES))
def test_there_is_something_to_see_before_the_first_round(
    live: tuple[LocalEngine, LiveSubject, Clock], page: str
) -> None:
    _, subject, clock = live
    _, found = told(Snapshots(subject, clock), (page, ())) or (0, {})
    assert (found["page"], found["round"]) == (page, -1)


def test_all_viewers_of_a_page_share_one_snapshot_and_later_ones_get_what_is_new(
    live: tuple[LocalEngine, LiveSubject, Clock],
) -> None:
    engine, subject, clock = live
    snapshots = Snapshots(subject, clock)
    kind: Kind = ("losses", ())
    give(engine, [100, 200])
    first, _ = told(snapshots, kind) or (0, {})
    for _ in range(20):
        assert told(snapshots, kind) is not None
        assert told(snapshots, kind, first) is None
    assert snapshots.made == 1
    give(engine, [300, 400])
    assert not snapshots.is_due(kind, first)
    clock.now += 3600
    assert snapshots.is_due(kind, first)
    second, news = told(snapshots, kind, first) or (0, {})
    assert (second, news["whole"], [point[0] for point in news["points"]]) == (first + 1, False, [1])
    _, whole = told(snapshots, kind) or (0, {})
    assert (whole["whole"], [point[0] for point in whole["points"]]) == (True, [0, 1])
    assert snapshots.made == 3


def test_results_are_told_once_and_as_plain_values(live: tuple[LocalEngine, LiveSubject, Clock]) -> None:
    engine, subject, clock = live
    give(engine, [10, 20, 300])
    _, found = told(Snapshots(subject, clock), ("results", (("query", "q"),))) or (0, {})
    names = [column["name"] for column in found["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in found["rows"]]
    assert sorted((row["kind"], row["window_end"], row["v"], row["n"]) for row in rows) == [
        ("final", 100, 0, 1),
        ("final", 100, 1, 1),
    ]
    assert found["groups"] == ["v"]
    assert [(one["start"], one["end"]) for one in found["open"]] == [(300, 400)]


def test_a_sample_is_of_the_rows_that_were_lost_and_of_no_other_file(
    live: tuple[LocalEngine, LiveSubject, Clock],
) -> None:
    engine, subject, _ = live
    give(engine, [10, 500])
    give(engine, [20, 600], ["late one", "b"])
    program, storage = subject.standing().program, subject.storage
    found = losses_sample(program, storage, "s", "late")
    [row] = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
    assert (row["t"], row["who"]) == (20, "late one")
    for stream, kind in (("s", "rounds"), ("../rounds", "late"), ("nobody", "late"), ("s", "rejects")):
        assert losses_sample(program, storage, stream, kind)["rows"] == []


KINDS = """
CREATE STREAM s (t BIGINT, who STRING, v INT) TIMESTAMP BY t SOURCE BY who DELAY 5;
CREATE STREAM u (t BIGINT, who STRING, v INT) TIMESTAMP BY t SOURCE BY who DELAY 5;
CREATE QUERY sessions AS SELECT who, count(*) AS n FROM s [SESSION 10] GROUP BY who;
CREATE QUERY pairs AS SELECT s.who, s.v FROM s JOIN u ON s.who = u.who AND u.t BETWEEN s.t - 5 AND s.t + 5;
CREATE QUERY counts AS SELECT count(*) AS n FROM s [RANGE 3 rows];
CREATE QUERY both AS SELECT t, who, v FROM s UNION ALL SELECT t, who, v FROM u;
"""


def test_every_kind_of_step_is_shown_while_it_runs_and_from_its_record(tmp_path: Path) -> None:
    program = read_script(KINDS).program
    rows = {"t": [1, 5, 40, 60], "who": ["a", "b", "a", "b"], "v": pa.array([1, 2, 3, 4], pa.int32())}
    with LocalEngine(program, str(tmp_path / "state"), inputs={"s": Steered(), "u": Steered()}) as engine:
        engine.noted(engine.engine.round({"s": pa.table(rows)}))
        engine.noted(engine.engine.round({"u": pa.table(rows).slice(0, 2)}))
        live = shown_of(LiveSubject(engine), program)
        scheduling = engine.engine.scheduling
    progress = read_progress(as_run(program, scheduling.heartbeats), str(tmp_path / "state"), None, scheduling)
    assert shown_of(StoppedSubject(progress, Storage.at(str(tmp_path / "state"), make=False)), program) == live
    assert live["pairs"]["waiting"] == [["u", "pairs"]]
    assert [len(live[name]["open"]) > 0 for name in ("sessions", "counts")] == [True, True]


def shown_of(subject: Subject, program: Program) -> dict[str, Any]:
    """For each step its open windows, its sentence, and the ways that wait for something."""
    found = {}
    for step in program.steps:
        results, plan = (
            json.loads((Snapshots(subject).next((page, ((choice, step.name),)), None) or Sent(0, b"")).body)
            for page, choice in (("results", "query"), ("plan", "node"))
        )
        waiting = [[edge["from"], edge["to"]] for edge in plan["edges"] if edge["waits"] and edge["to"] == step.name]
        found[step.name] = {"open": results["open"], "why": plan["why"], "waiting": waiting}
    return found
