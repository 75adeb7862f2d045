"""Small rounds for the tests of the checkpoint: state whose content follows from its round."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from eventide.engine.checkpoint.checkpoint import Checkpoint
from eventide.engine.checkpoint.record import RoundRecord, StateFile


def state_of(round: int, part: int = 0) -> pa.Table:
    """A table that only this round would write."""
    return pa.table({"pane": [round, part], "total": [f"{round}/{part}" * 20, None]})


def record_of(round: int, files: tuple[StateFile, ...] = ()) -> RoundRecord:
    """A record that only this round would have."""
    streams = {"s": {"heartbeat": round * 10, "snapshot": {"kind": "slack", "held": [round, -round]}}}
    return RoundRecord(round, round + 100, round * 1_000, False, {"streams": {}}, streams, {"q": {}}, {}, files)


def run_round(checkpoint: Checkpoint, round: int, carried: tuple[StateFile, ...] = ()) -> RoundRecord:
    """Write one state file, commit it together with files of earlier rounds."""
    file = checkpoint.write_table(f"slices/q/{round:010d}.arrow", state_of(round))
    record = record_of(round, (*carried, file))
    checkpoint.commit(record)
    return record


def files_in(folder: Path) -> set[str]:
    """All files of a checkpoint, but for its lock."""
    names = (str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return {name for name in names if not name.startswith("lock/")}
