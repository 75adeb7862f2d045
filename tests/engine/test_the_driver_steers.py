"""On Spark no row of a stream is read by the driver: it opens no input file, and its DuckDB could open none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from eventide.engine.spark.backend import SparkBackend
from tests.engine.file_watch import opening_processes

ROOT = Path(__file__).parents[2]
SCRIPT = """
CREATE STREAM a (t BIGINT, k STRING, v INT) FROM {format} 'in/a' DELAY 5 SOURCE BY k;
CREATE STREAM b (t BIGINT, k STRING, w INT) FROM {format} 'in/b' DELAY 5;
CREATE QUERY sums AS SELECT k, sum(v) AS total FROM a [RANGE 10] GROUP BY k INTO 'out/sums' FORMAT parquet;
CREATE QUERY own AS SELECT k, count(*) AS n FROM a [RANGE 10] GROUP BY k CLOSE BY SOURCE INTO 'out/own' FORMAT parquet;
CREATE QUERY counted AS SELECT max(v) AS most FROM a [RANGE 4 ROWS] INTO 'out/counted' FORMAT parquet;
CREATE QUERY single AS SELECT t, v * 2 AS twice FROM a WHERE v > 3 INTO 'out/single' FORMAT parquet;
CREATE QUERY merged AS SELECT t, k FROM a UNION ALL SELECT t, k FROM b INTO 'out/merged' FORMAT parquet;
CREATE QUERY near AS SELECT a.k, v, w FROM a JOIN b ON abs(a.t - b.t) <= 3 AND a.k = b.k INTO 'out/near' FORMAT parquet;
CREATE QUERY every AS SELECT a.t AS at, b.t AS bt FROM a FULL JOIN b ON a.k = b.k AND a.t/10 = b.t/10
    INTO 'out/every' FORMAT parquet;
CREATE QUERY asof AS SELECT a.t, v, w FROM a JOIN b FOR SYSTEM_TIME AS OF a.t AS p ON a.k = p.k
    INTO 'out/asof' FORMAT parquet;
"""


def slow(*values: str) -> object:
    return pytest.param(*values, marks=pytest.mark.slow)


def write_input(folder: Path, format: str) -> None:
    for name, value in (("a", "v"), ("b", "w")):
        (folder / "in" / name).mkdir(parents=True)
        for number in range(3):
            numbers = f"range({40 * number}, {40 * number + 40}) r(i)"
            rows = f"SELECT i AS t, 'k' || (i % 3) AS k, (i % 7)::INTEGER AS {value} FROM {numbers}"
            options = {"parquet": "(FORMAT parquet)", "json": "(FORMAT json)", "csv": "(FORMAT csv, HEADER)"}[format]
            duckdb.sql(f"COPY ({rows}) TO '{folder}/in/{name}/{number}.{format}' {options}")


@pytest.mark.parametrize(("format", "memory"), [("parquet", "256 MB"), slow("json", "256 MB"), slow("csv", "0")])
def test_no_kind_of_query_lets_the_driver_open_an_input_file(tmp_path: Path, format: str, memory: str) -> None:
    write_input(tmp_path, format)
    script = f"SET driver.memory = '{memory}';{SCRIPT.format(format=format)}"
    (tmp_path / "all.sql").write_text(script, encoding="utf-8")
    driver, opened = run_watched(tmp_path, "--master", "local[2]")
    assert opened
    assert driver not in opened
    written = {path.name for path in (tmp_path / "out").iterdir() if any(path.iterdir())}
    assert written == {"sums", "own", "counted", "single", "merged", "near", "every", "asof"}


def test_who_reads_its_input_itself_is_seen_to_open_it(tmp_path: Path) -> None:
    write_input(tmp_path, "parquet")
    (tmp_path / "all.sql").write_text(SCRIPT.format(format="parquet"), encoding="utf-8")
    driver, opened = run_watched(tmp_path, "--engine", "local")
    assert driver in opened


def run_watched(folder: Path, *options: str) -> tuple[int, set[int]]:
    """Run the script to its end; the number of the process, and of those that opened its input."""
    command = [sys.executable, "-m", "eventide", "run", "all.sql", "--bounded", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with opening_processes([folder / "in" / "a", folder / "in" / "b"]) as opened:
        ran = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said, _ = ran.communicate()
    assert ran.returncode == 0, said.decode()
    return ran.pid, opened


@pytest.mark.spark
def test_the_drivers_duckdb_cannot_open_a_file(spark: object, tmp_path: Path) -> None:
    write_input(tmp_path, "parquet")
    backend = SparkBackend(spark)  # type: ignore[arg-type]
    try:
        with pytest.raises(duckdb.PermissionException):
            backend.duckdb_executor.connection.sql(f"SELECT * FROM read_parquet('{tmp_path}/in/a/0.parquet')")
    finally:
        backend.close()
