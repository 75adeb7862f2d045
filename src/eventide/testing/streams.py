"""Every generated hard stream by name, for tests and benchmarks: the same seed gives the same recording.

Times and arrivals are microseconds, except in `sequence`, where both are plain numbers.

>>> HARD_CASES["backlog"](0).rows
40000
>>> sorted(HARD_CASES)[:4]
['alternating', 'backlog', 'batch_upload', 'bursts']
"""

from __future__ import annotations

from collections.abc import Callable

from eventide.profile.recording import Recording
from eventide.testing import delay_streams, source_streams

HARD_CASES: dict[str, Callable[[int], Recording]] = {
    "backlog": source_streams.backlog,
    "delay_step": delay_streams.delay_step,
    "delay_step_down": delay_streams.delay_step_down,
    "drifting_delay": delay_streams.drifting_delay,
    "clock_jump": source_streams.clock_jump,
    "clock_offsets": source_streams.clock_offsets,
    "silent_half": source_streams.silent_half,
    "outage_and_flush": source_streams.outage_and_flush,
    "heavy_tail": delay_streams.heavy_tail,
    "bursts": delay_streams.bursts,
    "future_row": source_streams.future_row,
    "future_rows": source_streams.future_rows,
    "new_sources": source_streams.new_sources,
    "rare_speakers": source_streams.rare_speakers,
    "in_order": source_streams.single_in_order,
    "simultaneous": source_streams.simultaneous,
    "periodic": source_streams.periodic,
    "lognormal_network": delay_streams.lognormal_network,
    "alternating": delay_streams.alternating,
    "uniform_shuffle": delay_streams.uniform_shuffle,
    "batch_upload": source_streams.batch_upload,
    "many_sources": source_streams.many_sources,
    "growing_disorder": delay_streams.growing_disorder,
    "duplicates": delay_streams.duplicates,
    "reordered_batches": source_streams.reordered_batches,
    "sequence": delay_streams.sequence,
}
