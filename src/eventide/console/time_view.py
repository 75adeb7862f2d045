"""The page *Time*: how far every stream and source has come, who holds time back, and what is being lost by it.

Law: the size of what is told does not grow with the sources. Of a stream with thousands it tells those that were asked
for by name, those furthest behind, and how all others are spread, by quantiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow.compute as pc

from eventide.console.history import RoundHistory
from eventide.console.subject import Look, Standing
from eventide.engine.introspection.status import SourceTimes, StreamStatus, source_times
from eventide.eventtime.instant import EDGE, NEVER, Instants
from eventide.eventtime.policies.drop_ratio.policy import permitted_ratio
from eventide.plan.declared.stream import Stream, TimeKind

MOST_SHOWN = 100
LINES = 8
"""Sources that are drawn as lines, unless more are asked for."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
SORTS = ("behind", "silent", "name", "late")
WORTH_A_RATIO = 100
"""Rows of a source from which on its share of late rows means something."""


def time_view(look: Look) -> dict[str, Any]:
    """All streams in a line each, and the sources of one."""
    standing, history, asked = look.standing, look.history, look.asked
    program, status = standing.program, standing.status
    names = [stream.name for stream in program.streams]
    chosen = asked.get("stream", "")
    chosen = chosen if chosen in names else _worst(status.streams)
    told = []
    for one, stream in zip(status.streams, program.streams, strict=True):
        entry = _stream(one, stream, standing)
        if one.name == chosen:
            entry |= _sources(standing, stream, history, asked)
        told.append(entry)
    return {"stream": chosen, "streams": told, "points": _points(history, program.streams, chosen, look.since)}


def _points(
    history: RoundHistory, streams: tuple[Stream, ...], chosen: str, since: int
) -> list[tuple[int, int, int | None]]:
    """Round, clock of the stream and its heartbeat; a round without rows moves no clock that is in the rows."""
    found: list[tuple[int, int, int | None]] = []
    own = any(stream.name == chosen and stream.arrival is not None for stream in streams)
    last: int | None = None
    for one in history.points(since):
        last = one.moments.get(chosen, last) if own else one.clock
        if last is not None:
            found.append((one.number, last, one.heartbeats.get(chosen)))
    return found


def _worst(streams: tuple[StreamStatus, ...]) -> str:
    """The stream that is furthest behind: what somebody who looks for trouble wants to see first."""
    return max(streams, key=lambda one: one.lag or 0).name if streams else ""


def _stream(one: StreamStatus, stream: Stream, standing: Standing) -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": one.name,
        "unitless": stream.time_kind is TimeKind.SEQUENCE,
        "rows": one.rows,
        "late": one.late,
        "rejected": one.rejected,
        "sources": one.sources,
        "heartbeat": one.heartbeat,
        "latest": one.latest,
        "lag": one.lag,
        "drop_ratio": one.drop_ratio,
        "recent_drop_ratio": one.recent_drop_ratio,
        "permitted": permitted_ratio(stream.policy),
        "left_out": [{"rule": str(out["rule"]), "count": out["count"]} for out in one.left_out],
        "clock": standing.status.clock,
        "holder": None,
    }
    if standing.progress is not None and stream.source:
        found = source_times(standing.progress, stream)
        told["clock"] = found.clock
        if len(found) and found.holds >= 0:
            told["holder"] = _source(found, found.holds)
    return told


