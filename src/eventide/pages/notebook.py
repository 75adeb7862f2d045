"""What a notebook shows of a running query: how far time is, who holds it back, open windows with why, last results.

Law: it is plain HTML, without scripts and without a server, and says what the console's pages *Time* and *Results* say.
Whatever comes from data is text.

>>> shown = results_table(pa.table({"kind": ["final"], "window_start": [0], "window_end": [10], "mean": [51.5]}))
>>> "<td>51.5</td>" in shown, "the last 1 of 1 results" in shown
(True, True)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any

import pyarrow as pa

from eventide.console.history import RoundHistory, RoundPoint
from eventide.console.results_view import results_view
from eventide.console.subject import Look, Standing
from eventide.console.time_view import time_view
from eventide.engine.introspection.status import StreamStatus
from eventide.plan.declared.stream import TimeKind
from eventide.profile.amounts import spoken
from eventide.report.status import REASONS_SHOWN
from eventide.results.results import EarlyColumns, Kind, readings

SHOWN = 20
"""Results that are shown: the last ones."""
LOOKED_AT = 500
"""Results among which an early one may have come again."""
SOURCES, WINDOWS, ROUNDS = 5, 3, 240
"""How many sources have a bar, how many open windows a sentence, how many rounds a place in the line."""

PALE = ' style="opacity: 0.6; font-style: italic"'
"""How early rows look, until the final ones take their place."""
HOLDS, OTHER = "#c2410c", "#8a94a3"
WIDTH, HEIGHT = 360, 48

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def query_html(
    name: str,
    state: str,
    standing: Standing,
    history: RoundHistory,
    results: pa.Table | None,
    rejected: Mapping[str, int],
) -> str:
    """A heading, how far time is in each stream, the open windows, and the last results where they are kept.

    `rejected` says how many rows by reason.
    """
    status = standing.status
    head = f"<b>{escape(name)}</b> {escape(state)}, round {status.round}"
    streams = "".join(_stream(one, standing, history) for one in status.streams)
    windows = "" if status.ended else _open(name, standing, history)
    table = "" if results is None else results_table(results)
    return f"<div>{head}{streams}{_rejected(rejected)}{windows}{table}</div>"


def _stream(one: StreamStatus, standing: Standing, history: RoundHistory) -> str:
    unitless = standing.program.times_of(one.name) is TimeKind.SEQUENCE
    line = f"<br>{escape(_line(one, unitless, standing.status.ended))}"
    if standing.status.ended:
        return line
    look = Look(standing, history, (), {"stream": one.name, "show": str(SOURCES)})
    found = next(told for told in time_view(look)["streams"] if told["name"] == one.name)
    # The clock counts microseconds: numbers of a sequence are only behind each other.
    course = "" if unitless else _course(history.points(-1)[-ROUNDS:], one.name)
    return line + course + _bars(found, found["latest"] if unitless else found["clock"], unitless)


def _line(stream: StreamStatus, unitless: bool, ended: bool) -> str:
    sources = "1 source" if stream.sources == 1 else f"{stream.sources:,} sources"
    rows = f"{stream.name}: {stream.rows:,} rows of {sources}, {stream.drop_ratio:.2%} late"
    if stream.heartbeat is None:
        return f"{rows}, {'every window is closed' if ended else 'no window can close yet'}"
    return f"{rows}, time at {_instant(stream.heartbeat, unitless)}"


def _instant(at: int, unitless: bool) -> str:
    if unitless:
        return str(at)
    try:
        return (EPOCH + timedelta(microseconds=at)).isoformat(sep=" ", timespec="milliseconds")
    except OverflowError:
        return str(at)


def _course(points: Sequence[RoundPoint], stream: str) -> str:
    """How far the heartbeat was behind the clock, round after round; up is closer to the clock."""
    known = [(one.clock, one.moments.get(stream, one.clock), one.heartbeats.get(stream)) for one in points]
    behind = [(at, max(0, clock - beat)) for at, clock, beat in known if beat is not None]
    if len(behind) < 2 or behind[-1][0] == behind[0][0]:
        return ""
    (first, _), (last, _), most = behind[0], behind[-1], max(1, *(length for _, length in behind))
    line = " ".join(
        f"{WIDTH * (at - first) / (last - first):.1f},{2 + (HEIGHT - 4) * length / most:.1f}" for at, length in behind
    )
    return (
        f'<br><svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="how far time was behind the clock">'
        f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="1.5"/></svg>'
    )


def _bars(found: Mapping[str, Any], now: int | None, unitless: bool) -> str:
    """The sources that are furthest behind, each with a bar; the one that holds time back is in colour."""
    behind = [
        (one, max(0, now - one["heartbeat"]))
        for one in found.get("shown", ())
        if now is not None and one["heartbeat"] is not None
    ]
    most = max((length for _, length in behind), default=0) or 1
    return "".join(
        f'<br><span style="display: inline-block; height: .6em; width: {max(1, round(160 * length / most))}px; '
        f'background: {HOLDS if one["state"] == "holds" else OTHER}"></span> '
        f"{escape(one['name'])}: {escape(spoken(length, unitless))} behind"
        f"{', holds time back' if one['state'] == 'holds' else ''}"
        for one, length in behind
    )


def _open(name: str, standing: Standing, history: RoundHistory) -> str:
    """The windows that close next, each with the sentence of `why`."""
    if name not in [step.name for step in standing.program.steps]:
        return ""
    found = results_view(Look(standing, history, (), {"query": name}))
    shown = found["open"][:WINDOWS]
    if not shown:
        return ""
    more = f" and {found['open_count'] - len(shown):,} more" if found["open_count"] > len(shown) else ""
    sentences = "".join(f"<br>{escape(one['words'])}" for one in shown)
    return f"<br><b>open{escape(more)}</b>{sentences}"


def _rejected(reasons: Mapping[str, int]) -> str:
    """How many rows were rejected and why, which no result shows."""
    most = sorted(reasons.items(), key=lambda each: -each[1])[:REASONS_SHOWN]
    shown = "; ".join(f"{count:,} {reason}" for reason, count in most)
    more = "; ..." if len(reasons) > len(most) else ""
    return f"<br><b>{sum(reasons.values()):,} rejected</b>: {escape(shown + more)}" if reasons else ""


def results_table(results: pa.Table) -> str:
    """The last results, newest first; an early one until the final one has come."""
    early = EarlyColumns.of(results.column_names)
    last = results.slice(max(0, results.num_rows - LOOKED_AT))
    last = last if early is None else early.latest(last)
    last = last.slice(max(0, last.num_rows - SHOWN))
    texts = {name: [_value(value) for value in last.column(name).to_pylist()] for name in last.column_names}
    texts |= {} if early is None else readings(early, last, texts)
    hidden = {"query", "heartbeat"} | (set() if early is None else early.added)
    names = [name for name in results.column_names if name not in hidden]
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(_rows(last, names, texts))
    more = f"<caption>the last {last.num_rows} of {results.num_rows:,} results, newest first</caption>"
    return f"<table>{more}<tr>{head}</tr>{body}</table>"


def _rows(last: pa.Table, names: Sequence[str], texts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    kinds = last.column("kind").to_pylist() if "kind" in names else [""] * last.num_rows
    for at in reversed(range(last.num_rows)):
        pale = PALE if kinds[at] == Kind.EARLY.value else ""
        yield f"<tr{pale}>{''.join(f'<td>{texts[name][at]}</td>' for name in names)}</tr>"


def _value(value: Any) -> str:
    return escape(value.isoformat(sep=" ") if isinstance(value, datetime) else str(value))
