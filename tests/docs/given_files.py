"""Files of the kind that a reader of the pages has."""

from __future__ import annotations

import gzip
from pathlib import Path


def sensors(folder: Path) -> None:
    rows = [f"2026-01-31 09:{second // 60:02}:{second % 60:02},s{second % 3},{second % 7}\n" for second in range(180)]
    (folder / "sensors.csv").write_text("ts,sensor,value\n" + "".join(rows), encoding="utf-8")


def trades(folder: Path) -> None:
    """Every fifth row is two seconds late."""
    at = [f"2026-01-31 09:{second // 60:02}:{second % 60:02}" for second in range(200)]
    rows = [f"{at[max(0, n - 2 * (n % 5 == 0))]},{at[n]},{'AB'[n % 2]},{n}\n" for n in range(200)]
    with gzip.open(folder / "trades.csv.gz", "wt", encoding="utf-8") as file:
        file.write("event_time,received,symbol,price\n" + "".join(rows))
