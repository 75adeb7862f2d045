from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

from eventide.errors import EngineError
from eventide.storage.local import LocalStorage
from eventide.storage.remote import RemoteStorage
from eventide.storage.storage import MissingFileError, Storage


def far(folder: Path, by_renaming: bool = False) -> RemoteStorage:
    """A folder that is reached through Arrow only, as an object store is."""
    folder.mkdir(exist_ok=True)
    return RemoteStorage(SubTreeFileSystem(str(folder), LocalFileSystem()), "a/b", "s3a://bucket/a/b", by_renaming)


KINDS: dict[str, Callable[[Path], Storage]] = {
    "local": lambda folder: Storage.at(folder / "local"),
    "local, unconfirmed": lambda folder: Storage.at(folder / "local", sync=False),
    "far": far,
    "far, by renaming": lambda folder: far(folder, by_renaming=True),
}


@pytest.fixture(params=KINDS)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return KINDS[request.param](tmp_path)


def test_a_file_is_read_as_it_was_written(storage: Storage) -> None:
    data = bytes(range(256)) * 1000
    storage.write("slices/q/one.arrow", data)
    storage.write("empty", b"")
    storage.write("buffer", pa.py_buffer(b"seven"))
    assert storage.read("slices/q/one.arrow") == data
    assert storage.read("empty") == b""
    assert storage.read("buffer") == b"seven"
    assert storage.size("slices/q/one.arrow") == 256_000
    assert storage.tail("slices/q/one.arrow", 3) == b"\xfd\xfe\xff"
    assert storage.tail("buffer", 100) == b"seven"


def test_a_file_is_written_over_whole(storage: Storage) -> None:
    storage.write("a", b"a long text")
    storage.write("a", b"short")
    assert storage.read("a") == b"short"
    assert storage.list("", hidden=True) == ["a"]


def test_names_are_listed_below_a_folder_without_hidden_ones(storage: Storage) -> None:
    for name in (
        "slices/q/2",
        "slices/q/10",
        "slices/1",
        "slices/q/_SUCCESS",
        "slices/.1.tmp",
        "slices/_t/1",
        "other/1",
    ):
        storage.write(name, b"x")
    assert storage.list("slices") == ["slices/1", "slices/q/10", "slices/q/2"]
    assert set(storage.list("slices", hidden=True)) - set(storage.list("slices")) == {
        "slices/q/_SUCCESS",
        "slices/.1.tmp",
        "slices/_t/1",
    }
    assert storage.list("slices/_t") == ["slices/_t/1"]
    assert storage.list("nowhere") == []
    assert len(storage.list("")) == 4


def test_removing_is_done_when_the_file_is_gone(storage: Storage) -> None:
    storage.write("slices/q/1", b"x")
    storage.remove("slices/q/1")
    storage.remove("slices/q/1")
    assert not storage.exists("slices/q/1")
    storage.remove_folder("slices/q")
    storage.remove_folder("slices/q")
    storage.write("slices/q/1", b"again")
    assert storage.read("slices/q/1") == b"again"


def test_a_missing_file_is_told_from_one_that_cannot_be_reached(storage: Storage) -> None:
    for ask in (storage.read, storage.size, storage.modified, lambda name: storage.tail(name, 1)):
        with pytest.raises(MissingFileError, match=r"cannot read rounds/1\.json in "):
            ask("rounds/1.json")
    assert not storage.exists("rounds/1.json")


def test_a_folder_is_no_file(storage: Storage) -> None:
    storage.write("slices/1", b"x")
    with pytest.raises(EngineError):
        storage.read("slices")
    with pytest.raises(EngineError, match="cannot write"):
        storage.write("slices/1/2", b"x")


def test_the_storage_says_when_a_file_was_written(storage: Storage) -> None:
    storage.write("a", b"1")
    storage.write("b", b"1")
    first, second = storage.modified("a"), storage.modified("b")
    assert first is not None
    assert second is not None
    assert first <= second


def test_local_places_may_be_paths_or_uris(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Storage.at("a folder/below").write("x", b"1")
    for place in (
        tmp_path / "a folder/below",
        f"file://{tmp_path}/a%20folder/below",
        f"file:{tmp_path}/a%20folder/below",
    ):
        assert Storage.at(place).read("x") == b"1"
        assert Storage.at(place).uri() == f"file://{tmp_path}/a folder/below"
        assert Storage.at(place).uri("slices/1") == f"file://{tmp_path}/a folder/below/slices/1"


def test_another_scheme_goes_through_arrow() -> None:
    storage = Storage.at("mock://host/folder")
    storage.write("a/b", b"1")
    assert storage.read("a/b") == b"1"
    assert storage.uri("a") == "mock://host/folder/a"


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    for place in ("file", "file/below"):
        with pytest.raises(EngineError, match=r"it is not a folder.*Name a folder, or move away the file"):
            Storage.at(tmp_path / place)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a device that is always full")
def test_a_full_disk_leaves_the_old_file_and_says_the_way_out(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.write("rounds/1.json", b"old")
    # What is written to the temporary file meets a real "no space left on device".
    (tmp_path / "rounds/.1.json.tmp").symlink_to("/dev/full")
    with pytest.raises(
        EngineError, match=r"there is no room left.*Every committed round is safe: free some space"
    ) as told:
        storage.write("rounds/1.json", b"new")
    assert isinstance(told.value.__cause__, OSError)
    assert told.value.__cause__.errno == errno.ENOSPC
    assert storage.list("", hidden=True) == ["rounds/1.json"]
    assert storage.read("rounds/1.json") == b"old"
    storage.write("rounds/1.json", b"new")
    assert storage.read("rounds/1.json") == b"new"


REFUSED = """
import os, sys
from eventide.storage.local import LocalStorage
from eventide.storage.remote import RemoteStorage
from eventide.storage.storage import Storage
from eventide.errors import EngineError
if os.getuid() == 0:
    os.setuid(65534)  # Permissions do not bind the superuser: be somebody else.
try:
    Storage.at(sys.argv[1])
except EngineError as error:
    print(error)
"""


def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    command = [sys.executable, "-c", REFUSED, str(tmp_path / "locked/checkpoint")]
    told = subprocess.run(command, capture_output=True, text=True)
    assert "Permission denied. Give this user the right to read and write there" in told.stdout, told.stderr
