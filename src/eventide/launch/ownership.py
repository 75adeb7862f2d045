"""Whose results a directory or a table holds: the checkpoint that wrote them, by an id that both keep.

Law: an engine that starts anew forgets all earlier results of its queries. Where they stay it does so only if they
are its own, or where the user said `--replace` (in Python `replace=True`): results of another checkpoint, or of one
that was lost, are refused.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from eventide.errors import CheckpointError, DeclarationError
from eventide.sinks.sink import OwnedSink, Owner, Sink
from eventide.storage.storage import Storage

NAME = "owner.json"
"""The file of a checkpoint that has its id."""


@dataclass(frozen=True)
class CheckpointOptions:
    """How a user names a checkpoint, and says that results are to be replaced."""

    checkpoint: str
    replace: str


ON_THE_COMMAND_LINE = CheckpointOptions("--checkpoint {}", "--replace")
IN_PYTHON = CheckpointOptions("checkpoint={!r}", "replace=True")


def claim_outputs(
    sinks: Mapping[str, Sink],
    checkpoint: str | Storage,
    given: str | None,
    replace: bool,
    options: CheckpointOptions = ON_THE_COMMAND_LINE,
) -> None:
    """Make the checkpoint the owner of the places that its queries write to; refuse those of another."""
    owned = {query: sink for query, sink in sinks.items() if isinstance(sink, OwnedSink)}
    if not owned:
        return
    storage = Storage.at(checkpoint)
    fresh = not storage.list("", hidden=True)
    id = _id_in(storage, options) if storage.exists(NAME) else uuid.uuid4().hex
    owner = Owner(id, None if given is None else os.path.abspath(given))
    for query, sink in owned.items():
        other = sink.owner_of(query)
        strange = other is not None and other.id != id
        # Without a mark they are older than marks are: whoever goes on from a checkpoint wrote them.
        unknown = other is None and fresh and sink.holds(query)
        if (strange or unknown) and not replace:
            raise DeclarationError(_refusal(query, sink, other, options))
    if not storage.exists(NAME):
        storage.write(NAME, json.dumps({"id": id}).encode())
    for query, sink in owned.items():
        sink.claim(query, owner)


def _id_in(storage: Storage, options: CheckpointOptions) -> str:
    try:
        return str(json.loads(storage.read(NAME))["id"])
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{storage.where}: {NAME} is damaged: remove it, and say {options.replace} once; results of committed "
            "rounds stay"
        ) from error


def _refusal(query: str, sink: OwnedSink, other: Owner | None, options: CheckpointOptions) -> str:
    theirs = None if other is None else other.checkpoint
    back = f"go on from their own ({options.checkpoint.format(theirs)})" if theirs else "keep them: name another place"
    return (
        f"{sink.where} has results of query {query!r} from another checkpoint, and this run would delete them: "
        f"{back}, or say {options.replace} to delete them"
    )
