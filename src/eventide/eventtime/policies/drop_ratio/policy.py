"""`DRATIO p`: heartbeats as early as a permitted share of lost rows allows. Eventide's own policy, and its default.

No parameter but the drop ratio. For every source two promises are weighed, each with a slack read off a ladder of
records (`record_ladder.py`) that assumes no distribution:

- *own progress*: the next row of the source will not lie further behind its largest time than rung k of what rows did
  so far. The slack is signed: a source that speaks every 500 ms lets one promise the next 490 ms at once.
- *its clock*: in silence the source's clock runs on, so `largest time + elapsed - slack` is promised too, as by the
  on-demand timestamps of Stream Mill (section 5); six rungs safer, because rows that were held up are lost together,
  and only for silence that is proven or staked (`silence.py`).

A source promises the larger of the two; the combined heartbeat is the least over the sources that are not gone. When
all are silent for far longer than ever before, the clock goes on as far as the ratio permits (`rest.py`). What is then
lost is booked (`loss_account.py`), and the balance sets the rung: an integral control with a bound that holds on any
stream. Sources with fewer than 192 rows are judged by the worse of their own ladder and that of all rows.

**The guarantee.** Rows lost over any stretch of n rows are at most p * (n + constant) plus one round, as long as the
safest rung (no row later than the latest remembered) loses nothing; so the share lost tends to p or less, and per
source to 1.3 p or less. **The limits.** Nobody can foresee the first time that a source is later than ever before: a
growing lateness is followed, not foreseen. A source that is first seen with rows older than the heartbeat loses them. A
source whose clock is set back loses the rows it stamps twice. The first 1,000 rows are a warm-up.

`docs/time-core/drop-ratio.md` has the derivation and the measurements.

>>> generator = DropRatio(0.01).start()
>>> for second in range(40):
...     generator.observe(Arrivals.of_row(clock=second, source=0, time=10 * second))
>>> generator.heartbeats(39).combined  # the next row is due at 400
399
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Ratchet, SavedGenerator, SavedPolicy, layers
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, Instants
from eventide.eventtime.policies.drop_ratio.loss_account import LossAccount
from eventide.eventtime.policies.drop_ratio.progress import Progress
from eventide.eventtime.policies.drop_ratio.record_ladder import ABSENT, SAFEST, UNKNOWN, RecordLadder
from eventide.eventtime.policies.drop_ratio.rest import REST_TIMES, Rest, Standing
from eventide.eventtime.policies.drop_ratio.silence import LossBudget, Silence, StampStatistics
from eventide.eventtime.reason import NOT_EXPECTED, LeftOut, Reason, not_expected, those

_FIRST_ROWS = 8  # One row is no stream: a first row stamped years ahead would promise them all.
_YOUNG_ROWS = 192
_CLOCK_RUNGS = 6

# The ladder judges two kinds of residual, against the source's largest time and against its clock. Its first place is
# that of all sources together; source s has place s + 1.
_EVERYONE = 0
_EVERY_RUNG = np.arange(SAFEST + 1)


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

    def __post_init__(self) -> None:
        if not 0 < self.ratio < 1:
            raise DeclarationError(f"drop ratio {self.ratio} is not between 0 and 1: write 0.01 for 1 %")

    def start(self) -> DropRatioGenerator:
        """A heartbeat generator that has seen nothing."""
        return DropRatioGenerator(self)


@dataclass(frozen=True)
class _Promises:
    """What can be said of every source before the clock is known: it changes with rows only."""

    ahead: Instants
    """How far past its largest time the source's own progress promises."""
    clock_slack: Instants
    stamped: StampStatistics
    budget: LossBudget
    gone_after: Instants
    """The silence after which the source is not waited for; below zero for one that has not spoken."""


