"""The operators of one round as the scheduler sees them: who has news for whom, who waits, who is asked.

Laws. Every operator has a turn in every round, after all that it reads; a further turn when an answer of an idle stream
has moved what it reads. An idle stream is asked when an operator has rows, or an open window, that only its heartbeat,
and those of other idle streams, hold up (Stream Mill paper, section 4); in that same round.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eventide.engine.operators.frontier import Frontier
from eventide.eventtime.instant import FOREVER

if TYPE_CHECKING:
    from eventide.engine.round.advance import Advancing


class RoundExecution:
    """Adapts the operators of a round to the depth-first scheduler (`eventtime.on_demand_schedule.Execution`)."""

    def __init__(self, advancing: Advancing) -> None:
        self._advancing = advancing
        self._shape = advancing.step.limits.shape
        self._had_turn: set[str] = set()
        self._news = {(stream, reader) for stream in advancing.step.streams for reader in self._shape.readers(stream)}

    @property
    def _frontiers(self) -> Mapping[str, Frontier]:
        return self._advancing.frontiers

    def gives(self, operator: str, reader: str) -> bool:
        """Whether a reader has not taken what was given, or has had no turn yet."""
        return (operator, reader) in self._news

    def run(self, operator: str) -> None:
        """A turn; whoever reads it has news if it emitted a row or moved time, and in its first turn always."""
        self._news.difference_update((read, operator) for read in self._shape.inputs(operator))
        before = self._frontiers.get(operator)
        emitted = self._advancing.turn(operator)
        first = operator not in self._had_turn
        self._had_turn.add(operator)
        if first or emitted or self._frontiers[operator] != before:
            self._news.update((operator, reader) for reader in self._shape.readers(operator))

    def waits_for(self, operator: str, silent: tuple[str, ...]) -> str | None:
        """The slowest of the idle inputs, if an operator has something that they alone hold up."""
        if not silent:
            return None
        known = {**self._frontiers, **dict.fromkeys(silent, Frontier(FOREVER))}
        return self.slowest(operator, silent) if self._advancing.would_emit(operator, known) else None

    def slowest(self, operator: str, silent: tuple[str, ...]) -> str:
        """The input that has come least far."""
        return min(silent, key=lambda read: self._frontiers[read].time)

    def ask(self, source: str) -> bool:
        """Ask an idle stream how far its time has come; whether that moves someone."""
        readers = self._shape.readers(source)
        if not self._advancing.ask(source):
            # Some of its sources may have moved, though not all of them: that moves who closes source by source.
            by_source = self._advancing.step.closing_by_source
            readers = tuple(reader for reader in readers if reader in by_source)
        self._news.update((source, reader) for reader in readers)
        return bool(readers)
