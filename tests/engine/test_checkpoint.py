from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide.engine.checkpoint.checkpoint import Checkpoint
from eventide.engine.checkpoint.record import Intent, RoundRecord, read_document
from eventide.errors import CheckpointError
from eventide.storage.local import LocalStorage
from tests.engine.checkpoints import files_in, record_of, run_round, state_of
from tests.engine.test_storage import KINDS


def test_a_new_checkpoint_has_no_round(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path / "new") as checkpoint:
        assert checkpoint.last() is None
        assert checkpoint.pending(-1) is None
        assert checkpoint.warnings == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_restart_continues_where_the_last_commit_was(tmp_path: Path, kind: str) -> None:
    with Checkpoint(KINDS[kind](tmp_path)) as checkpoint:
        for round in range(5):
            checkpoint.intend(Intent(round, round, round))
            record = run_round(checkpoint, round)
    with Checkpoint(KINDS[kind](tmp_path)) as checkpoint:
        assert checkpoint.last() == record
        assert checkpoint.read_table(record.files[0]) == state_of(4)
        run_round(checkpoint, 5)
    with Checkpoint(KINDS[kind](tmp_path)) as checkpoint:
        assert checkpoint.last() == record_of(5, checkpoint.last().files)  # type: ignore[union-attr]
        assert checkpoint.storage.list("rounds") == ["rounds/0000000004.json", "rounds/0000000005.json"]
        assert checkpoint.storage.list("slices") == ["slices/q/0000000004.arrow", "slices/q/0000000005.arrow"]
        assert checkpoint.warnings == []


def test_int64_and_numbers_of_numpy_survive(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path) as checkpoint:
        edges = {"low": -(2**63), "high": 2**63 - 1, "numpy": np.int64(2**53 + 1), "share": 0.1, "name": "\ud800 ü\x00"}
        checkpoint.commit(RoundRecord(0, 0, 2**63 - 1, True, {}, {"s": edges}, {}, {}, ()))
        last = checkpoint.last()
    assert last is not None
    assert last.clock == 2**63 - 1
    assert last.ended is True
    assert last.streams["s"] == edges


def test_a_large_record_is_stored_compressed(tmp_path: Path) -> None:
    sources = {f"device-{number}": {"latest": 10**15 + number * 7919, "rows": number % 13} for number in range(20_000)}
    record = RoundRecord(7, 7, 7, False, {}, {"s": sources}, {}, {}, ())
    with Checkpoint.open(tmp_path) as checkpoint:
        checkpoint.commit(record)
        assert checkpoint.last() == record
    assert (tmp_path / "rounds/0000000007.json").stat().st_size < 300_000


@pytest.mark.parametrize(
    "table",
    [
        state_of(3),
        state_of(3).schema.empty_table(),
        pa.table({"n": pa.array(range(200_000))}),
        pa.chunked_array([["a", "b"], ["c"]]).dictionary_encode().combine_chunks(),
        pa.table(
            {"d": pa.chunked_array([pa.array(["a"]).dictionary_encode(), pa.array(["b", "a"]).dictionary_encode()])}
        ),
        pa.table({"list": [[1, None], []], "when": pa.array([1, 2], pa.timestamp("us", "UTC"))}),
        pa.table({"n": pa.array(range(100))}).slice(90, 5),
    ],
    ids=["small", "empty", "large", "array", "dictionaries that differ", "nested", "sliced"],
)
def test_every_table_is_read_as_it_was_written(tmp_path: Path, table: pa.Table | pa.Array) -> None:
    given = table if isinstance(table, pa.Table) else pa.table({"column": table})
    with Checkpoint.open(tmp_path) as checkpoint:
        found = checkpoint.read_table(checkpoint.write_table("slices/x.arrow", given))
        assert (found.schema, found.to_pylist()) == (given.schema, given.to_pylist())


def test_large_tables_are_compressed(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path) as checkpoint:
        table = pa.table({"n": pa.array([7] * 200_000)})
        assert checkpoint.write_table("x.arrow", table).bytes < table.nbytes / 10
        assert checkpoint.storage.list("slices") == ["slices/x.arrow"]


# Intents


