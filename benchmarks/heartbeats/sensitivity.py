"""How much each constant of our policy matters: halved and doubled, one at a time, over a few shortened streams.

>>> sorted(variants())[:2], len(variants())
(['block_rows / 2', 'block_rows x 2'], 18)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

from benchmarks.heartbeats.generated import BEFORE
from benchmarks.heartbeats.generated_after import AFTER
from eventide.eventtime.drop_ratio import DropRatio, DropRatioPacemaker
from eventide.eventtime.loss_account import TUNING, Tuning
from eventide.profile.dry_run import dry_run
from eventide.profile.recording import Recording

RATIO = 0.01
SHORT_ROWS = 5_000
STREAMS = ("alike, 30 sources", "batches, 6 sources, 8 s", "markets, 4, 400 ms apart")
AFTER_STREAMS = ("relay, 12 sources, 30 s", "mixed, 8 and 8")


@dataclass(frozen=True)
class TunedDropRatio(DropRatio):
    """Our policy with other constants: for this table only."""

    tuning: Tuning = TUNING

    def start(self) -> DropRatioPacemaker:
        """A generator with these constants."""
        return DropRatioPacemaker(self, self.tuning)


def variants() -> dict[str, Tuning]:
    """Every constant halved and doubled; a share of the ratio stays below its limit."""
    limits = {"spend": 1.0, "fair_times": 1.9}
    found = {}
    for constant in fields(TUNING):
        value = getattr(TUNING, constant.name)
        for sign, changed in (("/ 2", value / 2), ("x 2", value * 2)):
            kept = min(changed, limits.get(constant.name, changed))
            found[f"{constant.name} {sign}"] = replace(TUNING, **{constant.name: type(value)(kept)})
    return found


def streams() -> list[Recording]:
    """The streams of the table."""
    whole = [BEFORE[name](1) for name in STREAMS] + [AFTER[name](1) for name in AFTER_STREAMS]
    return [
        Recording.of(one.name, one.time[:SHORT_ROWS], one.arrival[:SHORT_ROWS], one.source[:SHORT_ROWS])
        for one in whole
    ]


def measure(quick: bool) -> dict[str, dict[str, float]]:
    """By variant: the geometric mean of its lag over ours, and the largest share lost over the permitted one."""
    recordings = streams()[: 1 if quick else None]
    usual = [_run(recording, TUNING) for recording in recordings]
    table = {"as it is": {"lag": 1.0, "worst_excess": max(excess for _, excess in usual)}}
    for name, tuning in variants().items():
        found = [_run(recording, tuning) for recording in recordings]
        logs = [math.log(lag / before) for (lag, _), (before, _) in zip(found, usual, strict=True)]
        lag = math.exp(sum(logs) / len(logs))
        table[name] = {"lag": round(lag, 3), "worst_excess": round(max(excess for _, excess in found), 3)}
    return table


def _run(recording: Recording, tuning: Tuning) -> tuple[float, float]:
    outcome = dry_run(recording, TunedDropRatio(RATIO, tuning=tuning)).outcome
    return max(outcome.lag_mean or 0.0, 1.0), (outcome.drop_ratio_after_1000 or 0.0) / RATIO
