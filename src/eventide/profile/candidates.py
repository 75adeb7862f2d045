"""The policies that a dry run compares, by name, each for a permitted drop ratio.

Beside them stand two yardsticks that know the whole recording (`limits.py`): `clairvoyant`, and `fixed_best`, which
is what `withWatermark` would do with the best constant.

>>> sorted(candidates(0.01, ["own_progress", "delay_quantile"]))
['delay_quantile', 'own_progress']
>>> candidates(0.01, ["magic"])  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: no policy 'magic': choose from clairvoyant, delay_quantile, ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from eventide.errors import DeclarationError
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.delay_quantile import DelayQuantile
from eventide.eventtime.policies.disorder_histogram import DisorderHistogram
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.kim import Kim, KimAdhoc
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.skew.estimated import EstimatedSkew

OURS = "eventide"
CLAIRVOYANT, FIXED_BEST = "clairvoyant", "fixed_best"
YARDSTICKS = (CLAIRVOYANT, FIXED_BEST)

ONLINE: dict[str, Callable[[float], Policy]] = {
    OURS: lambda drop_ratio: DropRatio(drop_ratio),
    "kim": lambda drop_ratio: Kim(drop_ratio),
    "kim_adhoc": lambda drop_ratio: KimAdhoc(drop_ratio),
    "delay_quantile": lambda drop_ratio: DelayQuantile(1 - drop_ratio, window_rows=1000),
    # These wait for what they know, whatever may be lost.
    "disorder_histogram": lambda drop_ratio: DisorderHistogram(),
    "own_progress": lambda drop_ratio: OwnProgress(),
    "skew_adaptive": lambda drop_ratio: EstimatedSkew(),
}

MEANING = {
    OURS: "Eventide's own: DRATIO p",
    CLAIRVOYANT: "limit, knows the future",
    FIXED_BEST: "largest time - D, D in hindsight",
    "kim": "Kim et al., adaptive buffer",
    "kim_adhoc": "Kim et al., ad hoc estimator",
    "delay_quantile": "clock - delay quantile",
    "disorder_histogram": "95 % of each source's disorder (as Confluent)",
    "own_progress": "every source's own progress",
    "skew_adaptive": "STREAM, estimated skew bounds",
}


def check_names(names: Iterable[str]) -> None:
    """Refuse names that are neither a policy nor a yardstick."""
    for name in names:
        if name not in MEANING:
            raise DeclarationError(f"no policy {name!r}: choose from {', '.join(sorted(MEANING))}")


def candidates(drop_ratio: float, names: Iterable[str] = ()) -> dict[str, Policy]:
    """The online policies among these names, or all, declared for a drop ratio."""
    wanted = list(names) or list(ONLINE)
    check_names(wanted)
    return {name: declare(drop_ratio) for name, declare in ONLINE.items() if name in wanted}
