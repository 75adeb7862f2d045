"""Transcripts of queries, the public entry: run stories in YAML that both engines must tell alike.

    from eventide.testing.transcript import cases, run_transcript

    @pytest.mark.parametrize(("transcript", "variant"), cases("tests/transcripts"), ids=str)
    def test_transcript_holds(transcript, variant):
        run_transcript(transcript, variant=variant)

`docs/testing.md` describes the format; its laws are below and in `transcript_format`.

>>> transcript_of = Transcript.of({
...     "name": "two rows of a window, and one of the next",
...     "streams": {"S": {"columns": {"t": "bigint", "v": "int"}, "time": "t"}},
...     "query": {"select": {"total": "sum(v)"}, "window": {"range": 10}},
...     "rounds": [{"rows": {"S": [[1, 5], [2, 6], [10, 9]]}, "heartbeat": 9, "expect": {"final": [{"total": 11}]}}],
... })
>>> for variant in variants(transcript_of):
...     run_transcript(transcript_of, variant=variant)

*Running.* Each step is a round on an engine, and must bring what it expects and nothing else. A transcript that holds
as written holds in every variant that applies to it, on both engines:

- *shuffled*: rows of one round arrive together, so their order means nothing;
- *split*: where only explicit heartbeats move time, a round can be cut into rounds of one row, the last of which gives
  the heartbeats; not where a step expects revised results or an error, of which each round has its own;
- *restarted*: a new engine continues from the checkpoint before every step.

In each of them the results of every query keep to the grammar of results (`eventide.results.results`).

An AssertionError tells the first step that went otherwise. A transcript with `fails` holds when it fails as it says.

>>> stream = {"S": {"columns": {"t": "bigint"}, "time": "t"}}
>>> run_transcript(Transcript.of({"streams": stream, "rounds": [{"rows": {"S": [[None]]}}]}))
Traceback (most recent call last):
    ...
AssertionError: step 1: rejected: not expected {'t': None, '_malformed': None, '_reason': 'no time', '_round': 0}

*Comparing.* Rows that were found are compared with rows that were expected. Every expected row is paired with a found
row that has all of its named columns with the same values, and every found row is paired with an expected one; the
order of either does not matter, unless it is asked for. The column `_reason` is a regular expression. So a transcript
names only what it is about, and nothing else may happen.

>>> found = pa.table({"k": ["a", "b"], "n": [1, 2]})
>>> difference([{"n": 2}, {"k": "a"}], [found])
''
>>> print(difference([{"k": "a", "n": 3}], [found]))
missing {'k': 'a', 'n': 3}
not expected {'k': 'a', 'n': 1}
not expected {'k': 'b', 'n': 2}
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from eventide.engine.operators.placement import DRIVER_MEMORY
from eventide.errors import DeclarationError, EventideError
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.testing.transcript_format import KINDS, RESULTS, Expect, Step, Transcript
from eventide.testing.transcript_values import same
from eventide.testing.trial import EngineName, Trial

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def difference(expected: Sequence[Mapping[str, Any]], found: Sequence[pa.Table], in_order: bool = False) -> str:
    """What is missing and what is too much, a line each; empty where all is as expected.

    >>> difference([{"k": "b"}, {"k": "a"}], [pa.table({"k": ["a", "b"]})], in_order=True)
    "in another order: found {'k': 'a'}, expected {'k': 'b'}"

    >>> difference([{"m": 1}], [pa.table({"k": ["a"]})])
    "missing {'m': 1}: there is no column 'm', there are k\\nnot expected {'k': 'a'}"
    """
    rows = [(row, table.schema) for table in found for row in table.to_pylist()]
    fits = [[_fits(wanted, row, schema) for row, schema in rows] for wanted in expected]
    partner = _paired(fits, len(rows))
    missing = [wanted for number, wanted in enumerate(expected) if number not in partner.values()]
    left = [row for number, (row, _) in enumerate(rows) if number not in partner]
    known = list(dict.fromkeys(name for table in found for name in table.column_names))
    if in_order and not missing and not left:
        swapped = [place for place, fit in enumerate(fits) if not fit[place]]
        transcript_of = [
            f"in another order: found {rows[place][0]}, expected {dict(expected[place])}" for place in swapped
        ]
        return "".join(transcript_of[:1])
    lines = [f"missing {dict(wanted)}{_unknown(wanted, known)}" for wanted in missing]
    return "\n".join([*lines, *(f"not expected {row}" for row in left)])


def _fits(wanted: Mapping[str, Any], row: Mapping[str, Any], schema: pa.Schema) -> bool:
    return all(
        name in row and _same_in_column(name, value, row[name], schema.field(name).type)
        for name, value in wanted.items()
    )


def _same_in_column(name: str, wanted: Any, found: Any, kind: pa.DataType) -> bool:
    if name == "_reason" and isinstance(wanted, str):
        return found is not None and re.search(wanted, found) is not None
    return same(wanted, found, kind)


def _paired(fits: list[list[bool]], rows: int) -> dict[int, int]:
    """The most pairs there can be, as the expected row of each found one: first come, first moved on (Kuhn)."""
    partner: dict[int, int] = {}

    def placed(wanted: int, tried: set[int]) -> bool:
        for row in range(rows):
            if fits[wanted][row] and row not in tried:
                tried.add(row)
                if row not in partner or placed(partner[row], tried):
                    partner[row] = wanted
                    return True
        return False

    for wanted in range(len(fits)):
        placed(wanted, set())
    return partner


def _unknown(wanted: Mapping[str, Any], known: Sequence[str]) -> str:
    unknown = [name for name in wanted if name not in known]
    if not unknown or not known:
        return ""
    return f": there is no column {unknown[0]!r}, there are {', '.join(known)}"


class Variant(Enum):
    """How a transcript is run."""

    WRITTEN = "as written"
    SHUFFLED = "shuffled"
    SPLIT = "split into rounds of one row"
    RESTARTED = "restarted before every step"

    def __str__(self) -> str:
        return self.name.lower()


def variants(transcript: Transcript) -> tuple[Variant, ...]:
    """The variants that apply to a transcript."""
    if transcript.fails is not None or transcript.refused is not None:
        return (Variant.WRITTEN,)
    return tuple(variant for variant in Variant if variant is not Variant.SPLIT or _splittable(transcript))


def run_transcript(
    transcript: Transcript | Path | str,
    engine: EngineName = "local",
    variant: Variant = Variant.WRITTEN,
    spark: SparkSession | None = None,
    driver_memory: int = DRIVER_MEMORY,
) -> None:
    """Run a transcript, given or in a file; an AssertionError tells the first step that went otherwise.

    Spark keeps slices above `driver_memory` on the cluster: with 0, all of them.
    """
    transcript_of = transcript if isinstance(transcript, Transcript) else Transcript.read(transcript)
    if transcript_of.fails is None:
        _run(transcript_of, engine, variant, spark, driver_memory)
        return
    try:
        _run(transcript_of, engine, variant, spark, driver_memory)
    except AssertionError as failure:
        _demand(
            re.search(transcript_of.fails, str(failure)),
            f"it failed, but not as {transcript_of.fails!r} says: {failure}",
        )
    else:
        raise AssertionError(f"it held, though it must fail: {transcript_of.fails}")


def _demand(holds: object, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


def _run(
    transcript_of: Transcript, engine: EngineName, variant: Variant, spark: SparkSession | None, driver_memory: int
) -> None:
    if transcript_of.refused is not None:
        _check_refused(transcript_of, engine, spark)
        return
    assert transcript_of.program is not None
    with (
        tempfile.TemporaryDirectory(prefix="transcript-") as folder,
        Trial(
            transcript_of.program,
            Path(folder),
            engine,
            spark,
            None,
            driver_memory,
            transcript_of.flush_rows,
            scheduling=transcript_of.scheduling,
        ) as trial,
    ):
        for step in transcript_of.steps:
            if step.restart or variant is Variant.RESTARTED:
                trial.restart()
            try:
                for part in _parts(step, variant):
                    _play(part, trial)
            except EventideError as error:
                _check_error(step, error)
            else:
                _demand(step.expect.error is None, f"step {step.number}: no error, expected {step.expect.error!r}")
            _check(step, trial, _without_round(step.expect) if variant is Variant.SPLIT else step.expect)


def _play(step: Step, trial: Trial) -> None:
    if step.is_round:
        trial.round(step.rows, step.clock, step.heartbeats, step.over)
    if step.end:
        trial.end(step.clock)
    for query, prod in step.prods:
        trial.prod(query, prod)


def _parts(step: Step, variant: Variant) -> Iterator[Step]:
    """The rounds that a step becomes."""
    if variant is Variant.SHUFFLED:
        random = Random(step.number)
        orders = {name: random.sample(range(rows.num_rows), rows.num_rows) for name, rows in step.rows.items()}
        yield replace(
            step, rows={name: rows.take(pa.array(orders[name], pa.int64())) for name, rows in step.rows.items()}
        )
    elif variant is Variant.SPLIT and not step.expect.revised and step.expect.error is None:
        single = [(name, rows.slice(place, 1)) for name, rows in step.rows.items() for place in range(rows.num_rows)]
        for name, row in single[:-1]:
            yield replace(step, rows={name: row}, heartbeats={}, over={}, end=False, prods=())
        yield replace(step, rows=dict(single[-1:]))
    else:
        yield step


def _splittable(transcript: Transcript) -> bool:
    if transcript.splittable is not None or transcript.program is None or transcript.flush_rows is not None:
        return bool(transcript.splittable)
    if any(query.prods is not None and query.prods.by is not None for query in transcript.program.queries):
        return False
    if any(query.changes for query in transcript.program.queries):
        # Every round shows what it has changed.
        return False
    return all(
        stream.policy == Punctuated() and not (stream.arrival or stream.punctuation or stream.prods or stream.table)
        for stream in transcript.program.streams
    )


def _check(step: Step, trial: Trial, expect: Expect) -> None:
    output = trial.output()
    for what in KINDS:
        differs = difference(getattr(expect, what), getattr(output, what))
        _demand(not differs, f"step {step.number}: {what}: {differs}")
    for query in expect.in_order:
        for what in RESULTS:
            listed = [row for row in getattr(expect, what) if row.get("query", query) == query]
            tables = [table for table in getattr(output, what) if table.column("query")[0].as_py() == query]
            differs = difference(listed, tables, in_order=True)
            _demand(not differs, f"step {step.number}: {what}: {differs}")
    if expect.timing:
        found = tuple(timing.value for timing in output.timing)
        _demand(found == expect.timing, f"step {step.number}: prods came {found}, expected {expect.timing}")
    if expect.state:
        state = trial.state()
        for query, wanted in expect.state.items():
            if state.get(query, {}).get("placement") == "cluster":
                # Files go when all their rows are done with: what they hold until then means nothing.
                wanted = {key: value for key, value in wanted.items() if not key.startswith(("state_", "open_"))}
            kept: dict[str, Any] = {key: state.get(query, {}).get(key) for key in wanted}
            _demand(kept == wanted, f"step {step.number}: state of {query} is {kept}, expected {dict(wanted)}")


def _without_round(expect: Expect) -> Expect:
    """Split rounds have other numbers."""

    def kept(rows: Sequence[Any]) -> tuple[Any, ...]:
        return tuple({key: value for key, value in row.items() if key not in ("round", "_round")} for row in rows)

    rows: dict[str, Any] = {kind: kept(getattr(expect, kind)) for kind in KINDS}
    return replace(expect, **rows)


def _check_error(step: Step, error: EventideError) -> None:
    wanted = step.expect.error
    if wanted is None:
        raise AssertionError(f"step {step.number}: {type(error).__name__}: {error}") from error
    _demand(re.search(wanted, str(error)), f"step {step.number}: error is {str(error)!r}, expected {wanted!r}")


def _check_refused(transcript_of: Transcript, engine: EngineName, spark: SparkSession | None) -> None:
    refusal: EventideError | None = transcript_of.refusal
    if transcript_of.program is not None:
        try:
            with tempfile.TemporaryDirectory() as folder, Trial(transcript_of.program, Path(folder), engine, spark):
                pass
        except EventideError as error:
            refusal = error
    _demand(refusal is not None, f"it was not refused, expected {transcript_of.refused!r}")
    _demand(
        re.search(transcript_of.refused or "", str(refusal)),
        f"refused with {str(refusal)!r}, expected {transcript_of.refused!r}",
    )


__all__ = ["Expect", "Step", "Transcript", "Variant", "cases", "run_transcript", "variants"]


def cases(folder: Path | str) -> list[tuple[Transcript, Variant]]:
    """Every transcript of a folder in every variant that applies to it, for `pytest.mark.parametrize`.

    >>> cases("no/such/folder")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: there is no transcript (*.yaml) in no/such/folder
    """
    transcript_of = [Transcript.read(path) for path in sorted(Path(folder).glob("*.yaml"))]
    if not transcript_of:
        raise DeclarationError(f"there is no transcript (*.yaml) in {folder}")
    return [(transcript, variant) for transcript in transcript_of for variant in variants(transcript)]
