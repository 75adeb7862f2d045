"""What a query knows of its early answers: what was learned from them, and those that no round has scored yet.

Laws. *State* is part of what a round commits. A round works on a copy, so one that fails has learned nothing. Rows that
wait for their final ones, and what is known of single groups, are kept through a restart up to `MOST_BYTES`; what is
beyond that is not scored, which changes no answer. *Unscored answers* come from any thread, at any moment; a round
scores those that were there when it came to that step, and what comes later waits for the next one. A round that fails
has scored none. An answer from the last round is scored as if it had come between two rounds. One from an earlier
round, because the next was committed while it was being given, is scored for the windows that are still open: the final
rows of the others have come and gone. Of very many that are given during one round, the last are scored.
"""

from __future__ import annotations

import threading
from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.early.group_values import patterns_in
from eventide.engine.operators.operator import Operator
from eventide.engine.operators.windows import ends_of
from eventide.errors import DeclarationError
from eventide.eventtime.early.prod import Prod, WindowEnds
from eventide.eventtime.early.triggers import EarlinessControl, EarlyTrigger, Moment
from eventide.eventtime.instant import FOREVER, NEVER, shift
from eventide.eventtime.pattern import Pattern
from eventide.plan.bound.query import BoundQuery
from eventide.plan.declared.query import ESTIMATE, Prods, Query, extrapolated
from eventide.results.accuracy import Accuracy, ScoredWindows
from eventide.results.breakdown import place_of
from eventide.results.error import Comparison

MOST_BYTES = 256 * 1024
MOST_WINDOWS = 64


@dataclass
class EarlyState:
    """What one query has learned from its early answers, and when it asks again."""

    accuracy: Accuracy
    ends: WindowEnds
    triggers: tuple[EarlyTrigger, ...] = ()
    control: EarlinessControl | None = None
    by_progress: bool = False
    where: Mapping[str, Pattern] = field(default_factory=dict)
    """The patterns of the groups that are asked for."""
    before: Moment = field(default_factory=lambda: Moment(NEVER))
    fresh: bool = False
    """Whether rows have come since it was asked last."""
    rows: int = 0
    """How many rows have come into it, where it is asked by their number."""
    every_rows: int | None = None
    controlled: dict[int, int] = field(default_factory=dict)
    """The ends of windows that the control asked for, with the places of their points."""
    answered: frozenset[int] = frozenset()
    """The last ends of windows that have their final answer, and that the control has not asked for yet."""

    @classmethod
    def start(cls, bound: BoundQuery, by_progress: bool) -> EarlyState:
        """A query that has not been asked."""
        prods: Prods | None = bound.query.prods
        estimates = estimates_of(bound)
        values = {item.name: item.name for item in bound.query.select}
        judged = [f"{name}{ESTIMATE}" if name in estimates else name for name in values]
        values |= {f"{name}{ESTIMATE}": name for name in estimates}
        groups = tuple(group.name for group in bound.query.groups)
        return cls(
            Accuracy(groups, values, _comparisons(prods, values), judged),
            ends_of(bound.panes),
            () if prods is None else prods.triggers(by_progress),
            None if prods is None or prods.within is None else prods.within.start(),
            by_progress,
            where={} if prods is None else patterns_in(bound.query.name, bound, prods.where),
            every_rows=None if prods is None else prods.every_rows,
        )

    def copy(self) -> EarlyState:
        """A copy for a round that may fail."""
        control = None if self.control is None else self.control.copy()
        return replace(self, accuracy=self.accuracy.copy(), control=control, controlled=dict(self.controlled))

    def hand(self, moment: Moment) -> int:
        """What points are measured by: the clock, or the progress of the stream."""
        return moment.latest if self.by_progress else moment.clock

    def due(self, now: Moment, closed: int = NEVER) -> list[Prod]:
        """The prods that have fallen due; from now on they have been asked for. Time is closed up to `closed`."""
        found = [prod for trigger in self.triggers for prod in trigger.due(self.ends, self.before, now)]
        if self.control is not None:
            prod = self.control.due(self.ends, self.hand(now))
            if prod is not None:
                self._note(prod, self.hand(now), closed)
                found.append(prod)
        self.before = now
        return [self.restricted(prod) for prod in found]

    def restricted(self, prod: Prod) -> Prod:
        """A prod, for the groups that the query asks for."""
        return replace(prod, groups=self.where)

    def due_by_rows(self, more: int) -> list[Prod]:
        """The prod for all open windows that is due because so many more rows have come: one of a round at most.

        Law: it is due in the round in which the number of rows passes a multiple of the declared one.
        """
        if self.every_rows is None:
            return []
        before, self.rows = self.rows, self.rows + more
        return [self.restricted(Prod())] if self.rows // self.every_rows > before // self.every_rows else []

    def _note(self, prod: Prod, hand: int, closed: int) -> None:
        """Remember which windows the control asked for, and at which points: the last ones, after a long silence."""
        assert self.control is not None
        first = self.ends.at_or_after(max(shift(prod.after, 2), prod.up_to + 1 - MOST_WINDOWS * self.ends.slide))
        for end in range(first, prod.up_to + 2, self.ends.slide):
            if end - 1 > closed:
                self.controlled[end] = int(place_of(np.array([self.ends.point(end, hand)]))[0])
            elif end in self.answered:
                # The final answer was there before the early one was asked for: no error, and time to spare.
                self.control.score(0.0)
        self.answered = frozenset(end for end in self.answered if end - 1 > prod.up_to)

    def learn(self, scored: ScoredWindows, closed: int, answered: set[int]) -> None:
        """Let the control know of windows that it asked for, and that are over now; `answered` have a final answer."""
        if self.control is None:
            return
        unasked = sorted(end for end in self.answered | answered if end > self.control.asked)
        self.answered = frozenset(unasked[-MOST_WINDOWS:])
        errors = zip(
            scored.ends.tolist(), place_of(scored.points).tolist(), scored.worst_column().tolist(), strict=True
        )
        found = {end: error for end, place, error in errors if self.controlled.get(end) == place}
        unknown = {end for end, error in found.items() if np.isnan(error)}
        for end in sorted(end for end in self.controlled if end - 1 <= closed):
            del self.controlled[end]
            if end in unknown:
                # A comparison of the user failed: nothing is earned, and nothing is owed.
                continue
            if end in found:
                self.control.score(found[end])
            elif end in answered:
                # It was asked so early that nothing was there.
                self.control.score(1.0)

    def as_data(self) -> dict[str, Any]:
        """How early answers have done, as plain data."""
        point = {} if self.control is None else {"point": self.control.point}
        warnings = {"warnings": list(self.accuracy.faults)} if self.accuracy.faults else {}
        return asdict(self.accuracy.summary()) | point | warnings

    def saved(self) -> dict[str, Any]:
        """Plain data for the round record."""
        return {
            "before": [self.before.clock, self.before.latest],
            "fresh": self.fresh,
            "rows": self.rows,
            "answered": sorted(self.answered),
            "controlled": [[end, place] for end, place in self.controlled.items()],
            "control": None if self.control is None else self.control.snapshot(),
            "accuracy": self.accuracy.saved(),
            "waiting": _packed(self.accuracy.waiting),
            "groups": _packed(self.accuracy.by_group.table),
        }

    def restored(self, saved: dict[str, Any]) -> EarlyState:
        """The state of this declaration, as it was saved."""
        self.before, self.fresh, self.rows = Moment(*saved["before"]), saved["fresh"], saved.get("rows", 0)
        self.answered = frozenset(saved.get("answered", ()))
        self.accuracy.restore(saved["accuracy"], _unpacked(saved["waiting"]), _unpacked(saved["groups"]))
        if self.control is not None and saved["control"] is not None:
            self.control = self.control.policy.resume(saved["control"])
            self.controlled = {int(end): int(place) for end, place in saved["controlled"]}
        return self


