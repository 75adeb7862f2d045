"""Brute force answers for tests: every row is kept, every window is counted anew, nothing is clever.

The laws, for each query on its own. Before a round the heartbeat of its stream is h, after it h' >= h (`FOREVER` when a
bounded run ends).

- A row **counts** for the windows that hold it, if it passes the filter. One that no window holds is nobody's.
- A window is **answered** when its last instant is at or before h. A row is **late** for a window that holds it and was
  answered, and counts in all others that hold it; it is in the late table if it is late for one of them.
- A window is **retained** until h + 1 is RETAIN or more beyond its end: a row is not late for it, and counts in it.
- A window gives its **final** result, one for each group of its rows, in the round with h < window end - 1 <= h'.
- A group of a closed window is **revised** in every round that brings it a row.
- An **empty** window, if asked for, gives a result too, once a window before it holds a row; at the end of a bounded
  run only if it ends before, or holds, the last row of the stream, be that one wanted or not. Over results of another
  query the last row is the last that is wanted.
- **Row windows**: rows with time <= h' get their numbers, after all that have one, in the order of time, then of the
  groups, then of the other columns that the query speaks of, NULL first; a row with time <= h is late. Window k is
  final when its last row has a number; at the end, all are.
- **Sessions**: rows of a group with overlapping or touching spans, [t, t + gap], taken together until nothing changes.
  A row whose gap is NULL, 0 or less is nobody's. The rows of a round are put to those of all sessions that are not
  forgotten; they are late if their session ends at or before h - RETAIN, else they count. A session is final in the
  round with h < end <= h'; then it is retained, if at all, until h' reaches end + RETAIN. One that has new rows and
  ends at or before h is revised; those that were emitted and are part of it, with another span, are emitted with no
  rows.

>>> from eventide.testing.questions import Aggregate
>>> ask = Question("q", "s", Window(10), (Aggregate("sum", "v"),))
>>> rounds = [Round([{"t": 3, "v": 1}], 9), Round([{"t": 4, "v": 2}, {"t": 12, "v": 5}], end=True)]
>>> for answer in answers(ask, "t", rounds):
...     print([(f.start, f.end, f.rows, f.values) for f in answer.final], answer.late)
[(0, 10, 1, (1,))] []
[(10, 20, 1, (5,))] [{'t': 4, 'v': 2}]

*By source.* A query that closes source by source treats each source as a stream of its own. The groups of a source are
those of a query over the rows of that source alone, whose heartbeat is the source's own or the combined one, whichever
is later. So the answer is that of the plain `oracle`, source by source.

Promises in the data (`promised`): rows of a round come before its promises. A promise up to p of a source counts as
p - d, where d is by how much a row of it has ever been behind what it had promised. All together are as far as the
slowest of those that spoke or promised, and never go back; one promise may be for all of them.

>>> from eventide.plan.declared.window import Window
>>> from eventide.testing.questions import Aggregate
>>> ask = Question("q", "s", Window(10), (Aggregate("sum", "v"),), ("who",))
>>> rows = [{"t": 3, "who": "a", "v": 1}, {"t": 4, "who": "b", "v": 2}]
>>> [answer] = answers_by_source(ask, "t", "who", [Round(rows)], [{"a": 9, "b": 2}])
>>> [(result.group, result.values) for result in answer.final]
[(('a',), (1,))]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import gcd
from typing import Any

from eventide.eventtime.instant import FOREVER, NEVER
from eventide.plan.declared.window import GrowingWindow, RowWindow, SameWindow, SessionWindow, Window
from eventide.testing.questions import Question, Row


@dataclass(frozen=True)
class Round:
    """What one round brings to a stream: rows, and the heartbeat after it (None: it stays); `end` ends the run."""

    rows: Sequence[Row] = ()
    heartbeat: int | None = None
    end: bool = False


@dataclass(frozen=True)
class Result:
    """One group of one window: its values in the order of the question's aggregates."""

    start: int
    end: int
    group: tuple[Any, ...]
    values: tuple[Any, ...]
    rows: int


