"""Bounds between named sources hold for the sources of those names, whoever speaks first."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from eventide.language.script import read_script
from eventide.testing.trial import Trial

TEXT = """
CREATE STREAM S (t BIGINT, k STRING) SOURCE BY k
BOUNDS (SOURCE a, SOURCE b, a TRAILS a BY 0, b TRAILS b BY 0, a TRAILS b BY 100, b TRAILS a BY 5);
SELECT count(*) AS n FROM S [RANGE 10];
"""


def rows(*given: tuple[int, str]) -> dict[str, pa.Table]:
    times, names = zip(*given, strict=True)
    return {"S": pa.table({"t": pa.array(times, pa.int64()), "k": pa.array(names, pa.string())})}


def test_a_source_is_bound_by_its_name_and_not_by_when_it_speaks(tmp_path: Path) -> None:
    with Trial(read_script(TEXT).program, tmp_path) as trial:
        # b says 50, so a, which may trail it by 100, can still say anything above -50.
        trial.round(rows((8, "b"), (50, "b")), clock=0, heartbeats={})
        assert trial.output().final == ()
        # a says 20, so b says more than 15 from now on: the first window is over, the second is not.
        trial.round(rows((20, "a")), clock=1, heartbeats={})
        [final] = trial.output().final
        assert final.column("n").to_pylist() == [1]
        assert final.column("window_end").to_pylist() == [10]


def test_the_names_are_kept_by_a_restart(tmp_path: Path) -> None:
    program = read_script(TEXT).program
    with Trial(program, tmp_path) as trial:
        trial.round(rows((8, "b"), (50, "b")), clock=0, heartbeats={})
        trial.restart()
        trial.round(rows((20, "a")), clock=1, heartbeats={})
        assert [table.column("n").to_pylist() for table in trial.output().final] == [[1]]
