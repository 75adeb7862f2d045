"""`eventide run`: run a script until its inputs end or somebody stops it.

Law: results go where the script says, to the screen, or as JSON to standard output, which has nothing else on it then.
Ctrl-C and SIGTERM let the round under way finish and commit. A program that reads only what ends by itself, standard
input and single files, ends with it, every window closed: with standard input it is a filter.

*Options.* All of them are checked before anything is started. An option that cannot mean anything is refused with what
to write instead; Spark would take some of them in silence, and fail of others after half a minute, with words about
something else.

*Address.* A run can be asked at the address that was named, otherwise at a free port of this machine. What was asked
for by name and cannot be had is an error; what is only a convenience is left out with a word.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from contextlib import ExitStack, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from eventide.commands.console import keep_script
from eventide.commands.listening import listening, listening_at, show_console
from eventide.commands.outputs import Outputs, outputs_of
from eventide.commands.process import TerminatedError, code_of, was_closed
from eventide.commands.telemetry import lineage_place, otlp_endpoint, send_lineage, send_spans, written_to
from eventide.endpoint.certificate import Certificate
from eventide.engine.running import Running
from eventide.errors import DeclarationError
from eventide.language.script import Script, read_script
from eventide.launch.engines import (
    DEFAULT_MASTER,
    Where,
    checkpoint_at,
    chosen_engine,
    claim_outputs,
    engine_for,
    reads_standard_input,
    remove_all,
)
from eventide.launch.logs import events_as_json, passing, say, say_warnings
from eventide.launch.settings import STANDARD_INPUT, RunSettings, checked_engine, shown_as, text_of
from eventide.launch.user_functions import Failures
from eventide.plan.declared.evolution import Consent
from eventide.plan.declared.program import Program
from eventide.report.status import LossReport, StatusLine, beyond_permitted, logging_of
from eventide.sources.files.files import FORMATS
from eventide.watch.watching import watch
from eventide.watch.webhook import Webhook, checked_url

MEANING = {
    "spark.sql.ansi.enabled": (
        "true",
        "a row that breaks an expression is not rejected; NULL or a number that wrapped around goes into the answer",
    ),
    "spark.sql.session.timeZone": ("UTC", "times without a zone are those of that zone, and so are days and hours"),
}
"""Settings that change what a script says: what they are without a word, and what is so with another."""

COORDINATES = re.compile(r"[^\s:/,]+(?::[^\s:/,]+){2}")


def pairs(given: list[str]) -> dict[str, str]:
    """Settings, as a script gives them with SET; those of Spark begin with `spark.`

    >>> pairs(["spark.executor.memory=2g", "driver.memory = 1 GB"])
    {'spark.executor.memory': '2g', 'driver.memory': '1 GB'}
    """
    found = {}
    for one in given:
        key, sign, value = (part.strip() for part in one.partition("="))
        if not sign or not key:
            raise DeclarationError(f"--conf {one!r} is no setting: write --conf key=value")
        found[key] = value
    return found


def packages(given: list[str]) -> tuple[str, ...]:
    """Coordinates of packages; commas between them are fine, as Spark writes them.

    >>> packages(["org.apache.spark:spark-avro_2.13:4.2.0,a:b:1"])
    ('org.apache.spark:spark-avro_2.13:4.2.0', 'a:b:1')
    >>> packages(["spark-avro"])
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: --package 'spark-avro' names no package: write group:name:version, such as \
org.apache.spark:spark-avro_2.13:4.2.0
    """
    found = [one.strip() for several in given for one in several.split(",")]
    for one in found:
        if not COORDINATES.fullmatch(one):
            raise DeclarationError(
                f"--package {one!r} names no package: write group:name:version, such as "
                "org.apache.spark:spark-avro_2.13:4.2.0"
            )
    return tuple(found)


def non_empty(option: str, value: str | None) -> str | None:
    """A value that is there: not empty, as of a variable that was not set, and not the next option.

    >>> non_empty("--checkpoint", "state"), non_empty("--master", None)
    ('state', None)
    >>> non_empty("--checkpoint", "--json")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: --checkpoint needs a value, and '--json' is none
    """
    if value is not None and (not value.strip() or value.startswith("-")):
        raise DeclarationError(f"{option} needs a value, and {value!r} is none")
    return value


def changed_meanings(settings: Mapping[str, str]) -> list[str]:
    """What to tell of settings by which Spark gives other answers than the local engine.

    >>> changed_meanings({"spark.sql.session.timeZone": "Europe/Berlin", "spark.sql.ansi.enabled": "TRUE"})
    ['spark.sql.session.timeZone=Europe/Berlin: times without a zone are those of that zone, and so are days and \
hours; the local engine has no such setting']
    """
    return [
        f"{key}={value}: {MEANING[key][1]}; the local engine has no such setting"
        for key, value in settings.items()
        if key in MEANING and value.lower() != MEANING[key][0].lower()
    ]


FORMS = ("text", "json")
"""Of the lines of a log."""


def checked_log(form: str | None) -> str | None:
    """The form of lines, if there is such a one.

    >>> checked_log("xml")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: --log 'xml': choose text or json
    """
    if form is not None and form not in FORMS:
        raise DeclarationError(f"--log {form!r}: choose text or json")
    return form


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
    console: str | None = None
    console_cert: str | None = None
    console_key: str | None = None
    webhook: str | None = None
    otlp: str | None = None
    lineage: str | None = None
    replace: bool = False
    log: str | None = None
    accept: bool = False
    backfill: list[str] = field(default_factory=list)


def run_file(request: RunRequest) -> None:
    """Run a script to its end."""
    text = text_of(request.file)
    script = read_script(text, shown_as(request.file))
    for warning in script.warnings:
        print(f"{shown_as(request.file)}:{warning.line}:{warning.column}: warning: {warning.message}", file=sys.stderr)
    if script.questions:
        # Only who asks waits for what it takes to answer.
        from eventide.commands.explain import answer_statements

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
    _run(script, text, request)


def _run(script: Script, text: str, request: RunRequest) -> None:
    at = listening_at(request.listen, request.console, request.console_cert, request.no_listen)
    certificate = Certificate.given(request.console_cert, request.console_key)
    if request.webhook is not None:
        checked_url(request.webhook)
    checked_log(request.log)
    spans_to, lineage_to = otlp_endpoint(request.otlp), lineage_place(request.lineage)
    if request.log != "json":
        say_warnings()
    settings = RunSettings.of({**script.settings, **pairs(request.conf)})
    where = _where(script, request, settings)
    given = non_empty("--checkpoint", request.checkpoint) or settings.checkpoint
    bounded = request.bounded or comes_to_an_end(script.program)
    line, failures, consent = StatusLine(), Failures(), Consent(request.accept, tuple(request.backfill))
    losses = LossReport(functions=[function.name for function in script.functions])
    if request.json and was_closed(sys.stdout):
        raise DeclarationError("--json has nowhere to write: standard output is closed")
    json_to = sys.stdout.buffer if request.json else None
    outputs = outputs_of(script, json_to, below=line.text)
    with ExitStack() as stack:
        if request.log == "json":
            stack.enter_context(events_as_json())
        if request.json:
            # What functions of the user print would stand among the results.
            stack.enter_context(redirect_stdout(sys.stderr))
        checkpoint = stack.enter_context(checkpoint_at(given))
        claim_outputs(outputs.sinks, checkpoint, given, request.replace)
        if not bounded:
            say("running until Ctrl-C (--bounded: to the end of what is there now)")
        if given is None and not bounded:
            say("the checkpoint is temporary and removed in the end (--checkpoint DIR: a later run goes on from it)")
        trace = stack.enter_context(written_to(request.trace))
        engine = stack.enter_context(
            engine_for(script, where, checkpoint, outputs.sinks, settings, trace, failures, consent)
        )
        if not engine.engine.evolution.is_nothing:
            for sentence in engine.engine.evolution.words():
                say(sentence)
        ended_before = engine.engine.ended
        if given is not None:
            keep_script(checkpoint, text)
        for watcher in (line, losses):
            watcher.watch(engine)
        if spans_to is not None:
            send_spans(engine, spans_to)
        if lineage_to is not None:
            send_lineage(engine, lineage_to, script, text, shown_as(request.file), bounded)
        endpoint = listening(engine, at, certificate, not request.no_listen, quiet=bounded)
        if request.console is not None:
            show_console(engine, endpoint)
        if bounded and script.alerts:
            say("a run to the end of what is there now is not watched: alerts of the script are not raised")
        if not bounded:
            watch(engine).add(script.alerts)
            board = watch(engine).board
            if request.webhook is not None:
                board.listen(Webhook(request.webhook).tell)
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
    streams = [stream for stream in program.inputs if stream.table is None]
    return bool(streams) and all(
        stream.input is not None and _ends(stream.input.format.lower(), stream.input.path) for stream in streams
    )


def _ends(format: str, path: str | None) -> bool:
    return format == "stdin" or (format in FORMATS and path is not None and Path(path).is_file())


def _where(script: Script, request: RunRequest, settings: RunSettings) -> Where:
    engine = chosen_engine(checked_engine(request.engine) or settings.engine, script.program)
    master, conf = non_empty("--master", request.master), settings.spark
    if engine == "local" and (
        any(one.startswith("spark.") for one in request.conf) or request.packages or request.master
    ):
        say("--master, --conf and --package are for Spark; the local engine does without them")
    if engine == "spark":
        for sentence in changed_meanings(conf):
            say(sentence)
    return Where(engine, master or settings.master or DEFAULT_MASTER, conf, packages(request.packages))


def _tell_the_end(
    engine: Running, line: StatusLine, losses: LossReport, checkpoint: str | None, bounded: bool, ended_before: bool
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
    read = {stream.name for stream in engine.engine.program.inputs}
    rows = sum(stream.rows for stream in status.streams if stream.name in read)
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
