"""One or more examples of every policy: what the contract suite runs over.

Add a line here for a new policy; `test_policy_contract.py` does the rest.
"""

from __future__ import annotations

from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.adaptive_window import AdaptiveWindow
from eventide.eventtime.policies.clock_skew import ClockSkew
from eventide.eventtime.policies.delay_quantile import DelayQuantile
from eventide.eventtime.policies.disorder_histogram import DisorderHistogram
from eventide.eventtime.policies.drop_ratio.learned import Learned, experience
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.kim import Kim, KimAdhoc
from eventide.eventtime.policies.on_demand import OnDemand
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.eventtime.policies.quality_driven import QualityDriven
from eventide.eventtime.policies.skew.between_streams import BetweenStreams, Member
from eventide.eventtime.policies.skew.declared import DeclaredSkew
from eventide.eventtime.policies.skew.estimated import EstimatedSkew
from eventide.eventtime.policies.skew.grouping import group
from eventide.eventtime.policies.skew.per_source import distributed_sensors
from eventide.eventtime.policies.slack import Slack
from eventide.eventtime.policies.wrappers.cap import Cap
from eventide.eventtime.policies.wrappers.expected_sources import Expected
from eventide.eventtime.policies.wrappers.future_guard import FutureGuard
from eventide.eventtime.policies.wrappers.idleness import Idle
from eventide.eventtime.policies.wrappers.minimum import Minimum
from eventide.eventtime.policies.wrappers.source_groups import MergedSources, PerGroup
from eventide.eventtime.policies.wrappers.timeout import Timeout

TEN_SENSORS = distributed_sensors(deviation=range(1, 11), latency=[3] * 10)
TWO_GROUPS = (0, 1) * 5


def learned(ratio: float) -> DropRatio:
    """The drop ratio, after three sources that speak every ten, each later than the one before."""
    generator = DropRatio(ratio).start()
    for step in range(60):
        for source in range(3):
            generator.observe(Arrivals.of_row(clock=10 * step, source=source, time=10 * step - 7 * source))
            generator.heartbeats(10 * step)
    return DropRatio(ratio, Learned("sixty", experience(generator.snapshot(), ratio)))


EXAMPLES: dict[str, Policy] = {
    "fixed delay": FixedDelay(5),
    "own progress": OwnProgress(slack=2),
    "own progress of known sources": OwnProgress(known=2),
    "slack": Slack(3),
    "no slack": Slack(0),
    "kim": Kim(0.05),
    "kim with slack": Kim(0.05, slack=4),
    "kim without a buffer": Kim(0.05, slack=0),
    "kim, ad hoc": KimAdhoc(0.05),
    "delay quantile": DelayQuantile(0.9, window_rows=7),
    "delay quantile of an adaptive window": AdaptiveWindow(0.9),
    "quality-driven slack": QualityDriven(0.05, interval_rows=5, window_rows=20),
    "disorder histogram": DisorderHistogram(warm_up=3),
    "clock skew": ClockSkew(10),
    "clock skew by source": ClockSkew(10, by_source=(3, 40)),
    "on demand": OnDemand(max_skew=5),
    "on demand with slow clocks": OnDemand(max_skew=5, rate=0.9, internal=(1,)),
    "on demand of known sources": OnDemand(max_skew=5, known=2),
    "punctuated, with nothing promised": Punctuated(OwnProgress()),
    "declared skew": DeclaredSkew(TEN_SENSORS),
    "declared skew of groups": MergedSources(DeclaredSkew(group(TEN_SENSORS, TWO_GROUPS)), TWO_GROUPS),
    "one of two streams with bounds between them": BetweenStreams(
        DeclaredSkew(TEN_SENSORS), (Member("t"), *(Member("s", str(n)) for n in range(8)), Member("s")), "s"
    ),
    "estimated skew": EstimatedSkew(clock_unit=5, units_ahead=4),
    "drop ratio": DropRatio(0.01),
    "drop ratio of nearly all": DropRatio(0.9),
    "drop ratio of one in a million": DropRatio(1e-6),
    "drop ratio with a learned start": learned(0.05),
    "drop ratio with a cap": Cap(DropRatio(0.05), rows=9),
    "drop ratio with declared idleness": Idle(DropRatio(0.05), after=8),
    "timeout": Timeout(OwnProgress(), after=8),
    "idle": Idle(OwnProgress(known=2), after=8),
    "cap on rows": Cap(OwnProgress(), rows=4),
    "cap on time": Cap(OwnProgress(), behind_clock=30, behind_largest=20),
    "future guard": FutureGuard(FixedDelay(5), ahead=10),
    "future guard by peers": FutureGuard(FixedDelay(5), ahead=10, against="peers"),
    "minimum": Minimum((FixedDelay(5), Idle(OwnProgress(), after=8), Kim(0.1))),
    "group-wise": PerGroup(FixedDelay(5), group_of=(0, 1, 0)),
    "group-wise without groups": PerGroup(Kim(0.1)),
    "expected sources": Expected(OwnProgress(slack=2), sources=(0, 2)),
    "expected sources that are given up": Expected(DropRatio(0.05), sources=(1, 5), wait=20),
    "expected among declared bounds": Timeout(Expected(DeclaredSkew(TEN_SENSORS), (1, 2), wait=9), after=30),
    "wrapped many times": Timeout(Cap(Idle(FutureGuard(OwnProgress(), 50), after=20), rows=9), after=40),
}
