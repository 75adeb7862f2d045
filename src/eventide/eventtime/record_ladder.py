"""The ladder of records: how large the next residual may be, without assuming any distribution.

A residual says by how much a row missed what was expected of it; smaller is better, and it may be negative. Rung k
cuts the residuals of a source into blocks of 2^k rows and answers with the median of the last three block records.

Law: if the residuals of a source are exchangeable, the next one exceeds rung k with a probability of about 0.7 / 2^k,
whatever their distribution: the chance to beat the median of three records of m rows each is near ln 2 / m. One outlier
in one block moves nothing; two blocks must agree. Where residuals are not exchangeable the ladder has two reflexes:

- *recent*: the second largest of the last eight residuals is a floor under every rung, so that a storm is believed
  after two rows, and a single freak is not;
- *extrapolation*: above the highest rung that three blocks fill, each further rung adds the step between the last two
  (an exponential tail), up to the worst residual remembered.

A round is digested by its largest residual per source, which then stands for every block the round touches: rungs below
the size of a round are safer than they need be, never bolder.

>>> ladder = RecordLadder(places=1)
>>> for residual in [3, 1, 4, 1, 5, 9, 2, 6]:
...     ladder.add(np.array([0]), np.array([1]), np.array([residual]), np.array([ABSENT]))
>>> place = np.array([0])
>>> ladder.rung(np.array([1]), place).tolist()  # blocks (4 1) (5 9) (2 6): the median record; recent: 6
[6]
>>> ladder.rung(np.array([SAFEST]), place).tolist()
[9]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.heartbeat import Snapshot
from eventide.eventtime.instant import Instants
from eventide.eventtime.packing import packed, unpacked
from eventide.eventtime.per_source import grown

RUNGS = 13
"""Blocks of 1, 2, 4, ... 4096 rows."""

SAFEST = 16
"""The rung that answers with the worst residual remembered."""

ABSENT = -(2**62)
"""No residual: below every real one."""

UNKNOWN = 2**62
"""No answer yet: too few residuals."""

_RECENT = 8
_RUNG = np.arange(RUNGS)[:, None]


class RecordLadder:
    """One ladder per place; a place is a source, or whatever the caller numbers."""

    def __init__(self, places: int) -> None:
        self.seen = np.zeros(places, dtype=np.int64)
        # Rung by place, so that one rung of all places lies together.
        self._current = np.full((RUNGS, places), ABSENT, dtype=np.int64)
        self._records = np.full((3, RUNGS, places), ABSENT, dtype=np.int64)
        self._answer = np.full((RUNGS, places), ABSENT, dtype=np.int64)
        self._worst = np.full(places, UNKNOWN, dtype=np.int64)
        self._recent = np.full((places, _RECENT), ABSENT, dtype=np.int64)
        self._written = np.zeros(places, dtype=np.int64)

    def grow(self, places: int) -> None:
        """Make room for more places."""
        if places <= len(self.seen):
            return
        self.seen = grown(self.seen, places, 0)
        self._written = grown(self._written, places, 0)
        self._recent = grown(self._recent, places, ABSENT)
        self._worst = grown(self._worst, places, UNKNOWN)
        for name in ("_current", "_records", "_answer"):
            array: NDArray[np.int64] = getattr(self, name)
            wider = np.full((*array.shape[:-1], places), ABSENT, dtype=np.int64)
            wider[..., : array.shape[-1]] = array
            setattr(self, name, wider)

    def add(self, place: NDArray[np.intp], rows: NDArray[np.int64], largest: Instants, second: Instants) -> None:
        """Take in the rows of one round: per place their number, the largest residual and the second largest.

        Places are distinct. `second` is `ABSENT` where there is only one residual.
        """
        before = self.seen[place]
        after = before + rows
        self.seen[place] = after
        finished = (after >> _RUNG) - (before >> _RUNG)
        record = np.maximum(self._current[:, place], largest)
        newest, middle, oldest = self._records[:, :, place]
        none, one = finished == 0, finished == 1
        if rows.max() == 1:
            oldest = np.where(one, middle, oldest)
            middle = np.where(one, newest, middle)
            newest = np.where(one, record, newest)
            current = np.where(one, ABSENT, record)
        else:
            # Blocks that lie inside the round hold no more than its largest residual.
            two, three = finished == 2, finished == 3
            oldest, middle, newest = (
                np.where(none, oldest, np.where(one, middle, np.where(two, newest, np.where(three, record, largest)))),
                np.where(none, middle, np.where(one, newest, np.where(two, record, largest))),
                np.where(none, newest, np.where(one, record, largest)),
            )
            begun = after & ((1 << _RUNG) - 1) > 0
            current = np.where(none, record, np.where(begun, largest, ABSENT))
        self._current[:, place] = current
        self._records[:, :, place] = newest, middle, oldest
        higher, lower = np.maximum(newest, middle), np.minimum(newest, middle)
        self._answer[:, place] = np.maximum(
            np.maximum(lower, np.minimum(higher, oldest)), self._storm(place, largest, second)
        )
        self._worst[place] = np.maximum(np.maximum(higher[-1], oldest[-1]), current[-1])

    def _storm(self, place: NDArray[np.intp], largest: Instants, second: Instants) -> Instants:
        """Remember the newest residuals; the second largest of the recent ones."""
        written = self._written[place]
        self._recent[place, written % _RECENT] = largest
        two = second > ABSENT
        if two.any():
            self._recent[place[two], (written[two] + 1) % _RECENT] = second[two]
        self._written[place] = written + 1 + two
        recent: Instants = np.partition(self._recent[place], _RECENT - 2, axis=1)[:, _RECENT - 2]
        return recent

    def rung(self, wanted: NDArray[np.int64], place: NDArray[np.intp]) -> Instants:
        """The answer of each place at the rung wanted for it; `UNKNOWN` where too little was seen."""
        # Rung k needs three blocks of 2^k rows.
        available = np.minimum(np.frexp(self.seen[place] // 3)[1] - 1, RUNGS - 1)
        top = np.maximum(available, 0)
        answer = self._answer[np.minimum(wanted, top), place]
        missing = wanted - available
        if (missing > 0).any():
            worst = self._worst[place]
            step = np.maximum(answer - self._answer[np.maximum(top - 1, 0), place], 0)
            # Compared by division: the product may not fit.
            too_far = step > np.maximum(worst - answer, 0) // np.maximum(missing, 1)
            beyond = np.where(too_far, np.maximum(worst, answer), answer + np.where(too_far, 0, step) * missing)
            answer = np.where(missing > 0, np.where(available < 1, UNKNOWN, beyond), answer)
            answer = np.where(wanted >= SAFEST, worst, answer)
        return answer

    def snapshot(self) -> Snapshot:
        """Everything as plain data."""
        return {name: packed(getattr(self, name)) for name in self._ARRAYS}

    _ARRAYS = ("seen", "_current", "_records", "_answer", "_worst", "_recent", "_written")

    @classmethod
    def restored(cls, saved: Snapshot) -> RecordLadder:
        """The ladder that `snapshot` described.

        >>> RecordLadder.restored(RecordLadder(3).snapshot()).seen.tolist()
        [0, 0, 0]
        """
        ladder = cls(0)
        for name in cls._ARRAYS:
            setattr(ladder, name, unpacked(saved[name]))
        return ladder
