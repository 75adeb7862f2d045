"""Every operation on a file killed, halved, failed and delayed in turn: what is shown in the end is right.

A life dies, or is refused, at its N-th operation, and the next begins where it ended, at its own N + 1st. A life of so
many operations gets beyond the first rounds, so kills meet the commits of all of them. Of errors the way out is told,
and never a traceback.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks.crash.differences import Differences, differences
from tests.faults.calm import Calm
from tests.faults.lives import NONE, Life, lived
from tests.faults.program import CHECKPOINT, OUT, record

LOCKED = 8
"""Operations before this one make folders and take the lock."""


def operations(calm: Calm, kind: str = "") -> list[int]:
    """The operations of the first round of a life, all or those of a kind, and the first ones of the next."""
    commit = calm.operations.index(("rename", f"{CHECKPOINT}/rounds/0000000000.json"))
    return [number for number in range(LOCKED, commit + 6) if kind in (calm.operations[number][0], "")]


def survived(shim: Path, calm: Calm, folder: Path, faults: Iterable[str]) -> list[Life]:
    """Live with all of these, then once without; the result is right."""
    record(folder, calm.queries)
    lives = lived(shim, *((folder, fault) for fault in (*faults, NONE)))
    broke = [f"{life.fault}: {life.said}" for life in lives if life.end == "broke"]
    assert not broke, broke[0]
    assert lives[-1].end == "ended", lives[-1].said
    assert differences(folder, calm.outcome) == Differences()
    return lives


def test_killed_while_it_writes_and_commits_nothing_is_lost_and_nothing_doubled(
    shim: Path, small: Calm, tmp_path: Path
) -> None:
    """The harness itself, and one story of each kind; all others are slow."""
    numbers = operations(small)
    lives = survived(
        shim, small, tmp_path / "run", [f"k:{numbers[0]}", f"h:{numbers[len(numbers) // 2]}", "e:40:ENOSPC"]
    )
    assert [life.end for life in lives] == ["killed", "killed", "refused", "ended"]
    assert lives[0].said == "9"
    assert "No space left on device" in lives[2].said


@pytest.mark.slow
def test_killed_at_every_operation_in_turn(shim: Path, small: Calm, tmp_path: Path) -> None:
    numbers = operations(small)
    lives = survived(shim, small, tmp_path / "run", [f"k:{number}" for number in (*range(LOCKED), *numbers)])
    assert sum(life.end == "killed" for life in lives) > LOCKED + len(numbers) // 2


@pytest.mark.slow
def test_killed_within_a_write_its_half_is_never_taken_for_whole(shim: Path, small: Calm, tmp_path: Path) -> None:
    lives = survived(shim, small, tmp_path / "run", [f"h:{number}" for number in operations(small, "write")])
    assert sum(life.end == "killed" for life in lives) > 6


@pytest.mark.slow
def test_killed_here_and_there_with_an_operator_of_every_kind(shim: Path, whole: Calm, tmp_path: Path) -> None:
    lives = survived(shim, whole, tmp_path / "run", [f"k:{number}" for number in operations(whole)[::12]])
    assert sum(life.end == "killed" for life in lives) > 5


@pytest.mark.slow
def test_killed_here_and_there_with_all_state_on_a_cluster(shim: Path, far: Calm, tmp_path: Path) -> None:
    lives = survived(shim, far, tmp_path / "run", [f"k:{number}" for number in operations(far)[::14]])
    assert sum(life.end == "killed" for life in lives) > 5


@pytest.mark.slow
@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
def test_a_disk_that_fails_for_good_is_told_with_the_way_out(
    error: str, shim: Path, small: Calm, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    numbers = (*range(LOCKED), *operations(small)[::4])
    lives = survived(shim, small, folder, [f"f:{number}:{error}" for number in numbers])
    assert {life.end for life in lives[:-1]} == {"refused"}
    for life in lives[:-1]:
        check_way_out(life, folder)


@pytest.mark.slow
@pytest.mark.parametrize(("error", "first"), [("ENOSPC", LOCKED), ("EIO", LOCKED + 10)])
def test_one_operation_that_fails_is_told_with_the_way_out_or_not_needed(
    error: str, first: int, shim: Path, small: Calm, tmp_path: Path
) -> None:
    """Each in a run of its own, of all rounds: a folder that is there already need not be made."""
    folders = {number: tmp_path / str(number) / "run" for number in range(first, len(small.operations), 20)}
    for folder in folders.values():
        record(folder, small.queries)
    faults = [(folder, fault) for number, folder in folders.items() for fault in (f"e:{number}:{error}", NONE)]
    lives = lived(shim, *faults)
    assert {life.end for life in lives[1::2]} == {"ended"}
    for folder, life in zip(folders.values(), lives[::2], strict=True):
        if life.end != "ended":
            check_way_out(life, folder)
        assert differences(folder, small.outcome) == Differences(), life
    assert sum(life.end == "refused" for life in lives) > len(folders) // 2


def check_way_out(life: Life, folder: Path) -> None:
    assert life.end == "refused", life
    assert str(folder / CHECKPOINT) in life.said or str(folder / OUT) in life.said, life
    assert "start again" in life.said, life


@pytest.mark.slow
def test_operations_that_take_their_time_change_nothing(shim: Path, small: Calm, tmp_path: Path) -> None:
    lives = survived(shim, small, tmp_path / "run", [f"d:{number}" for number in operations(small)[::30]])
    assert [life.end for life in lives] == ["ended"] * len(lives)
