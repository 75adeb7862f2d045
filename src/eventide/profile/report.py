"""Show findings on a terminal: tables, and a recommendation in plain words.

*Recommendation.* It says what to declare, what it would have cost here, and what `withWatermark` would cost. Everything
said is read off the dry run; where Eventide's own policy did not keep its promise or was not the fastest, that is said
too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from eventide.profile.amounts import percent, spoken
from eventide.profile.disorder import QUANTILES
from eventide.profile.dry_run import Outcome
from eventide.profile.profiling import CLAIRVOYANT, FIXED_BEST, MEANING, ONLINE, OURS, YARDSTICKS, Profile

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
    unitless, ratio = profile.reading.unitless, profile.drop_ratio
    ours, best, limit = (profile.outcomes.get(name) for name in (OURS, FIXED_BEST, CLAIRVOYANT))
    if ours is None or best is None or limit is None:
        return []
    worst = ours.worst_source_drop_ratio
    of_worst = "" if worst is None else f" (worst source {percent(worst)})"
    sentences = [
        f"Permitted to lose {percent(ratio)}, Eventide would have lost {percent(ours.drop_ratio)}{of_worst} and made a "
        f"row wait {spoken(ours.lag_mean, unitless)} on average, 95 % of them at most {spoken(ours.lag_p95, unitless)}."
    ]
    if not keeps(ours, ratio):
        sentences.append("That is more than permitted: on this recording the promise was not kept.")
    elif ours.drop_ratio > ratio:
        sentences.append("That is over the ratio by less than a tenth, or in the first 1,000 rows only.")
    if ours.lag_mean is not None and best.lag_mean:
        sentences.append(
            f"The best constant delay, known only afterwards, waits {spoken(best.lag_mean, unitless)}: Eventide waits "
            f"{ours.lag_mean / best.lag_mean:.2g} times that. The least possible is {spoken(limit.lag_mean, unitless)}."
        )
    return sentences


def _on_others(profile: Profile) -> list[str]:
    unitless, ratio = profile.reading.unitless, profile.drop_ratio
    ours = profile.outcomes.get(OURS)
    others = {name: outcome for name, outcome in profile.outcomes.items() if name in ONLINE and name != OURS}
    broken = [f"{name} ({percent(lost.drop_ratio)})" for name, lost in others.items() if not keeps(lost, ratio)]
    faster = {
        name: other
        for name, other in others.items()
        if ours is not None and keeps(other, ratio) and (other.lag_mean or 0.0) < (ours.lag_mean or 0.0)
    }
    within = [f"{name} ({spoken(o.lag_mean, unitless)})" for name, o in faster.items() if o.drop_ratio <= ratio]
    beyond = [
        f"{name} ({spoken(o.lag_mean, unitless)}, lost {percent(o.drop_ratio)})"
        for name, o in faster.items()
        if o.drop_ratio > ratio
    ]
    sentences = []
    if broken:
        sentences.append(f"More than permitted would have been lost by {', '.join(broken)}.")
    if within:
        sentences.append(f"Within the ratio and faster on this recording: {', '.join(within)}.")
    if beyond:
        sentences.append(
            f"Faster, and beyond the ratio by less than a tenth or at the start only: {', '.join(beyond)}."
        )
    return sentences


def _remarks(profile: Profile) -> list[str]:
    found, unitless = profile.disorder, profile.reading.unitless
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
                f"{spoken(-int(offsets.min()), unitless)}."
            )
    return remarks


def _eventide(profile: Profile) -> str:
    share = f"{profile.drop_ratio:.6g}"
    in_percent = f"{100 * profile.drop_ratio:.6g}%"
    return f"from eventide import DropRatio\npolicy = DropRatio({share})    # in a script: DRATIO {in_percent}"


def _spark(profile: Profile) -> str:
    reading, best = profile.reading, profile.outcomes[FIXED_BEST]
    if reading.unitless:
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


SHOWN_SOURCES = 12


def show(profile: Profile, console: Console) -> None:
    """Print everything about one recording."""
    reading, recording = profile.reading, profile.reading.recording
    span = spoken(int(recording.arrival[-1] - recording.arrival[0]), reading.unitless)
    round = "row at a time" if profile.round is None else f"in rounds of {spoken(profile.round, reading.unitless)}"
    console.rule(f"[bold]{escape(recording.name)}")
    console.print(
        f"{recording.rows:,} rows from {len(recording.source_names):,} sources in {span}; "
        f"policies may lose {percent(profile.drop_ratio)}, run {round}"
    )
    for note in reading.notes:
        console.print(Text(f"note: {note}", style="yellow"))
    if reading.unitless:
        console.print(Text("note: times are plain numbers, so lags, delays and rates are too", style="yellow"))
    console.print(_disorder_table(profile), _source_table(profile), _policy_table(profile))
    _show_recommendation(profile, console)


def _table(title: str, *headings: str) -> Table:
    """A table that fits eighty columns: one column of names, the others of numbers."""
    table = Table(title=title, title_justify="left", caption_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.padding = (0, 1, 0, 0)
    for at, heading in enumerate(headings):
        if at == 0:
            table.add_column(heading, no_wrap=True, max_width=24)
        else:
            table.add_column(heading, justify="right")
    return table


def _disorder_table(profile: Profile) -> Table:
    found, unitless = profile.disorder, profile.reading.unitless
    table = _table("Disorder", "", "out of order", *QUANTILES)
    measured = (
        ("lateness, all together", percent(found.out_of_order), found.lateness),
        ("lateness within sources", percent(found.out_of_order_within_sources), found.lateness_within_sources),
        ("delay", "", found.delay),
    )
    for label, share, quantiles in measured:
        table.add_row(label, share, *(spoken(quantiles[name], unitless) for name in QUANTILES))
    table.caption = (
        f"lateness: behind the largest time so far; delay: arrival - time, at least "
        f"{spoken(found.delay['min'], unitless)}; rows from the future: {found.future_rows:,}"
    )
    return table


def _source_table(profile: Profile) -> Table:
    recording, sources, unitless = profile.reading.recording, profile.disorder.by_source, profile.reading.unitless
    per = "unit" if unitless else "s"
    table = _table(
        "Sources", "", "rows", f"rows/{per}", "offset", "delay", "out of order", "silence", "first seen", "last seen"
    )
    rate = sources.rate(per=1 if unitless else 1_000_000)
    for at in np.argsort(-sources.rows, kind="stable")[:SHOWN_SOURCES]:
        table.add_row(
            escape(recording.source_names[at]),
            f"{sources.rows[at]:,}",
            f"{rate[at]:.3g}" if np.isfinite(rate[at]) else "-",
            spoken(int(sources.smallest_delay[at]), unitless),
            spoken(float(sources.median_delay[at]), unitless),
            percent(float(sources.out_of_order[at])),
            spoken(int(sources.longest_silence[at]), unitless),
            "+" + spoken(int(sources.first_seen[at] - recording.arrival[0]), unitless),
            "+" + spoken(int(sources.last_seen[at] - recording.arrival[0]), unitless),
        )
    table.caption = (
        "offset: smallest delay, an estimate of the clock's; delay: median; silence: longest; seen: from the start"
    )
    if len(recording.source_names) > SHOWN_SOURCES:
        table.caption += f"; {len(recording.source_names) - SHOWN_SOURCES:,} more sources"
    return table


def _policy_table(profile: Profile) -> Table:
    unitless = profile.reading.unitless
    table = _table(
        f"Policies, permitted to lose {percent(profile.drop_ratio)}",
        "",
        *("lost", "later on", "worst source", "worst stretch", "mean lag", "p95 lag", "rows buffered"),
    )
    for name, outcome in profile.outcomes.items():
        table.add_row(
            name,
            _lost(outcome, profile.drop_ratio),
            percent(outcome.drop_ratio_after_1000),
            percent(outcome.worst_source_drop_ratio),
            percent(outcome.worst_stretch_drop_ratio),
            spoken(outcome.lag_mean, unitless),
            spoken(outcome.lag_p95, unitless),
            f"{outcome.buffered_mean_rows:,.3g}"
            if outcome.buffered_mean_rows < 1000
            else f"{outcome.buffered_mean_rows:,.0f}",
            style="bold" if name == OURS else ("dim" if name in YARDSTICKS else ""),
        )
    meanings = "; ".join(f"{name}: {MEANING[name]}" for name in profile.outcomes)
    table.caption = (
        "later on: after the first 1,000 rows; worst source: of those with 1,000 rows or more; "
        f"worst stretch: of 10,000 rows; red: more than permitted. {meanings}"
    )
    return table


def _lost(outcome: Outcome, drop_ratio: float) -> Text:
    return Text(percent(outcome.drop_ratio), style="" if keeps(outcome, drop_ratio) else "red")


def _show_recommendation(profile: Profile, console: Console) -> None:
    advice = recommend(profile)
    words = "\n".join((*advice.sentences, *(f"- {remark}" for remark in advice.remarks)))
    console.print(Panel(Text(words), title="What this means", title_align="left"))
    # Not wrapped at the edge of the screen: what is pasted must stay whole.
    console.print("To paste, for Eventide:")
    console.print(Text(advice.eventide, style="cyan"), soft_wrap=True)
    console.print("\nThe nearest that Spark alone offers:")
    console.print(Text(advice.spark, style="cyan"), soft_wrap=True)
