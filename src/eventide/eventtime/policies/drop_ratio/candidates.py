"""The candidates: several ways of giving combined heartbeats, each with an exact account of what it would have lost.

On six rungs of the ladder of records (`record_ladder.py`), two candidates each: the least over the sources of what
their *own progress* promises, and of what that or their *clock* does. Two more trail a reference by the slack that a
share of the last rows exceeded (`residuals.py`): the *largest time* of all, and the same where the clock of each source
is set by its promptest row. The first are fast where sources are in order or periodic, however bold a rung must be
until their least loses something; the others where sources are many and alike, disordered, uneven or often silent.

Law: the candidate is followed behind which rows wait least (`lag_sample.py`), among those that are *solvent*: what each
would have lost, and what was really lost beyond the permitted share, is no more than permitted and 3 % of it. What a
candidate lost is slowly forgiven, over 10,000 rows, so a single misfortune is not remembered for ever. If none is
solvent, the one that lost least is followed. A heartbeat never goes back, so a change costs nothing but waiting.

The first 1,000 rows have the credit of another 2,000. What is left of it then is taken back.

>>> candidates = Candidates(0.01)
>>> candidates.names[0], candidates.names[-1]
('own progress, rung 1', 'largest time by source')
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import SavedState
from eventide.eventtime.instant import EDGE, Instants
from eventide.eventtime.policies.drop_ratio.lag_sample import LagSample
from eventide.eventtime.policies.drop_ratio.loss_account import WARM_UP_ROWS, LossAccount
from eventide.eventtime.policies.drop_ratio.record_ladder import SAFEST
from eventide.eventtime.policies.drop_ratio.residuals import ResidualWindow

_BESIDE_NOMINAL = (-6, -4, -2, 0, 2, 4)
REFERENCES = ("largest time", "largest time by source")
_WINDOW_SHARES, _MOST_ENTRIES, _FIRST_ROWS = 20, 4_000, 8
_SPEND, _MOST_SPENT = 0.9, 2.0
_CREDIT_ROWS, _OVERDRAFT_SHARE = 2_000, 0.03
_FORGIVEN_ROWS = 10_000
_BETTER_BY = 1.1
_FAR = 4 * EDGE
_EXACT_CELLS = 32


class Digest(NamedTuple):
    """The rows of a round in groups, by their times; the latest ones are told apart less well than the earliest."""

    rows: NDArray[np.int64]
    earliest: Instants
    latest: Instants

    @classmethod
    def of(cls, arrivals: Arrivals) -> Digest:
        """The cells of a round, or groups of them where there are many."""
        rows, earliest, latest = arrivals.rows, arrivals.earliest, arrivals.latest
        if len(rows) <= 2 * _EXACT_CELLS:
            return cls(rows, earliest, latest)
        order = _order(earliest)
        even = np.linspace(_EXACT_CELLS, len(rows), _EXACT_CELLS, endpoint=False).astype(np.intp)
        starts = np.concatenate((np.arange(_EXACT_CELLS), even))
        first = earliest[order]
        return cls(np.add.reduceat(rows[order], starts), first[starts], np.maximum.reduceat(latest[order], starts))


def _order(times: Instants) -> NDArray[np.intp]:
    """The order of some times, equal ones as they stand. To sort numbers that end in their places is far quicker.

    >>> _order(np.array([7, 5, 7, 5])).tolist(), _order(np.array([EDGE, -EDGE])).tolist()
    ([1, 3, 0, 2], [1, 0])
    """
    bits, least = len(times).bit_length(), int(times.min())
    if (int(times.max()) - least) >> (62 - bits):
        return np.argsort(times, kind="stable")
    keys = (times - least) << bits | np.arange(len(times))
    keys.sort()
    return keys & ((1 << bits) - 1)


class Candidates(SavedState):
    """Heartbeats and balances of all candidates, the residuals of the references, and the lags."""

    SAVED = ("heartbeats", "balance", "_reference", "_windows", "_lags", "followed")
    PACKED = True

    def __init__(self, ratio: float) -> None:
        nominal = LossAccount(ratio).nominal_rung
        self._ratio = ratio
        self.rungs = np.unique(np.clip(nominal + np.array(_BESIDE_NOMINAL), 0, SAFEST))
        self.names = tuple(
            [f"{promise}, rung {rung}" for promise in ("own progress", "clock") for rung in self.rungs.tolist()]
            + list(REFERENCES)
        )
        entries = math.ceil(min(_WINDOW_SHARES / ratio, _MOST_ENTRIES))
        self.heartbeats = np.full(len(self.names), -_FAR, dtype=np.int64)
        self.balance = np.zeros(len(self.names))
        self._reference = np.full(len(REFERENCES), -_FAR, dtype=np.int64)
        self._windows = [ResidualWindow(entries) for _ in REFERENCES]
        self._lags = LagSample(len(self.names))
        self.followed = self.names.index(f"clock, rung {nominal}")

    def observe(self, arrivals: Arrivals, account: LossAccount) -> None:
        """Book what the round lost to each candidate; the account does not know of it yet."""
        digest = Digest.of(arrivals)
        late = (digest.earliest <= self.heartbeats[:, None]) @ digest.rows
        total, warming_up = arrivals.total, account.warming_up
        forgotten: float = (1 - 1 / _FORGIVEN_ROWS) ** total
        self.balance = self.balance * forgotten + self._ratio * total - late
        if warming_up and account.rows + total >= WARM_UP_ROWS:
            self.balance = np.minimum(self.balance + self._ratio * _CREDIT_ROWS, 0.0)
        for reference, window in zip(self._reference.tolist(), self._windows, strict=True):
            if reference > -_FAR:
                window.add(np.maximum(reference - digest.earliest, -_FAR), digest.rows)
        self._lags.observe(arrivals.clock, digest.latest, digest.rows, self.heartbeats)

    def advance(self, promised: Instants, references: Instants, ceiling: int, clock: int, account: LossAccount) -> None:
        """Raise all heartbeats: `promised` by own progress and clock on every rung, `references` as they stand now."""
        self._reference = np.maximum(self._reference, references)
        trailing = [
            reference - window.slack(share) if len(window) >= _FIRST_ROWS else -_FAR
            for reference, window, share in zip(
                self._reference.tolist(), self._windows, self._shares(account), strict=True
            )
        ]
        wanted = np.concatenate((promised, np.array(trailing, dtype=np.int64)))
        self.heartbeats = np.maximum(self.heartbeats, np.minimum(wanted, ceiling))
        self._lags.release(clock, self.heartbeats)
        self._choose(clock, account)

    def _shares(self, account: LossAccount) -> list[float]:
        """The share of rows each reference may lose: less when it, or all that was followed, has lost too much."""
        unit = self._ratio * WARM_UP_ROWS
        least = np.minimum(self.balance[-len(REFERENCES) :], account.balance)
        shares: list[float] = (self._ratio * np.clip(_SPEND * (1 + least / unit), 0.0, _MOST_SPENT)).tolist()
        return shares

    def _solvent(self, account: LossAccount) -> NDArray[np.bool_]:
        """Which candidates would have lost no more than permitted, and a little."""
        if account.warming_up:
            left = self.balance + self._ratio * _CREDIT_ROWS
        else:
            overdraft = self._ratio * _OVERDRAFT_SHARE * account.rows
            left = self.balance + min(account.balance, 0.0) + overdraft
        return left >= 0

    def _choose(self, clock: int, account: LossAccount) -> None:
        solvent = self._solvent(account)
        if not solvent.any():
            self.followed = int(self.balance.argmax())
            return
        lag = np.where(solvent, self._lags.mean(clock) * _BETTER_BY, np.inf)
        lag[self.followed] /= _BETTER_BY
        best = int(lag.argmin())
        if lag[best] < lag[self.followed]:
            self.followed = best

    def learned(self, clock: int, account: LossAccount) -> Candidates:
        """Candidates that have seen no row, and know what these learned by this clock (`learned.py`)."""
        begun = Candidates(self._ratio)
        begun._windows, begun.followed = self._windows, self.followed
        begun._lags = self._lags.learned(clock, WARM_UP_ROWS)
        begun.balance = np.where(self._solvent(account), 0.0, -2 * self._ratio * _CREDIT_ROWS)
        return begun

    @property
    def heartbeat(self) -> int:
        """That of the candidate that is followed."""
        return int(self.heartbeats[self.followed])

    @property
    def followed_rung(self) -> int | None:
        """The rung of the candidate that is followed; None where it trails a reference."""
        sources = len(self.names) - len(REFERENCES)
        return int(self.rungs[self.followed % len(self.rungs)]) if self.followed < sources else None

    def exceeded(self) -> tuple[int, int, int]:
        """Of the reference that is followed: its slack, how many rows exceeded it, and how many are remembered."""
        at = self.followed - (len(self.names) - len(REFERENCES))
        slack = int(self._reference[at]) - self.heartbeat
        return (slack, *self._windows[at].exceeded(slack))
