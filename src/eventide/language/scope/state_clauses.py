"""STATE TTL and EMIT CHANGES behind a SELECT: how long state lives that no window ends, and when it is shown.

Laws. What no window and no band of time ever ends may run where the statement says how long its state lives, in the
time of the stream; FOREVER is an answer, too. It is said for all of the statement: for aggregates without a window, and
for joins that relate no times, of which rows at most that far apart are then pairs. Words that nothing in the statement
has a use for are refused: a window ends by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.language.grammar.clauses import FOREVER
from eventide.language.grammar.nodes import Amount, Amounts, Clause
from eventide.language.grammar.source_text import SourceText
from eventide.plan.declared.program import Step
from eventide.plan.declared.query import Query
from eventide.plan.declared.window import LONGEST_GAP, LifeWindow

STATE_TTL, CHANGES = "STATE TTL", "EMIT CHANGES"


@dataclass
class StateRequest:
    """What a statement says of its state: the clauses STATE TTL and EMIT CHANGES, where they are written."""

    source: SourceText
    ttl: Clause | None = None
    changes: Clause | None = None
    used: bool = False
    """Whether something has asked how long its state lives."""

    @classmethod
    def of(cls, written: Sequence[Clause], source: SourceText) -> StateRequest:
        """The clauses among those behind a SELECT."""
        clauses = {str(clause.this): clause for clause in written}
        return cls(source, clauses.get(STATE_TTL), clauses.get(CHANGES))

    def length(self, amounts: Amounts) -> int | None:
        """For how long state lives, in the stream's time; None where that is not said."""
        if self.ttl is None:
            return None
        self.used = True
        [given] = self.ttl.expressions
        if not isinstance(given, Amount):
            return LONGEST_GAP
        length = amounts.length(given, STATE_TTL)
        if length <= 0:
            raise self.source.error(f"{STATE_TTL} {given.sql()} is no length: give more than 0, or {FOREVER}", given)
        if length >= LONGEST_GAP:
            raise self.source.error(f"{STATE_TTL} {given.sql()} is over 10,000 years", given, f"write {FOREVER}")
        return length

    def settled(self, step: Step) -> Step:
        """The statement as the clauses want it; those that it has no use for are refused."""
        lives = isinstance(step, Query) and isinstance(step.window, LifeWindow)
        if self.changes is not None and not lives:
            raise self._no_changes(step, self.changes)
        if self.ttl is not None and not self.used:
            raise self.source.error(
                f"{STATE_TTL} says how long state lives that nothing ends, and all that is kept here ends by itself",
                self.ttl,
                "leave it out",
            )
        if self.changes is None:
            return step
        assert isinstance(step, Query)
        try:
            return replace(step, changes=True)
        except DeclarationError as error:
            raise self.source.error(str(error), self.changes) from error

    def _no_changes(self, step: Step, at: exp.Expr) -> Exception:
        if isinstance(step, Query):
            return self.source.error(
                f"{CHANGES} is for aggregates that no window ends",
                at,
                "results of a window come when it is over; PROD EVERY 10 seconds asks for early ones",
            )
        return self.source.error(
            f"{CHANGES} is for aggregates, and these are rows", at, "rows do not change: leave it out"
        )
