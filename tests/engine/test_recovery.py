"""Crashes at any step, damage of any file, kill -9, a disk that refuses: the newest whole round is always found."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engine.checkpoint.checkpoint import Checkpoint
from eventide.engine.checkpoint.record import Intent, RoundRecord, StateFile
from eventide.errors import CheckpointError
from eventide.storage.local import LocalStorage
from eventide.storage.storage import Storage
from tests.engine.checkpoints import files_in, record_of, state_of


class CrashError(BaseException):
    """The process is gone: nobody catches it."""


class CrashingStorage(LocalStorage):
    """Dies before the n-th change it is asked to make, leaving half of a temporary file if it was a write."""

    def __init__(self, path: str, changes: int) -> None:
        super().__init__(path, sync=False)
        self._left = changes
        self.written: list[str] = []

    def _step(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise CrashError

    def write(self, name: str, data: bytes | pa.Buffer, flush: bool = True) -> None:
        try:
            self._step()
        except CrashError:
            half = Path(self.path(name)).parent / f".{Path(name).name}.tmp"
            half.parent.mkdir(parents=True, exist_ok=True)
            half.write_bytes(memoryview(data)[: len(memoryview(data)) // 2])
            raise
        super().write(name, data, flush)
        self.written.append(name)

    def remove(self, name: str) -> None:
        self._step()
        super().remove(name)

    def remove_folder(self, folder: str) -> None:
        self._step()
        super().remove_folder(folder)


@dataclass(frozen=True)
class Round:
    """New state files to write, and which of the old ones to carry on."""

    new: int
    carry: int


@dataclass(frozen=True)
class Damage:
    """What happens to a file while no engine runs; `file` counts through what is there."""

    file: int
    how: str
    place: int


@dataclass(frozen=True)
class Run:
    """An engine's life: it dies after so many changes to the folder, or ends; then the damage."""

    rounds: list[Round]
    changes: int
    damage: list[Damage]


ROUNDS = st.builds(Round, st.integers(0, 3), st.integers(0, 7))
DAMAGE = st.builds(Damage, st.integers(0, 50), st.sampled_from(["torn", "flipped", "gone"]), st.integers(0, 10_000))
RUNS = st.builds(Run, st.lists(ROUNDS, max_size=5), st.integers(0, 40), st.lists(DAMAGE, max_size=2))


@dataclass
class Model:
    """What must be found: the rounds that were committed, and which files have been damaged since they were written.

    Of the last two every file must be there; of those before, a crash may have come before their removal.
    """

    folder: Path
    kept: dict[int, RoundRecord] = field(default_factory=dict)
    promised: set[int] = field(default_factory=set)
    damaged: set[str] = field(default_factory=set)

    def whole(self, round: int) -> bool:
        there = {name for name in self.names(round) if (self.folder / name).exists()}
        if round in self.promised:
            assert self.names(round) - there <= self.damaged
        return there == self.names(round) and self.damaged.isdisjoint(there)

    def names(self, round: int) -> set[str]:
        return {f"rounds/{round:010d}.json", *(file.name for file in self.kept[round].files)}

    def continue_from(self) -> RoundRecord | None:
        newest = max((round for round in self.kept if self.whole(round)), default=None)
        self.kept = {round: self.kept[round] for round in self.kept if newest is not None and round <= newest}
        return None if newest is None else self.kept[newest]

    def commit(self, record: RoundRecord) -> None:
        self.promised = {record.round, max(self.kept, default=record.round)}
        self.kept[record.round] = record


def play(checkpoint: Checkpoint, run: Run, model: Model, last: RoundRecord | None) -> None:
    storage = checkpoint.storage
    assert isinstance(storage, CrashingStorage)
    files: tuple[StateFile, ...] = () if last is None else last.files
    for number, step in enumerate(run.rounds, start=0 if last is None else last.round + 1):
        checkpoint.intend(Intent(number, number, number * 10))
        new = tuple(
            checkpoint.write_table(f"slices/q/{number:010d}-{part}.arrow", state_of(number, part))
            for part in range(step.new)
        )
        files = (*(file for index, file in enumerate(files) if step.carry >> index & 1), *new)
        record = record_of(number, files)
        try:
            checkpoint.commit(record)
        finally:
            if f"rounds/{number:010d}.json" in storage.written:
                model.commit(record)
            model.damaged -= set(storage.written)


def damage(folder: Path, model: Model, what: Damage) -> None:
    names = sorted(
        name for name in files_in(folder) - model.damaged if "/." not in name and not name.startswith("damaged/")
    )
    if not names:
        return
    name = names[what.file % len(names)]
    data = bytearray((folder / name).read_bytes())
    if what.how == "gone":
        (folder / name).unlink()
    else:
        place = what.place % len(data)
        data[place] ^= 1 << what.place % 8
        (folder / name).write_bytes(data if what.how == "flipped" else data[:place])
    model.damaged.add(name)


def check_content(checkpoint: Checkpoint, record: RoundRecord) -> None:
    for file in record.files:
        round, part = Path(file.name).stem.split("-")
        assert checkpoint.read_table(file) == state_of(int(round), int(part))


