"""Arrivals of a round as the policy of their stream needs them: how finely counted, and of which sources.

How finely the arrivals of a round are told to the policy.

Law: any width is correct; a narrow one is more precise, for within a cell a policy must take every row for the earliest
(see docs/decisions/0002). A policy that learns how late rows are gets cells of a second or less; one that only follows
the largest time of each source is served by cells as wide as the panes, which cost nothing extra.

>>> from eventide.eventtime.policies.fixed_delay import FixedDelay
>>> from eventide.plan.declared.stream import Stream, columns
>>> cell_width(Stream("s", columns("t TIMESTAMP"), time="t", policy=FixedDelay(5)), [60_000_000])
60000000
>>> cell_width(Stream("s", columns("t TIMESTAMP"), time="t"), [60_000_000])
250000

The sources that a stream may have, where its policy knows each of them by name.

Law: bounds between named sources say nothing of any other. Its rows could never be waited for, and no promise would
hold for them, so they are rejected with the reason, like rows without a time; the stream goes on.

>>> from eventide.eventtime.policies.skew.declared import DeclaredSkew
>>> from eventide.eventtime.policies.skew.per_source import distributed_sensors
>>> from eventide.eventtime.policies.wrappers.timeout import Timeout
>>> from eventide.plan.expressions.columns import columns
>>> policy = Timeout(DeclaredSkew(distributed_sensors([1, 1], latency=[5, 5])), 60)
>>> declared = columns("ts TIMESTAMP, device STRING")
>>> bounded_sources(Stream("s", declared, time="ts", source=("device",), policy=policy, known=("a", "it's")))
"`device` IN ('a', 'it\\\\'s')"
>>> bounded_sources(Stream("s", declared, time="ts", source=("device",), known=("a", "b"))) is None
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.on_demand import OnDemand
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.eventtime.policies.skew.declared import DeclaredSkew
from eventide.plan.declared.stream import Stream, TimeKind
from eventide.plan.expressions.columns import WHOLE_NUMBERS, literal, quoted

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


NO_BOUNDS = "no bounds for its source"


def bounded_sources(stream: Stream) -> str | None:
    """The condition under which a row is of a source with bounds, unknown where it has none; None where all have."""
    if not stream.known or len(stream.source) != 1 or not _has_bounds(stream.policy):
        return None
    column = stream.column(stream.source[0])
    if column.type != "STRING" and column.type not in WHOLE_NUMBERS:
        return None
    name = quoted(column.name) if column.type == "STRING" else f"CAST({quoted(column.name)} AS STRING)"
    return f"{name} IN ({_listed(stream.known)})"


@cache
def _listed(names: tuple[str, ...]) -> str:
    """Names as SQL writes them: hundreds would take milliseconds of every round."""
    return ", ".join(map(literal, names))


def _has_bounds(policy: Policy) -> bool:
    """Whether bounds are at the bottom of what wraps them."""
    inner = getattr(policy, "inner", None)
    return isinstance(policy, DeclaredSkew) or (inner is not None and _has_bounds(inner))
