"""What `deployment/` offers is what systemd understands, and what the command takes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.processes import eventide

DEPLOYMENT = Path(__file__).parents[1] / "deployment"
UNIT = DEPLOYMENT / "eventide@.service"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    text = UNIT.read_text(encoding="utf-8")
    # The program has to be there, and is not where the unit will have it.
    here = tmp_path / UNIT.name
    here.write_text(text.replace("/opt/eventide/bin/eventide", sys.executable), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(here)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_command_of_the_unit_is_one_that_the_command_line_takes(tmp_path: Path) -> None:
    [command] = re.findall(r"^ExecStart=\S+ (.*)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)
    script = tmp_path / "traffic.sql"
    (tmp_path / "rows.jsonl").write_text('{"t": 1}\n', encoding="utf-8")
    script.write_text(
        "SET engine = 'local';\nCREATE STREAM s (t INT) FROM json 'rows.jsonl' TIMESTAMP BY t;\n"
        "SELECT count(*) AS n FROM s [RANGE 10];\n",
        encoding="utf-8",
    )
    words = [
        word.replace("/etc/eventide/%i.sql", str(script)).replace("/var/lib/eventide/%i", "state")
        for word in command.split()
    ]
    ran = eventide(tmp_path, *words)
    assert ran.code == 0, ran.err
    assert "n=1" in ran.out
