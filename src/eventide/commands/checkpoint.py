"""`eventide plan`, and `eventide checkpoint verify`, `copy`, `list` and `rewind`: a checkpoint looked over, and moved.

Law: `plan`, `verify` and `list` write nothing and lock nothing, and `copy` reads one committed round, so an engine may
be at work on the checkpoint. `rewind` needs it for itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

from eventide.commands.process import DONE, UNUSABLE
from eventide.engine.checkpoint.copying import copy, go_back, kept_rounds
from eventide.engine.checkpoint.record import RoundRecord
from eventide.errors import DeclarationError
from eventide.launch.settings import RunSettings, script_of
from eventide.plan.binding import as_run
from eventide.plan.declared.evolution import Evolution
from eventide.plan.declared.fingerprint import described
from eventide.profile.amounts import size_words
from eventide.report.stopped_run import Verification, last_record, verify
from eventide.storage.storage import Storage


def plan_file(file: str, checkpoint: str | None, backfill: Sequence[str], as_json: bool) -> None:
    """Tell what a script would do to each stream and query of a checkpoint."""
    script = script_of(file)
    settings = RunSettings.of(script.settings)
    place = checkpoint or settings.checkpoint
    if place is None:
        raise DeclarationError("which checkpoint would it go on from? Give --checkpoint DIR")
    record = last_record(Storage.at(place, make=False))
    program = as_run(script.program, settings.scheduling.heartbeats)
    found = Evolution.between(record.plan, described(program), record.queries, backfill)
    if as_json:
        print(json.dumps({"round": record.round, **found.as_json()}))
        return
    print(f"after round {record.round} of {place}:")
    for sentence in found.words():
        print(f"  {sentence}")
    print("eventide run needs --accept for this" if found.drops_state else "eventide run continues as it is")


def verify_checkpoint(place: str, as_json: bool) -> int:
    """Show what is found; the exit code."""
    found = replace(verify(Storage.at(place, make=False)), where=place)
    if as_json:
        print(json.dumps(asdict(found)))
    else:
        for line in verification_lines(found):
            print(line)
    return UNUSABLE if found.damage else DONE


def verification_lines(found: Verification) -> list[str]:
    """The findings of a verification, line by line.

    >>> verification_lines(Verification("state", 2, 7, 2048, 40, 9, 9))
    ['state: 2 records, 7 state files (2 KiB), 40 files of results: all as they were written', 'to be continued from \
round 9']
    """
    counts = (
        f"{found.records} record{'' if found.records == 1 else 's'}, {found.state_files} state "
        f"file{'' if found.state_files == 1 else 's'} ({size_words(found.state_bytes)}), {found.result_files} "
        f"file{'' if found.result_files == 1 else 's'} of results"
    )
    if found.side_files:
        counts += f", {found.side_files} of late and rejected rows"
    whole = "all as they were written" if not found.damage else f"{len(found.damage)} complaints"
    if found.last is None:
        end = "no round can be continued from: restore what is named above from a copy"
    elif found.newest is not None and found.last < found.newest:
        end = f"to be continued from round {found.last}; what came after it is to be run again"
    else:
        end = f"to be continued from round {found.last}"
    return [*found.damage, f"{found.where}: {counts}: {whole}", end]


def copy_checkpoint(place: str, to: str | None, as_json: bool) -> None:
    """Copy a checkpoint, and tell what was copied."""
    if to is None:
        raise DeclarationError("where to? Write: eventide checkpoint copy DIR OTHER")
    found = copy(Storage.at(place, make=False), Storage.at(to))
    if as_json:
        print(json.dumps({"round": found.round, "files": found.files, "bytes": found.bytes}))
    else:
        print(f"{to}: round {found.round}, {found.files:,} files")


def list_checkpoint(place: str, as_json: bool) -> None:
    """Tell the rounds that a checkpoint keeps, the newest first."""
    rounds = [_round_data(record) for record in kept_rounds(Storage.at(place, make=False))]
    if as_json:
        print(json.dumps({"rounds": rounds}))
        return
    for one in rounds:
        print(f"round {one['round']}, {one['at']}: {one['rows']:,} rows read, {size_words(one['bytes'])} of state")


def rewind_checkpoint(place: str, round: int | None, as_json: bool) -> None:
    """Go back to a round that is kept."""
    if round is None:
        raise DeclarationError("to which round? Give --round N; eventide checkpoint list DIR shows those that are kept")
    gone = go_back(place, round)
    if as_json:
        print(json.dumps({"round": round, "dropped": gone}))
    else:
        print(f"{place}: to be continued from round {round}; {gone} later round{'' if gone == 1 else 's'} dropped")


def _round_data(record: RoundRecord) -> dict[str, Any]:
    at = datetime.fromtimestamp(record.clock / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    # Twins have the rows of another stream.
    read = [name for name, stream in record.plan["streams"].items() if not stream.get("twin_of")]
    rows = sum(record.streams[name]["losses"]["rows"] for name in read)
    size = sum(file.bytes for file in record.files)
    return {"round": record.round, "clock": record.clock, "at": at, "rows": rows, "bytes": size}
