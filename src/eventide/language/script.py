"""The door of the language: a text is read, and everything in it is checked, before anything runs.

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
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from sqlglot.errors import SqlglotError

from eventide.errors import DeclarationError, LanguageError
from eventide.language.building import Builder, Function
from eventide.language.outputs import Output
from eventide.language.source_text import SourceText
from eventide.language.statements import ExplainStatement, Place, ShowStatement, Statement
from eventide.language.warnings import Warning
from eventide.plan.program import Program
from eventide.plan.stream import Stream

__all__ = ["Function", "Output", "Place", "Script", "Statement", "Warning", "read_script"]


@dataclass(frozen=True)
class Script:
    """What a text says: the program, where its results go, settings, and the statements themselves in order.

    `questions` are the statements that ask about it, each with what stood before it: what is dropped later was there.
    """

    program: Program
    outputs: tuple[Output, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
    statements: tuple[Statement, ...] = ()
    warnings: tuple[Warning, ...] = ()
    functions: tuple[Function, ...] = ()
    questions: tuple[tuple[ShowStatement | ExplainStatement, Script], ...] = ()


def read_script(text: str, file: str | None = None, streams: Iterable[Stream] = ()) -> Script:
    """Read a text and check all of it; `file` is its name in errors, `streams` are declared already.

    >>> from eventide.plan.stream import columns
    >>> cars = Stream("cars", columns("t BIGINT, speed INT"), time="t")
    >>> read_script("SELECT max(speed) FROM cars [RANGE 60]", streams=[cars]).program.queries[0].select[0].name
    'max_speed'
    """
    # Editors on Windows mark a text as Unicode by a sign before it.
    source = SourceText(text.removeprefix("\ufeff"), file)
    builder = Builder(source)
    builder.know(streams)
    statements: list[Statement] = []
    questions: list[tuple[ShowStatement | ExplainStatement, Script]] = []
    for piece in source.pieces():
        try:
            statement = builder.take(source.tree(piece), piece)
            statements.append(statement)
            if isinstance(statement, ShowStatement):
                questions.append((statement, _so_far(builder, statements)))
            elif isinstance(statement, ExplainStatement):
                questions.append((statement, _part(builder, statement.name)))
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
    try:
        return replace(_so_far(builder, statements), questions=tuple(questions))
    except LanguageError:
        raise
    except DeclarationError as error:
        raise source.error(str(error), 0) from error


def _part(builder: Builder, query: str) -> Script:
    """A query and what it reads, as far as it has been declared: all that EXPLAIN shows of it."""
    program = builder.part(query)
    names = {step.name.lower() for step in program.steps}
    outputs = tuple(output for key, output in builder.outputs.items() if key in names)
    return Script(program, outputs, functions=tuple(builder.functions.values()))


def _so_far(builder: Builder, statements: list[Statement]) -> Script:
    return Script(
        builder.program(),
        tuple(builder.outputs.values()),
        dict(builder.settings),
        tuple(statements),
        builder.warnings(),
        tuple(builder.functions.values()),
    )
