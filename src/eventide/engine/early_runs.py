"""Queries as they answer a prod: from all that they hold now, without closing anything.

Law: a prodded run is a copy that is thrown away. Its `advance` tells what the query would tell if the heartbeat were
true: every window of time up to it, from closed and open slices alike. Windows over counts of rows are told as they
are, those that are not full too; rows that wait for their number are in them. What it tells comes in as rows on the
level above, so an early answer of a plan of any depth is the plan over the rows that have arrived: the sweep of the
prodding thesis, section 3.3. Nothing has to be purged or accumulated for it, because nothing is changed.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.answers import nothing
from eventide.engine.cluster_slices import Cluster, ClusterSlices
from eventide.engine.groupwise_run import GroupwiseRun
from eventide.engine.operator_run import OperatorRun
from eventide.engine.query_run import QueryRun
from eventide.engine.queue_run import QueueRun
from eventide.engine.row_run import RowRun
from eventide.engine.taken import Answer, Answers, Taken
from eventide.engine.windows import closing
from eventide.engine.work import Run
from eventide.eventtime.instant import EDGE, FOREVER, NEVER


@dataclass(frozen=True)
class EarlyQueryRun(QueryRun):
    """A query over windows of time that is asked early."""

    def advance(
        self, heartbeat: int, taken: Taken | None = None, latest: int = NEVER, most: int | None = None
    ) -> tuple[QueryRun, Answers]:
        """What it would tell at this heartbeat, however much that is; slices are left as they are."""
        bound = self._bound_after(heartbeat)
        panes = self.slices.panes
        windows = self._shown(closing(self.query.panes, panes, self.told, bound))
        if (settled := self._settled(panes)) is not None:
            windows = pa.concat_tables([settled, windows])
        told = self.slices.answer(windows) if windows.num_rows else Answer.of(nothing(self.query))
        told, following = self._with_empty(told, panes, windows, bound, latest)
        run = replace(self, bound=bound, following=following, told=bound)
        return run, Answers(told, Answer.of(nothing(self.query)))


@dataclass(frozen=True)
class EarlyRowRun(RowRun):
    """A query over windows of row counts that is asked early."""

    def advance(
        self, heartbeat: int, taken: Taken | None = None, latest: int = NEVER, most: int | None = None
    ) -> tuple[RowRun, Answers]:
        """The windows that are not told yet, full or not, of the rows up to this heartbeat."""
        run = self._numbering(max(self.bound, heartbeat + 1 if -EDGE < heartbeat < EDGE else heartbeat))
        windows = closing(self.query.panes, run.slices.panes, self.answered or NEVER, FOREVER)
        windows = windows.filter(pc.greater_equal(windows.column("window_start"), 0))
        told = run.slices.answer(windows) if windows.num_rows else Answer.of(nothing(self.query))
        # Whoever reads it has all that there is.
        return replace(run, answered=FOREVER), Answers(told, Answer.of(nothing(self.query)))


def passing(run: OperatorRun) -> OperatorRun:
    """An operator as a prod goes through it: rows in a queue stay there, and nobody waits for them."""
    return run.told_nothing() if isinstance(run, QueueRun) else run


def prodded(run: Run, sources: pa.Array, cluster: Cluster | None) -> Run:
    """A copy of a run that answers early; `sources` are those of its stream, by number.

    Slices on the cluster are merged by the `cluster` of this asking.
    One that closes source by source answers as it does in a round: each source up to where the prod goes.
    """
    if isinstance(run, GroupwiseRun):
        return run.meeting(sources, run.beats)
    if isinstance(run, RowRun):
        return EarlyRowRun(**{field.name: getattr(run, field.name) for field in fields(run)})
    early = EarlyQueryRun(**{field.name: getattr(run, field.name) for field in fields(run)})
    if isinstance(early.slices, ClusterSlices) and cluster is not None:
        return replace(early, slices=replace(early.slices, cluster=cluster))
    return early
