"""Every operation on a file killed, halved, failed and delayed in turn: what is shown in the end is right.

A life dies, or is refused, at its N-th operation, and the next begins where it ended, at its own N + 1st. A life of so
many operations gets beyond the first rounds, so kills meet the commits of all of them. Of errors the way out is told,
and never a traceback.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.crash.differences import Differences, differences
from benchmarks.crash.outcome import Outcome
from tests.choice import slow
from tests.faults.lives import NONE, Life, lived
from tests.faults.program import CHECKPOINT, OUT, record

FIRST_ROUND = range(8, 140)
"""Operations of the first round of a life; those before make folders and take the lock."""


def survived(shim: Path, folder: Path, undisturbed: Outcome, faults: Sequence[str]) -> list[Life]:
    """Live with all of these, then once without; the result is right."""
    record(folder)
    lives = lived(shim, folder, [*faults, NONE])
    broke = [f"{life.fault}: {life.said}" for life in lives if life.end == "broke"]
    assert not broke, broke[0]
    assert lives[-1].end == "ended", lives[-1].said
    assert differences(folder, undisturbed) == Differences()
    return lives


def test_the_undisturbed_run_fills_every_table(undisturbed: Outcome) -> None:
    tables = {"sums", "early", "own", "counted", "ordered", "every", "asof", "through"}
    assert tables | {"late of a", "late of b", "rejects of a"} <= set(undisturbed.tables())


@pytest.mark.parametrize("kind", ["k", slow("h")])
def test_killed_before_or_within_any_operation_nothing_is_lost_and_nothing_doubled(
    kind: str, shim: Path, tmp_path: Path, undisturbed: Outcome
) -> None:
    few = FIRST_ROUND[::65] if kind == "k" else FIRST_ROUND[::6]
    lives = survived(shim, tmp_path / "run", undisturbed, [f"{kind}:{number}" for number in few])
    assert "killed" in {life.end for life in lives}


@pytest.mark.slow
def test_killed_at_every_operation_in_turn(shim: Path, tmp_path: Path, undisturbed: Outcome) -> None:
    lives = survived(shim, tmp_path / "run", undisturbed, [f"k:{number}" for number in range(FIRST_ROUND.stop)])
    assert sum(life.end == "killed" for life in lives) > 100


@pytest.mark.slow
@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
@pytest.mark.parametrize("kind", ["e", "f"])
def test_a_failing_disk_is_told_with_the_way_out_and_changes_no_result(
    kind: str, error: str, shim: Path, tmp_path: Path, undisturbed: Outcome
) -> None:
    """`e`: one operation fails. `f`: all from there on do."""
    folder = tmp_path / "run"
    lives = survived(shim, folder, undisturbed, [f"{kind}:{number}:{error}" for number in FIRST_ROUND[::5]])
    said = [life.said for life in lives if life.end == "refused"]
    assert said
    for one in said:
        assert str(folder / CHECKPOINT) in one or str(folder / OUT) in one, one
        assert "start again" in one, one


@pytest.mark.slow
def test_operations_that_take_their_time_change_nothing(shim: Path, tmp_path: Path, undisturbed: Outcome) -> None:
    lives = survived(shim, tmp_path / "run", undisturbed, ["d:20", "d:70", "d:110"])
    assert [life.end for life in lives] == ["ended"] * len(lives)
