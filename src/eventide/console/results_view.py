"""The page *Results*: the last results of a query, what is still open and why, and what early answers were worth.

Law: at most `ROWS` rows of one query leave, the newest ones; nothing else of any stream. The sentence about an open
window is that of `eventide why`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from eventide.console.history import ROWS, cell
from eventide.console.subject import Learned, Look, Standing
from eventide.plan.declared.query import Query
from eventide.plan.declared.stream import TimeKind
from eventide.report.why import window_words
from eventide.results.breakdown import PER_SLIDE
from eventide.results.results import EarlyColumns

OPEN = 12
"""Open windows that are told; the others are counted."""
HIDDEN = ("query", "heartbeat")


def results_view(look: Look) -> dict[str, Any]:
    """One query: new rows, open windows, accuracy."""
    standing, history = look.standing, look.history
    program = standing.program
    queries = [step.name for step in program.steps]
    chosen = look.asked.get("query", "")
    chosen = chosen if chosen in queries else next((name for name in queries if history.results[name]), queries[0])
    step = next(one for one in program.steps if one.name == chosen)
    kept = history.rows_of(chosen, look.since)
    told: dict[str, Any] = {
        "query": chosen,
        "queries": queries,
        "unitless": program.times_of(chosen) is TimeKind.SEQUENCE,
        "total": history.results[chosen],
        "groups": [group.name for group in step.groups] if isinstance(step, Query) else [],
        "columns": [],
        "rows": [],
        "open": [],
        "open_count": 0,
        "accuracy": None,
    }
    if kept:
        table = pa.concat_tables([one.table for one in kept], promote_options="default")
        table = table.slice(max(0, table.num_rows - ROWS))
        told |= rows_data(table)
    if isinstance(step, Query):
        told |= _open(standing, chosen)
    if chosen in standing.early:
        told["accuracy"] = _accuracy(standing.early[chosen])
    return told


def rows_data(table: pa.Table) -> dict[str, Any]:
    """Names, kinds and values of columns: `window`, `kind`, `group`, `value`, or `about` another column."""
    early = EarlyColumns.of(table.column_names)
    names = [name for name in table.column_names if name not in HIDDEN]
    added = frozenset() if early is None else early.added
    columns = [
        {
            "name": name,
            "role": _role(name, added),
            "number": pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type),
            "time": pa.types.is_timestamp(type),
        }
        for name, type in ((name, table.schema.field(name).type) for name in names)
    ]
    values = [[cell(value) for value in table.column(name).to_pylist()] for name in names]
    return {"columns": columns, "rows": [list(row) for row in zip(*values, strict=True)]}


def _role(name: str, added: frozenset[str]) -> str:
    if name in ("window_start", "window_end"):
        return "window"
    if name in ("kind", "round", "rows"):
        return name
    return "about" if name in added else "value"


def _open(standing: Standing, query: str) -> dict[str, Any]:
    """The windows that are open, the next one to close first, with why."""
    progress = standing.progress
    if progress is None or query not in progress.record.queries:
        return {}
    windows = progress.windows(query, most=OPEN)
    return {
        "open": [
            {
                "start": one.start,
                "end": one.end,
                "closes_at": one.closes_at,
                "rows_missing": one.rows,
                "words": window_words(one),
            }
            for one in windows
        ],
        "open_count": len(progress.open(query).open()),
        "noun": progress.open(query).noun,
    }


def _accuracy(learned: Learned) -> dict[str, Any]:
    """What early answers were worth, and the expected error and completeness by how early they came."""
    summary, known = learned.summary, np.flatnonzero(learned.by_point.windows)
    curve = [
        {
            "point": float(place) / PER_SLIDE,
            "errors": [None if np.isnan(e) else float(e) for e in learned.by_point.error(float(place) / PER_SLIDE)],
            "completeness": cell(learned.by_point.completeness(float(place) / PER_SLIDE)),
        }
        for place in known
    ]
    return {
        "windows": summary.windows,
        "error": summary.error,
        "recent": summary.recent,
        "worst": summary.worst,
        "gain": summary.gain,
        "values": list(learned.values),
        "curve": curve,
    }
