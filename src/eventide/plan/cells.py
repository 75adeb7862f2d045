"""How finely the arrivals of a round are told to the policy.

Law: any width is correct; a narrow one is more precise, for within a cell a policy must take every row for the earliest
(see docs/decisions/0002). A policy that learns how late rows are gets cells of a second or less; one that only follows
the largest time of each source is served by cells as wide as the panes, which cost nothing extra.

>>> from eventide.eventtime.fixed_delay import FixedDelay
>>> from eventide.plan.stream import Stream, columns
>>> cell_width(Stream("s", columns("t TIMESTAMP"), time="t", policy=FixedDelay(5)), [60_000_000])
60000000
>>> cell_width(Stream("s", columns("t TIMESTAMP"), time="t"), [60_000_000])
250000
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from eventide.eventtime.declared import DeclaredSkew
from eventide.eventtime.fixed_delay import FixedDelay
from eventide.eventtime.on_demand import OnDemand
from eventide.eventtime.own_progress import OwnProgress
from eventide.eventtime.punctuated import Punctuated
from eventide.plan.stream import Stream, TimeKind

FOLLOWERS = (FixedDelay, OwnProgress, Punctuated, DeclaredSkew, OnDemand)
"""Policies that ask only how far each source has come."""

FINE = 250_000
"""Microseconds: as long as a short round, below which a finer summary could not make a promise come earlier."""


def cell_width(stream: Stream, panes: Sequence[int]) -> int:
    """The width of a cell for a stream whose queries have panes of these widths."""
    widest = min(panes, default=FINE)
    if _only_follows(stream.policy):
        return widest
    return min(FINE, widest) if stream.time_kind is not TimeKind.SEQUENCE else max(1, widest // 16)


def _only_follows(policy: Any) -> bool:
    """Whether a policy, and all it wraps, only follows."""
    inner = [getattr(policy, f.name) for f in fields(policy)] if is_dataclass(policy) else []
    wrapped = [part for one in inner for part in (one if isinstance(one, tuple) else (one,)) if hasattr(part, "start")]
    if wrapped:
        return all(_only_follows(part) for part in wrapped)
    return isinstance(policy, FOLLOWERS)
