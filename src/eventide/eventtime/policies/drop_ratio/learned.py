"""A learned start: what a stream of the same kind has shown, for a drop ratio that begins with it.

Law: a learned start has the *slacks* of the recording and the *budget* of a new stream. Carried over is what says how
late rows are, and how silences end:

- by source: the ladder of records, the largest leap, the longest silence and how silences ended, by how much its clock
  is ahead. A source of another name starts with what all sources showed together, like any that is young;
- in common: the residuals of the references, the candidate that was followed, and the mean lag behind each candidate,
  which weighs as much as the 1,000 rows of a warm-up.

Times and readings of the clock are not, nor how many rows came, nor what was lost or saved: the warm-up, the accounts
and the ceiling are those of a stream that begins. One thing is kept of the accounts of the candidates. Whoever was not
solvent at the end of the recording has spent the credit of the warm-up: it is too bold for such rows.

A restart goes on from its own state, and learns nothing anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from eventide.eventtime.arrays import packed, unpacked
from eventide.eventtime.heartbeat import Ratchet, SavedGenerator, Snapshot
from eventide.eventtime.instant import EDGE
from eventide.eventtime.policies.drop_ratio.candidates import Candidates
from eventide.eventtime.policies.drop_ratio.loss_account import LossAccount
from eventide.eventtime.policies.drop_ratio.progress import Progress


@dataclass(frozen=True)
class Learned:
    """Where a policy has learned, and what: the time core opens no files, so `state` is put in by who does.

    >>> Learned("last_week.parquet").state is None
    True
    """

    origin: str
    state: Snapshot | None = field(default=None, compare=False, repr=False)

    def teach(self, generator: SavedGenerator) -> None:
        """Let a generator that has seen nothing start with it."""
        if self.state is not None:
            generator.restore(self.state)


def experience(saved: Snapshot, ratio: float) -> Snapshot:
    """What a generator of that drop ratio has learned: the state of one that has seen no row, and knows this."""
    before = saved["progress"]
    places = len(unpacked(before["rows"]))
    progress = Progress(places)
    # A source that has not spoken yet has been silent for ever.
    progress.heard[:] = -EDGE
    fresh = progress.snapshot()
    nobody = packed(np.zeros(places, dtype=np.bool_))
    account, candidates = LossAccount(ratio), Candidates(ratio)
    account.restore(saved["account"])
    candidates.restore(saved["candidates"])
    return {
        "kind": saved["kind"],
        "version": saved["version"],
        "clock": -EDGE,
        "progress": {**fresh, "leap": before["leap"], "prompt": before["prompt"]},
        "ladder": saved["ladder"],
        "silence": saved["silence"],
        "account": LossAccount(ratio, places).snapshot(),
        "candidates": candidates.learned(saved["clock"], account).snapshot(),
        "rare": nobody,
        "unprotected": nobody,
        "rare_at": 0,
        "ratchet": Ratchet().snapshot(),
    }
