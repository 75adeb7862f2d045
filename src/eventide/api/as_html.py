"""A running query as a small HTML table, for notebooks: how it stands, and its last results.

>>> from eventide.engine.status import StreamStatus
>>> traffic = StreamStatus("traffic", 10, 10, 1, 0, 0, 0.1, 0.1, 2, 1_000_000, 3_000_000, 2_000_000)
>>> shown = html_of("speeds", "running", Status("local", 3, 0, False, (traffic,), ()), pa.table({"mean": [51.5]}), {})
>>> "traffic: 10 rows of 2 sources, 10.00% late, time at 1000000" in shown, "<td>51.5</td>" in shown
(True, True)
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any

import pyarrow as pa

from eventide.engine.status import Status, StreamStatus
from eventide.plan.stream import TimeKind

SHOWN = 20
"""Results that are shown: the last ones."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def html_of(name: str, state: str, status: Status, results: pa.Table | None, kinds: Mapping[str, TimeKind]) -> str:
    """A heading, a line for each stream, and the last results where they are kept; `kinds` are by stream."""
    lines = [_line(stream, kinds.get(stream.name, TimeKind.SEQUENCE), status.ended) for stream in status.streams]
    head = f"<b>{escape(name)}</b> {escape(state)}, round {status.round}"
    said = "".join(f"<br>{escape(line)}" for line in lines)
    return f"<div>{head}{said}{'' if results is None else _table(results)}</div>"


def _line(stream: StreamStatus, kind: TimeKind, ended: bool) -> str:
    sources = "1 source" if stream.sources == 1 else f"{stream.sources:,} sources"
    rows = f"{stream.name}: {stream.rows:,} rows of {sources}, {stream.drop_ratio:.2%} late"
    if stream.heartbeat is None:
        return f"{rows}, {'every window is closed' if ended else 'no window can close yet'}"
    if kind is TimeKind.SEQUENCE:
        return f"{rows}, time at {stream.heartbeat}"
    try:
        shown = (EPOCH + timedelta(microseconds=stream.heartbeat)).isoformat(sep=" ", timespec="milliseconds")
    except OverflowError:
        shown = str(stream.heartbeat)
    return f"{rows}, time at {shown}"


def _table(results: pa.Table) -> str:
    last = results.slice(max(0, results.num_rows - SHOWN)).to_pylist()
    names = [name for name in results.column_names if name not in ("query", "heartbeat")]
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{_value(row[name])}</td>' for name in names)}</tr>" for row in reversed(last))
    more = f"<caption>the last {len(last)} of {results.num_rows:,} results, newest first</caption>"
    return f"<table>{more}<tr>{head}</tr>{body}</table>"


def _value(value: Any) -> str:
    return escape(value.isoformat(sep=" ") if isinstance(value, datetime) else str(value))