@dataclass
class OracleAnswer:
    """What one round must answer."""

    final: list[Result] = field(default_factory=list)
    revised: list[Result] = field(default_factory=list)
    late: list[Row] = field(default_factory=list)


def answers(question: Question, time: str, rounds: Sequence[Round], over_results: bool = False) -> list[OracleAnswer]:
    """The answer of every round; `time` is the column that tells the time, a whole number."""
    oracle: _OverTime | _OverRows | _OverSessions | _OverSame
    oracle = ORACLES[type(question.window)](question, time)
    before, latest, given = NEVER, NEVER, []
    for one in rounds:
        latest = max([latest, *(row[time] for row in one.rows if not over_results)])
        after = FOREVER if one.end else max(before, NEVER if one.heartbeat is None else one.heartbeat)
        rows = [row for row in one.rows if question.where is None or question.where.keeps(row)]
        given.append(oracle.answer(rows, before, after, latest))
        before = after
    return given


def windows_holding(window: Window, time: int) -> list[tuple[int, int]]:
    """The start and end of every window that holds `time`.

    >>> windows_holding(Window(10, 4), 9)
    [(0, 10), (4, 14), (8, 18)]
    >>> windows_holding(GrowingWindow(12, 4), 5)
    [(0, 8), (0, 12)]
    """
    if isinstance(window, GrowingWindow):
        start = time - (time - window.offset) % window.range
        ends = range(start + window.slide, start + window.range + 1, window.slide)
        return [(start, end) for end in ends if time < end]
    number = (time - window.range - window.offset) // window.slide
    found = []
    while (start := window.offset + number * window.slide) <= time:
        if time < start + window.range:
            found.append((start, start + window.range))
        number += 1
    return found


def _results(question: Question, window: tuple[int, int], rows: Iterable[Row]) -> list[Result]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in question.groups), []).append(row)
    shown = [
        Result(*window, group, tuple(aggregate.of(held) for aggregate in question.aggregates), len(held))
        for group, held in groups.items()
        if len(held) >= question.at_least
    ]
    return question.in_order(shown, lambda result: (*result.group, *result.values))[: question.limit]


class _OverTime:
    def __init__(self, question: Question, time: str) -> None:
        assert isinstance(question.window, Window)
        self.question, self.window, self.time = question, question.window, time
        self.held: dict[tuple[int, int], list[Row]] = {}

    def answer(self, rows: Sequence[Row], before: int, after: int, latest: int) -> OracleAnswer:
        found = OracleAnswer()
        touched: dict[tuple[int, int], list[Row]] = {}
        for row in rows:
            holding = windows_holding(self.window, row[self.time])
            if not holding:
                continue
            bound, retain = NEVER if before == NEVER else before + 1, self.question.retain
            counting = [
                window for window in holding if window[1] - 1 > before or (retain and window[1] + retain > bound)
            ]
            if len(counting) < len(holding):
                found.late.append(row)
            for window in counting:
                self.held.setdefault(window, []).append(row)
                if window[1] - 1 <= before:
                    touched.setdefault(window, []).append(row)
        for window in self._closing(before, after, latest):
            found.final += _results(self.question, window, self.held.get(window, []))
            if window not in self.held and self.question.at_least == 0:
                none = tuple(aggregate.of([]) for aggregate in self.question.aggregates)
                found.final.append(Result(*window, (), none, 0))
        for window, new in touched.items():
            groups = {tuple(row[name] for name in self.question.groups) for row in new}
            revised = _results(self.question, window, self.held[window])
            whole = self.question.limit is not None
            found.revised += [result for result in revised if whole or result.group in groups]
        return found

    def _pane(self, time: int) -> int:
        return time - (time - self.window.offset) % gcd(self.window.range, self.window.slide)

    def _closing(self, before: int, after: int, latest: int) -> list[tuple[int, int]]:
        known = set(self.held)
        if self.window.empty and self.held:
            first, last = min(self.held), max(self.held)
            answered_to = last[1] if latest == NEVER else max(last[1], self._pane(latest) + self.window.range)
            limit = answered_to if after == FOREVER else after + 1
            starts = range(first[0], limit - self.window.range + 1, self.window.slide)
            known |= {(start, start + self.window.range) for start in starts}
        return sorted(window for window in known if before < window[1] - 1 <= after)


