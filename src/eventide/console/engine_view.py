"""The page *Engine*: rounds and how long their steps take, what is kept, what waits, and what was logged."""

from __future__ import annotations

from typing import Any

from eventide.console.subject import Look, about_data
from eventide.engine.round.report import STEPS


def engine_view(look: Look) -> dict[str, Any]:
    """The run, its rounds, and its state."""
    standing = look.standing
    status = standing.status
    points = [
        [one.number, round(one.wall, 3), one.rows, one.results, *(round(each, 5) for each in one.seconds)]
        for one in look.history.points(look.since)
    ]
    return {
        "steps": STEPS,
        "points": points,
        "about": about_data(standing.about),
        "log": look.log,
        "warnings": list(status.warnings),
        "scheduling": dict(status.scheduling),
        "state": [
            {"name": one.name, "place": one.placement, "rows": one.state_rows, "bytes": one.state_bytes}
            for one in status.queries
        ],
        "backlog": [
            {"stream": one.name, "partition": name, "rows": rows}
            for one in status.streams
            for name, rows in one.backlog.items()
        ],
    }
