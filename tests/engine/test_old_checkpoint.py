"""A checkpoint of the layout before this one: refused with the way out, and left as it is."""

from __future__ import annotations

import json
from pathlib import Path
from zlib import crc32

import pytest

from eventide.engine.checkpoint.checkpoint import Checkpoint
from eventide.errors import CheckpointError
from eventide.report.stopped_run import last_record
from eventide.storage.storage import Storage

WAY_OUT = (
    "this checkpoint has format 1, and this Eventide reads format 2 and 3: continue it with the version of "
    "Eventide that wrote it, or start with another checkpoint"
)


def write_old(folder: Path) -> dict[str, bytes]:
    """The record of a round and the intent of the next, byte by byte as format 1 had them: slices beside queries."""
    record = {
        "format": 1, "round": 7, "batch": 7, "clock": 1_700_000_000_000_000, "ended": False, "plan": {},
        "streams": {"s": {"heartbeat": 5}}, "positions": {},
        "queries": {"q": {"place": "driver", "slices": ["slices/0000000007-q.arrow"]}},
        "files": [{"name": "slices/0000000007-q.arrow", "bytes": 3, "checksum": "crc32:352441c2"}],
    }  # fmt: skip
    intent = {"format": 1, "round": 8, "batch": 8, "clock": 1_700_000_001_000_000, "heartbeats": {}, "over": {}}
    for name, document in (("rounds/0000000007.json", record), ("intents/0000000008.json", intent)):
        rest = '",' + json.dumps(document, separators=(",", ":"))[1:]
        path = folder / name
        path.parent.mkdir(parents=True)
        path.write_text(f'{{"checksum":"crc32:{crc32(rest.encode()):08x}{rest}')
    (folder / "slices").mkdir()
    (folder / "slices" / "0000000007-q.arrow").write_bytes(b"abc")
    return {str(path): path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}


def test_a_checkpoint_of_format_1_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    before = write_old(tmp_path)
    with Checkpoint.open(str(tmp_path)) as checkpoint, pytest.raises(CheckpointError) as told:
        checkpoint.last()
    assert str(told.value) == WAY_OUT
    assert {name: Path(name).read_bytes() for name in before} == before


def test_whoever_looks_at_it_from_outside_is_told_the_same(tmp_path: Path) -> None:
    write_old(tmp_path)
    with pytest.raises(CheckpointError) as told:
        last_record(Storage.at(tmp_path, make=False))
    assert str(told.value) == WAY_OUT
