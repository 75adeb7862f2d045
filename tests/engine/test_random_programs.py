"""Random programs of several streams, run in every way: they tell what a batch query over accepted rows gives."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.local.backend import LocalBackend
from eventide.engine.round.engine import Engine
from eventide.engine.round.report import RoundReport
from eventide.engine.round.side_tables import LATE
from eventide.eventtime.instant import NEVER
from eventide.plan.declared.rows import Rows
from eventide.report.stopped_run import read_progress
from eventide.report.why import window_words
from eventide.testing.trial import RecordingSink
from tests.engine.random_programs import Given, Story, names_of, stories

FAR = 60
"""Past every length of the policies: what has not closed so long after waits for a row."""


class DeathError(Exception):
    """The engine dies here."""


class Player:
    """Runs a story, and notes what comes out: results by step, late rows by (reader, stream, value)."""

    def __init__(self, story: Story, folder: str, bench: DuckDBExecutor) -> None:
        self.story, self.folder, self.bench = story, folder, bench
        self.sink = RecordingSink()
        self.dies_after: str | None = None
        self.told: dict[str, Counter[tuple[Any, ...]]] = {step.name: Counter() for step in story.program.steps}
        self.late: Counter[tuple[str, str, int]] = Counter()
        self.promised: dict[str, int] = {}
        self.last_in_order: dict[str, int] = {}
        self.engine = self.started()

    def started(self) -> Engine:
        return Engine(
            self.story.program,
            LocalBackend(self.bench),
            self.folder,
            {step.name: self.sink for step in self.story.program.steps},
            observer=self.observe,
            flush_rows=self.story.flush_rows,
            scheduling=self.story.scheduling,
        )

    def observe(self, _: int, step: str) -> None:
        if step == self.dies_after:
            raise DeathError

    def restart(self) -> None:
        self.engine.close()
        self.engine = self.started()

    def play(self) -> None:
        for one in self.story.rounds:
            if one.restart:
                self.restart()
            self.round(one)
            if one.tick:
                self.tick(one.clock + 1)
        self.note(self.engine.end(self.story.rounds[-1].clock))
        self.engine.close()

    def round(self, one: Given) -> None:
        self.dies_after = one.dies_after
        for _ in range(2):
            try:
                batch = self.engine.next_round
                self.note(self.engine.round(one.tables(), one.clock, batch=batch, over=one.over))
                break
            except DeathError:
                self.dies_after = None
                self.restart()

    def tick(self, clock: int) -> None:
        for _ in range(100):
            made = self.engine.tick(clock)
            if made is None:
                return
            self.note(made)
        raise AssertionError("rounds without rows never end")

    def note(self, work: RoundReport) -> None:
        for name, count in work.late.items():
            late = pq.read_table(Path(self.folder) / LATE / name / f"{work.number:010d}.parquet").to_pylist()
            assert len(late) == count
            for row in late:
                self.late[row["_query"], name, row["v"]] += 1
        for step in self.story.program.steps:
            rows = work.results[step.name].table().to_pylist()
            ends = [row["window_end"] for row in rows]
            self.told[step.name].update(
                tuple(row[name] for name in ("window_start", "window_end", *names_of(step))) for row in rows
            )
            before, after = self.promised.get(step.name, NEVER), self.engine.state.operators[step.name].frontier.time
            assert after >= before, f"the time of {step.name} goes back"
            assert all(end - 1 > before for end in ends), f"{step.name} tells what it had promised not to"
            self.promised[step.name] = after
            if isinstance(step, Rows) and step.ordered:
                assert ends == sorted(ends)
                assert not ends or ends[0] >= self.last_in_order.get(step.name, NEVER)
                self.last_in_order[step.name] = max([self.last_in_order.get(step.name, NEVER), *ends])


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(story=stories())
def test_however_it_is_run_a_program_tells_what_a_batch_query_over_accepted_rows_gives(
    duckdb_executor: DuckDBExecutor, story: Story
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        player = Player(story, folder, duckdb_executor)
        player.play()
    expected = story.expected(player.late)
    for name, told in player.told.items():
        assert told == expected[name], name


def closings(player: Player, clock: int) -> dict[tuple[str, int], set[int]]:
    """When the clock alone closes the windows of each query, by their ends, tick after tick."""
    found: dict[tuple[str, int], set[int]] = {}
    for now in range(clock, clock + FAR):
        made = player.engine.tick(now)
        for query in player.story.program.queries if made is not None else ():
            assert made is not None
            for end in made.results[query.name].table().column("window_end").to_pylist():
                found.setdefault((query.name, end), set()).add(now)
    return found


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(story=stories())
def test_under_every_schedule_windows_close_when_they_are_said_to(
    duckdb_executor: DuckDBExecutor, story: Story
) -> None:
    story = replace(story, flush_rows=None)
    with tempfile.TemporaryDirectory() as folder:
        player = Player(story, folder, duckdb_executor)
        for one in story.rounds:
            player.round(one)
        program, queries = player.engine.program, [query for query in story.program.queries if not query.by_source]
        said = {
            one.name: read_progress(program, folder, one.name, story.scheduling).windows(one.name) for one in queries
        }
        closed = closings(player, story.rounds[-1].clock)
        player.engine.close()
    for name, windows in said.items():
        for window in windows:
            assert window_words(window)
            if window.closes_at is not None:
                assert closed[name, window.end] == {window.closes_at}
            elif "no partner can come" not in window_words(window):
                assert (name, window.end) not in closed
