"""What is looked at after a round: sources, what is lost, queues, sinks.

Laws. Each detector says all that is not as expected now; it has no say about when. A source is *silent* beyond its
declaration (`IDLE AFTER`), where it has one, and otherwise beyond its past; its *clock* has jumped or drifts by its
past (`eventtime/detection`). A *bound* is violated by a source with late rows where the declaration promises that there
are none, and by a stream that has lately lost a larger share than `DRATIO` permits. A *queue* grows when twice as many
rows wait as at the least of the last `LOOKS` rounds, and a thousand at least. A *sink* is slow when it has taken
`SLOWER` times as long as usual for three rounds in a row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from eventide.engine.round.report import RoundReport
from eventide.engine.stream_progress import Losses
from eventide.eventtime.detection.clock_offset import ClockOffsets
from eventide.eventtime.detection.silence import SourceSilence
from eventide.eventtime.policies.drop_ratio.policy import permitted_ratio
from eventide.eventtime.policies.wrappers.idleness import permitted_silence
from eventide.plan.declared.stream import Stream, TimeKind
from eventide.profile.amounts import percent, spoken
from eventide.watch.alert import MOST, Finding

LOOKS = 64
WORTH_A_QUEUE = 1_000
SLOWER, SLOW = 4.0, 0.05
IN_A_ROW = 3
LATE_ROWS = 3
FADING_ROWS = 1_000
"""Late rows of a source are forgotten by half with so many rows of it."""
SEPARATOR = "\x1f"


@dataclass
class StreamDetector:
    """Watches the sources of a stream; `name` gives a source's name by its number."""

    stream: Stream
    name: Callable[[int], str]
    _silence: SourceSilence = field(default_factory=SourceSilence)
    _offsets: ClockOffsets = field(default_factory=ClockOffsets)
    _late: dict[str, float] = field(default_factory=dict)

    def look(self, work: RoundReport, losses: Losses) -> Iterator[Finding]:
        """What is wrong with the stream after a round."""
        arrivals = work.arrivals.get(self.stream.name)
        if arrivals is not None:
            self._silence.note(arrivals)
            self._offsets.note(arrivals)
        if work.ending:
            return
        if self.stream.source:
            yield from self._silent()
            yield from self._clocks()
        yield from self._broken(work, losses)

    def _silent(self) -> Iterator[Finding]:
        permitted = permitted_silence(self.stream.policy)
        found = self._silence.silent(permitted)
        longest_first = np.argsort([-self._silence.length_of(int(one)) for one in found], kind="stable")

        def words(source: int) -> tuple[str, str]:
            past = f"a row within {self._spoken(self._silence.allowed_of(source))}, by its past"
            expected = past if permitted is None else f"a row within {self._spoken(permitted)} (IDLE AFTER)"
            return expected, f"none for {self._spoken(self._silence.length_of(source))}"

        yield from self._of_sources("silence", found[longest_first], words)

    def _clocks(self) -> Iterator[Finding]:
        offsets = self._offsets
        jumped = offsets.jumped()
        drifted = np.setdiff1d(offsets.drifted(), jumped, assume_unique=True)

        def words(length: Callable[[int], int], source: int) -> tuple[str, str]:
            away = length(source)
            expected = f"times within {self._spoken(offsets.limit_of(source))} of its usual delay"
            return expected, f"times {self._spoken(abs(away))} {'earlier' if away > 0 else 'later'}"

        yield from self._of_sources("clock jump", jumped, partial(words, offsets.distance_of))
        yield from self._of_sources("clock drift", drifted, partial(words, offsets.drift_of))

    def _of_sources(
        self, kind: str, sources: NDArray[np.intp], words: Callable[[int], tuple[str, str]]
    ) -> Iterator[Finding]:
        """Findings about the first of many sources, and one that counts the others: of those nobody reads the words."""
        for source in sources[:MOST].tolist():
            yield self._finding(kind, self.name(source), *words(source))
        if len(sources) > MOST:
            yield Finding(kind, self.stream.name, "", "none", "", others=len(sources) - MOST)

    def _broken(self, work: RoundReport, losses: Losses) -> Iterator[Finding]:
        permitted = permitted_ratio(self.stream.policy)
        if permitted is not None:
            if losses.late >= LATE_ROWS and losses.recent_drop_ratio > permitted:
                seen = f"{percent(losses.recent_drop_ratio)} lately"
                yield self._finding("bound", "", f"at most {percent(permitted)} late rows", seen)
            return
        came = work.late_by_source.get(self.stream.name, {})
        rows = work.rows_in.get(self.stream.name, work.rows)
        kept = 0.5 ** (rows / FADING_ROWS)
        self._late = {
            name: count
            for name in self._late.keys() | came.keys()
            if (count := self._late.get(name, 0.0) * kept + came.get(name, 0)) >= 0.5
        }
        for name, count in sorted(self._late.items(), key=lambda each: -each[1]):
            if count >= LATE_ROWS:
                shown = name.replace(SEPARATOR, "|") if self.stream.source else ""
                yield self._finding("bound", shown, "no row behind its heartbeat", f"about {count:.0f} lately")

    def _finding(self, kind: str, who: str, expected: str, seen: str) -> Finding:
        return Finding(kind, self.stream.name, who, expected, seen)

    def _spoken(self, amount: int) -> str:
        return spoken(amount, self.stream.time_kind is TimeKind.SEQUENCE and self.stream.arrival is not None)


class QueueDetector:
    """Watches the rows that wait before expensive functions."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[int]] = {}

    def look(self, waiting: Mapping[str, int]) -> Iterator[Finding]:
        """What grows; `waiting` is how many rows wait in each queue.

        >>> queues = QueueDetector()
        >>> [list(queues.look({"q": rows})) for rows in (900, 1200)]
        [[], []]
        >>> [found] = queues.look({"q": 2000})
        >>> found.seen, list(queues.look({"q": 0}))
        ('2,000 rows wait', [])
        """
        for name, rows in waiting.items():
            looks = self._waiting.setdefault(name, deque(maxlen=LOOKS))
            looks.append(rows)
            if rows >= WORTH_A_QUEUE and rows >= 2 * max(1, min(looks)):
                yield Finding("queue", name, "", f"about {min(looks):,} rows", f"{rows:,} rows wait")


class SinkDetector:
    """Watches how long sinks take."""

    def __init__(self) -> None:
        self._usual: dict[str, float] = {}
        self._in_a_row: dict[str, int] = {}

    def look(self, seconds: Mapping[str, float]) -> Iterator[Finding]:
        """Which sinks are slow; `seconds` is what each took for its results of this round.

        >>> sinks = SinkDetector()
        >>> usual = [list(sinks.look({"q": 0.02})) for _ in range(20)]
        >>> slow = [[found.seen for found in sinks.look({"q": 1.0})] for _ in range(3)]
        >>> slow, list(sinks.look({"q": 0.02}))
        ([[], [], ['1 s']], [])
        """
        for name, took in seconds.items():
            usual = self._usual.setdefault(name, took)
            if took > max(SLOW, SLOWER * usual):
                self._in_a_row[name] = self._in_a_row.get(name, 0) + 1
            else:
                self._in_a_row[name] = 0
            # What is slow becomes usual slowly.
            self._usual[name] = usual + (took - usual) * (1 / 256 if self._in_a_row[name] else 1 / 16)
            if self._in_a_row[name] >= IN_A_ROW:
                yield Finding("sink", name, "", f"about {_seconds(usual)} for a round", _seconds(took))


def _seconds(length: float) -> str:
    return spoken(round(length * 1_000_000), False)