class DropRatioGenerator(SavedGenerator):
    """Progress, ladder, silences and account of all sources; nothing is kept per row."""

    KIND = "drop_ratio"
    SAVED = ("_clock", "_progress", "_ladder", "_silence", "account", "_ratchet")

    def __init__(self, policy: DropRatio) -> None:
        self.account = LossAccount(policy.ratio)
        self._clock = -EDGE
        self._progress = Progress(0)
        self._ladder = RecordLadder(places=1, kinds=2, safe_from=self.account.nominal_rung)
        self._silence = Silence(0)
        self._ratchet = Ratchet()
        self._promises: _Promises | None = None
        self._rest: Rest | None = None
        self._answered = NEVER

    def observe(self, arrivals: Arrivals) -> None:
        """Book what the round lost, learn how late its rows were, and note how far it came."""
        arrivals = arrivals.within_edges()
        if arrivals.clock < self._clock:
            arrivals = replace(arrivals, clock=self._clock)
        self._clock = arrivals.clock
        if arrivals.total == 0:
            return
        promised = self._current_promises()
        self._grow(arrivals.places)
        late = arrivals.earliest <= self._ratchet.shown.combined
        lost = arrivals.sum_by_source(np.where(late, arrivals.rows, 0))
        self._end_rest(arrivals, late)
        self.account.settle(arrivals.sources, arrivals.rows_by_source, lost)
        self._learn(arrivals, promised)
        self._progress.note(arrivals, self._silence.longest)
        self._promises, self._rest, self._answered = None, None, NEVER

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
            crowd = promises.stamped.crowd
            arrays = progress.rows, progress.largest, progress.heard, progress.first, progress.born, crowd
            rows_left = self.account.drop_ratio * self.account.rows - self.account.lost
            standing = Standing(*(array[present] for array in arrays))
            self._rest = Rest.of(standing, self._silence.pause, self._worst_lateness(), rows_left)
        return self._rest

    def _worst_lateness(self) -> int:
        """How far any row remembered came behind its source's clock."""
        places = len(self._ladder.seen)
        worst = self._ladder.rung(np.full((2, places), SAFEST), np.arange(places))[1]
        return int(worst.max(where=worst != UNKNOWN, initial=0))

    def _grow(self, places: int) -> None:
        if places > len(self._progress.rows):
            self._progress.grow(places)
            self._silence.grow(places)
            self.account.grow(places)
            self._ladder.grow(1 + places)

    def _learn(self, arrivals: Arrivals, promised: _Promises) -> None:
        source = arrivals.sources
        earliest, second = arrivals.earliest_by_source, arrivals.second_earliest_by_source
        known = self._progress.rows[source] > 0
        if not known.all():
            source, earliest, second = source[known], earliest[known], second[known]
            if not len(source):
                return
        largest = self._progress.largest[source]
        expected = self._progress.expected(source, self._clock)
        self._silence.end(source, expected - largest, expected - earliest > promised.clock_slack[source])

        # Rows that were held up come one behind the other, and are lost together to what was promised before the first
        # of them: so each is compared with how far the clock had ever been taken to be, not with its forerunner.
        reference = np.stack((largest, self._progress.furthest(source, self._clock)))
        behind = reference - earliest
        next_behind = np.where(second == FOREVER, ABSENT, reference - second)
        together = np.concatenate((behind, next_behind), axis=1)
        two = np.partition(together, -2, axis=1)[:, -2:]
        self._ladder.add(
            np.concatenate(([_EVERYONE], source + 1)),
            np.concatenate(([len(source)], np.ones(len(source), dtype=np.int64))),
            np.concatenate((two[:, 1:], behind), axis=1),
            np.concatenate((two[:, :1], next_behind), axis=1),
        )

    def _current_promises(self) -> _Promises:
        if self._promises is None:
            progress, account = self._progress, self.account
            own, clock = self._read_ladder(account.rungs())
            extent = progress.largest - progress.first
            gone_after = self._silence.gone_after(progress.heard - progress.born, extent)
            self._promises = _Promises(
                ahead=np.where(own == UNKNOWN, 0, -own),
                clock_slack=clock,
                stamped=StampStatistics(progress.rows, progress.mean_crowd(), extent),
                budget=account.budget(),
                gone_after=np.where(progress.rows > 1, gone_after, np.where(progress.rows > 0, FOREVER, -1)),
            )
        return self._promises

    def _read_ladder(self, rungs: NDArray[np.int64]) -> tuple[Instants, Instants]:
        """Slack against own progress and against the clock, of each source at its rung."""
        wanted = np.stack((rungs, np.minimum(rungs + _CLOCK_RUNGS, SAFEST)))
        own = self._ladder.rung(wanted, np.arange(1, len(rungs) + 1))
        young = (self._ladder.seen[1:] < _YOUNG_ROWS) | (wanted == SAFEST)
        if young.any():
            every = np.stack((_EVERY_RUNG, _EVERY_RUNG))
            table = self._ladder.rung(every, np.full(len(_EVERY_RUNG), _EVERYONE))
            common = np.take_along_axis(table, wanted, axis=1)
            worse = np.where(own == UNKNOWN, common, np.where(common == UNKNOWN, own, np.maximum(own, common)))
            own = np.where(young, worse, own)
        return own[0], own[1]

    def heartbeats(self, clock: int) -> Heartbeats:
        """The least over the sources of what each promises at this clock."""
        self._clock = max(self._clock, min(max(clock, -EDGE), EDGE))
        if self.account.rows < _FIRST_ROWS or (self._promises is not None and self._clock == self._answered):
            return self._ratchet.shown
        self._answered = self._clock
        awaited, _, ahead, _ = self._judged()
        promise = self._progress.largest + np.minimum(ahead, 2 * EDGE) - 1
        combined = int(promise.min(where=awaited, initial=FOREVER))
        combined = NEVER if combined == FOREVER else combined
        return self._ratchet.lift(max(combined, self._rested()), promise)

    def _rested(self) -> int:
        """What the silence of all brings at this clock; `NEVER` where it is not long enough."""
        silent = self._silent_together()
        if not self._may_rest(silent):
            return NEVER
        heartbeat = self._current_rest().heartbeat(silent, may_be_over=not self._silence.taken_for_an_end)
        return NEVER if heartbeat is None else heartbeat

    def _judged(self) -> tuple[NDArray[np.bool_], Instants, Instants, Instants]:
        """Of every source: whether it is awaited, how long silent, how far ahead it promises, what is trusted."""
        promises = self._current_promises()
        silent = self._clock - self._progress.heard
        awaited = silent <= promises.gone_after
        trusted = self._silence.trusted(silent, promises.stamped, promises.budget, awaited)
        # An unknown slack is so large that the clock promises nothing.
        return awaited, silent, np.maximum(promises.ahead, trusted - promises.clock_slack), trusted

    def why(self, source: int) -> Reason:
        """The slack that its rows need, how much of its silence may be trusted, or that all are silent together."""
        if self.account.rows < _FIRST_ROWS:
            text = "{rows:count} of the {first:count} rows have come before which nothing is promised"
            return Reason("drop ratio", text, {"rows": self.account.rows, "first": _FIRST_ROWS}, common=True)
        if source >= len(self._progress.rows) or self._progress.rows[source] == 0:
            return NOT_EXPECTED
        _, silent, ahead, trusted = (array[source] for array in self._judged())
        ratio = self.account.drop_ratio
        if NEVER < self._rested() >= self._ratchet.shown.combined:
            text = "all are silent for longer than ever, so time went on with the clock as far as {ratio:share} permits"
            return Reason("rest", text, {"ratio": ratio}, common=True)
        rest = Reason(
            "rest",
            "after a common silence of {rest:wait} time goes on with the clock, within the ratio",
            {"rest": self._current_rest().length},
        )
        if trusted >= silent:
            text = "losing at most {ratio:share}, {slack:length} behind"
            return Reason("drop ratio", text, {"ratio": ratio, "slack": max(0, int(-ahead))}).unless(rest)
        text = "losing at most {ratio:share}, its silence is trusted for {trusted:wait}"
        return Reason("drop ratio", text, {"ratio": ratio, "trusted": int(trusted)}).unless(rest)

    def left_out(self) -> tuple[LeftOut, ...]:
        """The sources that are gone: silent for ten times longer than ever before."""
        gone = Reason("gone", "silent far longer than ever before")
        heard = self._progress.rows > 0
        return (*those(gone, ~self._judged()[0] & heard), *not_expected(heard))


def permitted_ratio(policy: object) -> float | None:
    """Which share of the rows a policy may lose, whatever is wrapped around it; None where it does not go by one.

    >>> from eventide.eventtime.policies.fixed_delay import FixedDelay
    >>> permitted_ratio(DropRatio(0.01)), permitted_ratio(FixedDelay(10))
    (0.01, None)
    """
    return next((layer.ratio for layer in layers(policy) if isinstance(layer, DropRatio)), None)
