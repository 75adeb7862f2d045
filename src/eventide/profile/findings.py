"""What a dry run has found, as plain data: for `--json`, and for the page that `--html` writes.

Lengths of time are milliseconds. For plain sequence numbers (`"unit": "none"`) they are plain numbers under the same
keys. A ratio that is not known (no source with 1,000 rows, no row after the first 1,000) is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from eventide.profile.disorder import Disorder
from eventide.profile.dry_run import Outcome
from eventide.profile.profiling import FIXED_BEST, Profile

LISTED_SOURCES = 1_000
"""So many sources are listed, those with most rows first; `sources` counts them all."""


def findings(profile: Profile) -> dict[str, Any]:
    """All that was measured about one recording."""
    reading = profile.reading
    scale = 1.0 if reading.unitless else 1e-3
    policies = {name: outcome_data(outcome, scale) for name, outcome in profile.outcomes.items()}
    policies[FIXED_BEST]["delay_ms"] = profile.fixed_delay * scale
    return {
        "file": reading.file,
        "run": reading.run,
        "rows": reading.recording.rows,
        "sources": len(reading.recording.source_names),
        "unit": "none" if reading.unitless else "ms",
        "permitted_drop_ratio": profile.drop_ratio,
        "round_ms": None if profile.round is None else profile.round * scale,
        "notes": list(reading.notes),
        "rejects": reading.rejects,
        "disorder": _disorder(profile.disorder, reading.recording.source_names, scale),
        "policies": policies,
    }


def outcome_data(outcome: Outcome, scale: float) -> dict[str, float | None]:
    """What a policy would have lost, and how long rows would have waited."""
    return {
        "drop_ratio": outcome.drop_ratio,
        "drop_ratio_after_1000": outcome.drop_ratio_after_1000,
        "worst_source_drop_ratio": outcome.worst_source_drop_ratio,
        "worst_stretch_drop_ratio": outcome.worst_stretch_drop_ratio,
        "lag_mean_ms": None if outcome.lag_mean is None else outcome.lag_mean * scale,
        "lag_p95_ms": None if outcome.lag_p95 is None else outcome.lag_p95 * scale,
        "buffered_mean_rows": outcome.buffered_mean_rows,
    }


def _disorder(found: Disorder, names: tuple[str, ...], scale: float) -> dict[str, Any]:
    rate = found.by_source.rate(per=1 if scale == 1.0 else 1_000_000)
    busiest = np.argsort(-found.by_source.rows, kind="stable")[:LISTED_SOURCES]
    return {
        "out_of_order": found.out_of_order,
        "out_of_order_within_sources": found.out_of_order_within_sources,
        "lateness_ms": _scaled(found.lateness, scale),
        "lateness_within_sources_ms": _scaled(found.lateness_within_sources, scale),
        "delay_ms": _scaled(found.delay, scale),
        "future_rows": found.future_rows,
        "per_source": [
            {
                "source": names[at],
                "rows": int(found.by_source.rows[at]),
                "rows_per_second": float(rate[at]) if np.isfinite(rate[at]) else None,
                "clock_offset_ms": float(found.by_source.smallest_delay[at] * scale),
                "median_delay_ms": float(found.by_source.median_delay[at] * scale),
                "out_of_order": float(found.by_source.out_of_order[at]),
                "longest_silence_ms": float(found.by_source.longest_silence[at] * scale),
                "first_seen_ms": float(found.by_source.first_seen[at] * scale),
                "last_seen_ms": float(found.by_source.last_seen[at] * scale),
            }
            for at in busiest
        ],
    }


def _scaled(lengths: Mapping[str, float], scale: float) -> dict[str, float]:
    return {name: length * scale for name, length in lengths.items()}
