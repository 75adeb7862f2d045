"""Read a script as a whole: its program, its outputs, its settings, and every error with its place.

Law: `read_script` gives a `Script` whose program is whole, or raises a `LanguageError` that shows the place. Nothing
else comes out of it, whatever the text.

>>> script = read_script('''
...     CREATE STREAM traffic (ts TIMESTAMP, detector STRING, speed INT) FROM json 'incoming';
...     SELECT detector, avg(speed) FROM traffic [RANGE 5 minutes SLIDE 1 minute] GROUP BY detector;
... ''')
>>> script.program.queries[0].select, script.outputs[0].kind
((Named(name='avg_speed', sql='AVG(speed)'),), 'console')
>>> read_script("SELECT count(*) FROM trafic [RANGE 5 minutes]", "x.sql")
Traceback (most recent call last):
    ...
eventide.errors.LanguageError: x.sql:1:22: there is no stream 'trafic'
    SELECT count(*) FROM trafic [RANGE 5 minutes]
                         ^
  declare it before: CREATE STREAM trafic (ts TIMESTAMP, ...)

*Scheduling.* `SET timestamps = 'every 1 second'` and `SET heartbeats = 'memory'` say how a program is scheduled.

>>> scheduling_of({"timestamps": "every 1.5 s", "heartbeats": "query"}).words
{'timestamps': 'every 1500000', 'heartbeats': 'query'}
>>> scheduling_of({"timestamps": "sometimes"})
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: SET timestamps = 'sometimes': write 'on demand', 'every 1 second' (or another \
interval), or 'none'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot.errors import SqlglotError

from eventide.errors import DeclarationError, LanguageError
from eventide.eventtime.scheduling.labels import HeartbeatScope
from eventide.eventtime.scheduling.options import IdlePolling, Scheduling
from eventide.language.building import Builder
from eventide.language.ddl.create_function import Function
from eventide.language.ddl.create_stream import OutputTarget
from eventide.language.ddl.warnings import Warning
from eventide.language.grammar.source_text import (
    ExplainStatement,
    Place,
    ScriptStatement,
    ShowStatement,
    SourceText,
    StatementTokens,
)
from eventide.language.grammar.spelling import LENGTHS, micros
from eventide.plan.declared.alert import AlertRule
from eventide.plan.declared.program import Program
from eventide.plan.declared.stream import Stream

__all__ = ["Function", "OutputTarget", "Place", "Script", "ScriptStatement", "Warning", "errors_in", "read_script"]

DECLARES = re.compile(
    r"(?:CREATE\s+(?:STREAM|QUERY|TABLE|FUNCTION|INTERFACE\s+SET)|QUERY)\s+(`[^`]+`|[\w.]+)", re.IGNORECASE
)


@dataclass(frozen=True)
class Script:
    """What a text says: the program, where its results go, settings, and the statements themselves in order.

    `questions` are the statements that ask about it, each with what stood before it: what is dropped later was there.
    """

    program: Program
    outputs: tuple[OutputTarget, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    statements: tuple[ScriptStatement, ...] = ()
    warnings: tuple[Warning, ...] = ()
    functions: tuple[Function, ...] = ()
    questions: tuple[tuple[ShowStatement | ExplainStatement, Script], ...] = ()
    alerts: tuple[AlertRule, ...] = ()


def read_script(text: str, file: str | None = None, streams: Iterable[Stream] = ()) -> Script:
    """Read a text and check all of it; `file` is its name in errors, `streams` are declared already.

    >>> from eventide.plan.declared.stream import columns
    >>> cars = Stream("cars", columns("t BIGINT, speed INT"), time="t")
    >>> read_script("SELECT max(speed) FROM cars [RANGE 60]", streams=[cars]).program.queries[0].select[0].name
    'max_speed'
    """
    reader = _Reader.of(text, file, streams)
    for piece in reader.source.pieces():
        reader.take(piece)
    return reader.script()


def errors_in(text: str, file: str | None = None) -> list[LanguageError]:
    """Every error of a text, statement by statement; what only follows from an earlier one is left out.

    >>> text = "DROP QUERY q; CREATE STREAM s (t NUMBR) DELAY 3; SELECT max(t) FROM s [RANGE 1]; SHOW TABLES"
    >>> [error.line for error in errors_in(text)], [error.column for error in errors_in(text)]
    ([1, 1, 1], [12, 34, 87])
    """
    return read_anyway(text, file)[1]


def read_anyway(text: str, file: str | None = None) -> tuple[Script | None, list[LanguageError]]:
    """What a text says apart from the statements that are wrong, as far as it is a program; and every error.

    >>> script, errors = read_anyway("CREATE STREAM s (t BIGINT); SELECT max(u) FROM s [RANGE 1]; SELECT t FROM s")
    >>> [step.name for step in script.program.steps], [error.column for error in errors]
    (['query_2'], [40])
    """
    reader = _Reader.of(text, file, ())
    found: list[LanguageError] = []
    missing: set[str] = set()
    try:
        for piece in reader.source.pieces():
            try:
                reader.take(piece)
            except LanguageError as error:
                if not any(f"{name!r}" in error.message for name in missing):
                    found.append(error)
                if (declared := DECLARES.match(piece.text)) is not None:
                    missing.add(declared[1].strip("`"))
                reader.builder.forget_unread()
        return reader.script(), found
    except LanguageError as error:
        return None, [*found, error]


@dataclass
class _Reader:
    """A text that is read statement by statement."""

    source: SourceText
    builder: Builder
    statements: list[ScriptStatement] = field(default_factory=list)
    questions: list[tuple[ShowStatement | ExplainStatement, Script]] = field(default_factory=list)

    @staticmethod
    def of(text: str, file: str | None, streams: Iterable[Stream]) -> _Reader:
        # Editors on Windows mark a text as Unicode by a sign before it.
        source = SourceText(text.removeprefix("\ufeff"), file)
        builder = Builder(source)
        builder.know(streams)
        return _Reader(source, builder)

    def take(self, piece: StatementTokens) -> None:
        """Do what one statement says."""
        source, builder = self.source, self.builder
        try:
            statement = builder.take(source.tree(piece), piece)
            self.statements.append(statement)
            if isinstance(statement, ShowStatement):
                self.questions.append((statement, _so_far(builder, self.statements)))
            elif isinstance(statement, ExplainStatement):
                self.questions.append((statement, _part(builder, statement.name)))
        except LanguageError:
            raise
        except DeclarationError as error:
            raise source.error(str(error), piece.offset) from error
        except RecursionError as error:
            raise source.error("this is nested too deeply", piece.offset) from error
        except SqlglotError as error:
            raise source.error("this cannot be understood", piece.offset) from error
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            # sqlglot knows functions of other systems, and takes any arguments for some of them.
            message = "this cannot be understood: is every function one of Spark's, with the arguments it takes?"
            raise source.error(message, piece.offset) from error

    def script(self) -> Script:
        """The whole script, when its last statement was read."""
        try:
            return replace(_so_far(self.builder, self.statements), questions=tuple(self.questions))
        except LanguageError:
            raise
        except DeclarationError as error:
            raise self.source.error(str(error), 0) from error


def _part(builder: Builder, query: str) -> Script:
    """A query and what it reads, as far as it has been declared: all that EXPLAIN shows of it."""
    program = builder.part(query)
    names = {step.name.lower() for step in program.steps}
    outputs = tuple(output for key, output in builder.outputs.items() if key in names)
    return Script(program, outputs, functions=tuple(builder.functions.values()))


def _so_far(builder: Builder, statements: list[ScriptStatement]) -> Script:
    return Script(
        builder.program(),
        tuple(builder.outputs.values()),
        dict(builder.settings),
        tuple(statements),
        builder.warnings(),
        tuple(builder.functions.values()),
        alerts=tuple(builder.alerts.values()),
    )


KEYS = ("heartbeats", "timestamps")

_EVERY = re.compile(r"every\s+(\d+(?:\.\d+)?)?\s*([a-z]+)")


def scheduling_of(setting: Mapping[str, str]) -> Scheduling:
    """What these settings say; what is not said has its default."""
    timestamps, heartbeats = setting.get("timestamps"), setting.get("heartbeats")
    return Scheduling(
        IdlePolling.on_demand() if timestamps is None else _asking(timestamps),
        HeartbeatScope.OPERATOR if heartbeats is None else _level(heartbeats),
    )


def _asking(setting: str) -> IdlePolling:
    words = " ".join(setting.lower().replace("-", " ").split())
    if words == "on demand":
        return IdlePolling.on_demand()
    if words == "none":
        return IdlePolling.never()
    found = _EVERY.fullmatch(words)
    if found is None or found[2] not in LENGTHS or micros(float(found[1] or 1), found[2]) <= 0:
        raise DeclarationError(
            f"SET timestamps = {setting!r}: write 'on demand', 'every 1 second' (or another interval), or 'none'"
        )
    return IdlePolling.every(micros(float(found[1] or 1), found[2]))


def _level(setting: str) -> HeartbeatScope:
    try:
        return HeartbeatScope(setting.lower().removesuffix("-level").removesuffix("-aware"))
    except ValueError:
        raise DeclarationError(f"SET heartbeats = {setting!r}: write 'operator', 'query' or 'memory'") from None
