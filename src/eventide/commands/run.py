"""`eventide run`: a script at work, until its inputs end or somebody stops it.

Law: results go where the script says, to the screen, or as JSON to standard output, which has nothing else on it then.
Ctrl-C and SIGTERM let the round under way finish and commit. A program that reads only what ends by itself, standard
input and single files, ends with it, every window closed: with standard input it is a filter.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from eventide.commands.endings import TerminatedError, code_of
from eventide.commands.engines import (
    DEFAULT_MASTER,
    Where,
    checkpoint_at,
    chosen_engine,
    engine_for,
    reads_standard_input,
)
from eventide.commands.functions import Failures
from eventide.commands.given_options import changed_meanings, packages, pairs, said
from eventide.commands.listening import checked_listening, listening
from eventide.commands.losses import Losses, beyond_permitted
from eventide.commands.notes import passing, say, say_warnings
from eventide.commands.outputs import Outputs, outputs_of
from eventide.commands.ownership import claim_outputs
from eventide.commands.screen_status import StatusLine
from eventide.commands.script_file import STANDARD_INPUT, script_of, shown_as
from eventide.commands.service_log import checked_log, logging_of
from eventide.commands.settings import RunSettings, checked_engine
from eventide.commands.standard_streams import was_closed
from eventide.commands.temporary_folders import remove_all
from eventide.engine.running import Running
from eventide.engine.scheduling.trace import written_to
from eventide.errors import DeclarationError
from eventide.language.script import Script
from eventide.plan.declared.program import Program
from eventide.sources.files.files import FORMATS

LOOKED_AT = 100
"""Rows of a file that are looked at before Spark reads it."""


@dataclass(frozen=True)
class RunRequest:
    """What the user asked for; None where the script, or else the default, decides."""

    file: str
    bounded: bool = False
    json: bool = False
    engine: str | None = None
    master: str | None = None
    conf: list[str] = field(default_factory=list)
    packages: list[str] = field(default_factory=list)
    checkpoint: str | None = None
    trace: str | None = None
    listen: str | None = None
    no_listen: bool = False
    replace: bool = False
    log: str | None = None


def run_file(request: RunRequest) -> None:
    """Run a script to its end."""
    script = script_of(request.file)
    for warning in script.warnings:
        print(f"{shown_as(request.file)}:{warning.line}:{warning.column}: warning: {warning.message}", file=sys.stderr)
    if script.questions:
        # Only who asks waits for what it takes to answer.
        from eventide.commands.asked import answer_statements

        answer_statements(script, to_stderr=request.json)
    if script.questions and not script.program.steps:
        return
    if not script.program.steps:
        raise DeclarationError(
            f"{shown_as(request.file)}: there is nothing to run: add a SELECT, or CREATE QUERY name AS SELECT ..."
        )
    if request.file == STANDARD_INPUT and reads_standard_input(script.program):
        raise DeclarationError(
            "the script came through standard input, which a stream of it reads too: put the script into a file"
        )
    _run(script, request)


def _run(script: Script, request: RunRequest) -> None:
    checked_listening(request.listen, not request.no_listen)
    checked_log(request.log)
    say_warnings()
    settings = RunSettings.of({**script.settings, **pairs(request.conf)})
    where = _where(script, request, settings)
    given = said("--checkpoint", request.checkpoint) or settings.checkpoint
    bounded = request.bounded or comes_to_an_end(script.program)
    line, failures = StatusLine(), Failures()
    losses = Losses(functions=[function.name for function in script.functions])
    if request.json and was_closed(sys.stdout):
        raise DeclarationError("--json has nowhere to write: standard output is closed")
    json_to = sys.stdout.buffer if request.json else None
    outputs = outputs_of(script, json_to, below=line.text)
    with ExitStack() as stack:
        checkpoint = stack.enter_context(checkpoint_at(given))
        claim_outputs(outputs.sinks, checkpoint, given, request.replace)
        if not bounded:
            say("running until Ctrl-C (--bounded: to the end of what is there now)")
        if given is None and not bounded:
            say("the checkpoint is temporary and removed in the end (--checkpoint DIR: a later run goes on from it)")
        trace = stack.enter_context(written_to(request.trace))
        engine = stack.enter_context(engine_for(script, where, checkpoint, outputs.sinks, settings, trace, failures))
        ended_before = engine.engine.ended
        for watcher in (line, losses):
            watcher.watch(engine)
        listening(engine, request.listen, not request.no_listen, quiet=bounded)
        engine.stop_on_signals()
        try:
            with passing(line.text), logging_of(engine, line, checked_log(request.log)):
                engine.start(bounded)
                if outputs.screen is not None:
                    outputs.screen.show()
                engine.await_end()
        except (KeyboardInterrupt, TerminatedError) as hurry:
            if not engine.begun:
                raise
            _leave_at_once(hurry, outputs)
        for sentence in failures.sentences():
            say(sentence)
        _tell_the_end(engine, line, losses, given, bounded, ended_before)
        with suppress(KeyboardInterrupt, TerminatedError):
            # Who is in a hurry now has all that there was to have; only Spark has not ended yet.
            stack.close()


def comes_to_an_end(program: Program) -> bool:
    """Whether all that a program reads ends by itself: standard input, and single files.

    >>> comes_to_an_end(Program(()))
    False
    """
    return bool(program.streams) and all(
        stream.input is not None and _ends(stream.input.format.lower(), stream.input.path) for stream in program.streams
    )


def _ends(format: str, path: str | None) -> bool:
    return format == "stdin" or (format in FORMATS and path is not None and Path(path).is_file())


def _where(script: Script, request: RunRequest, settings: RunSettings) -> Where:
    engine = chosen_engine(checked_engine(request.engine) or settings.engine, script.program)
    master, conf = said("--master", request.master), settings.spark
    if engine == "local" and (
        any(one.startswith("spark.") for one in request.conf) or request.packages or request.master
    ):
        say("--master, --conf and --package are for Spark; the local engine does without them")
    if engine == "spark":
        for sentence in changed_meanings(conf):
            say(sentence)
    return Where(engine, master or settings.master or DEFAULT_MASTER, conf, packages(request.packages))


def _tell_the_end(
    engine: Running, line: StatusLine, losses: Losses, checkpoint: str | None, bounded: bool, ended_before: bool
) -> None:
    status = engine.status()
    for sentence in (*losses.sentences(checkpoint), *beyond_permitted(engine.engine.program.streams, status.streams)):
        say(sentence)
    if ended_before and checkpoint is not None:
        say(
            f"the bounded run in {checkpoint} had ended before, and its results were given then: give another "
            "--checkpoint, or none, to run it again"
        )
        return
    rows = sum(stream.rows for stream in status.streams)
    whole = engine.engine.ended or not engine.stopping.is_set()
    end = "done" if whole else "stopped"
    kept = "" if checkpoint is not None else "; the temporary checkpoint is removed"
    if checkpoint is not None and not whole:
        kept = f"; started again with --checkpoint {checkpoint} it goes on from there"
    counts = f"{_some(rows, 'row')} in {_some(status.round + 1, 'round')}, {_some(line.results, 'result')}"
    say(f"{end}: {counts}{kept}")


def _leave_at_once(hurry: BaseException, outputs: Outputs) -> NoReturn:
    """A second signal: the round under way is not waited for, and has not happened."""
    if outputs.screen is not None:
        outputs.screen.close()
    remove_all()
    sys.stderr.flush()
    # Leaving in the usual way would wait for the threads that run the round.
    os._exit(code_of(hurry))


def _some(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
