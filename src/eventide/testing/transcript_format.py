"""Read transcripts and the rows of their steps.

Law: every key is known or refused, with the number of the step; what a transcript leaves out has the engine's defaults,
but for two: a stream without a `policy` moves only by explicit heartbeats, and the clock starts at 0 and stands still
until a step sets it. A step is one round. Queries are written in the fields of a plan.

>>> transcript = Transcript.of({
...     "name": "two rows",
...     "streams": {"S": {"columns": {"t": "bigint", "v": "int"}, "time": "t"}},
...     "queries": {"q": {"select": {"total": "sum(v)"}, "window": {"range": 10}}},
...     "rounds": [{"rows": {"S": [[1, 5], [2, 6]]}, "heartbeat": {"S": 9}, "expect": {"final": [{"total": 11}]}}],
... })
>>> transcript.steps[0].heartbeats, transcript.steps[0].expect.final
({'S': 9}, ({'total': 11},))

*Rows.* The rows of a step become a table with the columns of their stream. A row is a list with a value for every
column, or a mapping of some columns to values, the others being NULL; `{malformed: text}` is a row that its source
could not read, which has a value in no column.

>>> from eventide.plan.declared.stream import Stream, columns
>>> s = Stream("s", columns("t BIGINT, v INT"), time="t")
>>> table_of([[1, 5], {"t": 2}, {"malformed": "2;x"}], s).to_pydict()
{'t': [1, 2, None], 'v': [5, None, None], '_malformed': [None, None, '2;x']}
>>> table_of([[1, "five"]], s)
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: column 'v' of stream 's': 'five' is no value of a column of type int32
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from eventide.errors import DeclarationError
from eventide.eventtime.early.prod import Prod
from eventide.eventtime.scheduling.options import Scheduling
from eventide.language.script import KEYS, scheduling_of
from eventide.plan.declared.program import Program
from eventide.plan.declared.stream import Stream, TimeKind
from eventide.plan.sql.stream_rows import MALFORMED
from eventide.sources.arrow_types import arrow_type
from eventide.testing.transcript_operators import known_keys, prods_of
from eventide.testing.transcript_program import program_of
from eventide.testing.transcript_values import converted, instant


def table_of(written: Any, stream: Stream) -> pa.Table:
    """The rows as a table, `_malformed` the last of its columns."""
    stream = stream.as_read
    if not isinstance(written, list):
        raise DeclarationError(f"the rows of stream {stream.name!r} must be a list, not {written!r}")
    rows = [_row(row, stream) for row in written]
    columns = {column.name: arrow_type(column.type) for column in stream.columns} | {MALFORMED: pa.string()}
    arrays = {}
    for name, kind in columns.items():
        try:
            arrays[name] = pa.array([converted(row.get(name), kind) for row in rows], type=kind)
        except (DeclarationError, pa.ArrowException, OverflowError) as error:
            raise DeclarationError(f"column {name!r} of stream {stream.name!r}: {error}") from error
    return pa.table(arrays)


def _row(written: Any, stream: Stream) -> dict[str, Any]:
    names = [column.name for column in stream.columns]
    if isinstance(written, dict):
        if list(written) == ["malformed"] and "malformed" not in names:
            return {MALFORMED: str(written["malformed"])}
        return {stream.column(name).name: value for name, value in written.items()}
    if not isinstance(written, list) or len(written) != len(names):
        raise DeclarationError(f"the row {written!r} of stream {stream.name!r} is not a list of {', '.join(names)}")
    return dict(zip(names, written, strict=True))


TRANSCRIPT_KEYS = (
    "name",
    "note",
    "script",
    "streams",
    "queries",
    "query",
    "operators",
    "scheduling",
    "rounds",
    "splittable",
    "refused",
    "fails",
    "flush_rows",
)
STEP_KEYS = ("rows", "clock", "heartbeat", "over", "prod", "restart", "end", "note", "expect")
RESULTS = ("early", "final", "revised", "changed")
"""The kinds of results."""
KINDS = (*RESULTS, "late", "rejected")
"""What comes out of a step as rows."""
EXPECT_KEYS = (*KINDS, "error", "state", "in_order", "timing")


@dataclass(frozen=True)
class Expect:
    """What a step must bring, and nothing else: rows by their named columns, an error, the state that is kept.

    The results of the queries named in `in_order` must come in the order in which they are written. `timing` says how
    each prod of the step came, if it is there.
    """

    early: tuple[Mapping[str, Any], ...] = ()
    final: tuple[Mapping[str, Any], ...] = ()
    revised: tuple[Mapping[str, Any], ...] = ()
    changed: tuple[Mapping[str, Any], ...] = ()
    late: tuple[Mapping[str, Any], ...] = ()
    rejected: tuple[Mapping[str, Any], ...] = ()
    error: str | None = None
    state: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    in_order: tuple[str, ...] = ()
    timing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """One round: rows by stream, the clock it has, promises given with it, sources that are over with it.

    `end` closes a bounded run after it. Prods are given after the round, each to a query; a step of nothing but prods
    is no round.
    """

    number: int
    rows: Mapping[str, pa.Table]
    clock: int
    heartbeats: Mapping[str, int]
    over: Mapping[str, list[str]]
    restart: bool
    end: bool
    expect: Expect
    prods: tuple[tuple[str, Prod], ...] = ()
    is_round: bool = True


@dataclass(frozen=True)
class Transcript:
    """A story of a program, round by round.

    `program` is None where the declarations themselves are `refused`, as expected; `refusal` is then the error. A
    transcript with `fails` must fail, with a message like it: it tests whoever runs it. `flush_rows` is the engine's:
    about so many results are emitted at once.
    """

    name: str
    program: Program | None
    steps: tuple[Step, ...]
    splittable: bool | None = None
    refused: str | None = None
    refusal: DeclarationError | None = None
    fails: str | None = None
    flush_rows: int | None = None
    file: str | None = None
    scheduling: Scheduling = field(default_factory=Scheduling)

    def __str__(self) -> str:
        return self.file or self.name

    @classmethod
    def read(cls, path: Path | str) -> Transcript:
        """The transcript in a file."""
        path = Path(path)
        try:
            written = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, yaml.YAMLError) as error:
            raise DeclarationError(f"cannot read the transcript {path}: {error}") from error
        try:
            return cls.of(written, path.stem)
        except DeclarationError as error:
            raise DeclarationError(f"{path.name}: {error}") from error

    @classmethod
    def of(cls, written: Any, file: str | None = None) -> Transcript:
        """The transcript in what YAML gives.

        >>> Transcript.of({"name": "x", "round": []})
        Traceback (most recent call last):
            ...
        eventide.errors.DeclarationError: a transcript has no 'round': did you mean 'rounds'? It may have name, note, \
