"""Who opens files: the kernel says which process opened a file of a folder, whatever library it used (fanotify)."""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

CLASS_NOTIF, CLOEXEC, MARK_ADD, OPEN, ON_CHILD, AT_FDCWD = 0x0, 0x1, 0x1, 0x20, 0x08000000, -100
EVENT = struct.Struct("IBBHQii")


@contextmanager
def opening_processes(folders: Sequence[Path]) -> Iterator[set[int]]:
    """The numbers of the processes that open a file in one of these folders, until the block ends."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.fanotify_init(CLASS_NOTIF | CLOEXEC, os.O_RDONLY)
    if watch < 0:
        pytest.skip(
            f"the kernel does not tell who opens files: {os.strerror(ctypes.get_errno())} (fanotify needs root)"
        )
    libc.fanotify_mark.argtypes = [ctypes.c_int, ctypes.c_uint, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p]
    for folder in folders:
        assert libc.fanotify_mark(watch, MARK_ADD, OPEN | ON_CHILD, AT_FDCWD, os.fsencode(folder)) == 0
    found: set[int] = set()
    ended = folders[0] / "ended"

    def read() -> None:
        while True:
            events = os.read(watch, 65_536)
            for at in range(0, len(events), EVENT.size):
                *_, file, process = EVENT.unpack_from(events, at)
                name = os.readlink(f"/proc/self/fd/{file}")
                os.close(file)
                if name == str(ended.resolve()):
                    return
                found.add(process)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield found
    finally:
        ended.touch()
        reader.join()
        ended.unlink()
        os.close(watch)
