"""What every operator is to the round: rows come in by ports, rows go out, and time is promised to whoever reads it.

Laws. *Value*: every step gives a new operator, so a round that fails changes nothing, and a prod works on a copy.
*Own frontier*: an operator goes as far as its own inputs allow, whatever the rest of the plan waits for (STREAM paper,
section 7: operator-level heartbeats). *Promise*: after `advance`, every later row has its time after `frontier.time`,
and each column that carries time at or after its entry in `frontier.least`. *No place*: an operator computes by
statements over relations (`relations.executor`) and steers by their summaries; where rows are is not its business.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import pyarrow as pa

from eventide.engine.operators.frontier import OperatorFrontier
from eventide.engine.operators.open_windows import OpenQuery
from eventide.engine.relations.executor import Executor, one_row
from eventide.engine.relations.relation import Layout, Relation
from eventide.engine.relations.segments import Segments
from eventide.eventtime.instant import NEVER, Instants
from eventide.plan.expressions.columns import Column
from eventide.results.results import Kind

FIXED = (Column("window_start", "BIGINT"), Column("window_end", "BIGINT"), Column("rows", "BIGINT"))
LOST = Column("__lost", "STRING")


@dataclass(frozen=True)
class InputProgress:
    """How far an input has come: its frontier and, of a stream, the largest time seen and what each source promised."""

    port: str
    frontier: OperatorFrontier
    latest: int = NEVER
    heartbeats: Instants | None = None


@dataclass(frozen=True)
class Late:
    """The rows of a port that came too late: a condition over its columns (`plan.bound.rows.port`), and how many they
    are.

    `tables` are small ones that the condition speaks of, joined by `join`; `behind` is the SQL of the heartbeat of a
    row's own source, where that may be further than the combined one. Rows that are late for windows: `answered` is the
    SQL of the end of the last window that was answered, `counted` that of whether a later window counts the row.
    """

    rows: int
    condition: str
    join: str = ""
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    behind: str | None = None
    answered: str | None = None
    counted: str = "FALSE"

    @classmethod
    def of_windows(cls, rows: int, missed: int, counted: int, begins: int = NEVER) -> Late:
        """Rows whose pane is in a window that ends by `missed`; from the pane `counted` on, later windows count them.

        Those before `begins` were never its own, so they are not late.
        """
        edge = {"edge": one_row(missed=missed, counted=counted, begins=begins)}
        condition = "timed.__pane < edge.__missed AND timed.__pane >= edge.__begins"
        later = "timed.__pane >= edge.__counted"
        return cls(rows, condition, "CROSS JOIN edge", edge, answered="edge.__missed", counted=later)

    @classmethod
    def before(cls, rows: int, column: str, first: int, begins: int = NEVER) -> Late:
        """Rows whose time or pane is before `first`; those before `begins` were never its own, so they are not late."""
        edge = {"edge": one_row(first=first, begins=begins)}
        condition = f"timed.{column} < edge.__first AND timed.{column} >= edge.__begins"
        return cls(rows, condition, "CROSS JOIN edge", edge)


@dataclass(frozen=True)
class Ingested:
    """What became of rows that came in: how many were wanted, which were late, how many revise results."""

    wanted: int
    late: Late | None = None
    revising: int = 0

    @property
    def late_rows(self) -> int:
        """The number of rows that came too late."""
        return 0 if self.late is None else self.late.rows


@dataclass(frozen=True)
class Output:
    """What an operator emits: final rows, rows that replace some of before, and values that may change again.

    `changed` has all of this round: what is emitted later in the round takes the place of it.

    Columns: `window_start`, `window_end` (the span), `rows` (how many rows went in), the user's, and `__lost`, the
    reason why a value is missing; perhaps `heartbeat`, where rows were closed by different ones.
    """

    final: Segments
    revised: Segments
    changed: Segments | None = None

    @classmethod
    def of(cls, layout: Layout, *final: Relation) -> Output:
        """An output of final rows alone."""
        return cls(Segments(layout).add(*final), Segments(layout))

    def with_more(self, other: Output) -> Output:
        """Concatenate two outputs of the same operator."""
        both = self.final.add(*other.final.parts), self.revised.add(*other.revised.parts)
        return Output(*both, self.changed if other.changed is None else other.changed)

    @property
    def by_kind(self) -> tuple[tuple[Kind, Segments], ...]:
        """All rows in the order in which they are shown: of one key, the last row is the newest."""
        both = ((Kind.FINAL, self.final), (Kind.REVISED, self.revised))
        return both if self.changed is None else (*both, (Kind.CHANGED, self.changed))


class Operator(ABC):
    """An operator while it runs; a frozen dataclass."""

    executor: Executor
    """Runs its statements."""

    @property
    @abstractmethod
    def frontier(self) -> OperatorFrontier:
        """What later output rows are like."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that others read it by."""

    @property
    @abstractmethod
    def holds(self) -> Instants:
        """The distinct panes, or times of rows on the driver, of what is open, ascending."""

    @property
    def is_behind(self) -> bool:
        """Whether rows wait that a round without new ones would let go."""
        return False

    @property
    def emitted_to(self) -> int:
        """No row that was emitted has its last instant after this."""
        return self.frontier.time

    # What it keeps

    @property
    @abstractmethod
    def state(self) -> Mapping[str, Segments]:
        """All rows that it keeps, by a name for each kind."""

    @abstractmethod
    def with_state(self, state: Mapping[str, Segments]) -> Self:
        """A copy whose rows are elsewhere or in other files."""

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """What is saved besides the rows, as plain data for the round record."""

    @abstractmethod
    def restored(self, saved: Mapping[str, Any], state: Mapping[str, Segments]) -> Self:
        """The operator as it was saved; its files may still hold rows that are not needed any more."""

    def with_executor(self, executor: Executor) -> Self:
        """A copy that computes by another executor."""
        return replace(self, executor=executor)  # type: ignore[type-var]

    # Rows come in

    def own(self, rows: Relation) -> Relation:
        """Of rows that came into a port, those that are for it at all: not those of before it began."""
        return rows

    @abstractmethod
    def layout(self, port: str) -> Layout:
        """The columns of the rows that come into a port."""

    def renames(self, port: str) -> Mapping[str, str]:
        """Columns of the layout that have another name in the port's own rows, with that name (`bound.rows.port`)."""
        return {}

    @abstractmethod
    def stamps(self, port: str, clock: int) -> Mapping[str, int]:
        """For rows without a time of their own: the columns of a port that carry time, as they are at this clock."""

    @abstractmethod
    def ingest(self, port: str, rows: Relation, sources: pa.Table | None = None) -> tuple[Self, Ingested]:
        """Add rows that came into a port; it says itself which are late.

        None may be accepted that would break the promise of `frontier`. `sources` has the numbers (`__by`) of the
        sources that the rows of a stream are from, beside the columns that name them (`__s0`, ...).
        """

    # Rows go out

    @property
    def may_wait(self) -> bool:
        """Whether results that are too many for one round may wait for the next."""
        return True

    def begin(self, clock: int, budget: int) -> Self:
        """A round begins, in which about so many rows may go through, where the operator asks for a budget."""
        return self

    @abstractmethod
    def would_emit(self, inputs: Sequence[InputProgress]) -> bool:
        """Whether inputs that have come so far would make it emit, or free, a row."""

    @abstractmethod
    def frontier_at(self, inputs: Sequence[InputProgress]) -> OperatorFrontier:
        """Its frontier once its inputs have come so far, where that makes it emit nothing."""

    @abstractmethod
    def advance(self, inputs: Sequence[InputProgress], limit: int | None = None) -> tuple[Self, Output]:
        """Emit what can be emitted, free what is done with; at most about `limit` rows, unless all inputs are over."""

    def set_aside(self, up_to: int, reached: int) -> Self:
        """A copy with a burst set aside: its readers were prodded `up_to` a time, which its inputs have `reached`."""
        return self

    def early(self) -> Operator:
        """A copy that answers a prod: from all that it holds now, without closing anything."""
        return self

    def since_asked(self) -> Operator:
        """A copy that answers the prods of its own query; where these discard, it holds only what came since."""
        return self

    def asked(self) -> Operator:
        """A copy that has answered the prods of its own query."""
        return self

    def open(self) -> OpenQuery | None:
        """Which of its windows are open, for those who ask why; None for one without windows."""
        return None


