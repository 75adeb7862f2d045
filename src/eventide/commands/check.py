"""`eventide check`: find every error and warning of a script before it runs.

Law: an error is something that would keep the script from running, a warning is no mistake but may not be meant; each
stands at a place, `file:line:column`. Nothing is started or written, and nothing is read but what a policy is to learn
from.

*Trial.* The statements of the program run once, over made-up rows, in this process. Nothing of the user's is read, run
or written. The rows have a time and the names of their sources, and NULL everywhere else, so what fails is a statement,
never a value. What only the statement of a later step would refuse is found here, before a start that may take a
minute.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime

import pyarrow as pa

from eventide.commands.check_inputs import refused_locally, wrong_option
from eventide.commands.outputs import check_outputs
from eventide.commands.process import DONE, UNUSABLE
from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.learning import check_learning
from eventide.engine.local.engine import LocalEngine
from eventide.errors import EventideError
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.wrappers.timeout import Timeout
from eventide.language.grammar.source_text import (
    AlertStatement,
    FunctionStatement,
    Place,
    QueryStatement,
    SetStatement,
    StreamStatement,
)
from eventide.language.grammar.spelling import nearest
from eventide.language.script import Function, Script, read_anyway
from eventide.launch.settings import RunSettings, shown_as, text_of
from eventide.launch.user_functions import local_backend, signature_of
from eventide.masking import masked_text
from eventide.plan.declared.program import Program
from eventide.plan.declared.rows import Queue
from eventide.plan.declared.stream import Stream
from eventide.profile.learning import unlearned
from eventide.report.plan import bound_steps
from eventide.sinks.sink import Memory
from eventide.sources.arrow_types import matched, readable_type
from eventide.sources.local_input import INPUTS, Batches, unknown_input
from eventide.sources.options import VALUES, split_options, unknown_format

MOST_PARTS = 60
"""Programs with more streams, queries and operators are not tried: a round over many of them takes long."""

INSTANT = datetime(2024, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class BindingFailure:
    """Why a query or operator does not run, and its name."""

    step: str
    error: EventideError


def refusal_of(program: Program, outputs: Collection[str], functions: Sequence[Function]) -> BindingFailure | None:
    """The first query or operator that the local engine would stop at; None where all of it runs."""
    if (
        not program.steps
        or len(program.streams) + len(program.steps) > MOST_PARTS
        or _tried(program, outputs, functions) is None
    ):
        return None
    program = replace(program, streams=tuple(unlearned(stream) for stream in program.streams))
    names: list[str] = []
    for step in program.steps:
        names.append(step.name)
        part = replace(
            program,
            queries=tuple(query for query in program.queries if query.name in names),
            operators=tuple(operator for operator in program.operators if operator.name in names),
        )
        error = _tried(part, [name for name in outputs if name in names], functions)
        if error is not None:
            return BindingFailure(step.name, error)
    return None


def _tried(program: Program, outputs: Collection[str], functions: Sequence[Function]) -> EventideError | None:
    """Run a program over a row of each stream; the error that ends it."""
    backend = local_backend(functions, run=False)
    with tempfile.TemporaryDirectory(prefix="eventide-check-") as folder:
        try:
            inputs = {stream.name: Batches(stream, [_row(stream)]) for stream in program.inputs}
            engine = LocalEngine(program, folder, {name: Memory() for name in outputs}, inputs, backend=backend)
            engine.run(bounded=True)
        except EventideError as error:
            return error
        finally:
            backend.close()
    return None


def _row(stream: Stream) -> pa.Table:
    """One row with nothing in it but a time and a source."""
    time_columns = {name.lower() for name in (stream.time, stream.arrival) if name is not None}
    columns = {}
    for column in stream.columns:
        kind = readable_type(column.type)
        value: object = _value(kind) if column.name.lower() in time_columns else None
        if column.name.lower() in {name.lower() for name in stream.source} and pa.types.is_string(kind):
            value = "a"
        columns[column.name] = pa.array([value], kind)
    return pa.table(columns)


def _value(kind: pa.DataType) -> datetime | date | int:
    if pa.types.is_timestamp(kind):
        return INSTANT if kind.tz is not None else INSTANT.replace(tzinfo=None)
    return INSTANT.date() if pa.types.is_date(kind) else 1


USUAL_FORMATS = (
    "json", "jsonl", "csv", "parquet", "orc", "text", "avro", "xml", "kafka", "rate", "socket", "delta",
    "iceberg", "hudi", "arrow", "feather", "stdin", "replay",
)  # fmt: skip
KAFKA_RECORD = {
    "kafka_key": "BINARY", "kafka_topic": "STRING", "kafka_partition": "INT", "kafka_offset": "BIGINT",
    "kafka_timestamp": "TIMESTAMP", "kafka_timestampType": "INT",
    "kafka_headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>",
}  # fmt: skip
"""What Spark tells of a record beside its value."""

NO_FUNCTION = re.compile(r"no function (\w+)")
SECOND = 1_000_000
ONLY_SPARK = "the local engine cannot run this, Spark may"


@dataclass(frozen=True)
class Finding:
    """What was found, and where; `hint` says the way out where the message does not."""

    severity: str
    file: str
    line: int
    column: int
    message: str
    text: str = ""
    hint: str | None = None

    def __str__(self) -> str:
        """As compilers and editors know it, then the line with a marker."""
        text = f"{self.file}:{self.line}:{self.column}: {self.severity}: {self.message}"
        if self.text:
            before = "".join("\t" if sign == "\t" else " " for sign in self.text[: self.column - 1])
            text += f"\n    {self.text}\n    {before}^"
        return f"{text}\n  {self.hint}" if self.hint else text


def check_file(file: str, as_json: bool) -> int:
    """Show what is found; the exit code."""
    findings, script = findings_of(text_of(file), shown_as(file))
    errors = sum(finding.severity == "error" for finding in findings)
    if as_json:
        report = {"file": shown_as(file), "errors": errors, "findings": [asdict(finding) for finding in findings]}
        print(json.dumps(report))
        return UNUSABLE if errors else DONE
    for finding in findings:
        print(finding)
    if errors == 0:
        print(f"{shown_as(file)}: {_summary(script)}")
    return UNUSABLE if errors else DONE


def findings_of(text: str, file: str) -> tuple[list[Finding], Script | None]:
    """Errors and warnings in the order of their places, and the script if it could be read.

    >>> findings_of("", "empty.sql")[0][0].message
    'there is nothing in it: declare a stream and a query'
    """
    script, errors = read_anyway(text, file)
    found = [Finding("error", e.file or file, e.line, e.column, e.message, e.text, e.hint) for e in errors]
    if script is None:
        return found, None
    lines = text.split("\n")
    if not errors:
        # Of what is read by a statement that is wrong, nobody knows.
        found += [_at("warning", file, lines, w.line, w.column, w.message) for w in script.warnings]
    found += _of_outputs(script, file, lines)
    found += _of_settings(script, file, lines)
    found += _of_inputs(script, file, lines)
    found += _of_queries(script, file, lines)
    if not any(finding.severity == "error" for finding in found):
        found += _of_alerts(script, file, lines)
    if not script.statements and not errors:
        found.append(Finding("error", file, 1, 1, "there is nothing in it: declare a stream and a query"))
    elif not script.program.steps and not errors:
        found.append(Finding("warning", file, 1, 1, "there is no query in it: `run` would have nothing to do"))
    return sorted(found, key=lambda finding: (finding.line, finding.column)), None if errors else script


def _of_outputs(script: Script, file: str, lines: list[str]) -> list[Finding]:
    found = []
    places = {s.name: s.place for s in script.statements if isinstance(s, QueryStatement)}
    for output in script.outputs:
        try:
            check_outputs(replace(script, outputs=(output,)))
        except EventideError as error:
            found.append(_at("error", file, lines, *_place(places, output.query), str(error)))
    return found


def _of_settings(script: Script, file: str, lines: list[str]) -> list[Finding]:
    """Each setting by itself, then all together."""
    found = []
    said = {s.key: s for s in script.statements if isinstance(s, SetStatement)}
    for one in said.values():
        try:
            RunSettings.of({one.key: one.value})
        except EventideError as error:
            found.append(_at("error", file, lines, one.place.line, one.place.column, str(error)))
    try:
        if not found:
            RunSettings.of(script.settings)
    except EventideError as error:
        place = next((s.place for s in script.statements if isinstance(s, SetStatement)), Place(1, 1))
        found.append(_at("error", file, lines, place.line, place.column, str(error)))
    return found


def _of_inputs(script: Script, file: str, lines: list[str]) -> list[Finding]:
    """Formats that are almost one that everybody has, and delays that end before the next round begins."""
    places = {s.name: s.place for s in script.statements if isinstance(s, StreamStatement)}
    try:
        settings = RunSettings.of(script.settings)
    except EventideError:
        settings = RunSettings()
    every, is_local = settings.every, settings.engine == "local"
    found = []
    for stream in script.program.streams:
        policy = stream.policy.inner if isinstance(stream.policy, Timeout) else stream.policy
        if isinstance(policy, FixedDelay) and every is not None and 0 < policy.delay < every * SECOND:
            message = f"the delay is shorter than a round ({every:g} s): what trails by a round is late"
            found.append(_at("warning", file, lines, *_place(places, stream.rows_of), message))
        try:
            check_learning(stream)
        except EventideError as error:
            found.append(_at("error", file, lines, *_place(places, stream.rows_of), str(error)))
    for stream in script.program.inputs:
        place = _place(places, stream.name)
        given = stream.input.format.lower() if stream.input is not None else "json"
        close = nearest(given, USUAL_FORMATS) if given not in USUAL_FORMATS else None
        if close is not None:
            message = f"{given!r} is no usual format: did you mean {close}? Spark is asked for a source of that name"
            found.append(_at("warning", file, lines, *place, message))
        if (wrong := _wrong_record(stream) or wrong_option(stream)) is not None:
            found.append(_at("error", file, lines, *place, wrong))
        elif is_local and given not in INPUTS:
            found.append(_at("error", file, lines, *place, str(unknown_input(f"stream {stream.name!r}", given))))
        elif (refused := refused_locally(stream)) is not None:
            severity = "error" if is_local else "warning"
            found.append(_at(severity, file, lines, *place, refused if is_local else f"{ONLY_SPARK}: {refused}"))
    return found


def _wrong_record(stream: Stream) -> str | None:
    """What Spark would refuse, after its start, of how the records of a message queue are declared."""
    if stream.input is None:
        return None
    given, prefix = stream.input, f"{stream.input.format.lower()}_"
    of_value = split_options(given)[0]
    kind, owner = of_value.get("format"), f"stream {stream.name!r}"
    if kind is not None and kind not in VALUES:
        return str(unknown_format(owner, kind))
    beside = [column for column in stream.columns if column.name.lower().startswith(prefix)]
    try:
        if prefix == "kafka_" and kind is not None:
            matched(owner, beside, KAFKA_RECORD, "a record of kafka")
        if kind == "avro":
            from eventide.sources.avro_values import AvroValues

            values = AvroValues.of(
                owner, [column for column in stream.as_read.columns if column not in beside], of_value
            )
            if values.is_written_out:
                values.opened()
    except EventideError as error:
        return str(error)
    return None


def _of_queries(script: Script, file: str, lines: list[str]) -> list[Finding]:
    """Queries that cannot be bound, or not by the local engine; streams without an input."""
    places = {
        s.name: s.place
        for s in script.statements
        if isinstance(s, QueryStatement | StreamStatement | FunctionStatement)
    }
    found: list[Finding] = []
    for stream in script.program.inputs:
        if stream.input is None:
            message = f"stream {stream.name!r} has no input: add FROM format 'path', or FROM STDIN"
            found.append(_at("error", file, lines, *_place(places, stream.name), message))
    broken = []
    for function in script.functions:
        try:
            signature_of(function)
        except EventideError as error:
            broken.append(_at("error", file, lines, *_place(places, function.name), str(error)))
    if broken:
        return [*found, *broken]
    outputs = [output.query for output in script.outputs]
    for name, why in bound_steps(script.program, script.functions, outputs).unbound.items():
        severity = "warning" if why.only_spark else "error"
        message = f"{ONLY_SPARK}: {why.reason}" if why.only_spark else why.reason
        found.append(_at(severity, file, lines, *_call_in(why.reason, lines, _place(places, name)), message))
    if not found and (refusal := refusal_of(script.program, outputs, script.functions)) is not None:
        found.append(_at("warning", file, lines, *_place(places, refusal.step), f"{ONLY_SPARK}: {refusal.error}"))
    return found


def _of_alerts(script: Script, file: str, lines: list[str]) -> list[Finding]:
    """Rules that cannot be computed."""
    if not script.alerts:
        return []
    # Only a script with alerts waits for what it takes to compute them.
    from eventide.watch.rules import checked

    places = {s.name: s.place for s in script.statements if isinstance(s, AlertStatement)}
    plan = bound_steps(script.program, script.functions, [output.query for output in script.outputs]).plan
    found, executor = [], DuckDBExecutor(files=False)
    for rule in script.alerts:
        try:
            if not rule.of_results or rule.of in (*plan.queries, *plan.operators):
                checked(rule, plan, executor)
        except EventideError as error:
            found.append(_at("error", file, lines, *_place(places, rule.name), str(error)))
    executor.close()
    return found


def _call_in(reason: str, lines: list[str], place: tuple[int, int]) -> tuple[int, int]:
    """Where the function is called that a reason says is missing; else the place of the query."""
    missing = NO_FUNCTION.search(reason)
    for number in range(place[0], len(lines) + 1) if missing else ():
        call = re.search(rf"\b{missing[1]}\s*\(", lines[number - 1], re.IGNORECASE)  # type: ignore[index]
        if call is not None:
            return number, call.start() + 1
    return place


def _place(places: dict[str, Place], name: str) -> tuple[int, int]:
    # A query inside another has a name of its own, made from that one.
    near = [place for other, place in places.items() if name.startswith(f"{other}_")]
    place = places.get(name, near[-1] if near else Place(1, 1))
    return place.line, place.column


def _at(severity: str, file: str, lines: list[str], line: int, column: int, message: str) -> Finding:
    text = masked_text(lines[line - 1]) if 0 < line <= len(lines) else ""
    return Finding(severity, file, line, column, message, text)


def _summary(script: Script | None) -> str:
    assert script is not None
    streams = len(script.program.inputs)
    queries = sum(not isinstance(step, Queue) for step in script.program.steps)
    counts = f"{streams} stream{'' if streams == 1 else 's'}, {queries} quer{'y' if queries == 1 else 'ies'}, no errors"
    by_source = [query.name for query in script.program.queries if query.by_source]
    return counts + (f"; closing source by source: {', '.join(by_source)}" if by_source else "")
