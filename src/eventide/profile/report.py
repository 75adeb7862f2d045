"""The findings as tables for a terminal."""

from __future__ import annotations

import numpy as np
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from eventide.profile.amounts import percent, spoken
from eventide.profile.candidates import MEANING, OURS, YARDSTICKS
from eventide.profile.disorder import QUANTILES
from eventide.profile.outcome import Outcome
from eventide.profile.profiling import Profile
from eventide.profile.recommend import keeps, recommend

SHOWN_SOURCES = 12


def show(profile: Profile, console: Console) -> None:
    """Print everything about one recording."""
    reading, recording = profile.reading, profile.reading.recording
    span = spoken(int(recording.arrival[-1] - recording.arrival[0]), reading.plain)
    round = "row at a time" if profile.round is None else f"in rounds of {spoken(profile.round, reading.plain)}"
    console.rule(f"[bold]{escape(recording.name)}")
    console.print(
        f"{recording.rows:,} rows from {len(recording.source_names):,} sources in {span}; "
        f"policies may lose {percent(profile.drop_ratio)}, run {round}"
    )
    for note in reading.notes:
        console.print(Text(f"note: {note}", style="yellow"))
    if reading.plain:
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
    found, plain = profile.disorder, profile.reading.plain
    table = _table("Disorder", "", "out of order", *QUANTILES)
    measured = (
        ("lateness, all together", percent(found.out_of_order), found.lateness),
        ("lateness within sources", percent(found.out_of_order_within_sources), found.lateness_within_sources),
        ("delay", "", found.delay),
    )
    for label, share, quantiles in measured:
        table.add_row(label, share, *(spoken(quantiles[name], plain) for name in QUANTILES))
    table.caption = (
        f"lateness: behind the largest time so far; delay: arrival - time, at least "
        f"{spoken(found.delay['min'], plain)}; rows from the future: {found.future_rows:,}"
    )
    return table


def _source_table(profile: Profile) -> Table:
    recording, sources, plain = profile.reading.recording, profile.disorder.by_source, profile.reading.plain
    per = "unit" if plain else "s"
    table = _table(
        "Sources", "", "rows", f"rows/{per}", "offset", "delay", "out of order", "silence", "first seen", "last seen"
    )
    rate = sources.rate(per=1 if plain else 1_000_000)
    for at in np.argsort(-sources.rows, kind="stable")[:SHOWN_SOURCES]:
        table.add_row(
            escape(recording.source_names[at]),
            f"{sources.rows[at]:,}",
            f"{rate[at]:.3g}" if np.isfinite(rate[at]) else "-",
            spoken(int(sources.smallest_delay[at]), plain),
            spoken(float(sources.median_delay[at]), plain),
            percent(float(sources.out_of_order[at])),
            spoken(int(sources.longest_silence[at]), plain),
            "+" + spoken(int(sources.first_seen[at] - recording.arrival[0]), plain),
            "+" + spoken(int(sources.last_seen[at] - recording.arrival[0]), plain),
        )
    table.caption = (
        "offset: smallest delay, an estimate of the clock's; delay: median; silence: longest; seen: from the start"
    )
    if len(recording.source_names) > SHOWN_SOURCES:
        table.caption += f"; {len(recording.source_names) - SHOWN_SOURCES:,} more sources"
    return table


def _policy_table(profile: Profile) -> Table:
    plain = profile.reading.plain
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
            spoken(outcome.lag_mean, plain),
            spoken(outcome.lag_p95, plain),
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
