"""Why a window is open, as plain data: for JSON, and for the status.

Times are int64 as inside, lengths too; None where there is none.
"""

from __future__ import annotations

from typing import Any

from eventide.engine.introspection.why import (
    FIRST_FEW,
    OpenWindow,
    OperatorWait,
    ProgressReport,
    SlowSource,
    StreamWait,
    Wait,
)
from eventide.plan.declared.stream import Stream

Json = dict[str, Any]


def window_data(window: OpenWindow) -> Json:
    """An open window as plain data."""
    return {
        "window_start": window.start,
        "window_end": window.end,
        "rows_missing": window.rows,
        "waits_for": wait_data(window.wait),
        "closes_at": window.closes_at,
    }


def wait_data(wait: Wait) -> Json:
    """What is waited for: a stream, or a query and what that waits for."""
    if isinstance(wait, StreamWait):
        return {
            "stream": wait.stream.name,
            "needed": wait.needed,
            "heartbeat": wait.heartbeat,
            "since": wait.since,
            "rule": wait.reason.as_data(),
            "sources": [_holder(holder) for holder in wait.holders],
            "count": wait.count,
        }
    if isinstance(wait, OperatorWait):
        return {
            wait.kind: wait.operator,
            "needed": wait.needed,
            "partners": wait.partners,
            **({"queued": wait.queued, "set_aside": wait.aside} if wait.kind == "queue" else {}),
            "waits_for": [wait_data(one) for one in wait.inputs],
        }
    return {
        "query": wait.query,
        "needed": wait.needed,
        "rows_missing": wait.rows,
        "waits_for": wait_data(wait.below),
    }


def next_data(progress: ProgressReport, query: str) -> Json | None:
    """The next window of a query to close and what it waits for; None where nothing is open."""
    found = progress.first(query)
    return None if found is None else {"window_start": found[0], **wait_data(found[1])}


def operator_data(progress: ProgressReport, name: str) -> Json | None:
    """How far an operator has come and what it waits for; None where it does not run by itself."""
    found = progress.operator(name)
    return None if found is None else {"time": found[0], **wait_data(found[1])}


def left_out_data(progress: ProgressReport, stream: Stream) -> list[Json]:
    """The sources of a stream that nobody waits for: by which rule, how many, and the first few by name."""
    found = []
    for out in progress.left_out(stream):
        names = [progress.source(stream, int(source)) for source in out.sources[:FIRST_FEW]]
        found.append({**out.reason.as_data(), "count": len(out.sources), "sources": names})
    return found


def _holder(holder: SlowSource) -> Json:
    return {
        "source": holder.name,
        "heartbeat": holder.heartbeat,
        "largest": holder.largest,
        "heard": holder.heard,
        "silent": holder.idle,
        "rule": holder.reason.as_data(),
    }
