"""Files that a followed file became: `app.log` renamed to `app.log.1`, `app.log-20260131`, `app-2026.log`.

Law: behind a file that was read come the files of the same family that were written to after it, in the order in which
they were last written to; then the one that bears the name itself. A copy of what was read is not read again.

>>> is_rotated("app.log.1", "app.log"), is_rotated("app-2026-01-31.log", "app.log"), is_rotated("apple.log", "app.log")
(True, True, False)
"""

from __future__ import annotations

import os

from eventide.sources.followed_file import Mark

BETWEEN = (".", "-", "_")
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip", ".lz4")


def is_rotated(name: str, of: str) -> bool:
    """Whether a file may be one that had the name `of` before."""
    stem, ending = os.path.splitext(of)
    behind = name.startswith(of) and name[len(of) :].startswith(BETWEEN)
    within = bool(ending) and name.startswith(stem) and name.endswith(ending) and name != of
    return behind or (within and name[len(stem) : -len(ending)].startswith(BETWEEN))


def rotated_after(path: str, read: Mark) -> tuple[list[str], list[str]]:
    """The files of the family written to after the one that was read, first to last; and those that are compressed."""
    folder, base = os.path.dirname(path) or ".", os.path.basename(path)
    found: list[tuple[int, str]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if is_rotated(entry.name, base) and entry.is_file():
                there = entry.stat()
                # A number alone proves nothing: that of a file that is gone is given to another.
                known = read.matches(entry.path) and (read.known > 0 or there.st_ino == read.number)
                if there.st_mtime_ns > read.modified and not known:
                    found.append((there.st_mtime_ns, entry.path))
    paths = [one for _, one in sorted(found)]
    return [p for p in paths if not p.endswith(COMPRESSED)], [p for p in paths if p.endswith(COMPRESSED)]


def copy_of(path: str, read: Mark) -> str | None:
    """Where the content went of a file that was emptied and is written anew, as `copytruncate` of logrotate does."""
    folder, base = os.path.dirname(path) or ".", os.path.basename(path)
    with os.scandir(folder) as entries:
        names = sorted(entry.path for entry in entries if is_rotated(entry.name, base) and entry.is_file())
    return next((name for name in names if read.known and read.matches(name)), None)
