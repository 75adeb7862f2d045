"""Streams made in Python, known by name to a script in SQL.

Law: in the script such a stream is as if it had been declared there: the same columns, time and sources. Its policy is
the one it has in Python; a stream without one takes SLACK or DRATIO from the window of a query. Errors show places in
the script, as if nothing stood before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from eventide.api.column_text import quoted
from eventide.errors import DeclarationError, LanguageError
from eventide.language.script import Script, Statement, read_script
from eventide.plan.program import NAME
from eventide.plan.stream import Stream, Timestamps

if TYPE_CHECKING:
    from eventide.api.stream import EventStream

STAMPED = {Timestamps.INTERNAL: "ARRIVAL", Timestamps.LATENT: "NONE"}


def read_with_streams(
    text: str, file: str | None, streams: Mapping[str, EventStream]
) -> tuple[Script, dict[str, EventStream]]:
    """The script over these streams, and the streams as it has them."""
    named = {name: _named(name, stream) for name, stream in streams.items()}
    head = "".join(f"{declaration(stream.declared)}\n" for stream in named.values())
    before = read_script(head).program
    try:
        script = read_script(head + text, file)
    except LanguageError as error:
        line = error.line - len(named)
        if line < 1:
            raise
        raise LanguageError(error.message, error.file, line, error.column, error.text, error.hint) from None
    for name, stream in named.items():
        policy = script.program.stream(name).policy
        if policy != before.stream(name).policy:
            named[name] = stream.policy(policy)
    own = {name: stream.declared for name, stream in named.items()}
    program = replace(script.program, streams=tuple(own.get(each.name, each) for each in script.program.streams))
    above = len(named)
    warnings = tuple(replace(each, line=each.line - above) for each in script.warnings if each.line > above)
    statements = tuple(_moved_up(each, above) for each in script.statements[above:])
    return replace(script, program=program, statements=statements, warnings=warnings), named


def _moved_up(statement: Statement, lines: int) -> Statement:
    return replace(statement, place=replace(statement.place, line=statement.place.line - lines))


def declaration(stream: Stream) -> str:
    """A stream as SQL declares it, in one line; its policy is not told.

    >>> from eventide.plan.stream import columns
    >>> declaration(Stream("s", columns("ts TIMESTAMP, `my key` STRING"), "ts", ("my key",)))
    'CREATE STREAM s (ts TIMESTAMP, `my key` STRING) TIMESTAMP BY ts SOURCE BY `my key`;'
    """
    columns = ", ".join(f"{quoted(column.name)} {column.type}" for column in stream.columns)
    clauses = [f"CREATE STREAM {stream.name} ({columns})"]
    clauses.append(f"TIMESTAMP BY {quoted(stream.time) if stream.time else STAMPED[stream.timestamps]}")
    if stream.source:
        clauses.append(f"SOURCE BY {', '.join(quoted(name) for name in stream.source)}")
    if stream.arrival:
        clauses.append(f"ARRIVAL BY {quoted(stream.arrival)}")
    return f"{' '.join(clauses)};"


def _named(name: str, stream: EventStream) -> EventStream:
    from eventide.api.stream import EventStream

    if not isinstance(stream, EventStream):
        raise DeclarationError(f"{name} is {stream!r}, no stream: make one with eventide.stream(df, time='ts')")
    if not NAME.fullmatch(name):
        raise DeclarationError(f"{name!r} cannot name a stream: use letters, digits and underscores, a letter first")
    return replace(stream, declared=replace(stream.declared, name=name))
