"""Where streams learn before they begin: from a recording, or from the checkpoint of an earlier run.

Law: from a checkpoint a stream learns what the stream of its name had learned by the last committed round, as from a
recording that ends there (`eventtime/policies/drop_ratio/learned.py`). Nothing else of the checkpoint is taken, it is
only read, and a run may work on it meanwhile. Names of sources are those of the stream, in its order.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from eventide.engine.checkpoint.array_files import complete
from eventide.engine.checkpoint.checkpoint import ROUNDS, checked, decoded
from eventide.engine.checkpoint.copying import kept_rounds
from eventide.engine.checkpoint.record import DamagedError, RoundRecord, StateFile
from eventide.engine.promises import NO_VALUE, SEPARATOR
from eventide.engine.stream_progress import StreamProgress
from eventide.errors import CheckpointError
from eventide.eventtime.heartbeat import Snapshot
from eventide.eventtime.policies.drop_ratio.learned import experience
from eventide.eventtime.policies.drop_ratio.policy import DropRatio, DropRatioGenerator
from eventide.plan.declared.stream import Stream
from eventide.profile.learning import check_recording, experienced, learning_policy, with_learned
from eventide.storage.storage import MissingFileError, Storage

RATIO = re.compile(r"DropRatio\(ratio=([^,)]*)")


def begun(stream: Stream) -> StreamProgress:
    """A stream of which nothing has been seen but what its policy is to learn from."""
    policy = learning_policy(stream)
    if policy is None:
        return StreamProgress.start(stream)
    origin = _origin(policy)
    taught = _from_checkpoint(stream, policy) if _is_checkpoint(origin) else experienced(stream, SEPARATOR, NO_VALUE)
    return replace(StreamProgress.start(taught), stream=stream)


def check_learning(stream: Stream) -> None:
    """Raise an error if the policy of a stream cannot learn from what it is to learn from."""
    policy = learning_policy(stream)
    if policy is not None and _is_checkpoint(_origin(policy)):
        _from_checkpoint(stream, policy)
    else:
        check_recording(stream)


def _origin(policy: DropRatio) -> str:
    assert policy.learned is not None
    return policy.learned.origin


def _is_checkpoint(origin: str) -> bool:
    return Path(origin, ROUNDS).is_dir()


def _from_checkpoint(stream: Stream, policy: DropRatio) -> Stream:
    origin = _origin(policy)
    storage = Storage.at(origin, make=False)

    def read(file: StateFile) -> pa.Table:
        data = storage.read(file.name)
        if len(data) != file.bytes or checked(data, file.checksum) != file.checksum:
            raise DamagedError(f"{origin}: {file.name} is damaged: its checksum does not hold")
        return decoded(file.name, data)

    try:
        record, _ = complete(kept_rounds(storage)[0], read)
        state = _state(record, stream, policy, origin)
        names = _sources(record, stream, origin, read)
    except MissingFileError as error:
        raise CheckpointError(f"{origin}: {error}: its run goes on; start again") from error
    taught = with_learned(stream, experience(state, policy.ratio))
    return replace(taught, known=names)


def _state(record: RoundRecord, stream: Stream, policy: DropRatio, origin: str) -> Snapshot:
    """What the policy of the stream of that name was when the round was committed."""
    saved = record.streams.get(stream.name)
    if saved is None:
        there = ", ".join(sorted(record.streams))
        raise CheckpointError(f"{origin}: it has no stream {stream.name!r} to learn from, but {there}")
    snapshot: Any = saved["pacemaker"]
    while isinstance(snapshot, dict) and snapshot.get("kind") != DropRatioGenerator.KIND:
        snapshot = snapshot.get("inner")
    if not isinstance(snapshot, dict) or snapshot["version"] != DropRatioGenerator.VERSION:
        raise CheckpointError(
            f"{origin}: stream {stream.name!r} went by another policy there: learn from a recording of it"
        )
    found = RATIO.search(str(record.plan["streams"][stream.name]["policy"]))
    if found is None or float(found[1]) != policy.ratio:
        raise CheckpointError(
            f"{origin}: stream {stream.name!r} had another drop ratio there, {found and found[1]}, and its candidates "
            "are others: declare that one, or learn from a recording"
        )
    return snapshot


def _sources(record: RoundRecord, stream: Stream, origin: str, read: Any) -> tuple[str, ...]:
    """The names of the sources by their numbers."""
    if record.streams[stream.name]["sources"] is None or not stream.source:
        return stream.known
    name, count = record.streams[stream.name]["sources"]
    [file] = [file for file in record.files if file.name == name]
    names = tuple(read(file).column("source").to_pylist()[:count])
    if names[: len(stream.known)] != stream.known:
        raise CheckpointError(
            f"{origin}: stream {stream.name!r} numbered its sources otherwise there: expect the same ones, or learn "
            "from a recording"
        )
    return names
