"""Kill -9 on the local engine: exactly between the steps of a round, between sinks, in the middle of a commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.crash.differences import Differences, calm, differences, lived
from benchmarks.crash.lives import DEATHS
from benchmarks.crash.moment import QUERIES, STEPS
from benchmarks.crash.outcome import Outcome
from benchmarks.crash.recording import record

FILES = 6


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """What an uninterrupted run shows."""
    return calm(tmp_path_factory.mktemp("calm"), FILES)


def test_the_run_that_all_others_are_compared_with_fills_every_table(expected: Outcome) -> None:
    tables = expected.tables()
    assert set(tables) == {*QUERIES, "late of readings", "late of numbers", "rejects of readings"}
    assert min(tables.values()) > 0
    assert any(("kind", "revised") in row for row in expected.rows)


def test_the_merge_of_that_run_is_told_in_order(expected: Outcome) -> None:
    ends = sorted((row["round"], row["window_end"]) for one in expected.rows if (row := told(one, "in_order")))
    assert len(ends) > 0
    assert [end for _, end in ends] == sorted(end for _, end in ends)


def told(row: tuple[Any, ...], table: str) -> dict[str, Any]:
    """A row of that table by the names of its columns; of any other table, nothing."""
    return dict(row[1:]) if row[0] == table else {}


def test_rows_that_are_missing_or_there_twice_are_noticed(expected: Outcome, tmp_path: Path) -> None:
    record(tmp_path, FILES - 1)
    lived(tmp_path, "local", [])
    found = differences(tmp_path, expected)
    assert found.lost > 0
    assert found.duplicated > 0


@pytest.mark.slow
@pytest.mark.parametrize("round", [1, 4])
def test_killed_after_each_step_of_a_round_nothing_is_lost_and_nothing_doubled(
    round: int, expected: Outcome, tmp_path: Path
) -> None:
    record(tmp_path, FILES)
    moments = [f"step:{round}:{step}" for step in STEPS]
    assert lived(tmp_path, "local", moments) == len(moments)
    assert differences(tmp_path, expected) == Differences()


@pytest.mark.slow
def test_killed_between_two_sinks_and_between_two_files_of_a_commit(expected: Outcome, tmp_path: Path) -> None:
    record(tmp_path, FILES)
    moments = ["sink:1:sliding", "sink:2:by_rows", "sink:2:levels", "sink:3:paired", "sink:4:in_order"]
    moments += ["change:3", "change:9", "change:17"]
    assert lived(tmp_path, "local", moments) == len(moments)
    assert differences(tmp_path, expected) == Differences()


def test_a_round_that_was_seen_and_not_committed_is_run_again_with_the_clock_it_had(tmp_path: Path) -> None:
    record(tmp_path, FILES)
    assert lived(tmp_path, "local", ["step:3:emit"]) == 1
    seen = Outcome.of(tmp_path / DEATHS / "0").by_clock
    again = Outcome.of(tmp_path).by_clock
    of_the_round = {row for row in seen if ("round", 3) in row}
    assert of_the_round
    assert of_the_round == {row for row in again if ("round", 3) in row}


@pytest.mark.slow
def test_killed_at_any_moment_of_a_life(expected: Outcome, tmp_path: Path) -> None:
    record(tmp_path, FILES)
    lived(tmp_path, "local", ["start:0.1", "round:0.01", "round:0.03", "round:0.02"])
    assert differences(tmp_path, expected) == Differences()
