"""STATE TTL and EMIT CHANGES behind a SELECT: how long state may live that no window ends, and when it is shown.

Law: what no window and no band of time ever ends may run where the statement says how long its state lives, in the time
of the stream; FOREVER is an answer, too. Words that do not apply are refused: a window ends by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eventide.language.grammar.clauses import FOREVER
from eventide.language.grammar.nodes import Amount, Amounts, Clause
from eventide.language.grammar.source_text import SourceText
from eventide.plan.declared.window import LONGEST_GAP

STATE_TTL, CHANGES = "STATE TTL", "EMIT CHANGES"
EXAMPLE = f"{STATE_TTL} 1 day"


@dataclass(frozen=True)
class StateRequest:
    """What a statement says of its state: the clauses STATE TTL and EMIT CHANGES, where they are written."""

    source: SourceText
    ttl: Clause | None = None
    changes: Clause | None = None

    @classmethod
    def of(cls, written: Sequence[Clause], source: SourceText) -> StateRequest:
        """The clauses among those behind a SELECT."""
        clauses = {str(clause.this): clause for clause in written}
        return cls(source, clauses.get(STATE_TTL), clauses.get(CHANGES))

    def length(self, amounts: Amounts) -> int | None:
        """For how long state lives, in the stream's time; None where that is not said."""
        if self.ttl is None:
            return None
        [given] = self.ttl.expressions
        if not isinstance(given, Amount):
            return LONGEST_GAP
        length = amounts.length(given, STATE_TTL)
        if length <= 0:
            raise self.source.error(f"{STATE_TTL} {given.sql()} is no length: give more than 0, or {FOREVER}", given)
        if length > LONGEST_GAP:
            raise self.source.error(f"{STATE_TTL} {given.sql()} is over 10,000 years", given, f"write {FOREVER}")
        return length

    def refuse_where_windows_close(self) -> None:
        """Refuse the clauses of a statement whose windows end by themselves."""
        if self.changes is not None:
            raise self.source.error(
                f"{CHANGES} is for aggregates that no window ends",
                self.changes,
                "results of a window come when it is over; PROD EVERY 10 seconds asks for early ones",
            )
        self.refuse_for_rows()

    def refuse_for_rows(self) -> None:
        """Refuse the clauses of a statement that keeps nothing which could be forgotten."""
        if self.changes is not None:
            raise self.source.error(
                f"{CHANGES} is for aggregates, and these are rows", self.changes, "rows do not change: leave it out"
            )
        if self.ttl is not None:
            raise self.source.error(
                f"{STATE_TTL} says how long state lives that nothing ends, and all that is kept here ends by itself",
                self.ttl,
                "leave it out",
            )
