"""How far time has come through a stream, a query or an operator, by the record of a round alone.

Law: through a step is what can have no part any more in a row that it will emit: of a stream up to its heartbeat, of
windows those that are over and emitted, of rows up to the frontier. It never goes back, whatever the step keeps.

>>> from eventide.plan.declared.window import Window
>>> windows_through(Window(60, 20), 120), windows_through(Window(60), 120), last_instant(Window(60, 20), 85)
(79, 119, 139)
"""

from __future__ import annotations

from collections.abc import Sequence

from eventide.engine.checkpoint.record import RoundRecord
from eventide.engine.operators.frontier import before
from eventide.engine.operators.windows import first_start, needed_from
from eventide.eventtime.punctuation import Span
from eventide.plan.binding import through as inputs_through
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query
from eventide.plan.declared.window import RowWindow, SameWindow, SessionWindow, Window


def inputs_of(program: Program, record: RoundRecord) -> dict[str, tuple[str, ...]]:
    """What each query and operator that runs takes its rows from, from below."""
    inputs = {query.name: inputs_through(program, query) for query in program.queries}
    inputs |= {operator.name: operator.inputs for operator in program.operators}
    return {step.name: inputs[step.name] for step in program.steps if step.name in record.queries}


def through(program: Program, record: RoundRecord, name: str) -> int:
    """Up to when everything has gone through a stream, query or operator."""
    if name in record.streams:
        return int(record.streams[name]["heartbeat"])
    saved = record.queries[name]
    if program.operator(name) is not None:
        return int(saved["frontier"]["time"])
    query = program.query(name)
    if isinstance(query.window, SessionWindow):
        return int(saved["passed"])
    if isinstance(query.window, RowWindow):
        # Rows up to this have their numbers, and are in every window that is full.
        return before(saved["closed_before"])
    # Where results are emitted slowly, windows that are over may not be among them yet.
    closed = min(saved["closed_before"], saved.get("emitted_before", saved["closed_before"]))
    return windows_through(panes_of(program, query), closed, [Span(*hole) for hole in saved.get("holes", ())])


def carried(program: Program, name: str, time: int) -> int | None:
    """The latest time of a row out of a step in which a row of this time has a part; None where it tells no time."""
    query = next((one for one in program.queries if one.name == name), None)
    if query is None or isinstance(query.window, SessionWindow):
        return time
    return None if isinstance(query.window, RowWindow) else last_instant(panes_of(program, query), time)


def panes_of(program: Program, query: Query) -> Window:
    """The windows by which a query keeps what it reads; where these are those of the query below, by their ends."""
    windows = program.windows_of(query)
    return query.window.over(windows) if isinstance(query.window, SameWindow) else windows


def windows_through(window: Window, closed_before: int, holes: Sequence[Span] = ()) -> int:
    """The last instant that is in no window that is still open, or was set aside."""
    return before(min(needed_from(window, closed_before), first_start(window, holes)))


def last_instant(window: Window, time: int) -> int:
    """The last instant of the last window that holds a time; the time itself where none does."""
    return max(time, int(window.last_end(window.pane_of(time))) - 1)
