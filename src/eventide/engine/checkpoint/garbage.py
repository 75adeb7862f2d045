"""Garbage: files of a checkpoint that nothing needs any more, and their removal.

Law: a file is removed only after the record that last named it is gone, and never while a live record names it. A crash
before or during a removal leaves garbage that the next engine sweeps; it never leaves a record without its files.
A file that someone holds, to read it beside the rounds, goes with the first removal after it was let go.

Near storage is cleaned at once (20 microseconds a file). Elsewhere each removal is a request through a network, so one
thread does them while the next round runs.

>>> from tempfile import mkdtemp
>>> storage = Storage.at(mkdtemp())
>>> for name in ("slices/1.arrow", "slices/2.arrow"):
...     storage.write(name, b"")
>>> garbage = Garbage(storage)
>>> garbage.add({"slices/1.arrow", "slices/2.arrow"})
>>> garbage.remove(live=frozenset({"slices/2.arrow"}))
[]
>>> storage.list("slices")
['slices/2.arrow']
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import PurePosixPath

from eventide.errors import EngineError
from eventide.storage.storage import Storage, is_visible


class Garbage:
    """The files of a checkpoint that are to be removed."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._names = set[str]()
        self._holding: list[tuple[frozenset[str], str]] = []
        self._mutex = threading.Lock()
        self._worker = None if storage.near else ThreadPoolExecutor(1, "eventide-garbage")
        self._going = frozenset[str]()
        self._removal: Future[list[str]] | None = None

    def add(self, names: Iterable[str]) -> None:
        """These are not needed any more, unless a live record says so."""
        self._names.update(names)

    def spare(self, name: str) -> None:
        """This name is about to be written: neither it nor its folder may be removed from now on."""
        self._names.discard(name)
        if self._removal is not None and _folder(name) in map(_folder, self._going):
            self._removal.result()

    @contextmanager
    def holding(self, names: frozenset[str], folder: str) -> Iterator[None]:
        """Keep these files, and all in this folder, for the time being; from any thread.

        What a removal under way has taken up goes all the same: whoever holds makes sure that a live record names it.
        """
        held = names, f"{folder}/"
        with self._mutex:
            self._holding.append(held)
        try:
            yield
        finally:
            with self._mutex:
                self._holding.remove(held)

    def remove(self, live: frozenset[str]) -> list[str]:
        """Remove what is not live. Gives the complaints of the last removals: garbage that stays is no catastrophe."""
        with self._mutex:
            holding = tuple(self._holding)
        held = {name for name in self._names if any(name in files or name.startswith(at) for files, at in holding)}
        names, self._names = frozenset(self._names) - live - held, held - live
        # A folder in which a file is held is none that may go.
        live = live | held
        complaints = self.wait()
        if not names:
            return complaints
        if self._worker is None:
            return complaints + self._remove(names, live)
        self._going, self._removal = names, self._worker.submit(self._remove, names, live)
        return complaints

    def wait(self) -> list[str]:
        """Until no removal is under way; its complaints."""
        if self._removal is None:
            return []
        complaints, self._removal, self._going = self._removal.result(), None, frozenset()
        return complaints

    def close(self) -> None:
        """Finish the removals that were begun."""
        if self._worker is not None:
            self._worker.shutdown()

    def _remove(self, names: frozenset[str], live: frozenset[str]) -> list[str]:
        try:
            for name in names:
                self._storage.remove(name)
            for folder in set(map(_folder, names)) - set(map(_folder, live)):
                self._remove_left(folder)
        except EngineError as error:
            return [f"files that are no longer needed stay where they are: {error}"]
        return []

    def _remove_left(self, folder: str) -> None:
        """Remove a folder, never one at the top, in which Spark left nothing but its marks."""
        while "/" in folder and all(
            _folder(name) == folder and not is_visible(PurePosixPath(name).name)
            for name in self._storage.list(folder, hidden=True)
        ):
            self._storage.remove_folder(folder)
            if self._worker is not None:
                # The folder above may be written to while this thread looks.
                return
            folder = _folder(folder)


def _folder(name: str) -> str:
    return name.rpartition("/")[0]
