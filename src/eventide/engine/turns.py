"""The operators of one round as the scheduler sees them: who has given what, who waits for whom, who is asked.

Laws. Every query and operator has a turn in every round, after all that it reads; a further turn when an answer of a
silent stream has moved what it reads. A silent stream is asked when an operator has rows, or an open window, that only
its heartbeat, and those of other silent streams, hold up (Stream Mill paper, section 4); in that same round. *Held*:
where an operator goes by more streams than it reads (`heartbeat_labels`), it goes no further than the least of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from eventide.engine.frontiers import before_holes, least_time, of_stream
from eventide.engine.groupwise_run import GroupwiseRun
from eventide.engine.holding import Holding
from eventide.engine.operator_run import Frontier
from eventide.engine.query_run import QueryRun
from eventide.engine.work import Round, Run
from eventide.eventtime.instant import FOREVER
from eventide.plan.stream import Stream


class Turns:
    """An `Execution` (`eventtime.on_demand_schedule`) over the runs of a round.

    `turn` lets one of them run and says whether it told a row; `promise` is what a silent stream answers.
    """

    def __init__(
        self,
        work: Round,
        holding: Holding,
        streams: Mapping[str, Stream],
        turn: Callable[[Round, str], bool],
        promise: Callable[[str], int],
    ) -> None:
        self._work = work
        self._holding = holding
        self._shape = holding.shape
        self._streams = streams
        self._turn = turn
        self._promise = promise
        self._had_turn: set[str] = set()
        self._news = {(source, reader) for source in streams for reader in self._shape.readers(source)}

    def gives(self, operator: str, reader: str) -> bool:
        """Whether a reader has not taken what was given, or has had no turn yet."""
        return (operator, reader) in self._news

    def run(self, operator: str) -> None:
        """A turn; whoever reads it has news if it told a row or moved time, and in its first turn always."""
        self._news.difference_update((read, operator) for read in self._shape.inputs(operator))
        before = self._work.frontiers.get(operator)
        told = self._turn(self._work, operator)
        first = operator not in self._had_turn
        self._had_turn.add(operator)
        if first or told or self._work.frontiers[operator] != before:
            self._news.update((operator, reader) for reader in self._shape.readers(operator))

    def waits_for(self, operator: str, silent: tuple[str, ...]) -> str | None:
        """The slowest of the silent inputs, if an operator has something that they alone hold up."""
        if not silent:
            return None
        known = {**self._work.frontiers, **dict.fromkeys(silent, Frontier(FOREVER))}
        waits = would_tell(self._work, self._holding, operator, known)
        return self.slowest(operator, silent) if waits else None

    def slowest(self, operator: str, silent: tuple[str, ...]) -> str:
        """The input that has come least far."""
        return min(silent, key=lambda read: self._work.frontiers[read].time)

    def ask(self, source: str) -> bool:
        """Ask a silent stream how far its time has come; whether that is further than before."""
        heartbeat, readers = self._promise(source), self._shape.readers(source)
        if heartbeat > self._work.heartbeats[source]:
            self._work.heartbeats[source] = heartbeat
            self._work.frontiers[source] = of_stream(self._streams[source], heartbeat)
        else:
            # Some of its sources may have moved, though not all of them.
            readers = tuple(one for one in readers if isinstance(self._work.runs.get(one), GroupwiseRun))
        self._news.update((source, reader) for reader in readers)
        return bool(readers)


def would_tell(work: Round, holding: Holding, operator: str, known: Mapping[str, Frontier]) -> bool:
    """Whether a query or operator would close a window or tell or free a row, if its inputs had come so far."""
    inputs = holding.inputs(operator, known)
    if operator in work.operators:
        run = work.operators[operator]
        return run.rows > 0 and run.would_tell({way.name: frontier for way, frontier in inputs})
    frontiers = [frontier for _, frontier in inputs]
    return could_close(before_holes(work.runs[operator], frontiers), least_time(frontiers))


def could_close(run: Run, heartbeat: int) -> bool:
    """Whether a heartbeat would close a window; after the last heartbeat, whatever is open closes."""
    if heartbeat == FOREVER and isinstance(run, QueryRun):
        # Without the list of all windows, which may be long.
        return len(run.holds) > 0 or run.following is not None
    return run.would_close(heartbeat)
