"""A running query as a small HTML table, for notebooks: how it stands, and its last results.

>>> from eventide.engine.introspection.status import StreamStatus
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

from eventide.engine.introspection.status import Status, StreamStatus
from eventide.plan.declared.stream import TimeKind
from eventide.results.early_columns import EarlyColumns, readings
from eventide.results.results import Kind

SHOWN = 20
"""Results that are shown: the last ones."""

LOOKED_AT = 500
"""Results among which an early one may have been told again."""

PALE = ' style="opacity: 0.6; font-style: italic"'
"""How early rows look, until the final ones take their place."""

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
    early = EarlyColumns.of(results.column_names)
    last = results.slice(max(0, results.num_rows - LOOKED_AT))
    last = last if early is None else early.latest(last)
    last = last.slice(max(0, last.num_rows - SHOWN))
    texts = {name: [_value(value) for value in last.column(name).to_pylist()] for name in last.column_names}
    texts |= {} if early is None else readings(early, last, texts)
    hidden = {"query", "heartbeat"} | (set() if early is None else early.added)
    names = [name for name in results.column_names if name not in hidden]
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    kinds = last.column("kind").to_pylist() if "kind" in names else [""] * last.num_rows
    body = "".join(
        f"<tr{PALE if kinds[at] == Kind.EARLY.value else ''}>"
        f"{''.join(f'<td>{texts[name][at]}</td>' for name in names)}</tr>"
        for at in reversed(range(last.num_rows))
    )
    more = f"<caption>the last {last.num_rows} of {results.num_rows:,} results, newest first</caption>"
    return f"<table>{more}<tr>{head}</tr>{body}</table>"


def _value(value: Any) -> str:
    return escape(value.isoformat(sep=" ") if isinstance(value, datetime) else str(value))