def test_a_round_that_is_run_again_keeps_its_clock(tmp_path: Path) -> None:
    first = Intent(0, None, 17, {"s": 2**62})
    with Checkpoint.open(tmp_path) as checkpoint:
        assert checkpoint.intend(first) == first
    with Checkpoint.open(tmp_path) as checkpoint:
        assert checkpoint.last() is None
        assert checkpoint.pending(-1) == first
        assert checkpoint.intend(Intent(0, 3, 99)) == first
        run_round(checkpoint, 0)
        assert checkpoint.pending(0) is None


def test_intents_stay_as_long_as_a_round_may_have_to_be_run_again(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path) as checkpoint:
        for round in range(4):
            checkpoint.intend(Intent(round, round, round * 10))
            run_round(checkpoint, round)
        assert checkpoint.storage.list("intents") == ["intents/0000000003.json"]
    (tmp_path / "rounds/0000000003.json").write_bytes(b"torn")
    with Checkpoint.open(tmp_path) as checkpoint:
        last = checkpoint.last()
        assert last is not None
        assert checkpoint.pending(last.round) == Intent(3, 3, 30)


def test_a_damaged_intent_is_none(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path) as checkpoint:
        checkpoint.intend(Intent(0, 0, 17))
    path = tmp_path / "intents/0000000000.json"
    path.write_bytes(path.read_bytes()[:-3])
    with Checkpoint.open(tmp_path) as checkpoint:
        assert checkpoint.pending(-1) is None
        assert checkpoint.intend(Intent(0, 0, 18)).clock == 18
        assert "what round 0 was going to be" in checkpoint.warnings[0]


# Garbage


def test_files_of_kept_records_stay_and_all_others_go(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path) as checkpoint:
        first = run_round(checkpoint, 0)
        for round in range(1, 6):
            checkpoint.write_table(f"slices/never_named/{round}.arrow", state_of(round))
            run_round(checkpoint, round, first.files)
        kept = {f"slices/q/{round:010d}.arrow" for round in (0, 4, 5)}
        assert files_in(tmp_path) == kept | {f"rounds/{round:010d}.json" for round in (4, 5)}
        run_round(checkpoint, 6)
        run_round(checkpoint, 7)
        assert not checkpoint.storage.exists(first.files[0].name)
    assert not (tmp_path / "slices/never_named").exists()


def test_what_a_crash_left_is_swept_by_the_first_commit_after_it(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path) as checkpoint:
        record = run_round(checkpoint, 0)
        checkpoint.write_table("slices/q/never.arrow", state_of(1))
        checkpoint.write_table("slices/other/never.arrow", state_of(1))
    for half in ("slices/q/.0000000001.arrow.tmp", "rounds/.0000000001.json.tmp"):
        (tmp_path / half).write_bytes(b"half")
    for mine in ("late/s/0000000000.parquet", "rejects/s/_hidden", "notes.txt"):
        (tmp_path / mine).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / mine).write_bytes(b"not state, not garbage")
    with Checkpoint.open(tmp_path) as checkpoint:
        assert checkpoint.last() == record
        assert len(files_in(tmp_path)) == 9
        run_round(checkpoint, 1, record.files)
    assert files_in(tmp_path) == {
        "late/s/0000000000.parquet",
        "rejects/s/_hidden",
        "notes.txt",
        "rounds/0000000000.json",
        "rounds/0000000001.json",
        "slices/q/0000000000.arrow",
        "slices/q/0000000001.arrow",
    }


class CountingStorage(LocalStorage):
    lists = 0

    def list(self, folder: str, hidden: bool = False) -> list[str]:
        self.lists += 1
        return super().list(folder, hidden)


def test_a_running_engine_does_not_list_its_folder_every_round(tmp_path: Path) -> None:
    storage = CountingStorage(str(tmp_path), sync=False)
    with Checkpoint(storage) as checkpoint:
        for round in range(3):
            checkpoint.intend(Intent(round, round, round))
            run_round(checkpoint, round)
        before = storage.lists
        for round in range(3, 50):
            checkpoint.intend(Intent(round, round, round))
            run_round(checkpoint, round)
        assert storage.lists == before