script, streams, queries, query, operators, scheduling, rounds, splittable, refused, fails, flush_rows
        """
        known_keys(written, TRANSCRIPT_KEYS, "a transcript")
        options = {key: written[key] for key in ("splittable", "refused", "fails", "flush_rows") if key in written}
        if "scheduling" in written:
            known_keys(written["scheduling"], KEYS, "`scheduling`")
            options["scheduling"] = scheduling_of(written["scheduling"])
        name = str(written.get("name", file or "a transcript"))
        try:
            program = program_of(written)
        except DeclarationError as refusal:
            if "refused" not in written:
                raise
            return cls(name, None, (), refusal=refusal, file=file, **options)
        steps = []
        clock = 0
        for number, step in enumerate(written.get("rounds") or [], start=1):
            try:
                steps.append(_step(number, step, clock, program))
            except DeclarationError as error:
                raise DeclarationError(f"step {number}: {error}") from error
            clock = steps[-1].clock
        return cls(name, program, tuple(steps), file=file, **options)


def _step(number: int, written: Any, clock: int, program: Program) -> Step:
    known_keys(written, STEP_KEYS, "a step")
    if "clock" in written:
        clock = instant(written["clock"], clock_kind(program))
    promised = _by_stream(written.get("heartbeat"), "heartbeat", program)
    rows = _by_stream(written.get("rows"), "rows", program)
    return Step(
        number=number,
        rows={name: table_of(given or [], program.stream(name)) for name, given in rows.items()},
        clock=clock,
        heartbeats={name: instant(h, program.stream(name).time_kind) for name, h in promised.items()},
        over={name: list(map(str, names)) for name, names in _by_stream(written.get("over"), "over", program).items()},
        restart=bool(written.get("restart")),
        end=bool(written.get("end")),
        expect=_expect(written.get("expect")),
        prods=prods_of(written["prod"], program) if "prod" in written else (),
        is_round="prod" not in written or bool({"rows", "clock", "heartbeat", "end"} & written.keys()),
    )


def clock_kind(program: Program) -> TimeKind:
    """In what the clock is written: seconds, unless every stream is a sequence."""
    kinds = {stream.time_kind for stream in program.streams}
    return TimeKind.SEQUENCE if kinds == {TimeKind.SEQUENCE} else TimeKind.TIMESTAMP


def _by_stream(written: Any, what: str, program: Program) -> Mapping[str, Any]:
    if written is None:
        return {}
    if not isinstance(written, dict):
        [name, *others] = [stream.name for stream in program.streams]
        if others:
            raise DeclarationError(f"{what} must name a stream: `{what}: {{{name}: ...}}`")
        return {name: written}
    for name in written:
        program.stream(name, f"{what}: there is no")
    return written


def _expect(written: Any) -> Expect:
    if written is None:
        return Expect()
    known_keys(written, EXPECT_KEYS, "`expect`")
    for key in KINDS:
        rows = written.get(key) or []
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise DeclarationError(f"{key} must be a list of rows, each a mapping of columns to values")
    found = {key: tuple(written.get(key) or ()) for key in KINDS}
    named = {
        key: (given,) if isinstance(given := written.get(key) or (), str) else tuple(given)
        for key in ("in_order", "timing")
    }
    return Expect(**found, error=written.get("error"), state=written.get("state") or {}, **named)
