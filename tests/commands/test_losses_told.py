"""A backfill that loses more rows than was permitted says so, and what to do; warnings of sources reach the user."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

from tests.commands.processes import Here


def test_rows_beyond_the_permitted_ratio_are_told_with_what_to_do(tmp_path: Path, here: Here) -> None:
    """Shuffled files under DRATIO 1%: the number of late rows was told, not that 1 % was permitted."""
    times = [f"2026-01-31 {hour:02d}:{minute:02d}:00" for hour in range(24) for minute in range(60)]
    random.Random(1).shuffle(times)
    (tmp_path / "in").mkdir()
    for part in range(24):
        (tmp_path / "in" / f"{part:02d}.csv").write_text("\n".join(["at", *times[part * 60 : part * 60 + 60]]) + "\n")
    (tmp_path / "q.sql").write_text(
        "CREATE STREAM s (at TIMESTAMP) FROM csv 'in' LIMIT 1 FILES PER ROUND TIMESTAMP BY at DRATIO 1%;\n"
        "SELECT count(*) AS n FROM s [RANGE 1 hour];\n"
    )
    ran = here("run", "q.sql", "--engine", "local", "--bounded", "--json")
    assert ran.code == 0
    [told] = [line for line in ran.err.splitlines() if "was permitted" in line]
    assert "of 1,440 rows came too late" in told
    assert "and 1 % was permitted" in told
    assert "Sort files by time" in told


def test_a_file_that_is_passed_over_is_told_by_the_command(tmp_path: Path, here: Here) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "new.csv").write_text("at\n2026-01-31 09:00:00\n")
    (tmp_path / "q.sql").write_text(
        "CREATE STREAM s (at TIMESTAMP) FROM csv 'in' TIMESTAMP BY at DELAY 1 s TIMEOUT 1 min;\n"
        "SELECT count(*) AS n FROM s [RANGE 1 hour];\n"
    )
    first = here("run", "q.sql", "--engine", "local", "--bounded", "--json", "--checkpoint", "state")
    assert "passed over" not in first.err
    (tmp_path / "in" / "old.csv").write_text("at\n2026-01-31 09:00:01\n")
    os.utime(tmp_path / "in" / "old.csv", (time.time() - 30 * 24 * 3600,) * 2)
    ran = here("run", "q.sql", "--engine", "local", "--bounded", "--json", "--checkpoint", "state")
    assert "old.csv is more than 7 days older than what was read, and is passed over" in ran.err
