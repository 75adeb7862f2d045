"""A notebook without ipywidgets: DuckDB shows progress there, and refuses every word about it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

NOTEBOOK = """
class Kernel:
    config = {"IPKernelApp": {}}


def get_ipython():
    return Kernel()
"""
CELL = """
import IPython
import sys
import duckdb

try:
    duckdb.connect().execute("SET enable_progress_bar = false")
except duckdb.InvalidInputException as error:
    assert "ipywidgets" in str(error)
else:
    sys.exit("DuckDB does not take this for a notebook")

import eventide

script = eventide.sql('''
    CREATE STREAM a (t BIGINT, v INT) FROM json 'a.json' DELAY 0;
    CREATE STREAM b (t BIGINT, v INT) FROM csv 'b.csv' DELAY 0;
    CREATE QUERY totals AS SELECT sum(v) AS total FROM a [RANGE 10];
    CREATE QUERY both AS SELECT a.v AS v, b.v AS w FROM a JOIN b ON a.t = b.t;
''')
found = script.run(engine="local")
print(found["totals"]["total"].to_pylist(), found["both"]["w"].to_pylist())
"""


def test_a_program_runs_in_a_notebook_that_has_no_widgets(tmp_path: Path) -> None:
    """Nothing started: a raw InvalidInputException of DuckDB, about a package that nobody had heard of."""
    (tmp_path / "modules" / "IPython").mkdir(parents=True)
    (tmp_path / "modules" / "IPython" / "__init__.py").write_text(NOTEBOOK)
    (tmp_path / "a.json").write_text('{"t": 1, "v": 1}\n{"t": 2, "v": 2}\n')
    (tmp_path / "b.csv").write_text("t,v\n2,7\n")
    modules = os.pathsep.join([str(tmp_path / "modules"), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", CELL],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": modules},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[3] [7]"), done.stderr