def _sources(standing: Standing, stream: Stream, history: RoundHistory, asked: Mapping[str, str]) -> dict[str, Any]:
    """Those that are asked for, or the furthest behind, and how the others are spread."""
    if standing.progress is None:
        return {"shown": [], "matches": 0, "band": None}
    found = source_times(standing.progress, stream)
    late, rows = history.late_of(stream.name), history.rows_by_source(stream.name)
    matching = _matching(found, asked.get("find", ""))
    order = _ordered(found, matching, asked.get("sort", SORTS[0]), late)
    shown = []
    for number in order[: _count(asked.get("show", ""))].tolist():
        told = _source(found, number)
        name = str(found.names[number]) if number < len(found.names) else told["name"]
        told["rows"] = int(rows[number]) if number < len(rows) else 0
        told["late"] = late.get(name, 0)
        shown.append(told)
    waited = found.heartbeats[found.waited_for & (np.abs(found.heartbeats) < EDGE)]
    band = [int(one) for one in np.quantile(waited, QUANTILES)] if len(waited) else None
    return {
        "shown": shown,
        "matches": len(matching),
        "band": band,
        "waited": int(np.count_nonzero(found.waited_for)),
        "future": int(np.count_nonzero(_is_future(found))),
        "worst_source": _worst_source(found, late, rows),
    }


def _count(asked: str) -> int:
    return min(MOST_SHOWN, int(asked)) if asked.isascii() and asked.isdigit() and len(asked) < 6 else LINES


def _matching(found: SourceTimes, text: str) -> np.ndarray[Any, np.dtype[np.intp]]:
    """The numbers of the sources whose names have this text in them, whatever their capital letters."""
    everyone = np.arange(len(found))
    if not text:
        return everyone
    names = found.names.slice(0, len(found))
    same = pc.match_substring(names, text, ignore_case=True)
    return np.flatnonzero(same.to_numpy(zero_copy_only=False))


def _ordered(
    found: SourceTimes, numbers: np.ndarray[Any, np.dtype[np.intp]], sort: str, late: Mapping[str, int]
) -> np.ndarray[Any, np.dtype[np.intp]]:
    if sort == "silent":
        return numbers[np.argsort(found.heard[numbers], kind="stable")]
    if sort == "name":
        return numbers[np.argsort([found.name(int(one)) for one in numbers], kind="stable")]
    if sort == "late":
        return numbers[np.argsort([-late.get(str(found.names[int(one)]), 0) for one in numbers], kind="stable")]
    # Those that are waited for first: nobody is held back by the others.
    keys = (found.largest[numbers], found.heartbeats[numbers], ~found.waited_for[numbers])
    return numbers[np.lexsort(keys)]


def _source(found: SourceTimes, number: int) -> dict[str, Any]:
    rule = found.rule(number)
    state = "gone" if rule == "over" else "idle" if rule is not None else "waited for"
    return {
        "name": found.name(number),
        "heartbeat": _instant(found.heartbeats[number]),
        "largest": _instant(found.largest[number]),
        "heard": None if found.heard[number] == NEVER else int(found.heard[number]),
        "silent": found.silent(number),
        "rule": rule,
        "state": "holds" if number == found.holds else state,
        "future": bool(_is_future(found)[number]),
    }


def _is_future(found: SourceTimes) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which sources have told of a time that is further ahead of the clock than the stream permits."""
    if found.ahead is None:
        return np.zeros(len(found), dtype=np.bool_)
    largest: Instants = found.largest
    ahead: np.ndarray[Any, np.dtype[np.bool_]] = (largest > found.clock + found.ahead) & (largest < EDGE)
    return ahead


def _worst_source(found: SourceTimes, late: Mapping[str, int], rows: Instants) -> dict[str, Any] | None:
    """The source with the largest share of late rows, of those that had enough rows to have a share."""
    best: dict[str, Any] | None = None
    by_name = {str(found.names[number]): number for number in range(min(len(found.names), len(rows)))} if late else {}
    for name, count in late.items():
        number = by_name.get(name)
        if number is None or rows[number] < WORTH_A_RATIO:
            continue
        ratio = count / int(rows[number])
        if best is None or ratio > best["ratio"]:
            best = {"name": found.name(number), "ratio": ratio, "late": count, "rows": int(rows[number])}
    return best


def _instant(value: Any) -> int | None:
    return None if abs(int(value)) >= EDGE else int(value)
