"""The sources that a stream may have, where its policy knows each of them by name.

Law: bounds between named sources say nothing of any other. Its rows could never be waited for, and no promise would
hold for them, so they are rejected with the reason, like rows without a time; the stream goes on.

>>> from eventide.eventtime.declared import DeclaredSkew
>>> from eventide.eventtime.skew_systems import distributed_sensors
>>> from eventide.eventtime.timeout import Timeout
>>> from eventide.plan.columns import columns
>>> policy = Timeout(DeclaredSkew(distributed_sensors([1, 1], latency=[5, 5])), 60)
>>> declared = columns("ts TIMESTAMP, device STRING")
>>> bounded_sources(Stream("s", declared, time="ts", source=("device",), policy=policy, known=("a", "it's")))
"`device` IN ('a', 'it\\\\'s')"
>>> bounded_sources(Stream("s", declared, time="ts", source=("device",), known=("a", "b"))) is None
True
"""

from __future__ import annotations

from functools import cache

from sqlglot import exp

from eventide.eventtime.declared import DeclaredSkew
from eventide.eventtime.heartbeat import Policy
from eventide.plan.columns import WHOLE_NUMBERS, quoted
from eventide.plan.expressions import SPARK
from eventide.plan.stream import Stream

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
    return ", ".join(exp.Literal.string(name).sql(SPARK) for name in names)


def _has_bounds(policy: Policy) -> bool:
    """Whether bounds are at the bottom of what wraps them."""
    inner = getattr(policy, "inner", None)
    return isinstance(policy, DeclaredSkew) or (inner is not None and _has_bounds(inner))
