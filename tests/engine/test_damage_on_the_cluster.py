"""Files that executors wrote, altered, torn or gone: found by their checksums, and the round before is the last."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from eventide.engine.round.engine import Engine
from eventide.language.script import read_script
from eventide.sinks import Directory
from tests.engine.cluster_here import ClusterHere
from tests.sinks.readers import directory_rows

PROGRAM = read_script("""
CREATE STREAM a (t BIGINT, k STRING, v INT) FROM csv 'a' TIMESTAMP BY t SOURCE BY k DELAY 30;
CREATE STREAM b (t BIGINT, k STRING, w INT) FROM csv 'b' TIMESTAMP BY t DELAY 30;
CREATE QUERY sums AS SELECT k, sum(v) AS total FROM a [RANGE 20] GROUP BY k;
CREATE QUERY own AS SELECT k, sum(v) AS total FROM a [RANGE 20] GROUP BY k CLOSE BY SOURCE;
CREATE QUERY counted AS SELECT sum(v) AS total FROM a [RANGE 6 ROWS SLIDE 2 ROWS];
CREATE QUERY ordered AS SELECT t, k FROM a UNION ALL SELECT t, k FROM b ORDER BY t;
CREATE QUERY every AS SELECT a.t AS at, b.t AS bt FROM a FULL JOIN b ON a.k = b.k AND abs(a.t - b.t) <= 3;
CREATE QUERY asof AS SELECT a.t, v, w FROM a JOIN b FOR SYSTEM_TIME AS OF a.t AS p ON a.k = p.k;
""").program
NAMES = ("sums", "own", "counted", "ordered", "every", "asof")
LAST, END = 3, 6


def flipped(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 0x10
    file.write_bytes(data)


def torn(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def rows(round: int) -> dict[str, pa.Table]:
    steps = range(15)
    times = pa.array([20 * round + (7 * step) % 31 for step in steps], pa.int64())
    values, keys = pa.array([step % 5 for step in steps], pa.int32()), ["xyz"[step % 3] for step in steps]
    return {name: pa.table({"t": times, "k": keys, value: values}) for name, value in (("a", "v"), ("b", "w"))}


def engine(folder: Path, backend: ClusterHere) -> Engine:
    sinks = dict.fromkeys(NAMES, Directory(folder / "out"))
    return Engine(PROGRAM, backend, str(folder / "checkpoint"), sinks, driver_memory=0)


def run(running: Engine, rounds: range) -> None:
    for round in rounds:
        running.round(rows(round), clock=round)


def shown(folder: Path) -> dict[str, list[str]]:
    return {name: sorted(map(repr, directory_rows(folder / "out", "parquet", name))) for name in NAMES}


@pytest.mark.slow
@pytest.mark.parametrize("damage", [flipped, torn, Path.unlink], ids=["altered", "torn", "gone"])
def test_damage_to_the_state_of_any_operator_is_found_and_changes_no_result(
    damage: Callable[[Path], None], tmp_path: Path
) -> None:
    backend, whole = ClusterHere(), tmp_path / "whole"
    running = engine(whole, backend)
    run(running, range(LAST))
    before = {file.name for file in running.state.record.files}  # type: ignore[union-attr]
    run(running, range(LAST, LAST + 1))
    new = dict[str, str]()
    for name, operator in running.state.operators.items():
        for kind, held in operator.state.items():
            files = [file.name for part in held.parts for file in part.files if file.name not in before]
            assert all(part.table is None for part in held.parts)
            new |= {f"{name} {kind}": files[-1]} if files else {}
    assert {key.split()[0] for key in new} == set(NAMES), "every kind of operator has written something"
    running.close()
    for place, file in enumerate(new.values()):
        shutil.copytree(whole, tmp_path / str(place))
        damage(tmp_path / str(place) / "checkpoint" / file)
    running = engine(whole, backend)
    run(running, range(LAST + 1, END))
    running.close()
    expected = shown(whole)
    assert all(expected.values())
    for place, (what, file) in enumerate(new.items()):
        again = engine(tmp_path / str(place), backend)
        assert again.state.round == LAST - 1, what
        [warning] = again.checkpoint.warnings
        assert f"round {LAST} cannot be continued from" in warning
        assert file in warning
        run(again, range(LAST, END))
        again.close()
        assert shown(tmp_path / str(place)) == expected, what
    backend.close()
