"""States that version 1 of the policy saved, which had no candidates, as states of the version that follows it.

What was learned of the sources is kept: progress, residuals, longest silences, and the heartbeats given. How silences
ended and what each source lost begin anew, and so do the candidates, at the combined heartbeat.
"""

from __future__ import annotations

import numpy as np

from eventide.eventtime.arrays import packed, unpacked
from eventide.eventtime.heartbeat import Snapshot
from eventide.eventtime.instant import EDGE
from eventide.eventtime.policies.drop_ratio.candidates import Candidates
from eventide.eventtime.policies.drop_ratio.silence import Silence


def upgraded(saved: Snapshot, ratio: float, version: int) -> Snapshot:
    """A snapshot of version 1 as one of this version."""
    rows = unpacked(saved["progress"]["rows"])
    places, account, combined = len(rows), saved["account"], saved["ratchet"]["combined"]
    candidates = Candidates(ratio)
    candidates.heartbeats[:] = max(combined, -2 * EDGE)
    silence, old = Silence(places).snapshot(), saved["silence"]
    kept = {name: old[name] for name in ("proven", "longest", "pause", "taken_for_an_end") if name in old}
    lost = {"rows": account["rows"], "lost": account["lost"], "balance": 0.0}
    return {
        **saved,
        "version": version,
        "progress": {**saved["progress"], "prompt": packed(np.full(places, 2 * EDGE))},
        "silence": {**silence, **kept},
        "account": {**lost, "rows_of": packed(rows), "lost_of": packed(np.zeros(places))},
        "candidates": candidates.snapshot(),
        "rare": packed(np.zeros(places, dtype=np.bool_)),
        "unprotected": packed(np.zeros(places, dtype=np.bool_)),
        "rare_at": 0,
    }
