from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eventide.engine.checkpoint.checkpoint import Checkpoint
from eventide.errors import CheckpointError
from eventide.storage.lock import Lease, Lock
from eventide.storage.storage import Storage
from tests.engine.checkpoints import run_round
from tests.engine.test_storage import KINDS, far

HOLDER = """
import sys, time
from pathlib import Path
from eventide.storage.lock import Lock
from tests.engine.test_storage import KINDS
held = Lock.take(KINDS[sys.argv[1]](Path(sys.argv[2])))
print("held", flush=True)
time.sleep(600)
"""


def holder(kind: str, folder: Path) -> subprocess.Popen[str]:
    """Another process that has the lock."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, kind, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.parametrize("kind", KINDS)
def test_the_second_engine_is_refused_until_the_first_has_gone(tmp_path: Path, kind: str) -> None:
    with Checkpoint(KINDS[kind](tmp_path)):
        for _ in range(2):
            with pytest.raises(
                CheckpointError, match=rf"another engine works on .* \(process {os.getpid()} on .*stop it"
            ):
                Checkpoint(KINDS[kind](tmp_path))
    Checkpoint(KINDS[kind](tmp_path)).close()


@pytest.mark.parametrize("kind", ["local", "far"])
def test_a_killed_engine_holds_nothing(tmp_path: Path, kind: str) -> None:
    other = holder(kind, tmp_path)
    try:
        with pytest.raises(CheckpointError, match=f"process {other.pid} on"):
            Lock.take(KINDS[kind](tmp_path))
    finally:
        other.send_signal(signal.SIGKILL)
        other.communicate()
    Lock.take(KINDS[kind](tmp_path)).release()


def lease_of_another_machine(storage: Storage, folder: Path, age: float) -> None:
    content = {"owner": "process 1 on elsewhere", "machine": "elsewhere", "process": 1}
    storage.write("lock/other.json", json.dumps(content).encode())
    then = time.time() - age
    os.utime(folder / "a/b/lock/other.json", (then, then))


def test_a_lease_of_another_machine_holds_until_it_runs_out(tmp_path: Path) -> None:
    storage = far(tmp_path)
    lease_of_another_machine(storage, tmp_path, age=20)
    with pytest.raises(CheckpointError, match=r"process 1 on elsewhere.* wait 30 s for its lease lock/other\.json"):
        Lock.take(storage)
    lease_of_another_machine(storage, tmp_path, age=40)
    Lock.take(storage).release()
    assert storage.list("lock") == []


def test_a_lease_that_cannot_be_read_is_a_lease(tmp_path: Path) -> None:
    storage = far(tmp_path)
    storage.write("lock/other.json", b"torn {")
    with pytest.raises(CheckpointError, match="another engine works on"):
        Lock.take(storage)


def test_a_lease_is_renewed_while_its_engine_lives(tmp_path: Path) -> None:
    storage = far(tmp_path)
    lease = Lease(storage, seconds=4)
    (name,) = storage.list("lock")
    first = storage.modified(name)
    while storage.modified(name) == first:
        time.sleep(0.05)
    with pytest.raises(CheckpointError, match="another engine works on"):
        Lease(storage, seconds=4)
    lease.check()
    lease.release()
    lease.release()
    assert storage.list("lock") == []


@pytest.mark.parametrize(("paused", "taken"), [(25, False), (1_000, False), (1_000, True), (16, True)])
def test_an_engine_that_was_paused_for_too_long_cannot_commit(tmp_path: Path, paused: int, taken: bool) -> None:
    """Another engine may have gone on, whether its lease is still there or not."""
    storage = far(tmp_path)
    with Checkpoint(storage) as checkpoint:
        run_round(checkpoint, 0)
        lease = checkpoint._lock
        assert isinstance(lease, Lease)
        if taken:
            storage.remove(storage.list("lock")[0])
        lease._renewed -= paused
        with pytest.raises(CheckpointError, match=r"lost the checkpoint .* Start it again"):
            run_round(checkpoint, 1)
    with Checkpoint(storage) as other:
        last = other.last()
    assert last is not None
    assert last.round == 0


def test_an_engine_that_was_paused_for_a_moment_goes_on(tmp_path: Path) -> None:
    with Checkpoint(far(tmp_path)) as checkpoint:
        lease = checkpoint._lock
        assert isinstance(lease, Lease)
        renewed, lease._renewed = lease._renewed, lease._renewed - 16
        run_round(checkpoint, 0)
        assert lease._renewed >= renewed
