"""Which share of the rows a policy may lose, whatever is wrapped around it.

>>> from eventide.eventtime.policies.fixed_delay import FixedDelay
>>> permitted_ratio(DropRatio(0.01)), permitted_ratio(FixedDelay(10))
(0.01, None)
"""

from __future__ import annotations

from eventide.eventtime.policies.drop_ratio.policy import DropRatio


def permitted_ratio(policy: object) -> float | None:
    """The permitted drop ratio; None where a policy does not go by one."""
    while policy is not None and not isinstance(policy, DropRatio):
        policy = getattr(policy, "inner", None)
    return None if policy is None else policy.ratio