class _OverRows:
    def __init__(self, question: Question, time: str) -> None:
        assert isinstance(question.window, RowWindow)
        self.question, self.window, self.time = question, question.window, time
        self.waiting: list[Row] = []
        self.numbered: list[Row] = []
        self.next_window = 0

    def answer(self, rows: Sequence[Row], before: int, after: int, latest: int) -> OracleAnswer:
        found = OracleAnswer(late=[row for row in rows if row[self.time] <= before])
        self.waiting += [row for row in rows if row[self.time] > before]
        self.numbered += sorted((row for row in self.waiting if row[self.time] <= after), key=self._order)
        self.waiting = [row for row in self.waiting if row[self.time] > after]
        while self._is_final(start := self.next_window * self.window.slide, after):
            held = self.numbered[start : start + self.window.range]
            found.final += _results(self.question, (start, start + self.window.range), held)
            self.next_window += 1
        return found

    def _is_final(self, start: int, after: int) -> bool:
        known = len(self.numbered)
        return start + self.window.range <= known or (after == FOREVER and start < known)

    def _order(self, row: Row) -> tuple[Any, ...]:
        spoken_of = {aggregate.column for aggregate in self.question.aggregates}
        columns = (self.time, *self.question.groups, *(name for name in row if name in spoken_of))
        return tuple((row[name] is not None, 0 if row[name] is None else row[name]) for name in columns)


Spans = dict[tuple[int, int], list[Row]]
"""The sessions of a group: their rows, by their spans."""


class _OverSessions:
    def __init__(self, question: Question, time: str) -> None:
        assert isinstance(question.window, SessionWindow)
        self.question, self.window, self.time = question, question.window, time
        self.live: dict[tuple[Any, ...], list[Row]] = {}
        self.told: dict[tuple[Any, ...], Spans] = {}

    def answer(self, rows: Sequence[Row], before: int, after: int, latest: int) -> OracleAnswer:
        found = OracleAnswer()
        gone = before if before in (NEVER, FOREVER) else before - self.question.retain
        new: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            if (self._gap(row) or 0) > 0:
                new.setdefault(tuple(row[name] for name in self.question.groups), []).append(row)
        for group in sorted({*self.live, *self.told, *new}, key=repr):
            self._answer_group(found, group, new.get(group, []), (before, after, gone))
        return found

    def _answer_group(
        self, found: OracleAnswer, group: tuple[Any, ...], new: list[Row], times: tuple[int, int, int]
    ) -> None:
        before, after, gone = times
        told = {span: held for span, held in self.told.get(group, {}).items() if span[1] > gone}
        retained = [row for held in told.values() for row in held]
        sessions = self._sessions([*self.live.get(group, []), *retained, *new])
        self.live[group], self.told[group] = [], {}
        for span, held in sessions.items():
            fresh = any(row is one for row in new for one in held)
            if span[1] <= gone:
                found.late += held
                continue
            inside = [one for one in told if span[0] <= one[0] and one[1] <= span[1]]
            if span[1] > after:
                self.live[group] += held
            elif span[1] > before:
                found.final += _results(self.question, span, held)
            elif fresh:
                found.revised += _results(self.question, span, held)
            if inside and (fresh or span[1] > before):
                none = (None,) * len(self.question.aggregates)
                found.revised += [Result(*one, group, none, 0) for one in inside if one != span]
            if span[1] <= after and self.question.retain:
                self.told[group][span] = held

    def _gap(self, row: Row) -> int | None:
        gap: int | None = self.window.gap if self.question.gap is None else row[self.question.gap]
        return gap

    def _sessions(self, rows: list[Row]) -> Spans:
        found: Spans = {}
        for row in rows:
            start, end, together = row[self.time], row[self.time] + (self._gap(row) or 0), [row]
            while meeting := [span for span in found if span[0] <= end and start <= span[1]]:
                start, end = min(start, *(s for s, _ in meeting)), max(end, *(e for _, e in meeting))
                together = [row for span in meeting for row in found.pop(span)] + together
            found[start, end] = together
        return found


