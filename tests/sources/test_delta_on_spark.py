"""Delta tables as streams of Spark, with Delta's own package, and results in a Delta table without it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.commands.processes import COMMAND, ENVIRONMENT

PACKAGE = "io.delta:delta-spark_4.2_2.13:4.4.0"


def run(folder: Path) -> None:
    command = [*COMMAND, "run", "q.sql", "--bounded", "--package", PACKAGE, "--checkpoint"]
    ran = subprocess.run(
        # A bounded run closes all windows, so each of these begins anew.
        [*command, f"state-{len(list(folder.glob('state-*')))}", "--replace"],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    if "unresolved dependency" in ran.stderr or "cannot be downloaded" in ran.stderr:
        pytest.skip(f"there is no {PACKAGE} here")
    assert ran.returncode == 0, ran.stderr


@pytest.mark.slow
@pytest.mark.spark
def test_a_delta_table_is_a_stream_of_spark_and_takes_its_results(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"t": [1, 2, 12], "v": pa.array([5, 6, 7], pa.int32())}))
    write_deltalake(tmp_path / "t", pa.table({"t": [25], "v": pa.array([8], pa.int32())}), mode="append")
    (tmp_path / "q.sql").write_text(
        f"""CREATE STREAM s (t BIGINT, v INT) FROM delta '{tmp_path}/t' TIMESTAMP BY t DELAY 0;
        CREATE QUERY sums AS SELECT sum(v) AS total FROM s [RANGE 10] INTO delta '{tmp_path}/out';"""
    )
    for _ in range(2):
        run(tmp_path)
        rows = DeltaTable(tmp_path / "out").to_pyarrow_table().to_pylist()
        assert sorted((row["window_start"], row["total"]) for row in rows) == [(0, 11), (10, 7), (20, 8)]


@pytest.mark.slow
@pytest.mark.spark
def test_a_delta_table_is_joined_as_it_is_by_spark(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"t": [1, 2, 12], "k": pa.array([5, 6, 7], pa.int32())}))
    write_deltalake(tmp_path / "d", pa.table({"k": pa.array([5, 6, 7], pa.int32()), "name": ["Oslo", "Rome", "Bari"]}))
    DeltaTable(tmp_path / "d").delete("k = 6")
    (tmp_path / "q.sql").write_text(
        f"""CREATE STREAM s (t BIGINT, k INT) FROM delta '{tmp_path}/t' TIMESTAMP BY t DELAY 0;
        CREATE TABLE d (k INT, name STRING) FROM delta '{tmp_path}/d';
        CREATE QUERY named AS SELECT s.t, d.name FROM s JOIN d ON s.k = d.k EMIT IMMEDIATELY
            INTO delta '{tmp_path}/out';"""
    )
    run(tmp_path)
    rows = DeltaTable(tmp_path / "out").to_pyarrow_table().to_pylist()
    assert sorted((row["t"], row["name"]) for row in rows) == [(1, "Oslo"), (12, "Bari")]
