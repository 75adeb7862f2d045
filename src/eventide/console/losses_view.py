"""The page *Losses*: what is in no result, why, from whom, and what another permitted ratio would have cost.

Laws. Counts are those of the engine. A sample has at most `SAMPLE` rows, the last that were written, and is read only
when somebody asks for it. *What if*: the cells that were kept are played through the policy of a drop ratio again, each
ratio anew. A cell counts as lost as far as it lies behind the heartbeat; so the share is as exact as cells are narrow.

>>> from eventide.eventtime.arrivals import Arrivals
>>> rounds = [Arrivals.of_rows(1_000_000 * n, [0, 1], [1_000_000 * n, 1_000_000 * n - 900_000]) for n in range(200)]
>>> found = what_if(rounds, (0.01, 0.5))
>>> found[0]["lost"] <= 0.01, found[0]["lag"] >= found[1]["lag"]
(True, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eventide.console.history import cell
from eventide.console.subject import Look
from eventide.engine.round.side_tables import LATE, REJECTS
from eventide.errors import EventideError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.instant import EDGE, NEVER
from eventide.eventtime.policies.drop_ratio.policy import DropRatio, permitted_ratio
from eventide.plan.declared.program import Program
from eventide.storage.storage import Storage

MOST = 20
SAMPLE = 20
LARGEST_FILE = 32 * 1024 * 1024
RATIOS = (0.0001, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1)
LAST_ROUNDS = 2_000
"""So many rounds are played again: more would take seconds."""
SEPARATOR = "\x1f"


def losses_view(look: Look) -> dict[str, Any]:
    """Counts of every stream, reasons and sources, and new points in time."""
    standing, history = look.standing, look.history
    streams = []
    for one, stream in zip(standing.status.streams, standing.program.streams, strict=True):
        late = history.late_of(one.name)
        streams.append(
            {
                "name": one.name,
                "rows": one.rows,
                "wanted": one.wanted,
                "late": one.late,
                "revising": one.revising,
                "rejected": one.rejected,
                "drop_ratio": one.drop_ratio,
                "recent_drop_ratio": one.recent_drop_ratio,
                "permitted": permitted_ratio(stream.policy),
                "late_by_source": [[name.replace(SEPARATOR, "|"), count] for name, count in late.most_common(MOST)],
                "rounds_kept": len(history.cells_of(one.name)),
            }
        )
    points = [[one.number, one.clock, one.rows, one.late, one.rejected] for one in history.points(look.since)]
    return {"streams": streams, "reasons": history.reasons.most_common(MOST), "points": points}


def losses_sample(program: Program, storage: Storage, stream: str, kind: str) -> dict[str, Any]:
    """The last rows that a stream lost, `late` or `rejects`, with why."""
    if kind not in (LATE, REJECTS) or stream not in [one.name for one in program.streams]:
        return {"columns": [], "rows": [], "note": "there is no such table"}
    import pyarrow.parquet as pq

    names = [name for name in storage.list(f"{kind}/{stream}") if name.endswith(".parquet")]
    for name in sorted(names, reverse=True):
        try:
            if storage.size(name) > LARGEST_FILE:
                continue
            with storage.opened(name) as source, pq.ParquetFile(source) as file:
                rows = next(file.iter_batches(batch_size=SAMPLE), None)
        except (EventideError, OSError):
            continue
        if rows is not None and rows.num_rows:
            values = [[cell(value) for value in column.to_pylist()] for column in rows.columns]
            found = [list(row) for row in zip(*values, strict=True)]
            return {"columns": rows.schema.names, "rows": found, "file": f"{storage.where}/{name}"}
    return {"columns": [], "rows": [], "note": "no such row has been written"}


def what_if(rounds: Sequence[Arrivals], ratios: Sequence[float] = RATIOS) -> list[dict[str, Any]]:
    """For each permitted ratio the share of rows that would have been lost, and the mean wait of a row for its time."""
    played = rounds[-LAST_ROUNDS:]
    total = sum(one.total for one in played)
    return [{"ratio": ratio, **_played(played, ratio, total)} for ratio in ratios] if total else []


def _played(rounds: Sequence[Arrivals], ratio: float, total: int) -> dict[str, float | None]:
    generator = DropRatio(ratio).start()
    beats, clocks, lost = [], [], 0.0
    before = NEVER
    for one in rounds:
        lost += _lost(one, before)
        generator.observe(one)
        before = generator.heartbeats(one.clock).combined
        beats.append(before)
        clocks.append(one.clock)
    # Heartbeats never fall, so the round that released a cell is found by halving.
    given, at = np.array(beats, dtype=np.int64), np.array(clocks, dtype=np.int64)
    waited, counted = 0.0, 0
    for one in rounds:
        released = np.searchsorted(given, one.latest, side="left")
        known = (released < len(given)) & (one.latest < EDGE)
        waited += float(np.sum(np.maximum(at[released[known]] - one.clock, 0) * one.rows[known].astype(np.float64)))
        counted += int(one.rows[known].sum())
    return {"lost": lost / total, "lag": waited / counted if counted else None}


def _lost(cells: Arrivals, heartbeat: int) -> float:
    """How many rows of some cells lie behind a heartbeat; a cell is taken to be evenly filled."""
    wide = cells.latest.astype(np.float64) - cells.earliest + 1.0
    behind = np.clip((float(heartbeat) - cells.earliest + 1.0) / wide, 0.0, 1.0)
    return float(np.sum(behind * cells.rows))
