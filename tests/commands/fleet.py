"""The fleet that docs/operations.md tells of: three devices, of which one has fallen silent."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from eventide.engine.local.backend import LocalBackend
from eventide.engine.round.engine import Engine
from eventide.launch.settings import script_of
from tests.docs.blocks import sections

NOON = 1_769_860_800_000_000  # 2026-01-31 12:00:00
SECOND = 1_000_000


def fleet(folder: Path) -> Path:
    """The script of the page in a folder, and beside it the checkpoint after two rounds."""
    [script] = sections("sql")["docs/operations.md", "Why is it open?"]
    (folder / "fleet.sql").write_text(script.text, encoding="utf-8")
    program = script_of(str(folder / "fleet.sql")).program
    engine = Engine(program, LocalBackend(), str(folder / "state"))

    def row(seconds: float, device: str) -> dict[str, object]:
        return {"ts": NOON + round(seconds * SECOND), "device": device, "speed": 50}

    def table(*rows: dict[str, object]) -> dict[str, pa.Table]:
        schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("device", pa.string()), ("speed", pa.int32())])
        return {"fleet": pa.Table.from_pylist(list(rows), schema)}

    engine.round(table(row(297, "gps-1"), row(298, "gps-3"), row(299, "gps-2")), clock=NOON + 301 * SECOND)
    engine.round(table(row(302, "gps-1"), row(302.5, "gps-2")), clock=NOON + 303 * SECOND)
    engine.close()
    return folder
