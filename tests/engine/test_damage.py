from __future__ import annotations

import logging
from pathlib import Path

import pytest

from eventide.engine.checkpoint.checkpoint import Checkpoint
from eventide.engine.checkpoint.record import Intent, RoundRecord, write_document
from eventide.errors import CheckpointError
from tests.engine.checkpoints import run_round, state_of


def test_a_record_torn_anywhere_is_skipped(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path) as checkpoint:
        before, _ = run_round(checkpoint, 0), run_round(checkpoint, 1)
    path = tmp_path / "rounds/0000000001.json"
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with Checkpoint.open(tmp_path) as checkpoint:
            assert checkpoint.last() == before
            assert checkpoint.warnings == [
                "round 1 cannot be continued from and is skipped: rounds/0000000001.json is damaged: its checksum does "
                "not hold"
            ]


def test_a_flipped_bit_anywhere_in_a_record_is_found(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path) as checkpoint:
        before, _ = run_round(checkpoint, 0), run_round(checkpoint, 1)
    path = tmp_path / "rounds/0000000001.json"
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        with Checkpoint.open(tmp_path) as checkpoint:
            assert checkpoint.last() == before, f"byte {place}"


def test_damage_in_a_compressed_record_is_found(tmp_path: Path) -> None:
    streams = {"s": {"sources": {f"device-{number}": number * 7919 for number in range(20_000)}}}
    with Checkpoint.open(tmp_path) as checkpoint:
        before = run_round(checkpoint, 0)
        checkpoint.commit(RoundRecord(1, 1, 1, False, {}, streams, {}, {}, ()))
    path = tmp_path / "rounds/0000000001.json"
    whole = path.read_bytes()
    assert not whole.startswith(b"{")
    for place in range(0, len(whole), 997):
        for damaged in (whole[:place], whole[:place] + bytes([whole[place] ^ 64]) + whole[place + 1 :], whole + whole):
            path.write_bytes(damaged)
            with Checkpoint.open(tmp_path) as checkpoint:
                assert checkpoint.last() == before, f"byte {place}"


@pytest.mark.parametrize("damage", ["torn", "flipped", "missing", "a folder"])
def test_a_damaged_state_file_makes_its_round_unfit(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Checkpoint.open(tmp_path) as checkpoint:
        before, after = run_round(checkpoint, 0), run_round(checkpoint, 1)
    path = tmp_path / after.files[0].name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()
    if damage == "a folder":
        path.mkdir()
    elif damage != "missing":
        path.write_bytes(data if damage == "flipped" else data[:-1])
    with Checkpoint.open(tmp_path) as checkpoint, caplog.at_level(logging.WARNING):
        with pytest.raises(CheckpointError):
            checkpoint.read_table(after.files[0])
        assert checkpoint.last() == before
        assert len(checkpoint.warnings) == 1
        assert checkpoint.warnings[0] in caplog.text
        assert "slices/q/0000000001.arrow" in checkpoint.warnings[0]


def test_a_checkpoint_without_any_good_round_says_what_is_lost(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path) as checkpoint:
        run_round(checkpoint, 0)
        run_round(checkpoint, 1)
    (tmp_path / "rounds/0000000000.json").write_bytes(b"")
    (tmp_path / "slices/q/0000000001.arrow").unlink()
    with (
        Checkpoint.open(tmp_path) as checkpoint,
        pytest.raises(
            CheckpointError, match=r"(?s)no round of .*round 1: .*round 0: .*Restore .* or delete the folder"
        ),
    ):
        checkpoint.last()


def test_a_damaged_file_that_all_records_share_is_told_once_with_the_rounds_that_stand_on_it(tmp_path: Path) -> None:
    """ "No round can be continued from", without a word that the round before had the same file."""
    with Checkpoint.open(tmp_path) as checkpoint:
        shared = run_round(checkpoint, 0).files
        run_round(checkpoint, 1, shared)
        run_round(checkpoint, 2, shared)
    (tmp_path / shared[0].name).write_bytes(b"torn")
    with Checkpoint.open(tmp_path) as checkpoint, pytest.raises(CheckpointError) as refusal:
        checkpoint.last()
    assert f"\n  rounds 1 and 2: {shared[0].name} has 4 bytes instead of" in str(refusal.value)
    assert str(refusal.value).count(shared[0].name) == 1
    assert "Restore these files from a copy" in str(refusal.value)


def test_a_checkpoint_whose_records_are_gone_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path) as checkpoint:
        for round in range(2):
            checkpoint.intend(Intent(round, round, round))
            run_round(checkpoint, round)
    for record in (tmp_path / "rounds").iterdir():
        record.unlink()
    with Checkpoint.open(tmp_path) as checkpoint, pytest.raises(CheckpointError, match="round 1 was begun"):
        checkpoint.last()


