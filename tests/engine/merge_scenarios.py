"""Streams that are merged, round by round, and what comes of it by brute force.

Law: rows that are behind the least heartbeat of all streams in the round before are late; all others are told in the
order of time and values when that heartbeat passes them, and counted where that heartbeat closes their window.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from eventide.eventtime.instant import FOREVER, NEVER
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import RowWindow, Window
from eventide.testing.trial import Trial

WIDTH, COUNT = 10, 3

Row = tuple[int, int]


@dataclass(frozen=True)
class Scenario:
    """For each round the rows and heartbeats of each stream, and whether the engine is restarted before it."""

    streams: int
    rounds: tuple[tuple[tuple[tuple[Row, ...], ...], tuple[int | None, ...], bool], ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"s{i}" for i in range(self.streams))

    @property
    def program(self) -> Program:
        """The merge itself, windows that read through it, and a window over a projection that is told at once."""
        streams = tuple(Stream(n, columns("t BIGINT, v INT"), time="t", policy=Punctuated()) for n in self.names)
        aggregates = named_as(total="sum(v)", n="count(*)")
        return Program(
            streams,
            (
                Query("sums", "quiet", Window(WIDTH), aggregates),
                Query("runs", "quiet", RowWindow(COUNT), aggregates),
                Query("above", "loose", Window(WIDTH), named_as(total="sum(v)", n="count(*)", first="min(tens)")),
            ),
            (
                Rows("told", self.names),
                Rows("quiet", self.names),
                Rows("loose", self.names, named_as("v", tens="t div 10"), ordered=False),
            ),
        )


@st.composite
def scenarios(draw: st.DrawFn, rounds: int = 6) -> Scenario:
    """Few times and few values, so that rows are simultaneous, late and on the edges of windows."""
    streams = draw(st.integers(2, 3))
    rows = st.tuples(st.integers(-12, 35), st.integers(0, 2))
    beats = [NEVER] * streams
    found = []
    for _ in range(draw(st.integers(1, rounds))):
        brought = tuple(tuple(draw(st.lists(rows, max_size=4))) for _ in range(streams))
        given: list[int | None] = []
        for i in range(streams):
            step = draw(st.none() | st.integers(0, 15))
            if step is not None:
                beats[i] = -15 + step if beats[i] == NEVER else beats[i] + step
            given.append(None if step is None else beats[i])
        found.append((brought, tuple(given), draw(st.integers(0, 3)) == 0))
    return Scenario(streams, tuple(found))


@dataclass
class Outcome:
    """What a round brings: rows of the merge in their order, windows, and how many rows are late."""

    told: list[Row]
    sums: list[tuple[int, int, int]]
    runs: list[tuple[int, int, int]]
    above: list[tuple[int, int, int]]
    late: list[tuple[str, Row]]


def brute_force(scenario: Scenario) -> list[Outcome]:
    """Row by row; the last outcome is that of the end."""
    beats = [NEVER] * scenario.streams
    behind = NEVER
    waiting: list[Row] = []
    numbered: list[Row] = []
    found: list[Outcome] = []
    windows: dict[str, dict[int, list[int]]] = {"sums": {}, "above": {}}
    end = ((),) * scenario.streams, (FOREVER,) * scenario.streams, False
    for brought, given, _ in (*scenario.rounds, end):
        late = []
        for rows in brought:
            for t, v in rows:
                if behind != NEVER and t <= behind:
                    late += [("told", (t, v)), ("runs", (t, v)), ("loose", (t, v))]
                else:
                    waiting.append((t, v))
                    windows["above"].setdefault(t // WIDTH, []).append(v)
                # A window takes rows for as long as it is open, wherever the heartbeat is within it.
                if behind != NEVER and t // WIDTH < (behind + 1) // WIDTH:
                    late.append(("sums", (t, v)))
                else:
                    windows["sums"].setdefault(t // WIDTH, []).append(v)
        beats = [max(old, NEVER if new is None else new) for old, new in zip(beats, given, strict=True)]
        behind = max(behind, min(beats))
        ready = sorted(row for row in waiting if row[0] <= behind)
        waiting = [row for row in waiting if row[0] > behind]
        before = len(numbered) // COUNT
        numbered += ready
        over = behind == FOREVER
        full = -(-len(numbered) // COUNT) if over else len(numbered) // COUNT
        runs = []
        for k in range(before, full):
            values = [v for _, v in numbered[k * COUNT : (k + 1) * COUNT]]
            runs.append(((k + 1) * COUNT, sum(values), len(values)))
        closed = {name: _closed(open_windows, behind) for name, open_windows in windows.items()}
        found.append(Outcome(ready, closed["sums"], runs, closed["above"], sorted(late)))
    return found


def _closed(windows: dict[int, list[int]], behind: int) -> list[tuple[int, int, int]]:
    ends = sorted(k for k in windows if behind != NEVER and (k + 1) * WIDTH <= behind + 1)
    return [((k + 1) * WIDTH, sum(values), len(values)) for k in ends for values in [windows.pop(k)]]


def played(scenario: Scenario, trial: Trial) -> list[Outcome]:
    """What the engine makes of it."""
    found = []
    for brought, given, restart in scenario.rounds:
        if restart:
            trial.restart()
        rows = {name: _table(part) for name, part in zip(scenario.names, brought, strict=True) if part}
        beats = {name: beat for name, beat in zip(scenario.names, given, strict=True) if beat is not None}
        trial.round(rows, clock=0, heartbeats=beats)
        found.append(_outcome(trial))
    trial.end(clock=0)
    return [*found, _outcome(trial)]


def _table(rows: tuple[Row, ...]) -> pa.Table:
    return pa.table({"t": [t for t, _ in rows], "v": pa.array([v for _, v in rows], pa.int32())})


def _outcome(trial: Trial) -> Outcome:
    taken = trial.output()
    rows: dict[str, list[dict[str, Any]]] = {}
    for table in taken.final:
        rows.setdefault(table.column("query")[0].as_py(), []).extend(table.to_pylist())
    for row in rows.get("above", []):
        # The column that carries time is of the window.
        assert row["window_start"] // 10 <= row["first"] + 1 <= row["window_end"] // 10 + 1

    def windows(name: str) -> list[tuple[int, int, int]]:
        # On the cluster windows are in no order.
        return sorted((row["window_end"], row["total"], row["n"]) for row in rows.get(name, []))

    late = [(row["_query"], (row["t"], row["v"])) for table in taken.late for row in table.to_pylist()]
    told = [(row["t"], row["v"]) for row in rows.get("told", [])]
    return Outcome(told, windows("sums"), windows("runs"), windows("above"), sorted(late))