def test_garbage_that_cannot_be_removed_is_no_catastrophe(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path) as checkpoint:
        for round in range(2):
            run_round(checkpoint, round)
        stubborn = tmp_path / "slices/q/0000000000.arrow"
        stubborn.unlink()
        stubborn.mkdir()
        record = run_round(checkpoint, 2)
        assert "files that are no longer needed stay where they are" in checkpoint.warnings[0]
        assert checkpoint.last() == record


def test_state_of_a_kept_round_is_never_written_over(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path) as checkpoint:
        record = run_round(checkpoint, 0)
        with pytest.raises(CheckpointError, match=r"is state of round 0: write the new state under a new name"):
            checkpoint.write_table(record.files[0].name, state_of(1))


# Taking rounds back


def test_rounds_can_be_taken_back(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path, keep=4) as checkpoint:
        for round in range(4):
            checkpoint.intend(Intent(round, round, round))
            record = run_round(checkpoint, round)
        checkpoint.intend(Intent(4, 4, 4))
        with pytest.raises(CheckpointError, match="round 2 cannot be committed after round 3"):
            checkpoint.commit(record_of(2))
        checkpoint.drop_after(1)
        assert checkpoint.last() == record_of(1, checkpoint.last().files)  # type: ignore[union-attr]
        assert checkpoint.pending(1) is None
        assert checkpoint.intend(Intent(2, 7, 77)).clock == 77
        run_round(checkpoint, 2)
        assert not checkpoint.storage.exists(record.files[0].name)
        checkpoint.drop_after(-1)
        assert checkpoint.last() is None


def test_a_checkpoint_keeps_two_records_at_least(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="keep 2 or more"):
        Checkpoint.open(tmp_path, keep=1)


# Files of Spark


def spark_writes(folder: Path, rows: int = 10) -> None:
    folder.mkdir(parents=True)
    for part in range(2):
        pq.write_table(pa.table({"n": np.arange(rows)}), folder / f"part-{part}.parquet", compression="none")
        (folder / f".part-{part}.parquet.crc").write_bytes(b"crc")
    (folder / "_SUCCESS").write_bytes(b"")


@pytest.mark.parametrize("rows", [10, 300_000], ids=["small", "large"])
def test_files_that_spark_wrote_are_watched_like_our_own(tmp_path: Path, rows: int) -> None:
    with Checkpoint.open(tmp_path) as checkpoint:
        before = run_round(checkpoint, 0)
        spark_writes(Path(checkpoint.storage.uri("slices/big/1").removeprefix("file://")), rows)
        files = checkpoint.adopt("slices/big/1")
        assert [file.name for file in files] == ["slices/big/1/part-0.parquet", "slices/big/1/part-1.parquet"]
        assert all(file.checksum.startswith("crc32:") for file in files)
        record = record_of(1, files)
        checkpoint.commit(record)
    torn = tmp_path / files[1].name
    whole = torn.read_bytes()
    flipped = whole[: len(whole) // 3] + bytes([whole[len(whole) // 3] ^ 4]) + whole[len(whole) // 3 + 1 :]
    for damaged in (whole[:-1], whole[:-8] + b"\x00" * 8, b"\x00" * len(whole), flipped):
        torn.write_bytes(damaged)
        with Checkpoint.open(tmp_path) as checkpoint:
            assert checkpoint.last() == before
        # Someone finds a copy of the file, and believes in the round again.
        (tmp_path / "damaged/0000000001.json").rename(tmp_path / "rounds/0000000001.json")
    torn.write_bytes(whole)
    with Checkpoint.open(tmp_path) as checkpoint:
        assert checkpoint.last() == record
        run_round(checkpoint, 2, files)
        assert (tmp_path / "slices/big/1/_SUCCESS").exists()
        for round in (3, 4):
            run_round(checkpoint, round)
    assert not (tmp_path / "slices/big").exists()


def test_a_document_says_itself_what_it_is(tmp_path: Path) -> None:
    with Checkpoint.open(tmp_path) as checkpoint:
        run_round(checkpoint, 12)
    name = "rounds/0000000012.json"
    document = read_document(name, (tmp_path / name).read_bytes())
    assert (document["format"], document["round"], document["batch"]) == (3, 12, 112)