def test_a_damaged_round_is_forgotten_when_its_number_comes_again(tmp_path: Path) -> None:
    """Round 2's own file was lost; running round 2 anew writes it again, so the old rounds 2 and 3 would look whole."""
    with Checkpoint.open(tmp_path, keep=3) as checkpoint:
        one, two = run_round(checkpoint, 1), run_round(checkpoint, 2)
        run_round(checkpoint, 3, two.files)
    (tmp_path / two.files[0].name).unlink()
    with Checkpoint.open(tmp_path, keep=3) as checkpoint:
        assert checkpoint.last() == one
        assert checkpoint.storage.list("damaged") == ["damaged/0000000002.json", "damaged/0000000003.json"]
        checkpoint.write_table(two.files[0].name, state_of(2))
    with Checkpoint.open(tmp_path, keep=3) as checkpoint:
        assert checkpoint.last() == one
        again = run_round(checkpoint, 2)
        assert checkpoint.storage.list("rounds") == ["rounds/0000000001.json", "rounds/0000000002.json"]
    with Checkpoint.open(tmp_path, keep=3) as checkpoint:
        assert checkpoint.last() == again
        assert checkpoint.warnings == []


def test_an_intent_under_the_number_of_another_is_not_believed(tmp_path: Path) -> None:
    """The clock of round 4 would have been that of round 3."""
    with Checkpoint.open(tmp_path) as checkpoint:
        run_round(checkpoint, 3)
        checkpoint.intend(Intent(4, 4, 400))
    (tmp_path / "intents/0000000005.json").write_bytes((tmp_path / "intents/0000000004.json").read_bytes())
    with Checkpoint.open(tmp_path) as checkpoint:
        assert checkpoint.pending(3) == Intent(4, 4, 400)
        assert checkpoint.pending(4) is None
        assert checkpoint.warnings == [
            "what round 5 was going to be is not known any more: intents/0000000005.json is the intent of round 4"
        ]


def test_a_record_under_the_number_of_another_is_not_believed(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path) as checkpoint:
        before = run_round(checkpoint, 4)
    (tmp_path / "rounds/0000000005.json").write_bytes((tmp_path / "rounds/0000000004.json").read_bytes())
    with Checkpoint.open(tmp_path) as checkpoint:
        assert checkpoint.last() == before


@pytest.mark.parametrize("other", [1, 4])
def test_a_record_of_another_format_is_refused_even_if_an_older_round_would_do(tmp_path: Path, other: int) -> None:
    with Checkpoint.open(tmp_path) as checkpoint:
        run_round(checkpoint, 0)
        checkpoint.storage.write("rounds/0000000001.json", write_document({"format": other, "something": "else"}))
    with (
        Checkpoint.open(tmp_path) as checkpoint,
        pytest.raises(
            CheckpointError,
            match=rf"format {other}, and this Eventide reads format 2 and 3: continue it with the version",
        ),
    ):
        checkpoint.last()


def test_a_record_that_lacks_a_part_is_damaged(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path) as checkpoint:
        before = run_round(checkpoint, 0)
        checkpoint.storage.write("rounds/0000000001.json", write_document({"format": 3, "round": 1}))
        assert checkpoint.last() == before
        assert "is not whole" in checkpoint.warnings[0]


def test_what_is_no_plain_data_cannot_be_recorded(tmp_path: Path) -> None:
    record = RoundRecord(0, 0, 0, False, {}, {"s": {"x": object()}}, {}, {}, ())
    with Checkpoint.open(tmp_path) as checkpoint, pytest.raises(CheckpointError, match="not object"):
        checkpoint.commit(record)
