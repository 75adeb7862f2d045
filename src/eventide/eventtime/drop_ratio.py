"""`DRATIO p`: heartbeats as early as a permitted share of lost rows allows. Eventide's own policy, and its default.

No parameter but the drop ratio. For every source two promises are weighed, each with a slack read off a ladder of
records (`record_ladder.py`) that assumes no distribution:

- *own progress*: the next row of the source will not lie further behind its largest time than rung k of what rows did
  so far. The slack is signed: a source that speaks every 500 ms lets one promise the next 490 ms at once.
- *its clock*: in silence the source's clock runs on, so `largest time + elapsed - slack` is promised too, as the on-demand
  timestamps of Stream Mill (section 5), six rungs safer because rows that were held up are lost together, and
  only for silence that is proven or staked (`silence.py`).

A source promises the larger of the two; the combined heartbeat is the least over the sources that are not gone. What is
then lost is booked (`loss_account.py`), and the balance sets the rung: an integral control with a bound that holds on
any stream. Sources with fewer than 192 rows are judged by the worse of their own ladder and that of all rows.

**The guarantee.** Rows lost over any stretch of n rows are at most p * (n + constant) plus one round, as long as the safest
rung (no row later than the latest ever seen of its source, no stake) loses nothing; so the share lost tends to p or
less, and per source to 1.3 p or less. **The limits.** Nobody can foresee the first time that a source is later than ever
before: a growing lateness is followed, not foreseen. A source that is first seen with rows older than the heartbeat
loses them. A source whose clock is set back loses the rows it stamps twice. The first 1,000 rows are a warm-up.

`docs/time-core/drop-ratio.md` has the derivation and the measurements.

>>> pacemaker = DropRatio(0.01).start()
>>> for second in range(40):
...     pacemaker.observe(Arrivals.of_row(clock=second, source=0, time=10 * second))
>>> pacemaker.heartbeats(39).combined  # the next row is due at 400
399
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Snapshot, check_snapshot
from eventide.eventtime.instant import FOREVER, NEVER, Instants, distances, shift_all
from eventide.eventtime.loss_account import LossAccount
from eventide.eventtime.progress import Progress
from eventide.eventtime.ratchet import Ratchet
from eventide.eventtime.record_ladder import ABSENT, SAFEST, UNKNOWN, RecordLadder
from eventide.eventtime.silence import Purse, Silence, Stamped

KIND, VERSION = "drop_ratio", 1

_FIRST_ROWS = 8  # One row is no stream: a first row stamped years ahead would promise them all.
_YOUNG_ROWS = 192
_CLOCK_RUNGS = 6

# The ladder holds two places for each source: what rows did against its largest time, and against its clock; and before
# them the same two for all sources together.
_OWN, _CLOCK, _ALL = 0, 1, 2


@dataclass(frozen=True)
class DropRatio:
    """At most this share of the rows may be late; time comes as early as that allows.

    >>> DropRatio(1.5)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: drop ratio 1.5 is not between 0 and 1: write 0.01 for 1 %
    """

    ratio: float

    def __post_init__(self) -> None:
        if not 0 < self.ratio < 1:
            raise DeclarationError(f"drop ratio {self.ratio} is not between 0 and 1: write 0.01 for 1 %")

    def start(self) -> DropRatioPacemaker:
        """A pacemaker that has seen nothing."""
        return DropRatioPacemaker(self)

    def resume(self, snapshot: Snapshot) -> DropRatioPacemaker:
        """A pacemaker that continues from `snapshot`."""
        check_snapshot(snapshot, KIND, VERSION)
        pacemaker = DropRatioPacemaker(self)
        pacemaker._clock = snapshot["clock"]
        pacemaker._progress = Progress.restored(snapshot["progress"])
        pacemaker._passed = np.array(snapshot["passed"], dtype=np.int64)
        pacemaker._ladder = RecordLadder.restored(snapshot["ladder"])
        pacemaker._silence = Silence.restored(snapshot["silence"])
        pacemaker.account = LossAccount.restored(self.ratio, snapshot["account"])
        pacemaker._ratchet = Ratchet.restored(snapshot["ratchet"])
        return pacemaker


@dataclass(frozen=True)
class _Slack:
    """What the ladder says at the rungs of the moment: it changes with rows, not with the clock."""

    own: Instants
    clock: Instants
    stamped: Stamped
    purse: Purse


class DropRatioPacemaker:
    """Progress, ladder, silences and account of all sources; nothing is kept per row."""

    def __init__(self, policy: DropRatio) -> None:
        self.account = LossAccount(policy.ratio)
        self._clock = NEVER
        self._progress = Progress(0)
        self._passed = np.zeros(0, dtype=np.int64)
        self._ladder = RecordLadder(_ALL)
        self._silence = Silence(0)
        self._ratchet = Ratchet()
        self._slack: _Slack | None = None

    def observe(self, arrivals: Arrivals) -> None:
        """Book what the round lost, learn how late its rows were, and note how far it came."""
        self._clock = max(self._clock, arrivals.clock)
        if arrivals.total == 0:
            return
        self._grow(int(arrivals.source.max()) + 1)
        late = arrivals.earliest <= self._ratchet.shown.combined
        lost = arrivals.sum_by_source(np.where(late, arrivals.rows, 0))
        self.account.settle(arrivals.sources, arrivals.rows_by_source, lost)
        self._learn(arrivals)
        self._progress.note(arrivals, self._silence.longest)
        self._slack = None

    def _grow(self, places: int) -> None:
        if places > len(self._progress.rows):
            self._progress.grow(places)
            self._silence.grow(places)
            self.account.grow(places)
            self._ladder.grow(_ALL + 2 * places)
            self._passed = np.concatenate((self._passed, np.full(places - len(self._passed), NEVER)))

    def _learn(self, arrivals: Arrivals) -> None:
        known = self._progress.rows[arrivals.sources] > 0
        if not known.any():
            return
        source = arrivals.sources[known]
        rows = arrivals.rows_by_source[known]
        earliest = arrivals.earliest_by_source[known]
        second = arrivals.second_earliest_by_source[known]
        largest = self._progress.largest[source]
        expected = self._progress.expected(source, self._clock)

        slack = self._ladder.rung(self._rungs(_CLOCK_RUNGS)[source], _ALL + 2 * source + _CLOCK)
        older = distances(expected, earliest)
        self._silence.end(source, distances(expected, largest), older > slack)

        # Rows that were held up come one behind the other, and are lost together to what was promised before the first
        # of them: so each is compared with how far the clock had ever been taken to be, not with its forerunner.
        self._passed[source] = passed = np.maximum(self._passed[source], expected)
        places = np.concatenate(([_OWN, _CLOCK], _ALL + 2 * source + _OWN, _ALL + 2 * source + _CLOCK))
        behind_own, behind_clock = distances(largest, earliest), distances(passed, earliest)
        second_own = np.where(second == FOREVER, ABSENT, distances(largest, second))
        second_clock = np.where(second == FOREVER, ABSENT, distances(passed, second))
        total = rows.sum()
        self._ladder.add(
            places,
            np.concatenate(([total, total], rows, rows)),
            np.concatenate(([behind_own.max(), behind_clock.max()], behind_own, behind_clock)),
            np.concatenate(
                (_runner_up(behind_own, second_own), _runner_up(behind_clock, second_clock), second_own, second_clock)
            ),
        )

    def _rungs(self, safer: int = 0) -> NDArray[np.int64]:
        return np.minimum(self.account.rungs() + safer, SAFEST)

    def _current_slack(self) -> _Slack:
        if self._slack is None:
            rungs = np.empty(len(self._ladder.seen), dtype=np.int64)
            rungs[_ALL + _OWN :: 2] = self._rungs()
            rungs[_ALL + _CLOCK :: 2] = self._rungs(_CLOCK_RUNGS)
            progress = self._progress
            self._slack = _Slack(
                own=self._of_young_and_old(rungs[_ALL + _OWN :: 2], _OWN),
                clock=self._of_young_and_old(rungs[_ALL + _CLOCK :: 2], _CLOCK),
                stamped=Stamped(progress.rows, progress.steps, distances(progress.largest, progress.first)),
                purse=Purse(self.account.reserve, self.account.by_source, self.account.drop_ratio * self.account.rows),
            )
        return self._slack

    def _of_young_and_old(self, rungs: NDArray[np.int64], kind: int) -> Instants:
        places = np.arange(len(rungs)) * 2 + _ALL + kind
        own = self._ladder.rung(rungs, places)
        young = (self._ladder.seen[places] < _YOUNG_ROWS) | (rungs >= SAFEST)
        if not young.any():
            return own
        common = self._ladder.rung(rungs, np.full(len(rungs), kind))
        worse = np.where(own == UNKNOWN, common, np.where(common == UNKNOWN, own, np.maximum(own, common)))
        return np.where(young, worse, own)

    def heartbeats(self, clock: int) -> Heartbeats:
        """The least over the sources of what each promises at this clock."""
        self._clock = max(self._clock, clock)
        progress = self._progress
        if self.account.rows < _FIRST_ROWS:
            return self._ratchet.shown
        slack = self._current_slack()
        silent = distances(np.full(len(progress.rows), self._clock, dtype=np.int64), progress.heard)
        unknown_own, unknown_clock = slack.own == UNKNOWN, slack.clock == UNKNOWN
        promise = shift_all(progress.largest, np.where(unknown_own, 0, -slack.own) - 1)
        trusted = self._silence.trusted(silent, slack.stamped, slack.purse)
        by_clock = shift_all(progress.largest, trusted - np.where(unknown_clock, 0, slack.clock) - 1)
        promise = np.where(unknown_clock, promise, np.maximum(promise, by_clock))
        heard_for = distances(progress.heard, progress.born)
        awaited = (progress.rows > 0) & ~((progress.rows > 1) & self._silence.gone(silent, heard_for))
        combined = int(promise[awaited].min()) if awaited.any() else NEVER
        return self._ratchet.lift(combined, np.where(progress.rows > 0, promise, NEVER))

    def snapshot(self) -> Snapshot:
        """All of it as plain data; a resumed pacemaker gives the same heartbeats."""
        return {
            "kind": KIND,
            "version": VERSION,
            "clock": self._clock,
            "progress": self._progress.snapshot(),
            "passed": self._passed.tolist(),
            "ladder": self._ladder.snapshot(),
            "silence": self._silence.snapshot(),
            "account": self.account.snapshot(),
            "ratchet": self._ratchet.snapshot(),
        }


def _runner_up(largest: Instants, second: Instants) -> Instants:
    """The second largest of all, given the largest and the second largest of each."""
    if len(largest) == 1:
        return second
    two: Instants = np.partition(np.concatenate((largest, second)), -2)[-2:-1]
    return two
