"""Plays a story on the local engine, in one process, and judges what came of it.

Verdicts. What each step has told in the end is what a batch query gives over the accepted rows, no result twice. Each
broken row is rejected once. The time of a step never goes back, and nothing is told that was promised to be over. Where
processes have died, a round that was meant is run with its rows at its clock, and results and late rows are those of
the same story without a death, if the clock did not go on meanwhile. A damaged checkpoint may be refused, in our own
words.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.checkpoint.record import Intent
from eventide.engine.local.backend import LocalBackend
from eventide.engine.local.engine import LocalEngine
from eventide.engine.round.report import RoundReport
from eventide.engine.round.side_tables import LATE, REJECTS
from eventide.engine.steady_clock import SteadyClock
from eventide.errors import CheckpointError, EngineError
from eventide.eventtime.instant import NEVER
from eventide.plan.declared.query import Query
from eventide.plan.declared.rows import Rows
from eventide.plan.expressions.columns import Column
from eventide.results.results import Results
from eventide.sources.local_input import LocalInput
from eventide.testing.trial import RecordingSink
from tests.simulation.batch_oracle import BatchOracle, Late, Row, names_of
from tests.simulation.disk import Disk, Faults, KilledError
from tests.simulation.inputs import World
from tests.simulation.story import VARIANTS, Moment, Story

MEMORY = "/dev/shm"
DEATHS = 3
"""A moment kills a process once, and a damaged file another; then it goes through."""


ANSWERS = 20_000
"""So many are remembered."""

OUTCOMES: deque[tuple[Story, type[Player], Outcome]] = deque(maxlen=16)
"""What came of the last stories in which nobody died."""


class WrongError(Exception):
    """The engine did something that it must not do."""


@dataclass(frozen=True)
class Outcome:
    """What came of a story: results by step, late rows, and the broken rows of each stream that were rejected."""

    told: dict[str, Counter[tuple[Any, ...]]]
    late: Late
    rejected: Counter[str]


class FaultySink(RecordingSink):
    """Outside of the process: what it was shown stays, and showing is an operation that can be the last."""

    def __init__(self, faults: Faults) -> None:
        super().__init__()
        self._faults = faults

    def emit(self, results: Results) -> None:
        """Keep the results of a round."""
        try:
            self._faults.operation(lambda: super(FaultySink, self).emit(results))
        except OSError as error:
            raise EngineError(f"the sink cannot be reached: {error}") from error


class RememberingExecutor(DuckDBExecutor):
    """Knows the answers that it has given: a story that is played again asks the same of the same rows."""

    def __init__(self) -> None:
        super().__init__(threads=1)
        self._known: OrderedDict[tuple[Any, ...], pa.Table] = OrderedDict()

    def ask(self, spark_sql: str, tables: Mapping[str, pa.Table], inner: tuple[Column, ...] = ()) -> pa.Table:
        """The answer of a statement over these tables."""
        by_name = sorted(tables.items(), key=lambda one: one[0])
        given = ((name, table.schema, *map(str, table.to_pylist())) for name, table in by_name)
        key = (spark_sql, inner, *given)
        if key not in self._known:
            self._known[key] = super().ask(spark_sql, tables, inner)
            if len(self._known) > ANSWERS:
                self._known.popitem(last=False)
        return self._known[key]


class SharedBackend(LocalBackend):
    """The next process uses the same DuckDB: one takes longer to start than a story to play."""

    def close(self) -> None:
        """Nothing is closed."""


class Player:
    """Plays a story. `clock` is what has passed, `wall` what the machine believes."""

    def __init__(self, story: Story, folder: Path, executor: DuckDBExecutor) -> None:
        chance = Random(story.seed)
        self.story = story
        self.clock = self.wall = 0
        self.faults = Faults()
        self.disk = Disk(chance, self.faults)
        self.sink = FaultySink(self.faults)
        self.world = World(folder, story.program.inputs, Random(story.seed // VARIANTS))
        self._executor = executor
        self._engine: LocalEngine | None = None
        self._promised: dict[str, int] = {}
        self._last_in_order: dict[str, int] = {}
        self._meant: Intent | None = None

    def play(self) -> Outcome:
        """From the beginning to the end of a bounded run."""
        for moment in self.story.moments:
            self.moment(moment)
        self.world.settle()
        self._survive(self._end)
        outcome = self._outcome()
        self.stop()
        return outcome

    def moment(self, moment: Moment) -> None:
        """What happens at one reading of the clock."""
        self.clock, self.wall = moment.clock, moment.wall
        if moment.damage:
            self._die("killed before")
            if self.disk.damage() is not None:
                self._promised, self._last_in_order = {}, {}
        if moment.restart:
            self.stop()
        self.world.arrive(moment.arrivals)
        if moment.crash is not None:
            self.faults.arm(*moment.crash)
        self._survive(lambda: self._rounds(moment), go_on=not moment.down)

    @property
    def engine(self) -> LocalEngine:
        """The one at work; a new one, if there is none."""
        if self._engine is None:
            program = self.story.program
            sinks = {step.name: self.sink for step in program.steps}
            self._engine = LocalEngine(
                program,
                self.disk.start(),
                sinks,
                self.inputs(),
                backend=SharedBackend(self._executor),
                flush_rows=self.story.flush_rows,
                scheduling=self.story.scheduling,
                now=SteadyClock(lambda: self.wall, lambda: self.clock),
            )
            self._engine.on_round(self._note)
            self._engine.recover()
        return self._engine

    def inputs(self) -> dict[str, LocalInput]:
        """What a new process reads."""
        return self.world.opened()

    def stop(self) -> None:
        """Stop the engine in peace."""
        if self._engine is not None:
            engine, self._engine = self._engine, None
            engine.stop()

    def _die(self, kind: str) -> None:
        self.faults.kind = None
        self.disk.end()
        if kind == "power":
            self.disk.lose_power()
        if self._engine is not None:
            engine, self._engine = self._engine, None
            with suppress(KilledError, EngineError):
                engine.stop()
        self._meant = self.disk.intended()

    def _survive(self, work: Callable[[], None], go_on: bool = True) -> None:
        """Do something; where the process dies, the next one goes on, or that waits for the next moment."""
        for _ in range(DEATHS if go_on else 1):
            try:
                work()
                return
            except KilledError as death:
                self._die(str(death))
            except CheckpointError:
                raise
            except EngineError as error:
                if "no room left" not in str(error) and "cannot be reached" not in str(error):
                    raise
                self._die("refused")
        if go_on:
            raise WrongError("the engine stopped again and again")

    def _rounds(self, moment: Moment) -> None:
        while self.engine.step(bounded=True):
            pass
        if moment.over is not None:
            self.engine.end_source(*moment.over)
        if moment.tick:
            self.clock, self.wall = moment.clock + 1, moment.wall + 1
            self.ticks()

    def ticks(self) -> None:
        """Let the clock alone close what it can."""
        for _ in range(100):
            before = self.engine.engine.next_round
            self.engine.tick()
            if self.engine.engine.next_round == before:
                return
        raise WrongError("rounds without rows never end")

    def _end(self) -> None:
        while self.engine.step(bounded=True) or self.engine.engine.is_behind:
            self.engine.tick()
        if not self.engine.engine.ended:
            self.engine.end()

    def _note(self, work: RoundReport) -> None:
        meant, self._meant = self._meant, None
        if meant is not None and meant.round == work.number:
            _demand(work.clock == meant.clock, f"a round that was meant for {meant.clock} is run at {work.clock}")
            # Promises and broken rows are not counted.
            rows: list[Any] = [portion.get("rows") for portion in meant.portions.values()]
            _demand(
                None in rows or sum(rows) >= work.rows, f"a round that was meant to have {rows} has {work.rows} rows"
            )
        for step in self.story.program.steps:
            table = work.results[step.name].table()
            before = self._promised.get(step.name, NEVER)
            after = self.engine.engine.state.operators[step.name].frontier.time
            final = [row["window_end"] for row in table.to_pylist() if row["kind"] == "final"]
            _demand(after >= before, f"the time of {step.name} goes back from {before} to {after}")
            _demand(all(end - 1 > before for end in final), f"{step.name} tells what it had promised not to")
            self._promised[step.name] = after
            if isinstance(step, Rows) and step.ordered:
                last = self._last_in_order.get(step.name, NEVER)
                _demand(final == sorted(final) and min(final, default=last) >= last, f"{step.name} is out of order")
                self._last_in_order[step.name] = max([last, *final])

    def _outcome(self) -> Outcome:
        late: Late = Counter()
        rejected: Counter[str] = Counter()
        for name, data in self.disk.files.items():
            folder, _, rest = name.partition("/")
            stream = rest.partition("/")[0]
            if folder not in (LATE, REJECTS) or "/." in name:
                continue
            for row in pq.read_table(io.BytesIO(data)).to_pylist():
                if folder == LATE:
                    answered = row["_answered"] if row["_counted"] else None
                    late[row["_query"], stream, row["v"], answered] += 1
                else:
                    rejected[stream] += 1
        return Outcome({step.name: self._told(step) for step in self.story.program.steps}, late, rejected)

    def _told(self, step: Any) -> Counter[tuple[Any, ...]]:
        """The results of a step; of those that were revised, the last ones."""
        tables = [table for (name, _), table in sorted(self.sink.tables.items()) if name == step.name]
        rows = [row for table in tables for row in table.to_pylist()]
        if isinstance(step, Query) and step.retain:
            groups = ["window_start", "window_end", *(group.name for group in step.groups)]
            rows = list({tuple(row[name] for name in groups): row for row in rows}.values())
        names = ("window_start", "window_end", *names_of(step))
        return Counter(tuple(row[name] for name in names) for row in rows)


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise WrongError(otherwise)


@contextmanager
def playing(story: Story, executor: DuckDBExecutor, kind: type[Player] = Player) -> Iterator[Player]:
    """A player with a folder of its own, which is let go of in the end, whatever happens."""
    with tempfile.TemporaryDirectory(dir=MEMORY if os.path.isdir(MEMORY) else None) as folder:
        player = kind(story, Path(folder), executor)
        try:
            yield player
        finally:
            player.faults.kind = None
            player.stop()


def played(story: Story, executor: DuckDBExecutor, kind: type[Player] = Player) -> Outcome:
    """What comes of a story."""
    with playing(story, executor, kind) as player:
        return player.play()


def judge(story: Story, executor: DuckDBExecutor, player: type[Player] = Player) -> str:
    """Play a story: how it went; `WrongError` if it went wrong."""
    try:
        outcome = played(story, executor, player)
    except CheckpointError:
        if story.is_damaged:
            return "refused"
        raise
    _compare(outcome, _expected(story, outcome.late), "a batch query over accepted rows gives")
    broken = Counter(one.stream for one in story.arrivals() if one.broken)
    _demand(outcome.rejected == broken, f"rejected were {outcome.rejected}, and broken {broken}")
    if story.is_peaceful or story.is_damaged or story.is_ever_down or story.leaps:
        return "right"
    peaceful = _played_in_peace(story.in_peace(), executor, player)
    _compare(outcome, peaceful.told, "without a death came")
    _demand(outcome.late == peaceful.late, f"late were {outcome.late}, and without a death {peaceful.late}")
    return "right after a death"


def _played_in_peace(story: Story, executor: DuckDBExecutor, player: type[Player]) -> Outcome:
    for known, kind, outcome in OUTCOMES:
        if kind is player and known == story:
            return outcome
    outcome = played(story, executor, player)
    OUTCOMES.append((story, player, outcome))
    return outcome


def _expected(story: Story, late: Late) -> dict[str, Counter[tuple[Any, ...]]]:
    rows: dict[str, list[Row]] = {stream.name: [] for stream in story.program.streams}
    for one in story.arrivals():
        if not one.broken and not one.promise:
            for stream in story.program.streams:
                if stream.rows_of == one.stream:
                    rows[stream.name].append(one.row())
    oracle = BatchOracle(story.program, rows, late)
    return {step.name: oracle.shown(step.name) for step in story.program.steps}


def _compare(outcome: Outcome, expected: dict[str, Counter[tuple[Any, ...]]], who: str) -> None:
    for name, told in outcome.told.items():
        missing, extra = expected[name] - told, told - expected[name]
        _demand(not missing and not extra, f"{name} tells {_some(extra)} in the place of {_some(missing)}, which {who}")


def _some(rows: Counter[tuple[Any, ...]]) -> str:
    return ", ".join(map(str, sorted(rows.elements(), key=str)[:5])) or "nothing"
