"""From many outcomes to the few figures that decide: did the promise hold, and what did it cost?

>>> from eventide.profile.dry_run import Outcome
>>> ours = Outcome(0.01, 0.008, 0.012, 0.02, lag_mean=50.0, lag_p95=90.0, buffered_mean_rows=3.0)
>>> best = Outcome(0.01, 0.01, 0.03, 0.02, lag_mean=200.0, lag_p95=200.0, buffered_mean_rows=9.0)
>>> crypto = Stream("crypto", real=True)
>>> table = [Measured(crypto, 0.01, OURS, ours), Measured(crypto, 0.01, FIXED_BEST, best)]
>>> worst_excess(table, [0.01, 0.05]), lag_vs_best_fixed(table)
(0.8, 0.25)
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Sequence
from typing import Any

from benchmarks.heartbeats.streams import HEADLINE, PROMISED, Measured, Stream
from eventide.profile.profiling import CLAIRVOYANT, FIXED_BEST, OURS

BEYOND_THE_PROMISE = {
    "growing_disorder": "lateness grows without bound",
    "reordered_batches": "every source's first rows are its latest ever",
}
"""Streams that no policy can keep a ratio on from the start, and why: measured and shown, but not in the headline."""


def of_policy(measured: Sequence[Measured], policy: str, permitted: Collection[float]) -> list[Measured]:
    """The outcomes of one policy at some of the drop ratios."""
    return [one for one in measured if one.policy == policy and one.permitted in permitted]


def worst_excess(measured: Sequence[Measured], permitted: Collection[float]) -> float | None:
    """The largest share lost over share permitted of our own policy; None if it was not run at these ratios."""
    return max((one.excess for one in _promised(measured, permitted)), default=None)


def worst_source_excess(measured: Sequence[Measured], permitted: Collection[float]) -> float | None:
    """The same for the source that is worst off."""
    return max((one.source_excess for one in _promised(measured, permitted)), default=None)


def _promised(measured: Sequence[Measured], permitted: Collection[float]) -> list[Measured]:
    return [one for one in of_policy(measured, OURS, permitted) if one.stream.name not in BEYOND_THE_PROMISE]


def beyond_the_promise(measured: Sequence[Measured]) -> dict[str, dict[str, float]]:
    """Share lost over share permitted on the streams beyond the promise, by drop ratio."""
    ours = [one for one in measured if one.policy == OURS and one.stream.name in BEYOND_THE_PROMISE]
    return {
        name: {str(one.permitted): one.excess for one in ours if one.stream.name == name}
        for name in dict.fromkeys(one.stream.name for one in ours)
    }


def lag_ratios(measured: Sequence[Measured], yardstick: str, permitted: float) -> dict[Stream, float]:
    """Our mean lag over the yardstick's, stream by stream."""
    theirs = {one.stream: one.lag for one in of_policy(measured, yardstick, [permitted])}
    ours = of_policy(measured, OURS, [permitted])
    return {one.stream: one.lag / theirs[one.stream] for one in ours if one.stream in theirs}


def lag_vs_best_fixed(measured: Sequence[Measured], permitted: float = HEADLINE) -> float | None:
    """The geometric mean of our lag over the best fixed delay's, over the recordings; None without any."""
    return _mean([ratio for stream, ratio in lag_ratios(measured, FIXED_BEST, permitted).items() if stream.real])


def lag_of_families(measured: Sequence[Measured], family: str) -> float | None:
    """The same over the streams of the families that were written before or after the policy was frozen."""
    ratios = lag_ratios(measured, FIXED_BEST, HEADLINE)
    return _mean([ratio for stream, ratio in ratios.items() if stream.family == family])


def budget_used(measured: Sequence[Measured]) -> float | None:
    """The median share lost over the permitted one on the generated families."""
    used = [one.excess for one in of_policy(measured, OURS, [HEADLINE]) if one.stream.family]
    return statistics.median(used) if used else None


def _mean(ratios: Sequence[float]) -> float | None:
    return math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios)) if ratios else None


def headline(measured: Sequence[Measured]) -> dict[str, Any]:
    """The figures of the last line that come from streams."""
    limit = lag_ratios(measured, CLAIRVOYANT, HEADLINE)
    return {
        "own_policy_worst_excess": worst_excess(measured, PROMISED),
        "own_policy_worst_source_excess": worst_source_excess(measured, PROMISED),
        "own_policy_worst_excess_0.1": worst_excess(measured, [0.001]),
        "beyond_the_promise": beyond_the_promise(measured),
        "lag_vs_best_fixed": lag_vs_best_fixed(measured),
        "lag_vs_best_fixed_0.1": lag_vs_best_fixed(measured, 0.001),
        "lag_vs_best_fixed_known_families": lag_of_families(measured, "before"),
        "lag_vs_best_fixed_new_families": lag_of_families(measured, "after"),
        "budget_used": budget_used(measured),
        "lag_vs_clairvoyant": {stream.name: ratio for stream, ratio in limit.items() if stream.real},
    }


def details(measured: Sequence[Measured]) -> dict[str, Any]:
    """Every outcome, as stream -> permitted -> policy -> figures; lags in units of the stream."""
    table: dict[str, Any] = {}
    for one in measured:
        name = f"{one.stream.name} #{one.stream.seed}" if one.stream.family else one.stream.name
        table.setdefault(name, {}).setdefault(str(one.permitted), {})[one.policy] = vars(one.outcome)
    return table
