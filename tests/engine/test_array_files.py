"""Arrays of a record in files beside it: whatever changes, grows or is new, a restart finds what the round had."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.engine.checkpoint import array_files
from eventide.engine.checkpoint.checkpoint import Checkpoint
from eventide.engine.checkpoint.record import RoundRecord, write_document
from eventide.eventtime.arrays import Packed, packed, unpacked

STEPS = st.lists(
    st.tuples(
        st.integers(0, 2**20), st.sampled_from(["few", "all", "same", "grow", "other type", "fewer", "gone", "kill"])
    ),
    max_size=8,
)


def record(round: int, arrays: dict[str, Packed]) -> RoundRecord:
    streams = {"s": {"heartbeat": round, "pacemaker": {"kind": "x", "inner": [{"a": one} for one in arrays.values()]}}}
    return RoundRecord(round, round, round, False, {}, streams, {}, {}, ())


def arrays_of(found: RoundRecord | None) -> list[Packed]:
    assert found is not None
    return [packed(unpacked(one["a"])) for one in found.streams["s"]["pacemaker"]["inner"]]


def changed(array: np.ndarray, how: str, dice: np.random.Generator) -> np.ndarray:
    array = array.copy()
    if how == "few":
        array.reshape(-1)[dice.integers(0, array.size, 5)] = dice.integers(-9, 9, 5)
    elif how == "all":
        array += 1
    elif how == "grow":
        axis = int(dice.integers(0, array.ndim))
        array = np.concatenate((array, np.full_like(np.take(array, [0], axis), 7)), axis)
    elif how == "other type":
        array = array.astype(np.float64 if array.dtype == np.int64 else np.int64)
    elif how == "fewer":
        array = array[: len(array) // 2 + 1]
    return array


@given(STEPS)
def test_a_restart_finds_the_arrays_of_the_last_round_bit_by_bit(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]]
) -> None:
    folder = tmp_path_factory.mktemp("checkpoint")
    arrays = {"line": np.arange(5_000), "cube": np.zeros((3, 2, 2_000)), "small": np.arange(3)}
    checkpoint = Checkpoint.open(folder)
    for round, (seed, how) in enumerate([(0, "same"), *steps]):
        dice = np.random.default_rng(seed)
        if how == "gone":
            arrays.pop(sorted(arrays)[0], None)
        if how == "kill":
            checkpoint.close()
            checkpoint = Checkpoint.open(folder)
            assert arrays_of(checkpoint.last()) == list(map(packed, arrays.values()))
        arrays = {name: changed(array, how, dice) for name, array in arrays.items()}
        checkpoint.commit(record(round, {name: packed(array) for name, array in arrays.items()}))
    checkpoint.close()
    with Checkpoint.open(folder) as again:
        assert arrays_of(again.last()) == list(map(packed, arrays.values()))
        assert again.warnings == []


def test_a_round_writes_what_changed_and_reads_few_files(tmp_path: Path) -> None:
    array = np.arange(50_000)
    with Checkpoint.open(tmp_path) as checkpoint:
        for round in range(3 * array_files.MOST_FILES):
            array[round] = -1
            checkpoint.commit(record(round, {"a": packed(array)}))
            files = sorted((tmp_path / "slices/_arrays").iterdir())
            sizes = [file.stat().st_size for file in files]
            assert len(files) <= 2 * array_files.MOST_FILES
            assert sum(sizes) < 3 * array.nbytes
            assert min(sizes) < 10_000 or round == 0
        assert (tmp_path / f"rounds/{round:010d}.json").stat().st_size < 10_000


def test_a_round_taken_back_leaves_nothing_of_its_arrays(tmp_path: Path) -> None:
    """The changes of round 1 were put into those of the round that took its place."""
    array = np.arange(5_000)
    with Checkpoint.open(tmp_path) as checkpoint:
        checkpoint.commit(record(0, {"a": packed(array)}))
        checkpoint.commit(record(1, {"a": packed(array + 1)}))
        checkpoint.drop_after(0)
        checkpoint.commit(record(1, {"a": packed(array)}))
    with Checkpoint.open(tmp_path) as checkpoint:
        assert checkpoint.last() == record(1, {"a": packed(array)})


def test_a_record_of_format_2_with_its_arrays_as_text_is_continued(tmp_path: Path) -> None:
    array = np.arange(5_000)
    old = record(0, {"a": packed(array)}).to_json() | {"format": 2}
    del old["arrays"]
    with Checkpoint.open(tmp_path) as checkpoint:
        checkpoint.storage.write("rounds/0000000000.json", write_document(old))
        found = checkpoint.last()
        assert found is not None
        assert found.streams["s"]["pacemaker"]["inner"][0]["a"] == packed(array).to_json()
        checkpoint.commit(record(1, {"a": packed(array)}))
        assert checkpoint.last() == record(1, {"a": packed(array)})
