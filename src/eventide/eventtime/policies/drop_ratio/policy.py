"""`DRATIO p`: heartbeats as early as a permitted share of lost rows allows. Eventide's own policy, and its default.

No parameter but the drop ratio. Several *candidates* give combined heartbeats side by side (`candidates.py`): the least
of what all sources promise, by their own progress and by their clocks, on several rungs of a ladder of records
(`record_ladder.py`) that assumes no distribution; and the largest time of all, less the slack that a share of the last
rows exceeded. Each has an exact account of what it would have lost. The one behind which rows wait least is followed,
among those that kept the ratio; so the budget is spent on what is combined, whatever its parts are.

What a candidate may lose for the first time cannot be known from what it lost. So a *ceiling* (`ceiling.py`) holds all
of them: no heartbeat puts more rows at stake than may still be lost (`loss_account.py`), weighed by how silences ended
before (`silence.py`). When all are silent for far longer than ever before, the clock goes on as far as the ratio
permits (`rest.py`). For each source alone, the nominal rung promises; a source that lost more than its share is read on
a safer one.

`docs/time-core/drop-ratio.md` has the law, the bound, its limits and the measurements.

>>> generator = DropRatio(0.01).start()
>>> for second in range(40):
...     generator.observe(Arrivals.of_row(clock=second, source=0, time=10 * second))
>>> generator.heartbeats(39).combined  # the next row is due at 400
399
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.arrays import grown, stretch
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import (
    Heartbeats,
    Ratchet,
    SavedGenerator,
    SavedPolicy,
    Snapshot,
    check_snapshot,
    layers,
)
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, Instants
from eventide.eventtime.policies.drop_ratio.candidates import Candidates
from eventide.eventtime.policies.drop_ratio.ceiling import Stakes
from eventide.eventtime.policies.drop_ratio.learned import Learned
from eventide.eventtime.policies.drop_ratio.loss_account import LossAccount
from eventide.eventtime.policies.drop_ratio.progress import Progress
from eventide.eventtime.policies.drop_ratio.promises import Promises
from eventide.eventtime.policies.drop_ratio.record_ladder import ABSENT, EVERYONE, SAFEST, RecordLadder
from eventide.eventtime.policies.drop_ratio.rest import REST_TIMES, Rest, Standing
from eventide.eventtime.policies.drop_ratio.silence import Silence
from eventide.eventtime.policies.drop_ratio.upgrade import upgraded
from eventide.eventtime.reason import NOT_EXPECTED, LeftOut, Reason, not_expected, those

_FIRST_ROWS = 8  # One row is no stream: a first row stamped years ahead would promise them all.
_RARE_SHARE, _UNPROTECTED_SHARE = 0.5, 0.9


@dataclass(frozen=True)
class DropRatio(SavedPolicy["DropRatioGenerator"]):
    """Keeps the share of late rows at `ratio` or below, with heartbeats as early as that permits.

    `docs/time-core/drop-ratio.md` has the law, its proof and its limits.

    >>> generator = DropRatio(0.01).start()
    >>> for second in range(40):
    ...     generator.observe(Arrivals.of_row(clock=second, source=0, time=10 * second))
    >>> generator.heartbeats(clock=39).combined
    399
    >>> DropRatio(1.5)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: drop ratio 1.5 is not between 0 and 1: write 0.01 for 1 %
    """

    ratio: float
    # Not shown: how a stream started is no part of how it goes on.
    learned: Learned | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.ratio < 1:
            raise DeclarationError(f"drop ratio {self.ratio} is not between 0 and 1: write 0.01 for 1 %")

    def start(self) -> DropRatioGenerator:
        """A heartbeat generator that has seen nothing of its stream."""
        generator = DropRatioGenerator(self)
        if self.learned is not None:
            self.learned.teach(generator)
        return generator


@dataclass(frozen=True)
class _Judged:
    """What every source promises at a clock, and who is waited for."""

    awaited: NDArray[np.bool_]
    silent: Instants
    reach: Instants
    by_source: Instants
    ceiling: int


class DropRatioGenerator(SavedGenerator):
    """Progress, ladder, silences and account of all sources, and the candidates; nothing is kept per row."""

    KIND = "drop_ratio"
    VERSION = 2
    SAVED = (
        "_clock", "_progress", "_ladder", "_silence", "account", "candidates", "_rare", "_unprotected", "_rare_at",
        "_ratchet",
    )  # fmt: skip

    def __init__(self, policy: DropRatio) -> None:
        self.account = LossAccount(policy.ratio)
        self.candidates = Candidates(policy.ratio)
        self._clock = -EDGE
        self._progress = Progress(0)
        self._ladder = RecordLadder(places=1, kinds=2, safe_from=self.account.nominal_rung)
        self._silence = Silence(0)
        self._ratchet = Ratchet()
        self._rare = np.zeros(0, dtype=np.bool_)
        self._unprotected = np.zeros(0, dtype=np.bool_)
        self._rare_at = 0
        self._promises = Promises(self.candidates.rungs, self.account.nominal_rung)
        self._spoke: NDArray[np.intp] | None = None
        self._rest: Rest | None = None
        self._answered = NEVER

    def check(self, snapshot: Snapshot) -> None:
        """Refuse a snapshot from which this policy cannot go on; it can from one of the version before."""
        version = self.VERSION - 1 if snapshot.get("version") == self.VERSION - 1 else self.VERSION
        check_snapshot(snapshot, self.KIND, version)

    def restore(self, saved: Snapshot) -> None:
        """Go on from what `snapshot` described; version 1 had no candidates, so they begin where it stood."""
        if saved.get("version") == 1:
            saved = upgraded(saved, self.account.drop_ratio, self.VERSION)
        super().restore(saved)
        self._promises = Promises(self.candidates.rungs, self.account.nominal_rung)
        self._spoke = np.arange(len(self._progress.rows))

    def observe(self, arrivals: Arrivals) -> None:
        """Book what the round lost, learn how late its rows were, and note how far it came."""
        arrivals = arrivals.within_edges()
        if arrivals.clock < self._clock:
            arrivals = replace(arrivals, clock=self._clock)
        self._clock = arrivals.clock
        if arrivals.total == 0:
            return
        promised = self._current_promises()
        late = arrivals.earliest <= self._ratchet.shown.combined
        lost = arrivals.sum_by_source(np.where(late, arrivals.rows, 0))
        self._end_rest(arrivals, late)
        self._grow(arrivals.places)
        self.candidates.observe(arrivals, self.account)
        self.account.settle(arrivals.sources, arrivals.rows_by_source, lost)
        self._learn(arrivals, promised)
        self._progress.note(arrivals, self._silence.longest)
        self._find_rare()
        self._spoke, self._rest, self._answered = arrivals.sources, None, NEVER

    def _end_rest(self, arrivals: Arrivals, late: NDArray[np.bool_]) -> None:
        """Learn how long all were silent together, and whether the stream was wrongly taken to be over."""
        silent = self._silent_together()
        if late.any() and self._may_rest(silent) and silent > (rest := self._current_rest()).over_after:
            self._silence.taken_for_an_end |= bool((arrivals.earliest[late] > rest.surely).any())
        self._silence.pause = max(self._silence.pause, silent)

    def _silent_together(self) -> int:
        """How long all sources have been silent; 0 before the first row."""
        known = self._progress.rows > 0
        return self._clock - int(self._progress.heard.max(where=known, initial=-EDGE)) if known.any() else 0

    def _may_rest(self, silent: int) -> bool:
        """Whether it is worth a closer look: a rest is longer than that."""
        return silent > REST_TIMES * self._silence.pause

    def _current_rest(self) -> Rest:
        """What a common silence brings; there are rows."""
        if self._rest is None:
            progress, promises = self._progress, self._current_promises()
            known = progress.rows > 0
            last = progress.heard.max(where=known, initial=-EDGE)
            present = known & (last - progress.heard <= promises.gone_after)
            crowd = progress.mean_crowd()
            arrays = progress.rows, progress.largest, progress.heard, progress.first, progress.born, crowd
            rows_left = self.account.drop_ratio * self.account.rows - self.account.lost
            standing = Standing(*(array[present] for array in arrays))
            self._rest = Rest.of(standing, self._silence.pause, self._worst_lateness(), rows_left)
        return self._rest

    def _worst_lateness(self) -> int:
        """How far any row remembered came behind its source's clock."""
        worst = self._ladder.rung(np.full((1, 1, 1), SAFEST), np.arange(len(self._ladder.seen)))[1]
        return int(worst.max(initial=0))

    def _grow(self, places: int) -> None:
        if places > len(self._progress.rows):
            self._progress.grow(places)
            self._silence.grow(places)
            self.account.grow(places)
            self._ladder.grow(1 + places)
            self._rare, self._unprotected = grown(self._rare, places, 0), grown(self._unprotected, places, 0)

    def _find_rare(self) -> None:
        """Tell anew which sources are rare, each time that the rows have grown by some share."""
        if self.account.rows >= self._rare_at:
            self._rare = self.account.rare(_RARE_SHARE)
            self._unprotected = self.account.rare(_UNPROTECTED_SHARE)
            self._rare_at = self.account.rows + 32 + self.account.rows // 64

    def _learn(self, arrivals: Arrivals, promised: Promises) -> None:
        source = arrivals.sources
        earliest, second = arrivals.earliest_by_source, arrivals.second_earliest_by_source
        known = self._progress.rows[source] > 0
        if not known.all():
            source, earliest, second = source[known], earliest[known], second[known]
            if not len(source):
                return
        largest = self._progress.largest[source]
        expected = self._progress.expected(source, self._clock)
        silence = expected - largest
        late = expected - earliest - promised.normal[source]
        pace = self._progress.pace(source)
        stake = self._progress.rate(self._clock, pace, source) * pace * silence
        self._silence.end(source, silence, stake, late / np.maximum(silence, 1))

        # Rows that were held up come one behind the other, and are lost together to what was promised before the first
        # of them: so each is compared with how far the clock had ever been taken to be, not with its forerunner.
        reference = np.stack((largest, self._progress.furthest(source, self._clock)))
        behind = reference - earliest
        next_behind = np.where(second == FOREVER, ABSENT, reference - second)
        together = np.concatenate((behind, next_behind), axis=1)
        two = np.partition(together, -2, axis=1)[:, -2:]
        self._ladder.add(
            np.concatenate(([EVERYONE], source + 1)),
            np.concatenate(([len(source)], np.ones(len(source), dtype=np.int64))),
            np.concatenate((two[:, 1:], behind), axis=1),
            np.concatenate((two[:, :1], next_behind), axis=1),
        )

    def _current_promises(self) -> Promises:
        if self._spoke is not None:
            self._promises.refresh(self._spoke, self._ladder, self.account, self._progress, self._silence)
            self._spoke = None
        return self._promises

    def heartbeats(self, clock: int) -> Heartbeats:
        """That of the candidate that is followed; and what each source promises by itself."""
        self._clock = max(self._clock, min(max(clock, -EDGE), EDGE))
        if self.account.rows < _FIRST_ROWS or self._clock == self._answered:
            return self._ratchet.shown
        self._answered = self._clock
        judged, progress = self._judged(), self._progress
        awaited = judged.awaited & ~self._rare
        if not awaited.any():
            awaited = judged.awaited
        promised = np.full(2 * len(self.candidates.rungs), NEVER)
        references = np.full(2, NEVER)
        if awaited.any():
            promised = np.concatenate(self._promised(judged.silent, awaited)) - 1
            known = progress.rows > 0
            references = np.array(
                [progress.largest.max(), (progress.largest + progress.prompt).max(where=known, initial=-EDGE)]
            )
        self.candidates.advance(promised, references, judged.ceiling, self._clock, self.account)
        combined = self.candidates.heartbeat if awaited.any() else NEVER
        return self._ratchet.lift(max(combined, self._rested()), judged.by_source)

    def _promised(self, silent: Instants, awaited: NDArray[np.bool_]) -> tuple[Instants, Instants]:
        """The least over the sources of their own progress, and of that or their clock, on every rung."""
        at = stretch(np.flatnonzero(awaited))
        promises, largest = self._current_promises(), self._progress.largest[at]
        own = largest - promises.own[:, at]
        clock = np.maximum(own, (largest + silent[at]) - promises.clock[:, at])
        return own.min(axis=1), clock.min(axis=1)

    def _rested(self) -> int:
        """What the silence of all brings at this clock; `NEVER` where it is not long enough."""
        silent = self._silent_together()
        if not self._may_rest(silent):
            return NEVER
        heartbeat = self._current_rest().heartbeat(silent, may_be_over=not self._silence.taken_for_an_end)
        return NEVER if heartbeat is None else heartbeat

    def _judged(self) -> _Judged:
        """What can be said of all sources at this clock."""
        promises, progress, account = self._current_promises(), self._progress, self.account
        silent = self._clock - progress.heard
        awaited = silent <= promises.gone_after
        pace = progress.pace()
        rate = progress.rate(self._clock, pace)
        stakes = Stakes(
            progress.largest,
            rate,
            np.maximum(((silent - promises.normal) * pace).astype(np.int64), promises.lead),
            promises.lead,
            self._silence.chance(silent, rate * silent * pace),
            progress.crowding(),
        )
        reach = stakes.reach(account.budget, promises.left)
        held = awaited & ~self._unprotected
        ceiling = FOREVER
        if held.any():
            alone = np.minimum(progress.largest + reach - 1, promises.held_at)
            at = stretch(np.flatnonzero(held))
            ceiling = stakes.only(at).common(int(alone[at].min()), account.budget)
        nominal = int(np.searchsorted(self.candidates.rungs, account.nominal_rung))
        by_clock = np.minimum(silent - promises.clock[nominal], reach)
        by_source = progress.largest + np.minimum(np.maximum(-promises.own[nominal], by_clock), 2 * EDGE) - 1
        return _Judged(awaited, silent, reach, by_source, ceiling)

    def why(self, source: int) -> Reason:
        """The slack that its rows or all rows need, how much of its silence may be trusted, or that all are silent."""
        if self.account.rows < _FIRST_ROWS:
            text = "{rows:count} of the {first:count} rows have come before which nothing is promised"
            return Reason("drop ratio", text, {"rows": self.account.rows, "first": _FIRST_ROWS}, common=True)
        if source >= len(self._progress.rows) or self._progress.rows[source] == 0:
            return NOT_EXPECTED
        ratio = self.account.drop_ratio
        if NEVER < self._rested() >= self._ratchet.shown.combined:
            text = "all are silent for longer than ever, so time went on with the clock as far as {ratio:share} permits"
            return Reason("rest", text, {"ratio": ratio}, common=True)
        rest = Reason(
            "rest",
            "after a common silence of {rest:wait} time goes on with the clock, within the ratio",
            {"rest": self._current_rest().length},
        )
        judged = self._judged()
        if judged.silent[source] > judged.reach[source] and judged.ceiling <= self.candidates.heartbeat:
            text = "losing at most {ratio:share}, its silence is trusted for {trusted:wait}"
            return Reason("drop ratio", text, {"ratio": ratio, "trusted": int(judged.reach[source])}).unless(rest)
        rung = self.candidates.followed_rung
        if rung is None:
            slack, late, rows = self.candidates.exceeded()
            text = (
                "losing at most {ratio:share}, {slack:length} behind all: {late:count} of {rows:count} rows were later"
            )
            values = {"ratio": ratio, "slack": max(0, slack), "late": late, "rows": rows}
            return Reason("drop ratio", text, values, common=True).unless(rest)
        slack = int(self._progress.largest[source]) - int(judged.by_source[source]) - 1
        text = "losing at most {ratio:share}, {slack:length} behind: it was later in about 1 of {often:count} rows"
        values = {"ratio": ratio, "slack": max(0, slack), "often": 2**self.account.nominal_rung}
        return Reason("drop ratio", text, values).unless(rest)

    def left_out(self) -> tuple[LeftOut, ...]:
        """The sources that are gone: silent for ten times longer than ever before."""
        gone = Reason("gone", "silent far longer than ever before")
        heard = self._progress.rows > 0
        return (*those(gone, ~self._judged().awaited & heard), *not_expected(heard))


def permitted_ratio(policy: object) -> float | None:
    """Which share of the rows a policy may lose, whatever is wrapped around it; None where it does not go by one.

    >>> from eventide.eventtime.policies.fixed_delay import FixedDelay
    >>> permitted_ratio(DropRatio(0.01)), permitted_ratio(FixedDelay(10))
    (0.01, None)
    """
    return next((layer.ratio for layer in layers(policy) if isinstance(layer, DropRatio)), None)
