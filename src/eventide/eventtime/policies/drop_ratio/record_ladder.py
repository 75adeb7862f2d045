"""The ladder of records: how large the next residual may be, without assuming any distribution.

A residual says by how much a row missed what was expected of it; smaller is better, and it may be negative. Rung k
cuts the residuals of a source into blocks of 2^k rows and answers with the median of the last three block records.

Law: if the residuals of a source are exchangeable, the next one exceeds rung k with a probability of about 0.83 / 2^k,
whatever their distribution: the chance to beat the median of three records of m rows each is near 5 / 6 / m. One
outlier in one block moves nothing; two blocks must agree. Where residuals are not exchangeable the ladder has three
reflexes:

- *recent*: the second largest of the last eight residuals is a floor under every rung, so that a storm is believed
  after two rows, and a single freak is not;
- *caution*: from the rung `safe_from` on, none answers less than one below it: long blocks are slow to learn that
  things got worse, and whoever climbs does so because they did;
- *extrapolation*: above the highest rung that three blocks fill, each further rung adds the step between the last two
  (an exponential tail), up to the worst residual remembered.

A round is digested by its largest residual per source, which then stands for every block the round touches: rungs that
are filled are safer than they need be, never bolder.

>>> ladder = RecordLadder(places=1)
>>> for residual in [3, 1, 4, 1, 5, 9, 2, 6]:
...     ladder.add(np.array([0]), np.array([1]), np.array([residual]), np.array([ABSENT]))
>>> ladder.rung(np.array([[[1], [SAFEST]]]), np.array([0])).tolist()  # blocks (4 1) (5 9) (2 6): the median record
[[[6], [9]]]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.arrays import grown, packed, stretch, unpacked
from eventide.eventtime.heartbeat import Snapshot
from eventide.eventtime.instant import Instants

RUNGS = 13
"""Blocks of 1, 2, 4, ... 4096 rows."""

SAFEST = 16
"""The rung that answers with the worst residual remembered."""

ABSENT = -(2**62)
"""No residual: below every real one."""

UNKNOWN = ABSENT
"""No answer yet: too few residuals. So the worse of two answers is the one that is known."""

EVERYONE = 0
"""The place of all sources together, where places are sources; source s then has place s + 1."""

AT_ONCE = 4_096
"""Places of a long round that are taken together: so many that what is in between stays in the processor's cache."""

_RECENT = 8
_YOUNG_ROWS = 192
_RUNG = np.arange(RUNGS)[:, None]
_EVERY_RUNG = np.arange(SAFEST + 1)[None, :, None]


