"""What a query that closes source by source must answer, by brute force: each source is a stream of its own.

Law: the groups of a source are those of a query over the rows of that source alone, whose heartbeat is the source's own
or the combined one, whichever is later. So the answer is that of the plain `oracle`, source by source.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eventide.eventtime.instant import NEVER
from eventide.testing.oracle import Answer, Round, answers
from eventide.testing.questions import Question, Row

ALL = None
"""The source of a promise that is for all of them."""


def answers_by_source(
    question: Question, time: str, source: str, rounds: Sequence[Round], beats: Sequence[Mapping[Any, int]]
) -> list[Answer]:
    """The answer of every round; `beats` has the heartbeat of each source after it."""
    together = [Answer() for _ in rounds]
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
    met: set[Any] = set()
    combined, told = NEVER, []
    for one in rounds:
        for row in one.rows:
            name = row[source]
            met.add(name)
            if row[time] <= word[name]:
                discount[name] = max(discount[name], word[name] - row[time] + 1)
        for name, up_to in one.given:
            met |= set() if name is ALL else {name}
            for each in sources if name is ALL else (name,):
                word[each] = max(word[each], up_to)
                believed[each] = max(believed[each], up_to - discount[each])
            if name is ALL:
                combined = max(combined, up_to - max(discount.values()))
        combined = max(combined, min((believed[name] for name in met), default=NEVER), one.explicit)
        believed = {name: max(beat, combined) for name, beat in believed.items()}
        told.append({**believed, ALL: combined})
    return told
