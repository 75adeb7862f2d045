"""The answer to a prod: what a query of any depth can say now.

Law: an early answer is the query over the rows that have arrived and were not late, for the windows that the prod asks
for and that have no final answer yet; of an operator without windows, the rows that it would tell. It is computed on
copies, so prods change no state: whatever is asked, final answers are the same. (Prodding thesis, sections 3.1, 3.3.)
All of it is read from one standing, so it may be computed beside a round, in any thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eventide.engine.advancing import Advance
from eventide.engine.answers import operator_schema, result_schema
from eventide.engine.cluster_slices import Cluster
from eventide.engine.early_runs import passing, prodded
from eventide.engine.holding import Holding
from eventide.engine.operator_run import Frontier
from eventide.engine.standing import Standing
from eventide.engine.windows import ends_of
from eventide.engine.work import Round
from eventide.errors import DeclarationError
from eventide.eventtime.heartbeat_labels import Level
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, Instants, shift
from eventide.eventtime.prod import Prod, Timing
from eventide.plan.binding import BoundProgram
from eventide.plan.bound import Bound
from eventide.plan.window import RowWindow
from eventide.results.accuracy import filtered
from eventide.results.results import Kind, Results


@dataclass(frozen=True)
class EarlyResults(Results):
    """Early results, and how the prod came."""

    timing: Timing = Timing.TIMELY


@dataclass(frozen=True)
class Prodding:
    """Answers prods from one standing; slices on the cluster with a `cluster` for this asking alone."""

    standing: Standing
    cluster: Cluster | None = None

    def answer(self, name: str, prod: Prod) -> EarlyResults:
        """The early results of a query, marked `early`."""
        standing = self.standing
        bound = asked_query(standing.plan, name, prod)
        table = self._swept(name, prod)
        table = filtered(table.filter(pa.array(_asked(bound, prod, _lasts(table)))), prod.groups)
        before = standing.prods.setdefault(name, [])
        timing = self._timing(name, bound, prod, _lasts(table), tuple(before))
        before.append(prod)
        plain = Results.of_table(name, standing.number, table)
        return EarlyResults(plain.query, plain.round, plain.rows, plain.schema, plain.batches, timing)

    def _swept(self, name: str, prod: Prod) -> pa.Table:
        """What it would tell if time had come to the prod's, with the heartbeat that it has really come to."""
        standing, plan = self.standing, self.standing.plan
        needed = needed_for(plan, name)
        runs = dict(standing.runs)
        for other in needed & runs.keys():
            stream = standing.streams.get(plan.queries[other].query.stream)
            sources = pa.array([], pa.string()) if stream is None else stream.sources
            runs[other] = prodded(runs[other], sources, self.cluster)
        operators = {one: passing(run) for one, run in standing.operators.items()}
        work = Round(standing.number, None, standing.clock, {}, {}, {}, False, runs, operators)
        work.heartbeats = {stream: max(beat, prod.up_to) for stream, beat in standing.heartbeats.items()}
        # What has ended has told all that it had.
        over = frozenset(one for one in needed if standing.time(one) == FOREVER)
        work.frontiers = dict.fromkeys(over, Frontier(FOREVER))
        if name in over:
            return self._schema(name).empty_table()
        # Each goes by its own inputs, whatever the rest of the plan waits for.
        holding = Holding(plan, Level.OPERATOR)
        apart = {one: standing.levels[one].apart(needed, self.cluster) for one in needed & standing.levels.keys()}
        levels = {one: level for one, level in apart.items() if level is not None}
        Advance(plan, levels, standing.streams, holding).sweep(work, needed - over)
        table = work.results[name].table()
        true = min(standing.time(way.source) for way in plan.ways_into(name))
        shown = pa.scalar(None if abs(true) >= EDGE else true, pa.int64())
        for column, value in (("kind", pa.scalar(Kind.EARLY.value)), ("heartbeat", shown)):
            place = table.schema.get_field_index(column)
            kind = table.schema.field(column)
            table = table.set_column(place, kind, pa.repeat(value.cast(kind.type), table.num_rows))
        return table

    def _schema(self, name: str) -> pa.Schema:
        plan = self.standing.plan
        return result_schema(plan.queries[name]) if name in plan.queries else operator_schema(plan.operators[name])

    def _timing(self, name: str, bound: Bound | None, prod: Prod, held: Instants, before: tuple[Prod, ...]) -> Timing:
        """By the windows that hold a row of the groups that are asked for."""
        if bound is None or isinstance(bound.query.window, RowWindow):
            # The numbers of rows, by which such windows close, are no times.
            return Prod(groups=prod.groups).timing(NEVER, held, before)
        closed = self.standing.time(name)
        # The last window that it can ask for may end before its time.
        if ends_of(bound.panes).at_or_before(shift(prod.up_to, 1)) <= shift(closed, 1):
            return Timing.TOO_LATE
        return prod.timing(closed, held, before)


def asked_query(plan: BoundProgram, name: str, prod: Prod) -> Bound | None:
    """The query that a prod asks, None if it is an operator; an error if there is none, or none of its groups."""
    if name not in plan.operators:
        plan.program.query(name)
    bound = plan.queries.get(name)
    _check_groups(name, bound, prod.groups)
    return bound


def needed_for(plan: BoundProgram, name: str) -> frozenset[str]:
    """A query or operator, and all that it reads, directly or not.

    >>> from eventide.plan.binding import Way
    >>> ways = (Way("s", "sums", None), Way("sums", "most", None), Way("s", "other", None))
    >>> sorted(needed_for(BoundProgram(None, ways=ways), "most"))
    ['most', 's', 'sums']
    """
    found, waiting = set[str](), [name]
    while waiting:
        found.add(one := waiting.pop())
        waiting += [way.source for way in plan.ways_into(one) if way.source not in found]
    return frozenset(found)


def _lasts(table: pa.Table) -> Instants:
    """The last instants of the windows."""
    return np.asarray(table.column("window_end").cast(pa.int64()).to_numpy(), dtype=np.int64) - 1


def _asked(bound: Bound | None, prod: Prod, lasts: Instants) -> NDArray[np.bool_]:
    """Which windows are asked for; those over counts of rows all are."""
    over_rows = bound is not None and isinstance(bound.query.window, RowWindow)
    return np.ones(len(lasts), dtype=bool) if over_rows else prod.asks_for(lasts)


def _check_groups(name: str, bound: Bound | None, groups: Mapping[str, Any]) -> None:
    names = [] if bound is None else [group.name for group in bound.query.groups]
    for group in groups:
        if group not in names:
            known = f"it has {', '.join(names)}" if names else "it has none"
            raise DeclarationError(f"query {name!r} has no group {group!r} to prod: {known}")