class RecordLadder:
    """Ladders for a number of places (sources, or whatever the caller numbers), of one or several kinds of residual.

    Arrays of residuals have the shape of the places, or of kinds by places.
    """

    _ARRAYS = ("seen", "_current", "_records", "_median", "_recent", "_written", "_storm")

    def __init__(self, places: int, kinds: int = 1, safe_from: int = RUNGS) -> None:
        self._safe_from = min(safe_from, RUNGS)
        self.seen = np.zeros(places, dtype=np.int64)
        self._current = np.full((RUNGS, kinds, places), ABSENT, dtype=np.int64)
        self._records = np.full((RUNGS, 3, kinds, places), ABSENT, dtype=np.int64)  # newest, middle, oldest
        self._median = np.full((RUNGS, kinds, places), ABSENT, dtype=np.int64)
        self._recent = np.full((kinds, places, _RECENT), ABSENT, dtype=np.int64)
        self._written = np.zeros(places, dtype=np.int64)
        self._storm = np.full((kinds, places), ABSENT, dtype=np.int64)

    def grow(self, places: int) -> None:
        """Make room for more places."""
        missing = places - len(self.seen)
        if missing <= 0:
            return
        self.seen, self._written = grown(self.seen, places, 0), grown(self._written, places, 0)
        for name, axis in (("_current", 2), ("_records", 3), ("_median", 2), ("_recent", 1), ("_storm", 1)):
            array: NDArray[np.int64] = getattr(self, name)
            shape = list(array.shape)
            shape[axis] = missing
            setattr(self, name, np.concatenate((array, np.full(shape, ABSENT, dtype=np.int64)), axis=axis))

    def add(self, place: NDArray[np.intp], rows: NDArray[np.int64], largest: Instants, second: Instants) -> None:
        """Take in the rows of one round: per place their number, the largest residual and the second largest.

        Places ascend. `second` is `ABSENT` where there is only one residual.
        """
        for begin in range(0, len(place), AT_ONCE):
            some = slice(begin, begin + AT_ONCE)
            self._add(place[some], rows[some], largest[..., some], second[..., some])

    def _add(self, place: NDArray[np.intp], rows: NDArray[np.int64], largest: Instants, second: Instants) -> None:
        at = stretch(place)
        after = self.seen[at] + rows
        finished = (after >> _RUNG) - (self.seen[at] >> _RUNG)
        self.seen[at] = after
        current = self._current[:, :, at]
        np.maximum(current, largest, out=current)
        residuals = np.broadcast_to(largest, current.shape[1:])
        # For a single row two rungs finish a block on average, whatever the number of rungs.
        for rung, most in enumerate(finished.max(axis=1).tolist()):
            for ended in (finished[rung] == 1, finished[rung] > 1)[:most]:
                if ended.any():
                    of = stretch(ended.nonzero()[0])
                    current[rung][:, of] = self._finish(
                        rung, place[of], finished[rung, of], after[of], current[rung][:, of], residuals[:, of]
                    )
        if at is place:
            self._current[:, :, at] = current
        self._remember_recent(place, largest, second)

    def _finish(
        self,
        rung: int,
        place: NDArray[np.intp],
        blocks: NDArray[np.int64],
        after: NDArray[np.int64],
        record: Instants,
        largest: Instants,
    ) -> Instants:
        """Shift the records of one rung by the blocks that ended, one at every place or several at every place.

        Returns what the blocks now begun hold.
        """
        at = stretch(place)
        newest, middle, oldest = self._records[rung][:, :, at].copy()
        if blocks[0] == 1:
            newest, middle, oldest = record, newest, middle
        else:
            # Blocks that lie inside the round hold no more than its largest residual.
            two, three = blocks == 2, blocks == 3
            newest, middle, oldest = (
                largest,
                np.where(two, record, largest),
                np.where(two, newest, np.where(three, record, largest)),
            )
        median = np.maximum(np.minimum(newest, middle), np.minimum(np.maximum(newest, middle), oldest))
        self._median[rung][:, at] = median
        self._records[rung][:, :, at] = newest, middle, oldest
        return np.where(after & ((1 << rung) - 1) > 0, largest, ABSENT)

    def _remember_recent(self, place: NDArray[np.intp], largest: Instants, second: Instants) -> None:
        written = self._written[place]
        two = np.atleast_2d(second)[0] > ABSENT
        if two.any():
            self._recent[:, place[two], written[two] % _RECENT] = second[..., two]
        # The larger one last, so that it is the last to be forgotten: the newest eight rows may begin with it.
        self._recent[:, place, (written + two) % _RECENT] = largest
        self._written[place] = written + 1 + two
        at = stretch(place)
        self._storm[:, at] = np.sort(self._recent[:, at], axis=-1)[..., _RECENT - 2]

    def rung(self, wanted: NDArray[np.int64], place: NDArray[np.intp]) -> Instants:
        """The answers of some places at the rungs wanted for each; `UNKNOWN` where too little was seen.

        `wanted` has the shape of kinds by rungs by places, and 1 for one of these where it is the same for all.
        """
        at = stretch(place)
        kind, each = np.arange(self._storm.shape[0])[:, None], np.arange(len(place))
        # Rung k needs three blocks of 2^k rows.
        seen, storm = self.seen[at], self._storm[:, at]
        available = np.minimum(np.frexp(seen // 3)[1] - 1, RUNGS - 1)
        top = np.maximum(available, 0)
        median = self._median[:, :, at].copy()
        below = np.maximum(median[np.maximum(top - 1, 0), kind, each], storm)
        np.maximum.accumulate(median[self._safe_from :], axis=0, out=median[self._safe_from :])
        np.maximum(median, storm, out=median)
        filled = np.minimum(wanted, RUNGS - 1)
        answer = median[filled[..., 0], kind] if wanted.shape[-1] == 1 else median[filled, kind[:, None], each]
        missing = wanted - available
        if (missing > 0).any():
            highest = median[top, kind, each]
            worst = np.maximum(self._current[-1][:, at], self._records[-1][:, :, at].max(axis=0))
            most = np.maximum(worst, highest)
            step = np.maximum(highest - below, 0)
            # How many steps lead beyond the worst, by division: the product may not fit.
            steps = np.where(step > 0, (most - highest) // np.maximum(step, 1), SAFEST + 1)
            few = available < 1
            if few.any():
                highest, steps = np.where(few, UNKNOWN, highest), np.where(few, SAFEST + 1, steps)
                step = np.where(few, 0, step)
            beyond = np.where(missing > steps[:, None], most[:, None], highest[:, None] + step[:, None] * missing)
            answer = np.where(missing > 0, beyond, answer)
            safest = wanted >= SAFEST
            if safest.any():
                answer = np.where(safest, worst[:, None], answer)
        found: Instants = answer
        return found

    def listening(self, rungs: NDArray[np.int64], source: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which sources are judged by everyone's ladder too: those with few rows, or on the safest rung."""
        young: NDArray[np.bool_] = self.seen[stretch(source + 1)] < _YOUNG_ROWS
        safest: NDArray[np.bool_] = (rungs == SAFEST).any(axis=(0, 1))
        return young | safest

    def with_everyone(self, answer: Instants, wanted: NDArray[np.int64], source: NDArray[np.intp]) -> Instants:
        """What `rung` answered for some sources, or the worse of it and everyone's where they have to listen."""
        common = self.rung(_EVERY_RUNG, np.array([EVERYONE]))[np.arange(len(answer))[:, None, None], wanted, 0]
        listening = (self.seen[stretch(source + 1)] < _YOUNG_ROWS) | (wanted == SAFEST)
        return np.where(listening, np.maximum(answer, common), answer)

    def snapshot(self) -> Snapshot:
        """Everything as plain data."""
        return {"safe_from": self._safe_from, **{name: packed(getattr(self, name)) for name in self._ARRAYS}}

    def restore(self, saved: Snapshot) -> None:
        """Go on from what `snapshot` described."""
        self._safe_from = saved["safe_from"]
        for name in self._ARRAYS:
            setattr(self, name, unpacked(saved[name]))
