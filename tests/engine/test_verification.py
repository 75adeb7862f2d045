"""A checkpoint looked over from outside, and files of results that somebody has removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventide.commands.checkpoint import verification_lines
from eventide.engine.local.engine import LocalEngine
from eventide.errors import CheckpointError
from eventide.plan.declared.program import Program
from eventide.report.stopped_run import verify
from eventide.sinks.directory import Directory
from eventide.storage.storage import Storage
from tests.engine.checkpoints import files_in
from tests.engine.small_streams import put, stream, tumbling


def run(folder: Path, out: str = "out") -> LocalEngine:
    """Take what is there, and stay open for more."""
    program = Program((stream(folder / "in"),), (tumbling("q"),))
    engine = LocalEngine(program, str(folder / "state"), {"q": Directory(folder / out)})
    while not engine._is_done(bounded=True):
        rows = engine._read(bounded=True)
        if rows:
            engine._run_round(rows, {name: one.portion() for name, one in engine._inputs.items()})
    engine.stop()
    return engine


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """Four rounds, of which the last three gave results; some state is older than the last record."""
    for number in range(4):
        put(tmp_path / "in", number, [10 * number + 5])
    run(tmp_path)
    return tmp_path


def test_all_that_is_whole_is_counted(ran: Path) -> None:
    before = files_in(ran)
    found = verify(Storage.at(ran / "state", make=False))
    assert (found.damage, found.records, found.result_files, found.last) == ([], 2, 3, 3)
    assert found.state_files > 0
    assert verification_lines(found)[-1] == "to be continued from round 3"
    assert files_in(ran) == before


@pytest.mark.parametrize("how", ["torn", "flipped", "gone"])
def test_every_file_that_is_damaged_is_found_and_named(ran: Path, how: str) -> None:
    state = ran / "state"
    for name in sorted(files_in(state)):
        if name.split("/")[0] not in ("rounds", "intents", "slices") or (how == "gone" and name.startswith(("r", "i"))):
            continue
        path = state / name
        data = path.read_bytes()
        path.write_bytes(data[:-1] if how == "torn" else data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
        if how == "gone":
            path.unlink()
        found = verify(Storage.at(state, make=False))
        assert any(name in wrong for wrong in found.damage), name
        path.write_bytes(data)


def test_the_round_that_a_start_would_go_on_from_is_told(ran: Path) -> None:
    (ran / "state/rounds/0000000003.json").write_bytes(b"torn")
    found = verify(Storage.at(ran / "state", make=False))
    assert (found.last, found.newest) == (2, 3)
    assert verification_lines(found)[-1] == "to be continued from round 2; what came after it is to be run again"
    (ran / "state/rounds/0000000002.json").write_bytes(b"torn")
    found = verify(Storage.at(ran / "state", make=False))
    assert found.last is None
    assert verification_lines(found)[-1].startswith("no round can be continued from")


def test_a_file_of_results_that_somebody_removed_is_noticed(ran: Path) -> None:
    """Nothing was said, and its rows were missing for ever."""
    (ran / "out/q-0000000002.parquet").unlink()
    (said,) = verify(Storage.at(ran / "state", make=False)).damage
    assert said.startswith(f"{ran / 'out'} has lost 1 file of results of query 'q' (q-0000000002.parquet): ")
    put(ran / "in", 9, [95])
    engine = run(ran)
    assert engine.status().warnings == (said,)
    assert run(ran).status().warnings == (), "told once"
    assert verify(Storage.at(ran / "state", make=False)).damage == []


@pytest.mark.parametrize("how", ["torn", "flipped"])
def test_a_damaged_file_of_late_rows_is_found_and_named(ran: Path, how: str) -> None:
    """A late table of which half was gone passed for whole, until somebody read it."""
    put(ran / "in", 9, [1])
    run(ran)
    [late] = (ran / "state/late/s").iterdir()
    assert verification_lines(verify(Storage.at(ran / "state", make=False)))[0].endswith(
        "3 files of results, 1 of late and rejected rows: all as they were written"
    )
    data = bytearray(late.read_bytes())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    data[footer - 1] ^= 1
    late.write_bytes(data if how == "flipped" else data[: len(data) // 2])
    (said,) = verify(Storage.at(ran / "state", make=False)).damage
    assert said.startswith(f"late/s/{late.name} is damaged (")
    late.unlink()
    assert verify(Storage.at(ran / "state", make=False)).damage == [], "who has no use for it may remove it"


def test_results_that_go_to_another_directory_from_now_on_are_not_looked_for_there(ran: Path) -> None:
    put(ran / "in", 9, [95])
    assert run(ran, "elsewhere").status().warnings == ()
    assert verify(Storage.at(ran / "state", make=False)).result_files == 1


def test_what_is_no_checkpoint_is_told_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="there is no checkpoint at"):
        verify(Storage.at(tmp_path / "nothing", make=False))
    assert not (tmp_path / "nothing").exists()
