"""The time of several inputs together: which columns carry it in all of them, in the same way."""

from __future__ import annotations

from sqlglot import exp

from eventide.language.known import Clock
from eventide.language.source_text import SourceText
from eventide.plan.declared.stream import TimeKind


def common_clock(clocks: list[Clock], at: exp.Expr, source: SourceText) -> Clock:
    """Which columns carry time in all of them; times must be of one kind."""
    sequences = {clock.kind is TimeKind.SEQUENCE for clock in clocks}
    if len(sequences) > 1:
        raise source.error(
            "the time of one counts in numbers and that of the other is a time, so their rows have no common order",
            at,
            "declare the time of both as a TIMESTAMP, or of both as a number",
        )
    first, *others = clocks
    shared = {
        name: told for name, told in first.carried.items() if all(other.carried.get(name) == told for other in others)
    }
    follow = {
        name: told
        for name, told in {**first.follow, **first.carried}.items()
        if name not in shared and all({**other.follow, **other.carried}.get(name) == told for other in others)
    }
    return Clock(first.kind if len({clock.kind for clock in clocks}) == 1 else TimeKind.TIMESTAMP, shared, follow)
