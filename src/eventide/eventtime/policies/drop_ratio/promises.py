"""What can be said of every source before the clock is known: how far behind its rows come, and what it may still lose.

Law: this is the same as if all of it were read anew after every round. What concerns one source alone changes with its
own rows only, so only the sources of a round are read; a round of one row reads one. What a source takes over from the
ladder of everyone, because it is young or asks for the safest rung, changes with every row, but that is a comparison,
not a reading.

>>> account, progress, silence = LossAccount(0.01, places=1), Progress(1), Silence(1)
>>> ladder, promises = RecordLadder(places=2, kinds=2), Promises(rungs=np.array([1, 3]), nominal=3)
>>> for residual in (3, 1, 4, 1, 5, 9, 2, 6):
...     ladder.add(np.array([1]), np.array([1]), np.full((2, 1), residual), np.full((2, 1), UNKNOWN))
>>> promises.refresh(np.array([0]), ladder, account, progress, silence)
>>> promises.own.tolist()  # the third rung has no blocks yet: it goes on from the first by its last step
[[6], [6]]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.arrays import grown, stretch
from eventide.eventtime.instant import EDGE, FOREVER, Instants
from eventide.eventtime.policies.drop_ratio.loss_account import LossAccount
from eventide.eventtime.policies.drop_ratio.progress import Progress
from eventide.eventtime.policies.drop_ratio.record_ladder import AT_ONCE, SAFEST, UNKNOWN, RecordLadder
from eventide.eventtime.policies.drop_ratio.silence import Silence

_CLOCK_RUNGS = 3
_NORMAL_RUNG = 1


class Promises:
    """Arrays over sources, the last axis; the first of two kinds of residual is that of its own progress."""

    def __init__(self, rungs: NDArray[np.int64], nominal: int) -> None:
        # The rungs of the candidates, which are safer for a source that lost much; and one that is the same for all.
        on_own, on_clock = np.append(rungs, nominal), np.append(rungs + _CLOCK_RUNGS, _NORMAL_RUNG)
        self._rungs = np.minimum(np.stack((on_own, on_clock)), SAFEST)[:, :, None]
        self._careful = np.append(np.ones_like(rungs), 0)[:, None]
        self._answers = np.zeros((*self._rungs.shape[:2], 0), dtype=np.int64)
        self._slack = self._answers
        self._safer = np.zeros(0, dtype=np.int64)
        self._listening = np.zeros(0, dtype=np.bool_)
        self.lead: Instants = np.zeros(0, dtype=np.int64)
        """How far ahead of its largest time the nominal rung expects its next row; 0 where it does not."""
        self.normal: Instants = np.zeros(0, dtype=np.int64)
        """How far a row of it is usually behind its clock."""
        self.left: NDArray[np.float64] = np.zeros(0)
        """What it may still lose."""
        self.held_at: Instants = np.zeros(0, dtype=np.int64)
        """Where the ceiling holds everyone for it, if it is overdrawn."""
        self.gone_after: Instants = np.zeros(0, dtype=np.int64)
        """The silence after which the source is not waited for; below zero for one that has not spoken."""

    @property
    def own(self) -> Instants:
        """How far behind its largest time each source is taken to be, on every rung of the candidates."""
        return self._slack[0, :-1]

    @property
    def clock(self) -> Instants:
        """How far behind its clock."""
        return self._slack[1, :-1]

    def refresh(
        self,
        source: NDArray[np.intp],
        ladder: RecordLadder,
        account: LossAccount,
        progress: Progress,
        silence: Silence,
    ) -> None:
        """Read what the last round changed: these sources had rows in it; others may have been discovered with them."""
        known, places = len(self.left), len(progress.rows)
        if places > known:
            source = np.union1d(source, np.arange(known, places))
            self._grow(places)
        others = self._listening.copy()
        for begin in range(0, len(source), AT_ONCE):
            some = source[begin : begin + AT_ONCE]
            at = stretch(some)
            self._safer[at] = account.extra_rungs(at)
            rungs = self._rungs_of(at)
            self._answers[:, :, at] = answers = ladder.rung(rungs, some + 1)
            self._listening[at] = ladder.listening(rungs, some)
            others[at] = False
            self._show(at, ladder.with_everyone(answers, rungs, some) if self._listening[at].any() else answers)
            self.left[at] = account.left_of(at)
            rows, heard_for = progress.rows[at], progress.heard[at] - progress.born[at]
            gone_after = silence.gone_after(heard_for, progress.largest[at] - progress.first[at], at)
            self.gone_after[at] = np.where(rows > 1, gone_after, np.where(rows > 0, FOREVER, -1))
            self.held_at[at] = 2 * EDGE
        if others.any():
            some = np.flatnonzero(others)
            at = stretch(some)
            self._show(at, ladder.with_everyone(self._answers[:, :, at], self._rungs_of(at), some))
        overdrawn = np.flatnonzero(self.left <= 0)
        if len(overdrawn):
            rungs = account.overdrawn_rungs(self.left[overdrawn])[None, None]
            answer = ladder.with_everyone(ladder.rung(rungs, overdrawn + 1), rungs, overdrawn)[0, 0]
            self.held_at[overdrawn] = progress.largest[overdrawn] - np.maximum(answer, 0) - 1

    def _grow(self, places: int) -> None:
        more = ((0, 0), (0, 0), (0, places - len(self.left)))
        self._answers, self._slack = np.pad(self._answers, more), np.pad(self._slack, more)
        for name in ("_safer", "_listening", "lead", "normal", "left", "held_at", "gone_after"):
            setattr(self, name, grown(getattr(self, name), places, 0))

    def _rungs_of(self, at: slice | NDArray[np.intp]) -> NDArray[np.int64]:
        """The rungs at which sources are read: one for all of them, unless one is read on safer rungs."""
        safer = self._safer[at]
        rungs: NDArray[np.int64] = self._rungs
        return np.minimum(rungs + self._careful * safer, SAFEST) if safer.any() else rungs

    def _show(self, at: slice | NDArray[np.intp], answers: Instants) -> None:
        """Turn the answers for some sources into what is promised of them."""
        own, clock = answers
        unknown = answers == UNKNOWN
        self.lead[at] = np.where(unknown[0, -1], 0, np.maximum(-own[-1], 0))
        self.normal[at] = np.maximum(clock[-1], 0)
        self._slack[0][:, at] = np.where(unknown[0], 0, own)
        self._slack[1][:, at] = np.where(unknown[1], -UNKNOWN, clock)
