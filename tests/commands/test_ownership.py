"""A directory of results has an owner: another checkpoint does not delete them unless it is told to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.commands.processes import QUERY, ROWS, STREAM, Here, Ran


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "doors.csv").write_text(ROWS)
    (tmp_path / "q.sql").write_text(STREAM + f"CREATE QUERY q AS {QUERY.rstrip().removesuffix(';')} INTO 'out';")
    return tmp_path


def run(here: Here, *more: str) -> Ran:
    return here("run", "q.sql", "--engine", "local", "--bounded", *more)


def results(folder: Path) -> int:
    return int(pq.read_table(folder / "out").num_rows)


@pytest.mark.parametrize("second", [("--checkpoint", "other"), ()], ids=["another", "none"])
def test_another_checkpoint_is_refused_with_the_way_out_and_nothing_is_lost(
    second: tuple[str, ...], script: Path, here: Here
) -> None:
    """A forgotten --checkpoint deleted all results of the directory at its start, without a word."""
    assert run(here, "--checkpoint", "state").code == 0
    ran = run(here, *second)
    assert ran.code == 2
    assert f"go on from their own (--checkpoint {script / 'state'}), or say --replace to delete them" in ran.err
    assert results(script) == 4


@pytest.mark.parametrize("second", [("--checkpoint", "other"), ()], ids=["another", "none"])
def test_another_engine_is_refused_before_it_starts(second: tuple[str, ...], script: Path, here: Here) -> None:
    """On Spark all results of the local engine in the directory were deleted, and the other way round."""
    assert run(here, "--checkpoint", "state").code == 0
    ran = here("run", "q.sql", "--engine", "spark", "--bounded", *second)
    assert (ran.code, "starting Spark" in ran.err) == (2, False)
    assert "or say --replace to delete them" in ran.err
    assert results(script) == 4


def test_its_own_checkpoint_goes_on_and_replace_takes_the_directory_over(script: Path, here: Here) -> None:
    assert run(here, "--checkpoint", "state").code == 0
    assert run(here, "--checkpoint", "state").code == 0
    assert results(script) == 4
    assert run(here, "--checkpoint", "other", "--replace").code == 0
    assert results(script) == 4
    assert run(here, "--checkpoint", "state").code == 2


def test_results_that_a_lost_checkpoint_left_are_not_deleted(script: Path, here: Here) -> None:
    assert run(here, "--checkpoint", "state").code == 0
    shutil.rmtree(script / "state")
    assert run(here, "--checkpoint", "state").code == 2
    assert results(script) == 4


def test_results_of_earlier_versions_belong_to_whoever_goes_on(script: Path, here: Here) -> None:
    assert run(here, "--checkpoint", "state").code == 0
    for mark in (script / "out").glob("_*.owner"):
        mark.unlink()
    (script / "state" / "owner.json").unlink()
    assert run(here, "--checkpoint", "new").code == 2
    assert run(here, "--checkpoint", "state").code == 0
    assert results(script) == 4


def test_two_checkpoints_may_write_different_queries_into_one_directory(script: Path, here: Here) -> None:
    assert run(here, "--checkpoint", "state").code == 0
    text = (script / "q.sql").read_text()
    (script / "q.sql").write_text(text.replace("QUERY q AS", "QUERY r AS"))
    assert run(here, "--checkpoint", "other").code == 0
    assert results(script) == 8


def test_a_damaged_id_of_a_checkpoint_is_told_with_a_way_out_that_keeps_the_results(script: Path, here: Here) -> None:
    assert run(here, "--checkpoint", "state").code == 0
    (script / "state" / "owner.json").write_text("{")
    ran = run(here, "--checkpoint", "state")
    assert ran.code == 2
    assert "owner.json is damaged: remove it, and say --replace once" in ran.err
    (script / "state" / "owner.json").unlink()
    assert run(here, "--checkpoint", "state", "--replace").code == 0
    assert results(script) == 4


def test_checkpoint_verify_tells_what_is_missing_and_a_start_warns_of_it(script: Path, here: Here) -> None:
    assert run(here, "--checkpoint", "state").code == 0
    whole = here("checkpoint", "verify", "state")
    assert whole.code == 0
    assert "all as they were written\nto be continued from round " in whole.out
    for file in (script / "out").glob("q-*"):
        file.unlink()
    found = here("checkpoint", "verify", "state", "--json")
    assert found.code == 2
    assert "has lost" in json.loads(found.out)["damage"][0]
    assert "has lost" in run(here, "--checkpoint", "state").err
