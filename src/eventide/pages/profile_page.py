"""The page of `eventide profile --html`: what was found in recordings, with plots that can be looked into.

Law: the numbers are those of `--json`, the words those on the screen, and the plots draw what `--plot` draws, from
fewer rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eventide.pages.page import page
from eventide.profile.drawn import has_promised, oddest, spread, trail
from eventide.profile.findings import findings
from eventide.profile.profiling import FIXED_BEST, MEANING, OURS, YARDSTICKS, Point, Profile
from eventide.profile.report import keeps, recommend

MOST_POINTS = 4_000
"""Rows in a plot: a page with more of them is slow to open, and looks the same."""
TRAILS = (OURS, FIXED_BEST, "own_progress")

Curves = Mapping[str, Sequence[Point]]
"""What every policy does at several permitted ratios."""


def profile_page(profiles: Sequence[tuple[Profile, Curves]]) -> str:
    """A page of recordings, each with its lag against its loss."""
    names = ", ".join(one.reading.recording.name for one, _ in profiles)
    return page(f"{names} - eventide profile", "profile.js", {"runs": [run_data(*one) for one in profiles]})


def run_data(one: Profile, curves: Curves) -> dict[str, Any]:
    """What the page shows of one recording."""
    advice, scale = recommend(one), 1.0 if one.reading.unitless else 1e-3
    recording = one.reading.recording
    rows = spread(recording.rows, MOST_POINTS)
    start = int(recording.arrival[0])
    delay = recording.arrival - recording.time
    odd = oddest(recording.source[rows], delay[rows], len(recording.source_names))
    place = {int(number): at for at, number in enumerate(odd)}
    trails = {}
    for name in TRAILS:
        if name in one.runs and has_promised(one.runs[name]):
            clock, low, middle, high = (part.astype(np.float64) for part in trail(one.runs[name]))
            lines = (scale * (clock - start), scale * low, scale * middle, scale * high)
            trails[name] = [np.round(line, 3).tolist() for line in lines]
    lost = np.flatnonzero(~one.runs[OURS].kept)[:MOST_POINTS] if OURS in one.runs else np.zeros(0, dtype=np.intp)
    return {
        "name": recording.name,
        "span": scale * float(recording.arrival[-1] - start),
        "findings": findings(one),
        "advice": {
            "sentences": [*advice.sentences, *advice.remarks],
            "eventide": advice.eventide,
            "spark": advice.spark,
        },
        "policies": {
            name: {
                "meaning": MEANING[name],
                "keeps": keeps(outcome, one.drop_ratio),
                "role": "ours" if name == OURS else "yardstick" if name in YARDSTICKS else "online",
            }
            for name, outcome in one.outcomes.items()
        },
        "curves": {
            name: [
                {
                    "permitted": point.permitted,
                    "lost": point.outcome.drop_ratio,
                    "lag": None if point.outcome.lag_mean is None else scale * point.outcome.lag_mean,
                    "keeps": keeps(point.outcome, point.permitted),
                }
                for point in points
            ]
            for name, points in curves.items()
        },
        "delays": {
            "sources": [recording.source_names[number] for number in odd],
            "at": np.round(scale * (recording.arrival[rows] - start), 3).tolist(),
            "delay": np.round(scale * delay[rows], 3).tolist(),
            "source": [place.get(int(number), -1) for number in recording.source[rows]],
        },
        "trails": trails,
        "lost": [
            np.round(scale * (recording.arrival[lost] - start), 3).tolist(),
            np.round(scale * delay[lost], 3).tolist(),
        ],
    }
