"""What rules may ask of a stream or a query: the values of `STREAM_MEASURES` and `QUERY_MEASURES`, by name.

Law: only what a rule speaks of is looked up, from the last committed round; None stands for what is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from eventide.engine.operators.placement import state_bytes, state_rows
from eventide.engine.round.engine import Engine
from eventide.engine.round.report import RoundReport
from eventide.eventtime.instant import EDGE
from eventide.plan.declared.alert import AlertRule
from eventide.plan.declared.program import streams_below
from eventide.plan.declared.stream import TimeKind

SECOND = 1_000_000


class MeasureBook:
    """Counts what no status keeps, and looks up the rest."""

    def __init__(self, engine: Engine, now: Callable[[], float]) -> None:
        self._engine, self._now = engine, now
        self._began = now()
        self._heard: dict[str, float] = {}
        self._results: Counter[str] = Counter()

    def note(self, work: RoundReport) -> None:
        """Take a committed round into account."""
        now = self._now()
        self._heard.update({name: now for name, cells in work.arrivals.items() if cells.total})
        for name, results in work.results.items():
            if results.rows:
                self._heard[name] = now
                self._results[name] += results.rows

    def of(self, rule: AlertRule) -> dict[str, float | None]:
        """The values that a rule speaks of."""
        of_stream = rule.of in self._engine.streams
        looks = self._of_stream(rule.of) if of_stream else self._of_query(rule.of)
        return {name: looks[name]() for name in rule.reads}

    def _of_stream(self, name: str) -> Mapping[str, Callable[[], float | None]]:
        status = self._engine.state.stream_status[name]
        unit = 1 if status.unitless else SECOND
        return {
            "lag": lambda: None if status.lag is None else status.lag / unit,
            "silence": lambda: self._silence(name),
            "rows": lambda: status.rows,
            "late_rows": lambda: status.late,
            "late_ratio": lambda: status.recent_drop_ratio,
            "rejected_rows": lambda: status.rejected,
            "sources": lambda: status.sources,
        }

    def _of_query(self, name: str) -> Mapping[str, Callable[[], float | None]]:
        engine = self._engine
        operator, work = engine.state.operators.get(name), engine.work.get(name)
        return {
            "lag": lambda: self._lag(name),
            "silence": lambda: self._silence(name),
            "results": lambda: self._results[name],
            "state_rows": lambda: None if operator is None else state_rows(operator),
            "state_bytes": lambda: None if operator is None else state_bytes(operator),
            "open_slices": lambda: None if operator is None else len(operator.holds),
            "early_error": lambda: self._early_error(name),
            "selectivity": lambda: None if work is None else work.selectivity,
            "seconds_per_row": lambda: None if work is None else work.seconds_per_row,
        }

    def _silence(self, name: str) -> float:
        return self._now() - self._heard.get(name, self._began)

    def _lag(self, name: str) -> float | None:
        engine = self._engine
        if name not in engine.state.operators:
            return None
        below = streams_below(engine.program, name)
        latest, reached = max(engine.state.latest(one) for one in below), engine.state.reached(name)
        numbers = {engine.program.times_of(one) is TimeKind.SEQUENCE for one in (name, *below)}
        if abs(latest) >= EDGE or abs(reached) >= EDGE or len(numbers) > 1:
            # Windows over counts of rows go by their numbers, which are no times.
            return None
        return max(0, latest - reached) / (1 if numbers == {True} else SECOND)

    def _early_error(self, name: str) -> float | None:
        state = self._engine.early.states.get(name)
        return None if state is None else state.accuracy.summary().recent