def estimates_of(bound: BoundQuery) -> tuple[str, ...]:
    """The values of a query that are extrapolated."""
    prods = bound.query.prods
    if prods is None or not prods.estimate:
        return ()
    return extrapolated((item.name, item.sql) for item in bound.query.select)


def _comparisons(prods: Prods | None, values: Mapping[str, str]) -> dict[str, Comparison]:
    """How the user compares early columns, extrapolated ones too, with final ones."""
    given = {} if prods is None else dict(prods.compare)
    found = {}
    for early, final in values.items():
        if final in given:
            if isinstance(compare := given[final], str):
                raise DeclarationError(
                    f"nobody knows the function {compare!r} that is to compare {final!r}: give the function itself, or "
                    "declare it in the script (CREATE FUNCTION)"
                )
            found[early] = compare
    return found


def _packed(table: pa.Table | None) -> str | None:
    if table is None or table.num_rows == 0 or table.nbytes > 8 * MOST_BYTES:
        return None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    packed = sink.getvalue().to_pybytes()
    return b64encode(packed).decode() if len(packed) <= MOST_BYTES else None


def _unpacked(packed: str | None) -> pa.Table | None:
    if packed is None:
        return None
    with pa.ipc.open_stream(pa.BufferReader(b64decode(packed))) as reader:
        return reader.read_all()


MOST = 256
"""So many answers wait for a round, however long it takes: they are kept in memory."""


@dataclass(frozen=True, eq=False)
class EarlyEmission:
    """Early rows of a query after some round, and when they were emitted."""

    query: Query
    round: int
    table: pa.Table
    when: Moment
    up_to: int = FOREVER

    def is_of(self, query: Query) -> bool:
        """Whether it belongs to this query, and not to an earlier one of the same name."""
        return self.query is query

    def still_open(self, operator: Operator, round: int) -> pa.Table:
        """The rows that wait for their final ones after a round that left the query so."""
        if self.round == round:
            return self.table
        if self.query.by_source or not self.query.has_known_ends:
            # Windows that close by source, over counts of rows, or over sessions, are emitted group by group: no one
            # time says which.
            return self.table.slice(0, 0)
        lasts = pc.subtract(self.table.column("window_end").cast(pa.int64()), 1)
        return self.table.filter(pc.greater(lasts, operator.frontier.time))


class UnscoredAnswers:
    """The answers that no committed round has scored."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._unscored: tuple[EarlyEmission, ...] = ()

    def add(self, emission: EarlyEmission) -> None:
        """Keep an answer until a round scores it."""
        with self._mutex:
            self._unscored = (*self._unscored, emission)[-MOST:]

    def all(self) -> tuple[EarlyEmission, ...]:
        """The answers that wait for a score now, in the order in which they came."""
        return self._unscored

    def forget(self, scored: Collection[EarlyEmission]) -> None:
        """A round that has taken these is committed."""
        with self._mutex:
            gone = frozenset(scored)
            self._unscored = tuple(one for one in self._unscored if one not in gone)