class _OverSame:
    """The windows of the question below: its rows tell them."""

    def __init__(self, question: Question, time: str) -> None:
        self.question = question

    def answer(self, rows: Sequence[Row], before: int, after: int, latest: int) -> OracleAnswer:
        windows: dict[tuple[int, int], list[Row]] = {}
        for row in rows:
            windows.setdefault((row["window_start"], row["window_end"]), []).append(row)
        return OracleAnswer(
            [result for window in sorted(windows) for result in _results(self.question, window, windows[window])]
        )


ORACLES: dict[type, Callable[[Question, str], _OverTime | _OverRows | _OverSessions | _OverSame]] = {
    Window: _OverTime,
    GrowingWindow: _OverTime,
    RowWindow: _OverRows,
    SessionWindow: _OverSessions,
    SameWindow: _OverSame,
}


ALL = None
"""The source of a promise that is for all of them."""


def answers_by_source(
    question: Question, time: str, source: str, rounds: Sequence[Round], beats: Sequence[Mapping[Any, int]]
) -> list[OracleAnswer]:
    """The answer of every round; `beats` has the heartbeat of each source after it."""
    together = [OracleAnswer() for _ in rounds]
    for name in {name for beat in beats for name in beat}:
        alone = [
            replace(one, rows=[row for row in one.rows if row[source] == name], heartbeat=beat[name])
            for one, beat in zip(rounds, beats, strict=True)
        ]
        for whole, part in zip(together, answers(question, time, alone), strict=True):
            whole.final += part.final
            whole.late += part.late
    return together


@dataclass(frozen=True)
class Promises:
    """What one round brings to a stream of promises: rows, and promises as pairs of a source, or `ALL`, and a time."""

    rows: Sequence[Row]
    given: Sequence[tuple[Any, int]]
    explicit: int = NEVER


def promised(sources: Sequence[Any], time: str, source: str, rounds: Sequence[Promises]) -> list[dict[Any, int]]:
    """The heartbeat of each source after every round, and under `ALL` that of all together.

    >>> promised("ab", "t", "who", [Promises([{"t": 3, "who": "b"}], [("a", 9)]), Promises([], [("b", 5)])])
    [{'a': 9, 'b': -9223372036854775808, None: -9223372036854775808}, {'a': 9, 'b': 5, None: 5}]
    """
    word = dict.fromkeys(sources, NEVER)
    discount = dict.fromkeys(sources, 0)
    believed = dict.fromkeys(sources, NEVER)
    sources_seen: set[Any] = set()
    combined, heartbeats = NEVER, []
    for one in rounds:
        for row in one.rows:
            name = row[source]
            sources_seen.add(name)
            if row[time] <= word[name]:
                discount[name] = max(discount[name], word[name] - row[time] + 1)
        for name, up_to in one.given:
            sources_seen |= set() if name is ALL else {name}
            for each in sources if name is ALL else (name,):
                word[each] = max(word[each], up_to)
                believed[each] = max(believed[each], up_to - discount[each])
            if name is ALL:
                combined = max(combined, up_to - max(discount.values()))
        combined = max(combined, min((believed[name] for name in sources_seen), default=NEVER), one.explicit)
        believed = {name: max(beat, combined) for name, beat in believed.items()}
        heartbeats.append({**believed, ALL: combined})
    return heartbeats
