"""On Spark no row of a stream is read by the driver: Python opens no input file, and its DuckDB could open none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from eventide.engine.spark_backend import SparkBackend

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
SCRIPT = """
CREATE STREAM a (t BIGINT, k STRING, v INT) FROM {format} 'in/a' DELAY 5 SOURCE k;
CREATE STREAM b (t BIGINT, k STRING, w INT) FROM {format} 'in/b' DELAY 5;
CREATE QUERY sums AS SELECT k, sum(v) AS total FROM a [RANGE 10] GROUP BY k INTO 'out' FORMAT parquet;
CREATE QUERY own AS SELECT k, count(*) AS n FROM a [RANGE 10] GROUP BY k CLOSE BY SOURCE INTO 'out' FORMAT parquet;
CREATE QUERY counted AS SELECT max(v) AS most FROM a [RANGE 4 ROWS] INTO 'out' FORMAT parquet;
CREATE QUERY single AS SELECT t, v * 2 AS twice FROM a WHERE v > 3 INTO 'out' FORMAT parquet;
CREATE QUERY merged AS SELECT t, k FROM a UNION ALL SELECT t, k FROM b INTO 'out' FORMAT parquet;
CREATE QUERY near AS SELECT a.k, v, w FROM a JOIN b ON abs(a.t - b.t) <= 3 AND a.k = b.k INTO 'out' FORMAT parquet;
CREATE QUERY every AS SELECT a.t AS at, b.t AS bt FROM a FULL JOIN b ON a.k = b.k AND a.t/10 = b.t/10
    INTO 'out' FORMAT parquet;
CREATE QUERY asof AS SELECT a.t, v, w FROM a JOIN b FOR SYSTEM_TIME AS OF a.t AS p ON a.k = p.k
    INTO 'out' FORMAT parquet;
"""


def write_input(folder: Path, format: str) -> None:
    for name, value in (("a", "v"), ("b", "w")):
        (folder / "in" / name).mkdir(parents=True)
        for number in range(3):
            numbers = f"range({40 * number}, {40 * number + 40}) r(i)"
            rows = f"SELECT i AS t, 'k' || (i % 3) AS k, (i % 7)::INTEGER AS {value} FROM {numbers}"
            options = {"parquet": "(FORMAT parquet)", "json": "(FORMAT json)", "csv": "(FORMAT csv, HEADER)"}[format]
            duckdb.sql(f"COPY ({rows}) TO '{folder}/in/{name}/{number}.{format}' {options}")


@pytest.mark.parametrize("memory", ["256 MB", "0"])
@pytest.mark.parametrize("format", ["parquet", "json", "csv"])
def test_no_kind_of_query_lets_the_driver_open_an_input_file(tmp_path: Path, format: str, memory: str) -> None:
    write_input(tmp_path, format)
    script = f"SET driver.memory = '{memory}';{SCRIPT.format(format=format)}"
    (tmp_path / "all.sql").write_text(script, encoding="utf-8")
    command = [sys.executable, "-m", "tests.engine.audited_run", str(tmp_path / "in"), "run", "all.sql", "--bounded"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    ran = subprocess.run(
        [*command, "--master", "local[2]"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    told = json.loads(ran.stdout.splitlines()[-1])
    assert told == {"code": 0, "opened": []}, ran.stderr
    names = {path.name.split("-")[0] for path in (tmp_path / "out").iterdir()}
    assert names >= {"sums", "own", "counted", "single", "merged", "near", "every", "asof"}


def test_the_drivers_duckdb_cannot_open_a_file(spark: object, tmp_path: Path) -> None:
    write_input(tmp_path, "parquet")
    backend = SparkBackend(spark)  # type: ignore[arg-type]
    try:
        with pytest.raises(duckdb.PermissionException):
            backend.workbench.connection.sql(f"SELECT * FROM read_parquet('{tmp_path}/in/a/0.parquet')")
    finally:
        backend.close()
