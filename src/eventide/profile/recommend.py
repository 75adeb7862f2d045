"""A recommendation in plain words: what to declare, what it would have cost here, and what `withWatermark` would cost.

Everything said is read off the dry run; where Eventide's own policy did not keep its promise or was not the fastest,
that is said too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from eventide.profile.amounts import percent, spoken
from eventide.profile.candidates import CLAIRVOYANT, FIXED_BEST, ONLINE, OURS
from eventide.profile.outcome import Outcome
from eventide.profile.profiling import Profile

TOLERANCE = 1.1
"""A promise counts as kept up to so many times the permitted ratio: whole rows do not divide evenly."""

_TO_TIMESTAMP = {
    "text": 'to_timestamp("{}")',
    "s": 'timestamp_seconds("{}")',
    "ms": 'timestamp_millis("{}")',
    "us": 'timestamp_micros("{}")',
    "ns": 'timestamp_micros(expr("{} div 1000"))',
}


@dataclass(frozen=True)
class Recommendation:
    """Sentences, remarks on the stream itself, and declarations to paste."""

    sentences: tuple[str, ...]
    remarks: tuple[str, ...]
    eventide: str
    spark: str


def keeps(outcome: Outcome, drop_ratio: float) -> bool:
    """Whether a policy lost no more than permitted, its first 1,000 rows aside where there are more.

    >>> keeps(Outcome(0.3, 0.01, None, 0.3, 0.0, 0.0, 0.0), 0.01)
    True
    """
    lost = outcome.drop_ratio if outcome.drop_ratio_after_1000 is None else outcome.drop_ratio_after_1000
    return lost <= TOLERANCE * drop_ratio


def recommend(profile: Profile) -> Recommendation:
    """Put the findings of a dry run into words."""
    return Recommendation(tuple(_sentences(profile)), tuple(_remarks(profile)), _eventide(profile), _spark(profile))


def _sentences(profile: Profile) -> list[str]:
    if profile.disorder.out_of_order == 0:
        return [
            "All rows arrived in the order of their times: nothing has to wait for anything else.",
            "A declared drop ratio costs little here and guards against the day when that changes.",
        ]
    return [*_on_ours(profile), *_on_others(profile)]


def _on_ours(profile: Profile) -> list[str]:
    plain, ratio = profile.reading.plain, profile.drop_ratio
    ours, best, limit = (profile.outcomes.get(name) for name in (OURS, FIXED_BEST, CLAIRVOYANT))
    if ours is None or best is None or limit is None:
        return []
    worst = ours.worst_source_drop_ratio
    of_worst = "" if worst is None else f" (worst source {percent(worst)})"
    said = [
        f"Permitted to lose {percent(ratio)}, Eventide would have lost {percent(ours.drop_ratio)}{of_worst} and made a "
        f"row wait {spoken(ours.lag_mean, plain)} on average, 95 % of them at most {spoken(ours.lag_p95, plain)}."
    ]
    if not keeps(ours, ratio):
        said.append("That is more than permitted: on this recording the promise was not kept.")
    if ours.lag_mean is not None and best.lag_mean:
        said.append(
            f"The best constant delay, known only afterwards, waits {spoken(best.lag_mean, plain)}: Eventide waits "
            f"{ours.lag_mean / best.lag_mean:.2g} times that. The least possible is {spoken(limit.lag_mean, plain)}."
        )
    return said


def _on_others(profile: Profile) -> list[str]:
    plain, ratio = profile.reading.plain, profile.drop_ratio
    ours = profile.outcomes.get(OURS)
    others = {name: outcome for name, outcome in profile.outcomes.items() if name in ONLINE and name != OURS}
    broken = [f"{name} ({percent(lost.drop_ratio)})" for name, lost in others.items() if not keeps(lost, ratio)]
    faster = [
        f"{name} ({spoken(other.lag_mean, plain)})"
        for name, other in others.items()
        if ours is not None and keeps(other, ratio) and (other.lag_mean or 0.0) < (ours.lag_mean or 0.0)
    ]
    said = []
    if broken:
        said.append(f"More than permitted would have been lost by {', '.join(broken)}.")
    if faster:
        said.append(f"Within the ratio and faster on this recording: {', '.join(faster)}.")
    return said


def _remarks(profile: Profile) -> list[str]:
    found, plain = profile.disorder, profile.reading.plain
    remarks = []
    if found.future_rows:
        remarks.append(
            f"{found.future_rows:,} rows are stamped far ahead of the clock: a policy that trusts "
            "the largest time needs a guard against them (FutureGuard)."
        )
    if found.out_of_order > 0.01 and found.out_of_order_within_sources < found.out_of_order / 10:
        remarks.append(
            "The disorder is between the sources, hardly within them: each source's own progress is a good promise."
        )
    offsets = found.by_source.smallest_delay
    if profile.reading.columns.arrival is not None:
        ahead = int((offsets < 0).sum())
        if ahead:
            remarks.append(
                f"{ahead:,} of {len(offsets):,} sources have clocks ahead of the arrival clock, by up to "
                f"{spoken(-int(offsets.min()), plain)}."
            )
    return remarks


def _eventide(profile: Profile) -> str:
    share = f"{profile.drop_ratio:.6g}"
    in_percent = f"{100 * profile.drop_ratio:.6g}%"
    return f"from eventide import DropRatio\npolicy = DropRatio({share})    # in a script: DRATIO {in_percent}"


def _spark(profile: Profile) -> str:
    reading, best = profile.reading, profile.outcomes[FIXED_BEST]
    if reading.plain:
        return f"# withWatermark takes timestamps only; the best constant delay here is {profile.fixed_delay:,}"
    column, frame = reading.columns.time, "df"
    if reading.unit is not None:
        frame = f'df.withColumn("event_time", {_TO_TIMESTAMP[reading.unit].format(column)})'
        column = "event_time"
    milliseconds = math.ceil(profile.fixed_delay / 1000)
    return (
        f'{frame}.withWatermark("{column}", "{milliseconds} milliseconds")\n'
        f"# would lose {percent(best.drop_ratio)} and wait {spoken(best.lag_mean)} on average, "
        "could it be known beforehand; Spark applies it a batch later"
    )
