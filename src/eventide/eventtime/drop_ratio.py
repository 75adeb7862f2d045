"""`DRATIO p`: heartbeats as early as a permitted share of lost rows allows. Eventide's own policy, and its default.

No parameter but the drop ratio. Four references tell how far time may have come, and each is calibrated on what is
*combined*, the lateness of every row behind it, whatever source the row is from (`calibrated_reference.py`):

- the *largest time* of all rows;
- the *clock*;
- the *slowest source*: the least of the largest times of the sources that are waited for;
- the *slowest source by its clock*: the same, where the time of a silent source runs on with the clock, less the worst
  that its latest rows were behind it (the on-demand timestamps of Stream Mill, section 5).

Each reference is trailed by the slack that the level of the loss account permits (`loss_account.py`), and the one whose
rows wait the least is followed, among those that kept the ratio themselves; at first, the slowest source. One *ceiling*
holds for all of them: no heartbeat goes so far beyond the largest time of a source that, were the source only held up,
more rows would be lost than the account has left, or than the source may lose (`source_history.py`); nor so far beyond
many sources that this held for their rows together, beyond one and a half of each, for so many a silence hides in
any random stream. Rare sources, which together have less than half of the permitted rows, are not waited for, nor are
those that are gone.

**The guarantee.** Of n rows after the warm-up at most `0.9 p n + 2 p (300 + n / 10)` are lost, and one round, as
long as no row comes later than the latest remembered; on any stream, without assumptions. **The limits.** Nobody can
foresee the first time that rows are later than ever before: a growing lateness is followed, not foreseen. A source that
is first seen with rows older than the heartbeat loses them. A source whose clock is set back loses the rows it stamps
twice.

`docs/time-core/drop-ratio.md` has the proof and the measurements.

>>> generator = DropRatio(0.01).start()
>>> for second in range(40):
...     generator.observe(Arrivals.of_row(clock=second, source=0, time=10 * second))
...     heartbeats = generator.heartbeats(second)
>>> heartbeats.combined  # the next row is due at 400
399
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.calibrated_reference import CalibratedReference
from eventide.eventtime.heartbeat import Heartbeats, Snapshot, check_snapshot
from eventide.eventtime.instant import EDGE, NEVER, Instants
from eventide.eventtime.loss_account import TUNING, LossAccount, Tuning
from eventide.eventtime.ratchet import Ratchet
from eventide.eventtime.reason import NOT_EXPECTED, LeftOut, Reason, those
from eventide.eventtime.residual_tail import PROOF_ROWS
from eventide.eventtime.round_digest import RoundDigest
from eventide.eventtime.source_history import ABSENT, SourceHistory

KIND, VERSION = "drop_ratio", 2

FIRST_ROWS = 8
"""One row is no stream: a first row stamped years ahead would promise them all."""

REFERENCES = ("largest time", "clock", "slowest source", "slowest source by its clock")

_FAR = 2 * EDGE
_STEPS = 4


@dataclass(frozen=True)
class Learned:
    """What was learned before the stream began: from `origin`, a recording or a checkpoint, as text of `state`.

    Without a state the origin has still to be read.
    """

    origin: str
    state: str = field(default="", repr=False)


@dataclass(frozen=True)
class DropRatio:
    """At most this share of the rows may be late; time comes as early as that allows.

    >>> DropRatio(1.5)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: drop ratio 1.5 is not between 0 and 1: write 0.01 for 1 %
    """

    ratio: float
    learned: Learned | None = None

    def __post_init__(self) -> None:
        if not 0 < self.ratio < 1:
            raise DeclarationError(f"drop ratio {self.ratio} is not between 0 and 1: write 0.01 for 1 %")

    def __repr__(self) -> str:
        """The ratio, and where it learned from if it did."""
        return f"DropRatio(ratio={self.ratio!r}{f', learned={self.learned!r}' if self.learned else ''})"

    def learned_from(self, snapshot: Snapshot, origin: str = "a snapshot") -> DropRatio:
        """The same policy, which starts with the slacks and lags that a snapshot of another one has learned.

        >>> earlier = DropRatio(0.01).start()
        >>> for second in range(40):
        ...     earlier.observe(Arrivals.of_row(clock=second, source=0, time=10 * second))
        ...     _ = earlier.heartbeats(second)
        >>> DropRatio(0.01).learned_from(earlier.snapshot()).start().account.warm
        True
        """
        check_snapshot(snapshot, KIND, VERSION)
        state = [{"tail": one["tail"], "lag": one["lag"], "_weight": one["_weight"]} for one in snapshot["references"]]
        return replace(self, learned=Learned(origin, json.dumps(state)))

    def start(self) -> DropRatioPacemaker:
        """A generator that has seen nothing, or only what it learned from."""
        return DropRatioPacemaker(self)

    def resume(self, snapshot: Snapshot) -> DropRatioPacemaker:
        """A generator that continues from `snapshot`."""
        check_snapshot(snapshot, KIND, VERSION)
        generator = DropRatioPacemaker(self)
        generator.restore(snapshot)
        return generator


@dataclass(frozen=True)
class _Sources:
    """What can be said of the sources before the clock is known: it changes with rows only."""

    awaited: NDArray[np.bool_]
    gone_after: Instants
    lead: Instants
    """How far past its largest time the own progress of a source promises; below zero for a disordered one."""
    clock_slack: Instants
    reach_share: NDArray[np.float64]
    risk: NDArray[np.float64]
    """Rows that a silence ends badly with, for each age of the source: fewer, the more often it ended well."""


@dataclass(frozen=True)
class _Promises:
    """What every source promises at a clock, what the least of them do, and who is waited for."""

    awaited: NDArray[np.bool_]
    by_source: Instants
    ceilings: Instants
    ceiling: int
    slowest: int
    by_clock: int


class DropRatioPacemaker:
    """The history of the sources, the account, and the references; nothing is kept per row."""

    def __init__(self, policy: DropRatio, tuning: Tuning = TUNING) -> None:
        self.policy = policy
        self._tuning = tuning
        self.account = LossAccount(policy.ratio, tuning)
        self.references = tuple(CalibratedReference(name, policy.ratio, tuning) for name in REFERENCES)
        self.history = SourceHistory(policy.ratio, tuning=tuning)
        self.followed = self.references[2]
        self._fairness = 1.0
        self._clock = -EDGE
        self._ratchet = Ratchet()
        self._rare = np.zeros(0, dtype=np.bool_)
        self._rare_at = 0
        self._sources: _Sources | None = None
        self._answered = NEVER
        if policy.learned is not None:
            self._learn_from(policy.learned)

    def _learn_from(self, learned: Learned) -> None:
        if not learned.state:
            raise DeclarationError(
                f"what was learned from {learned.origin!r} has not been read: "
                "eventide run reads it, and so does .drop_ratio(..., learned_from=...)"
            )
        for reference, saved in zip(self.references, json.loads(learned.state), strict=True):
            reference.restore({**reference.snapshot(), **saved})
        self.account.learned = True

    def observe(self, arrivals: Arrivals) -> None:
        """Book what the round lost, calibrate every reference with it, and note how far each source came."""
        arrivals = arrivals.within_edges()
        if arrivals.clock < self._clock:
            arrivals = replace(arrivals, clock=self._clock)
        self._clock = arrivals.clock
        if arrivals.total == 0:
            return
        history, account = self.history, self.account
        if int(arrivals.source[-1]) >= len(history.rows):
            history.grow(int(arrivals.source[-1]) + 1)
            self._rare_at = 0
        shown = self._ratchet.shown.combined
        if arrivals.total == 1:
            lost = np.array([int(arrivals.earliest[0] <= shown)])
        else:
            late = np.where(arrivals.earliest <= shown, arrivals.rows, 0)
            lost = arrivals.sum_by_source(late).astype(np.int64)
        warm = account.warm
        account.settle(arrivals.total, int(lost.sum()))
        # Early residuals are few, so a reference that lost rows in the warm-up is soon forgiven.
        earned = self._tuning.spend * account.ratio * arrivals.total * (1 if warm else 4)
        first = self.references[0].tail
        digest = RoundDigest.of(arrivals, first.keep, first.block_rows)
        margin, fairness = account.margin, self._fairness
        for reference in self.references:
            reference.learn(digest, self._clock, account.rows, earned, lambda own: account.level(fairness, own), margin)
        history.note(arrivals, account.stake, lost)
        self._fairness = self._judge_fairness()
        self._find_rare()
        self._sources, self._answered = None, NEVER

    def _judge_fairness(self) -> float:
        """1, or less when a source has lost far more than its share; 0 at twice the ratio."""
        history, tuning = self.history, self._tuning
        times = float((history.lost / np.maximum(history.rows, tuning.warm_up_rows)).max()) / self.account.ratio
        return min(1.0, max(0.0, (2.0 - times) / (2.0 - tuning.fair_times)))

    def _current_sources(self) -> _Sources:
        if self._sources is None:
            history, account, tuning = self.history, self.account, self._tuning
            owed = 2 * account.ratio * np.maximum(history.rows, tuning.warm_up_rows) - history.lost
            at_risk = history.rows_at_risk(account.stake, account.margin + account.ratio * account.rows / 2)
            own, clock = history.own_residual(), history.clock_residual()
            self._sources = _Sources(
                awaited=(history.rows > 0) & ~self._rare,
                gone_after=history.gone_after(),
                lead=np.where(own == ABSENT, 0, -own),
                clock_slack=np.where(clock == ABSENT, _FAR, clock),
                reach_share=history.reach_share(np.minimum(at_risk, np.maximum(owed, 1.0))),
                risk=(history.rows + 1) / (1.0 + history.good),
            )
        return self._sources

    def _find_rare(self) -> None:
        """Find the sources that together have less than half of the permitted rows, anew as the rows grow."""
        rows, history = self.account.rows, self.history
        if len(self._rare) == len(history.rows) and rows < self._rare_at:
            return
        order = np.argsort(history.rows, kind="stable")
        self._rare = np.zeros(len(order), dtype=np.bool_)
        self._rare[order] = np.cumsum(history.rows[order]) <= self.account.ratio * rows / 2
        self._rare_at = rows + max(32, rows // 64)

    def heartbeats(self, clock: int) -> Heartbeats:
        """The heartbeat of the reference that is followed, below the ceiling; and what each source promises."""
        self._clock = max(self._clock, min(max(clock, -EDGE), EDGE))
        rows = self.account.rows
        if rows == 0 or (self._sources is not None and self._clock == self._answered):
            return self._ratchet.shown
        self._answered = self._clock
        promises = self._promises()
        if not promises.awaited.any():
            return self._ratchet.lift(NEVER, promises.by_source)
        values = (int(self.history.largest.max()), self._clock, promises.slowest, promises.by_clock)
        for reference, value in zip(self.references, values, strict=True):
            reference.advance(value, promises.ceiling, self._clock, rows)
        if rows < FIRST_ROWS:
            return self._ratchet.lift(NEVER, np.full(len(self.history.rows), NEVER))
        self.followed = self._choose(rows)
        return self._ratchet.lift(self.followed.heartbeat, promises.by_source)

    def _choose(self, rows: int) -> CalibratedReference:
        """The reference with the least lag, of those that are not overdrawn; else the one that is least so."""
        slowest = self.references[2]
        if slowest.tail.rows < PROOF_ROWS:
            return slowest
        limit = -self.account.margin / 2
        solvent = [one for one in self.references if one.slack is not None and one.balance >= limit]
        if not solvent:
            return max(self.references, key=lambda one: one.balance)
        return min(solvent, key=lambda one: one.expected_lag(self._clock, rows))

    def _promises(self) -> _Promises:
        sources, history = self._current_sources(), self.history
        silent = self._clock - history.heard
        awaited = sources.awaited & (silent <= sources.gone_after)
        largest, age = history.largest, history.age(self._clock)
        reach = np.clip(sources.reach_share * age, 0, _FAR).astype(np.int64)
        ceilings = largest + np.maximum(sources.lead, reach) - 1
        clocks = largest + silent - sources.clock_slack
        # A source speaks for itself by its clock once a block of its rows has shown how far that can be wrong.
        proven = np.where(history.clock_before == ABSENT, -_FAR, np.minimum(clocks, ceilings))
        promised = np.maximum(largest + sources.lead, proven) - 1
        by_clock = np.maximum(largest, clocks)
        return _Promises(
            awaited,
            promised,
            ceilings,
            self._common_ceiling(
                int(ceilings.min(where=awaited, initial=_FAR)), sources.risk / np.maximum(age, 1), awaited
            ),
            int(largest.min(where=awaited, initial=_FAR)),
            int(by_clock.min(where=awaited, initial=_FAR)),
        )

    def _common_ceiling(self, ceiling: int, rate: NDArray[np.float64], awaited: NDArray[np.bool_]) -> int:
        """The ceiling, lowered until the rows at risk of all sources, beyond one of each, are within the stake."""
        sources = int(np.count_nonzero(awaited))
        if sources < 2:
            return ceiling
        rate, largest = rate[awaited], self.history.largest[awaited]
        permitted = self.account.stake + sources / 2
        # Newton's steps on a convex function from above: each ends above the solution or on it.
        for _ in range(_STEPS):
            at_risk = rate * (ceiling - largest) - 1.0
            beyond = at_risk > 0
            excess = float(at_risk.sum(where=beyond)) - permitted
            if excess <= 0:
                break
            ceiling -= int(excess / float(rate.sum(where=beyond))) + 1
        return ceiling

    def why(self, source: int) -> Reason:
        """The reference that is followed and its slack, or the source that could lose more than may be."""
        if self.account.rows < FIRST_ROWS:
            text = "{rows:count} of the {first:count} rows have come before which nothing is promised"
            return Reason("drop ratio", text, {"rows": self.account.rows, "first": FIRST_ROWS}, common=True)
        if source >= len(self.history.rows) or self.history.rows[source] == 0:
            return NOT_EXPECTED
        promises, followed = self._promises(), self.followed
        values: dict[str, float] = {"ratio": self.account.ratio}
        if promises.awaited[source] and int(promises.ceilings[source]) <= followed.heartbeat:
            text = "losing at most {ratio:share}, its silence is trusted for {trusted:wait}"
            trusted = int(promises.ceilings[source]) + 1 - int(self.history.largest[source])
            return Reason("drop ratio", text, {**values, "trusted": max(0, trusted)})
        slack, rows = max(0, followed.slack or 0), followed.tail.rows
        values |= {"slack": slack, "rows": rows, "late": int(self.account.level(self._fairness) * rows) + 1}
        text = (
            f"losing at most {{ratio:share}}, {{slack:length}} behind the {followed.name}: "
            "{late:count} of the last {rows:count} rows were that late or later"
        )
        return Reason("drop ratio", text, values)

    def left_out(self) -> tuple[LeftOut, ...]:
        """The sources that are gone, silent for ten times longer than ever before, and those that are rare."""
        gone = Reason("gone", "silent far longer than ever before")
        rare = Reason("rare", "all its rows are within what may be lost")
        unheard = self.history.rows == 0
        left = self._current_sources().awaited & ~self._promises().awaited
        return (
            *those(gone, left),
            *those(rare, ~self._current_sources().awaited & ~unheard),
            *those(NOT_EXPECTED, unheard),
        )

    def snapshot(self) -> Snapshot:
        """All of it as plain data; a resumed generator gives the same heartbeats."""
        saved: dict[str, Any] = {
            "kind": KIND,
            "version": VERSION,
            "clock": self._clock,
            "account": self.account.snapshot(),
            "history": self.history.snapshot(),
            "references": [reference.snapshot() for reference in self.references],
            "followed": self.followed.name,
            "rare": np.flatnonzero(self._rare).tolist(),
            "rare_at": self._rare_at,
            "ratchet": self._ratchet.snapshot(),
        }
        return saved

    def restore(self, saved: Snapshot) -> None:
        """Continue from what `snapshot` described."""
        self._clock = saved["clock"]
        self.account.restore(saved["account"])
        self.history.restore(saved["history"])
        for reference, state in zip(self.references, saved["references"], strict=True):
            reference.restore(state)
        self.followed = self.references[REFERENCES.index(saved["followed"])]
        self._rare = np.zeros(len(self.history.rows), dtype=np.bool_)
        self._rare[saved["rare"]] = True
        self._rare_at = saved["rare_at"]
        self._ratchet = Ratchet.restored(saved["ratchet"])
        if len(self.history.rows):
            self._fairness = self._judge_fairness()