def output_layout(outputs: Sequence[Column], *more: Column) -> Layout:
    """The layout of an operator's output with these columns of the user's."""
    return Layout((*FIXED, *outputs, LOST, *more), bounded=("window_end",))


@dataclass(frozen=True)
class Work:
    """What an operator, or the reading of a stream, did in a round or in several: rows in and out, and its seconds.

    The statistics that Gigascope's heartbeats carry: selectivity, rate, cost of a row (Gigascope paper, section 6.3).

    >>> work = Work(100, 20, 0.002).and_then(Work(100, 20, 0.002))
    >>> work, work.selectivity, work.seconds_per_row
    (Work(rows_in=200, rows_out=40, seconds=0.004), 0.2, 2e-05)
    """

    rows_in: int = 0
    rows_out: int = 0
    seconds: float = 0.0

    def and_then(self, other: Work) -> Work:
        """The sum of two pieces of work."""
        return Work(self.rows_in + other.rows_in, self.rows_out + other.rows_out, self.seconds + other.seconds)

    def as_json(self) -> dict[str, Any]:
        """Plain data, with what follows from it."""
        return {**vars(self), "selectivity": self.selectivity, "seconds_per_row": self.seconds_per_row}

    @property
    def selectivity(self) -> float | None:
        """Rows out per row in; None before the first row."""
        return self.rows_out / self.rows_in if self.rows_in else None

    @property
    def seconds_per_row(self) -> float | None:
        """Seconds per row in; None before the first row."""
        return self.seconds / self.rows_in if self.rows_in else None
