"""`eventide trace`: heartbeats on their way from a source through every operator, and how long they waited in each.

Law: a running engine is asked, and samples heartbeats from the first question on; so the first one waits until there
are some. Where none runs, the record tells where the last heartbeats stand and what they wait for, and not how long.
"""

from __future__ import annotations

import json
import time
from typing import Any

from eventide.commands.console import kept_script
from eventide.endpoint.client import Client
from eventide.endpoint.discovery import Published, folder_of
from eventide.errors import DeclarationError, EngineError, InputError
from eventide.launch.logs import say
from eventide.launch.settings import RunSettings
from eventide.plan.binding import as_run
from eventide.report.stopped_run import read_progress
from eventide.report.traces import trace_lines

PATIENCE, EVERY = 10.0, 0.5
"""Seconds that a first question waits for a heartbeat, and between two looks."""


def trace_run(checkpoint: str, file: str | None, last: int, as_json: bool) -> None:
    """Print the traces of a run."""
    if last < 1:
        raise DeclarationError(f"--last {last} shows nothing: give 1 or more")
    try:
        Published.read(folder_of(checkpoint))
    except (EngineError, InputError, DeclarationError):
        found = _of_record(checkpoint, file)
    else:
        found = _of_engine(checkpoint)
    if as_json:
        print(json.dumps(found | {"traces": found["traces"][:last]}))
        return
    if not found["traces"]:
        say("no heartbeat has been sampled yet: they are sampled in rounds that have rows")
    for line in trace_lines(found, last):
        print(line)


def _of_engine(checkpoint: str) -> dict[str, Any]:
    client, until = Client.of_checkpoint(checkpoint), time.monotonic() + PATIENCE
    while not (found := client.ask("GET", "/traces"))["traces"] and time.monotonic() < until:
        time.sleep(EVERY)
    return found


def _of_record(checkpoint: str, file: str | None) -> dict[str, Any]:
    # Only who asks of a stopped run waits for what it takes to read it.
    from eventide.telemetry.tracing import stopped_traces, traces_data

    script = kept_script(checkpoint, file)
    scheduling = RunSettings.of(script.settings).scheduling
    progress = read_progress(as_run(script.program, scheduling.heartbeats), checkpoint, None, scheduling)
    say(f"no engine runs there: this is how it stood after round {progress.record.round}")
    return traces_data(stopped_traces(progress), progress)
