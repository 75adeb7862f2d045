"""`eventide why`: which windows of a query are open, and who holds each of them.

Law: nothing is changed, and no engine is disturbed; what is shown is true of the last committed round. Between two
rounds nothing happens but that the clock goes on, which is what `closes at` says.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from eventide.engine.introspection.why import OpenWindow, ProgressReport
from eventide.engine.operators.open_windows import OpenQuery, OpenTime, known
from eventide.errors import DeclarationError
from eventide.launch.settings import RunSettings, script_of
from eventide.plan.binding import as_run
from eventide.plan.declared.stream import TimeKind
from eventide.profile.amounts import size_words
from eventide.report.stopped_run import below, read_progress
from eventide.report.why import moment, operator_words, window_words

SHOWN = 20
"""So many windows are shown; the others are counted."""

TIME_OF_DAY = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?")


def why_file(file: str, query: str, window: str | None, checkpoint: str, as_json: bool) -> None:
    """Tell why the windows of a query are open, or the one that starts at `window`."""
    script = script_of(file)
    scheduling = RunSettings.of(script.settings).scheduling
    program = as_run(script.program, scheduling.heartbeats)
    progress = read_progress(program, checkpoint, query, scheduling)
    if program.operator(query) is not None:
        _tell_operator(progress, query, as_json)
        return
    opened = progress.open(query)
    start = None if window is None else start_of(window, opened)
    if start is None:
        windows = progress.windows(query)
    else:
        found = progress.window(query, start)
        windows = [] if found is None else [found]
    if as_json:
        print(json.dumps(_data(progress, query, windows)))
        return
    for line in window_lines(progress, opened, windows, start):
        print(line)
    for state in states_of(progress, query) if start is None else ():
        print(state_words(**state))


def states_of(progress: ProgressReport, query: str) -> list[dict[str, Any]]:
    """Where the state is of a query and of all that it reads, and how large."""
    found = []
    for name in below(progress.program, query):
        saved = progress.record.queries.get(name)
        if saved is not None:
            parts = [part for kind in saved["state"].values() for part in kind]
            rows, size = sum(part["rows"] for part in parts), sum(part["bytes"] for part in parts)
            found.append({"name": name, "placement": saved["place"], "rows": rows, "size": size})
    return found


def state_words(name: str, placement: str, rows: int, size: int) -> str:
    """Where the state of an operator is, and how large.

    >>> state_words("speeds", "driver", 1200, 48_000), state_words("pairs", "cluster", 1, 3_400_000_000)
    ('speeds keeps 1,200 rows, 46.9 KiB, with the driver', 'pairs keeps 1 row, 3.17 GiB, on the cluster')
    >>> state_words("speeds", "driver", 0, 0)
    'speeds keeps no rows'
    """
    if not rows:
        return f"{name} keeps no rows"
    where = "on the cluster" if placement == "cluster" else "with the driver"
    return f"{name} keeps {rows:,} row{'' if rows == 1 else 's'}, {size_words(size)}, {where}"


def _tell_operator(progress: ProgressReport, name: str, as_json: bool) -> None:
    """A merge or join has no windows: what is shown is how far it is, and what it waits for."""
    found = progress.operator(name)
    if found is None:
        words = f"{name} does not run by itself: ask about the query that reads it"
    else:
        words = operator_words(found[1], found[0], progress.program.times_of(name) is TimeKind.SEQUENCE)
    words_of = {"query": name, "round": progress.record.round, "clock": progress.record.clock}
    states = states_of(progress, name)
    if as_json:
        print(json.dumps({**words_of, **(progress.operator_data(name) or {}), "words": words, "state": states}))
        return
    print(words)
    for state in states:
        print(state_words(**state))


def window_lines(
    progress: ProgressReport, opened: OpenQuery, windows: list[OpenWindow], start: int | None
) -> list[str]:
    """Why these windows are open, line by line."""
    unitless = opened.kind is TimeKind.SEQUENCE
    if not windows and start is not None:
        return [f"window {moment(start, unitless)} of query {opened.query} is closed"]
    if not windows:
        bound = known(opened.closed_before) if isinstance(opened, OpenTime) else None
        so_far = "" if bound is None else f": all before {moment(bound, unitless)} is closed"
        read = progress.program.query(opened.query).stream
        reads = ""
        if progress.program.operator(read) is not None:
            reads = f"; it reads {read}, which may hold rows that are in no window yet: name the start of one"
        elif any(one.name == read for one in progress.program.queries):
            reads = f"; it reads query {read}, of which {len(progress.open(read).open()):,} are open"
        return [f"no window of query {opened.query} is open{so_far}{reads}"]
    words_of = [window_words(window) for window in windows[:SHOWN]]
    if len(windows) > SHOWN:
        words_of.append(f"and {len(windows) - SHOWN:,} windows more (--json: all of them)")
    return words_of


def start_of(text: str, opened: OpenQuery) -> int:
    """The start of the window that was asked for: a number, a time, or a time of day that an open window has."""
    given = text.strip()
    if re.fullmatch(r"-?\d+", given):
        return int(given)
    if opened.kind is TimeKind.SEQUENCE:
        raise DeclarationError(f"{text!r} is no number, and windows of query {opened.query!r} start at numbers")
    if TIME_OF_DAY.fullmatch(given):
        wanted = datetime.strptime(given.zfill(5), "%H:%M" if given.count(":") == 1 else "%H:%M:%S").time()
        for start, _ in reversed(opened.open()):
            if datetime.fromtimestamp(start / 1_000_000, UTC).time() == wanted:
                return start
        raise DeclarationError(f"no open window of query {opened.query!r} starts at {given}: give its day too, or none")
    try:
        found = datetime.fromisoformat(given)
    except ValueError:
        raise DeclarationError(
            f"{text!r} is no start of a window: write '2026-01-31 12:05', 12:05, or a number"
        ) from None
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    return round(found.timestamp() * 1_000_000)


def _data(progress: ProgressReport, query: str, windows: list[OpenWindow]) -> dict[str, Any]:
    streams = [stream for stream in progress.program.streams if stream.name in below(progress.program, query)]
    left = [{"stream": one.name, **out} for one in streams for out in progress.left_out_data(one)]
    return {
        "query": query,
        "round": progress.record.round,
        "clock": progress.record.clock,
        "windows": [window.as_data() | {"words": window_words(window)} for window in windows],
        "left_out": left,
        "state": states_of(progress, query),
    }
