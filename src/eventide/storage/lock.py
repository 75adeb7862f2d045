"""One engine at a time: who holds a checkpoint.

Law: of two engines on the same checkpoint at most one goes on, and nothing an engine leaves behind when it is killed
keeps the next one out for longer than a lease.

On a local disk the operating system holds the lock and lets go of it when the process dies. Elsewhere every engine lays
down a lease, a small file of its own, *then* looks for those of others: of two that come at once, at least one sees the
other and leaves. A lease is renewed while its engine lives, and is void when it has not been renewed for
`LEASE_SECONDS` by the clock of the storage itself, or when its engine was on this machine and is dead. An engine that
could not renew its own in time, because it was paused or cut off, gives up before another may take it for dead.

>>> from tempfile import mkdtemp
>>> storage = Storage.at(mkdtemp())
>>> held = Lock.take(storage)
>>> Lock.take(storage)  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
eventide.errors.CheckpointError: another engine works on the checkpoint ...: stop it, or give this one another
>>> held.release()
>>> Lock.take(storage).release()
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import threading
import time
import uuid
from abc import ABC, abstractmethod

from eventide.errors import CheckpointError, EngineError
from eventide.storage.local import LocalStorage
from eventide.storage.storage import MissingFileError, Storage, explained

LEASE_SECONDS = 30.0
FOLDER = "lock"


class Lock(ABC):
    """A lock on a folder: held from `take` to `release`."""

    @staticmethod
    def take(storage: Storage) -> Lock:
        """The lock of a checkpoint, or an error that says who has it."""
        if isinstance(storage, LocalStorage):
            try:
                return _FileLock(storage)
            except OSError as error:
                if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
                    raise explained(error, f"cannot lock the checkpoint {storage.where}") from error
        return Lease(storage)

    @abstractmethod
    def check(self) -> None:
        """Raise if the lock was lost meanwhile."""

    @abstractmethod
    def release(self) -> None:
        """Let the next one have it; safe to call again."""


class _FileLock(Lock):
    def __init__(self, storage: LocalStorage) -> None:
        os.makedirs(storage.path(FOLDER), exist_ok=True)
        self._file = open(storage.path(f"{FOLDER}/engine"), "a+b")  # noqa: SIM115 - open is what holds the lock
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.seek(0)
            owner = self._file.read().decode(errors="replace")
            self._file.close()
            raise _held_error(storage, owner) from None
        except OSError:
            self._file.close()
            raise
        self._file.truncate(0)
        self._file.write(_owner().encode())
        self._file.flush()

    def check(self) -> None:
        """The operating system does not take a lock away."""

    def release(self) -> None:
        """Close the file, which releases the lock."""
        self._file.close()


class Lease(Lock):
    """A file that has to be renewed; for storage that knows no locks."""

    def __init__(self, storage: Storage, seconds: float = LEASE_SECONDS) -> None:
        self._storage = storage
        self._seconds = seconds
        self._name = f"{FOLDER}/{uuid.uuid4().hex}.json"
        self._content = json.dumps({"owner": _owner(), "machine": this_machine(), "process": os.getpid()}).encode()
        self._renewed = _elapsed()
        self._storage.write(self._name, self._content)
        self._released = threading.Event()
        try:
            self._alone()
        except BaseException:
            self._storage.remove(self._name)
            raise
        self._renewer = threading.Thread(target=self._renew, name="eventide-lease", daemon=True)
        self._renewer.start()

    def _alone(self) -> None:
        now = self._storage.modified(self._name)
        for name in self._storage.list(FOLDER):
            if name == self._name or not name.endswith(".json"):
                continue
            try:
                other = json.loads(self._storage.read(name))
                written = self._storage.modified(name)
            except MissingFileError:
                continue
            except ValueError:
                other, written = {}, self._storage.modified(name)
            # Both times were stamped by the storage, so clocks of machines need not agree.
            fresh = now is None or written is None or now - written <= self._seconds
            died_here = other.get("machine") == this_machine() and not is_alive(int(other.get("process", 0)))
            if fresh and not died_here:
                raise _held_error(
                    self._storage,
                    str(other.get("owner", "?")),
                    f", or, if it is dead, wait {self._seconds:.0f} s for its lease {name} to run out",
                )
            self._storage.remove(name)

    def _renew(self) -> None:
        while not self._released.wait(self._seconds / 4):
            try:
                self._look()
            except EngineError:
                # The next try may reach the storage again; `check` raises when none did for too long.
                continue

    def _look(self) -> None:
        started = _elapsed()
        # The last quarter is for what is being written: it must be there before another engine looks.
        if started - self._renewed > 0.75 * self._seconds or not self._storage.exists(self._name):
            self._released.set()
            return
        self._storage.write(self._name, self._content)
        self._renewed = started

    def check(self) -> None:
        """Raise if another engine may have taken over: the lease ran out, or is gone."""
        if not self._released.is_set() and _elapsed() - self._renewed > self._seconds / 2:
            self._look()
        if self._released.is_set():
            raise CheckpointError(
                f"this engine lost the checkpoint {self._storage.where}: it did not renew its lease for "
                f"{self._seconds:.0f} s (paused, or cut off), and another may have gone on. Start it again"
            )

    def release(self) -> None:
        """Give the lease back."""
        self._released.set()
        if self._renewer.is_alive():
            self._renewer.join()
        self._storage.remove(self._name)


def _held_error(storage: Storage, owner: str, more: str = "") -> CheckpointError:
    who = f" ({owner})" if owner else ""
    return CheckpointError(
        f"another engine works on the checkpoint {storage.where}{who}: stop it, or give this one another{more}"
    )


def _elapsed() -> float:
    """Seconds that pass also while the machine sleeps, where it can say so."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


def _owner() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


def this_machine() -> str:
    """Where a process number means one process: this machine since it started, this container."""
    parts = [socket.gethostname()]
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            parts.append(file.read().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    except OSError:
        parts.append(f"{uuid.getnode():x}")
    return " ".join(parts)


def is_alive(process: int) -> bool:
    """Whether a process of this machine is there."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
