"""`eventide checkpoint verify`: whether a checkpoint, and the results that it stands for, are what was written."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from eventide.commands.process import DONE, UNUSABLE
from eventide.profile.amounts import size_words
from eventide.report.stopped_run import Verification, verify
from eventide.storage.storage import Storage


def verify_checkpoint(place: str, as_json: bool) -> int:
    """Show what is found; the exit code."""
    found = replace(verify(Storage.at(place, make=False)), where=place)
    if as_json:
        print(json.dumps(asdict(found)))
    else:
        for line in lines(found):
            print(line)
    return UNUSABLE if found.damage else DONE


def lines(found: Verification) -> list[str]:
    """The findings of a verification, line by line.

    >>> lines(Verification("state", 2, 7, 2048, 40, 9, 9))
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
