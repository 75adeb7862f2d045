"""Bounds between named sources hold for the sources of those names, whoever speaks first."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from eventide.errors import DeclarationError
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.skew.bounds import TimeBound
from eventide.eventtime.policies.skew.declared import DeclaredSkew
from eventide.eventtime.policies.skew.matrix import SkewMatrix
from eventide.language.script import read_script
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import Window
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


COLUMNS = columns("t BIGINT, k STRING")
IN_ORDER, BY_100, BY_5 = [TimeBound(0, 0)], [TimeBound(0, 100)], [TimeBound(0, 5)]
LOPSIDED = SkewMatrix.of([[IN_ORDER, BY_5], [BY_100, IN_ORDER]], [0, 0])
"""B trails A by 5, and A trails B by 100."""


def counted(policy: Policy, folder: Path) -> int:
    """How many of five valid rows count where B speaks first: two of them were late."""
    stream = Stream("S", COLUMNS, time="t", source=("k",), policy=policy)
    program = Program((stream,), (Query("q", "S", Window(10), named_as(n="count(*)")),))
    with Trial(program, folder) as trial:
        for clock, row in enumerate([(50, "B"), (8, "A"), (20, "A"), (30, "A"), (60, "B")]):
            trial.round(rows(row), clock=clock, heartbeats={})
        trial.end(9)
        return sum(sum(table.column("n").to_pylist()) for table in trial.output().final)


def test_a_matrix_in_python_binds_sources_by_name_whoever_speaks_first(tmp_path: Path) -> None:
    assert counted(DeclaredSkew(LOPSIDED, sources=("A", "B")), tmp_path) == 5


def test_a_matrix_without_names_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match="nothing says which source has which number"):
        counted(DeclaredSkew(LOPSIDED), tmp_path)
    with pytest.raises(DeclarationError, match="bounds are between 2 sources, and 1 are named"):
        DeclaredSkew(LOPSIDED, sources=("A", "A"))
    named = DeclaredSkew(LOPSIDED, sources=("A", "B"))
    with pytest.raises(DeclarationError, match="knows B, A, and its bounds number A, B"):
        Stream("s", COLUMNS, time="t", source=("k",), policy=named, known=("B", "A"))
