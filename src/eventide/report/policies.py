"""A policy in words: what is promised, and by what.

>>> in_words(DropRatio(0.01), unitless=False)
'as early as losing at most 1 % of the rows allows'
>>> in_words(Timeout(Slack(10), 5_000_000), unitless=False)
'10 rows are held back; after a common silence of 5 s the largest time seen is promised'
>>> in_words(FixedDelay(20), unitless=True)
'20 behind the largest time seen'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.clock_skew import ClockSkew
from eventide.eventtime.policies.delay_quantile import DelayQuantile
from eventide.eventtime.policies.disorder_histogram import DisorderHistogram
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.kim import Kim, KimAdhoc
from eventide.eventtime.policies.on_demand import OnDemand
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.eventtime.policies.skew.declared import DeclaredSkew
from eventide.eventtime.policies.skew.estimated import EstimatedSkew
from eventide.eventtime.policies.slack import Slack
from eventide.eventtime.policies.wrappers.cap import Cap
from eventide.eventtime.policies.wrappers.expected_sources import Expected
from eventide.eventtime.policies.wrappers.future_guard import FutureGuard
from eventide.eventtime.policies.wrappers.idleness import Idle
from eventide.eventtime.policies.wrappers.minimum import Minimum
from eventide.eventtime.policies.wrappers.source_groups import MergedSources, PerGroup
from eventide.eventtime.policies.wrappers.timeout import Timeout
from eventide.profile.amounts import spoken

Length = Callable[[int], str]


def in_words(policy: Policy, unitless: bool) -> str:
    """Say it; `unitless` times are numbers of a sequence, others microseconds."""
    return _words(policy, lambda amount: spoken(amount, unitless))


def _words(policy: Any, length: Length) -> str:
    if isinstance(policy, Timeout | Idle | Cap | FutureGuard | Expected):
        return f"{_words(policy.inner, length)}; {_wrapping(policy, length)}"
    if isinstance(policy, Minimum):
        return "what all of these promise: " + " | ".join(_words(one, length) for one in policy.policies)
    if isinstance(policy, Punctuated):
        inner = "" if policy.inner is None else f", and where that says more, {_words(policy.inner, length)}"
        return f"as far as promises in the data say{inner}"
    if isinstance(policy, MergedSources | PerGroup):
        return f"for groups of sources: {_words(policy.inner, length)}"
    simple = _simple(policy, length)
    return simple if simple is not None else repr(policy)


def _wrapping(policy: Timeout | Idle | Cap | FutureGuard | Expected, length: Length) -> str:
    if isinstance(policy, Timeout):
        return f"after a common silence of {length(policy.after)} the largest time seen is promised"
    if isinstance(policy, Idle):
        return f"a source that is silent for {length(policy.after)} is not waited for"
    if isinstance(policy, Expected):
        many = f"{len(policy.sources):,} expected source{'' if len(policy.sources) == 1 else 's'}"
        until = "" if policy.wait is None else f", or {length(policy.wait)} have passed"
        return f"nothing is promised before {many} have spoken{until}"
    if isinstance(policy, FutureGuard):
        beyond = "the clock" if policy.against == "clock" else "what other sources have reached"
        return f"rows more than {length(policy.ahead)} beyond {beyond} do not move time"
    limits = [] if policy.rows is None else [f"{policy.rows:,} rows held back"]
    limits += [] if policy.behind_clock is None else [f"{length(policy.behind_clock)} behind the clock"]
    limits += [] if policy.behind_largest is None else [f"{length(policy.behind_largest)} behind the largest time"]
    return f"at most {' and '.join(limits)}"


def _simple(policy: Any, length: Length) -> str | None:
    match policy:
        case DropRatio(ratio):
            return f"as early as losing at most {100 * ratio:.4g} % of the rows allows"
        case FixedDelay(delay):
            return f"{length(delay)} behind the largest time seen"
        case OwnProgress():
            behind = f"{length(policy.slack)} behind its own largest time" if policy.slack else "its own largest time"
            return f"each source as far as {behind}, all together as far as the slowest"
        case Slack(rows):
            return f"{rows:,} rows are held back"
        case Kim(ratio, slack):
            held = "" if slack is None else f", holding at most {slack:,} rows"
            return f"a buffer for losing about {100 * ratio:.4g} % of the rows (Kim et al.){held}"
        case KimAdhoc(ratio):
            return f"behind the mean time of the latest rows, for losing about {100 * ratio:.4g} % (Kim et al., ad hoc)"
        case ClockSkew(skew):
            return f"{length(skew)} behind the clock"
        case OnDemand(skew):
            return f"the time of a silent source runs on with the clock, {length(skew)} behind"
        case DelayQuantile(quantile, rows):
            return f"behind the clock by the {quantile:.4g} quantile of the delays of the last {rows:,} rows"
        case DisorderHistogram(quantile):
            return f"each source behind its largest time by the {quantile:.4g} quantile of its own disorder"
        case EstimatedSkew():
            return "by bounds between the sources that are estimated from the data"
        case DeclaredSkew():
            return f"by declared bounds between {len(policy.skew.latency)} sources"
    return None