@settings(max_examples=150)
@given(st.lists(RUNS, max_size=6))
def test_after_any_crashes_and_damage_the_newest_whole_round_is_found(runs: list[Run]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = Model(folder)
        for run in runs:
            with Checkpoint(CrashingStorage(name, run.changes)) as checkpoint:
                expected = model.continue_from()
                if expected is None and any((folder / "rounds").glob("*.json")):
                    with pytest.raises(CheckpointError, match="no round of"):
                        checkpoint.last()
                    return
                try:
                    found = checkpoint.last()
                    assert found == expected
                    if found is not None:
                        check_content(checkpoint, found)
                        pending = checkpoint.pending(found.round)
                        assert pending in (None, Intent(found.round + 1, found.round + 1, found.round * 10 + 10))
                    play(checkpoint, run, model, expected)
                    if run.rounds:
                        assert {name for name in files_in(folder) if name.startswith(("rounds/", "slices/"))} == {
                            name for round in model.promised for name in model.names(round)
                        }
                except CrashError:
                    pass
                except CheckpointError:
                    # Every record has vanished, but not what was begun after them.
                    assert expected is None
                    assert any((folder / "intents").glob("*[1-9].json"))
                    return
            for what in run.damage:
                damage(folder, model, what)


WORKER = """
import sys
from eventide.engine.checkpoint.checkpoint import Checkpoint
from eventide.engine.checkpoint.record import Intent
from tests.engine.checkpoints import record_of, state_of

with Checkpoint.open(sys.argv[1]) as checkpoint:
    last = checkpoint.last()
    assert not checkpoint.warnings, checkpoint.warnings
    files = () if last is None else last.files
    round = 0 if last is None else last.round + 1
    print("from", round - 1, flush=True)
    while True:
        checkpoint.intend(Intent(round, round, round))
        new = tuple(
            checkpoint.write_table(f"slices/q/{round:010d}-{part}.arrow", state_of(round, part)) for part in range(3)
        )
        files = (*files[-2:], *new)
        checkpoint.commit(record_of(round, files))
        print(round, flush=True)
        round += 1
"""


def test_kill_9_at_any_moment_loses_no_committed_round(tmp_path: Path) -> None:
    chance = random.Random(9)
    committed = -1
    for _ in range(6):
        process = subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(chance.randrange(1, 60))]
        process.kill()
        rest, _ = process.communicate()
        lines = [line for line in "".join([*told, rest]).splitlines(keepends=True) if line.endswith("\n")]
        # What was said to be committed is there; one round more may be, whose word was not heard.
        assert int(lines[0].removeprefix("from ")) in (committed, committed + 1)
        committed = max(int(line.split()[-1]) for line in lines)
    with Checkpoint.open(tmp_path) as checkpoint:
        last = checkpoint.last()
        assert last is not None
        assert last.round in (committed, committed + 1)
        assert checkpoint.warnings == []
        check_content(checkpoint, last)
    # Garbage of at most one unfinished round beside two whole ones.
    assert len(files_in(tmp_path)) <= 2 + 2 + 3 * 3 + 2 + 2


FILLING = """
import resource, sys
import pyarrow as pa
from eventide.engine.checkpoint.checkpoint import Checkpoint
from eventide.errors import EngineError
from tests.engine.checkpoints import record_of

resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
with Checkpoint.open(sys.argv[1]) as checkpoint:
    round = 0
    try:
        while round < 100:
            file = checkpoint.write_table(f"slices/{round}.arrow", pa.table({"n": range(1_000 * round)}))
            checkpoint.commit(record_of(round, (file,)))
            round += 1
    except EngineError as error:
        print(round - 1, error)
    assert checkpoint.last().round == round - 1
"""


@pytest.mark.skipif(resource.getrlimit(resource.RLIMIT_FSIZE)[1] != resource.RLIM_INFINITY, reason="already limited")
def test_a_disk_that_takes_no_more_stops_the_engine_and_loses_nothing(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FILLING, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    last_committed, _, message = done.stdout.partition(" ")
    assert "there is no room left" in message
    assert "free some space" in message
    with Checkpoint.open(tmp_path) as checkpoint:
        last = checkpoint.last()
        assert last is not None
        assert last.round == int(last_committed)
        assert checkpoint.read_table(last.files[0]).num_rows == 1_000 * last.round
        assert not any(Path(name).name.startswith(".") for name in files_in(tmp_path))
        # There is room again.
        checkpoint.commit(record_of(last.round + 1, last.files))
        assert checkpoint.last() == record_of(last.round + 1, last.files)


def test_storage_that_cannot_be_reached_is_not_taken_for_damage(tmp_path: Path) -> None:
    """A network that is down must not send the engine back to an older round."""

    class Unreachable(LocalStorage):
        def read(self, name: str) -> bytes:
            with self.translated_errors("read", name):
                raise TimeoutError("timed out")

    with Checkpoint.open(tmp_path) as checkpoint:
        checkpoint.commit(record_of(0))
    with Checkpoint(Unreachable(str(tmp_path))) as checkpoint, pytest.raises(Exception, match="timed out") as told:
        checkpoint.last()
    assert not isinstance(told.value, CheckpointError)
    assert Storage.at(tmp_path).exists("rounds/0000000000.json")
