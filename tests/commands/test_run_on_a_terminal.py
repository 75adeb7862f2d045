"""`eventide run` on a real terminal: a live table, a status line, Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from tests.commands.processes import (
    COMMAND,
    ENVIRONMENT,
    QUERY,
    ROWS,
    STREAM,
    begun,
    doors,
    ended,
    shown_until,
    terminal,
)

FOLDER = STREAM.replace("'doors.csv'", "'in'")
CONTROL_C = b"\x03"
SLOW = """
import time

def slow(people: int) -> int:
    print("slow", flush=True)
    time.sleep(600)
    return people
"""


def test_a_terminal_shows_a_live_table_and_how_the_run_stands_until_control_c(tmp_path: Path) -> None:
    doors(tmp_path, FOLDER + QUERY)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "first.csv").write_text(ROWS, encoding="utf-8")
    with terminal() as (screen, other_side):
        environment = {**ENVIRONMENT, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
        # A session of its own whose first terminal is ours: so Ctrl-C becomes a signal for it.
        shell = f'exec "$0" "$@" <>{os.ttyname(other_side)} >&0 2>&1'
        with ended(
            subprocess.Popen(
                ["sh", "-c", shell, *COMMAND, "run", "doors.sql", "--engine", "local"],
                cwd=tmp_path,
                env=environment,
                start_new_session=True,
            )
        ) as process:
            shown = shown_until(screen, "5 rows, lag")
            assert "query_1, round 0" in shown
            assert re.search(r"2026-01-31 09:00:00 - 09:01:00 +final +north +8", shown)
            assert "late 0 %" in shown
            os.write(screen, CONTROL_C)
            assert "stopped: 5 rows" in shown_until(screen, "temporary checkpoint is removed")
            assert process.wait(timeout=300) == 0


def test_a_second_signal_does_not_wait_for_the_round(tmp_path: Path) -> None:
    script = STREAM + "CREATE FUNCTION slow FROM 'mine.py';\n" + QUERY.replace("sum(people)", "sum(slow(people))")
    doors(tmp_path, script)
    (tmp_path / "mine.py").write_text(SLOW, encoding="utf-8")
    with begun(tmp_path, "run", "doors.sql", "--engine", "local") as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "slow\n"
            process.send_signal(signal.SIGINT)
            time.sleep(0.5)
            assert process.poll() is None
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=300) == 130
        finally:
            process.kill()
