"""A changed program over its checkpoint, on both engines: streams and queries come, go, and read the past."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eventide.engine.running import Running
from eventide.errors import CheckpointError, DeclarationError, InputError
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.plan.declared.evolution import Consent
from eventide.plan.declared.program import Program
from eventide.plan.declared.stream import Input, columns
from eventide.sinks.sink import Memory
from eventide.sources.local_input import Batches
from tests.engine.small_streams import made, put, stream, tumbling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def session(request: pytest.FixtureRequest) -> SparkSession | None:
    """Each test on both engines: None is the local one."""
    found: SparkSession | None = request.getfixturevalue("spark") if request.param == "spark" else None
    return found


only_local = pytest.mark.parametrize("session", ["local"], indirect=True)
"""What is decided by the same lines for both engines."""


class Runs:
    """Runs of one checkpoint, one after the other."""

    def __init__(self, session: SparkSession | None, folder: Path) -> None:
        self.session, self.folder, self.sink = session, folder, Memory()

    def engine(self, program: Program, consent: Consent | None = None) -> Running:
        sinks = {query.name: self.sink for query in program.queries}
        return made(self.session, program, self.folder / "checkpoint", sinks, consent=consent)

    def run(self, program: Program, rows: int | None, consent: Consent | None = None) -> None:
        """Run until so many rows have come in all; None: to the end of what is there."""
        with self.engine(program, consent) as engine:

            def look(_: object) -> None:
                if rows is not None and sum(one.losses.rows for one in engine.engine.streams.values()) >= rows:
                    engine.stop()

            engine.on_round(look)
            engine.start(bounded=rows is None).await_end()

    def windows(self, query: str) -> list[tuple[int, int]]:
        found = [(row["window_start"], row["n"]) for row in self.sink.rows(query)]
        assert len(set(found)) == len(found), "a window was given twice"
        return sorted(found)


def of(folder: Path, *names: str) -> tuple:  # type: ignore[type-arg]
    """Streams by these names, each over a folder of its own."""
    return tuple(replace(stream(folder / name), name=name) for name in names)


def test_streams_and_queries_come_and_go_and_what_stays_goes_on(session: SparkSession | None, tmp_path: Path) -> None:
    runs = Runs(session, tmp_path)
    put(tmp_path / "s", 0, [1, 12, 25])
    put(tmp_path / "r", 0, [3, 14, 30])
    q, n, z = tumbling("q"), replace(tumbling("n"), stream="r"), tumbling("z")
    q, z = (replace(query, stream="s") for query in (q, z))
    runs.run(Program(of(tmp_path, "s"), (q,)), rows=3)
    put(tmp_path / "s", 1, [31, 42])
    runs.run(Program(of(tmp_path, "r", "s"), (z, q, n)), rows=8, consent=Consent(backfill=("z",)))
    with pytest.raises(CheckpointError, match="query n: removed, its state is dropped"):
        runs.engine(Program(of(tmp_path, "s"), (q, z)))
    put(tmp_path / "s", 2, [55])
    runs.run(Program(of(tmp_path, "s"), (q, z)), rows=None, consent=Consent(accept=True))
    every = [(start, 1) for start in range(0, 60, 10)]
    assert runs.windows("q") == every
    assert runs.windows("z") == every
    assert runs.windows("n") == [(0, 1), (10, 1)]


def test_a_changed_query_begins_after_the_rows_that_have_come(session: SparkSession | None, tmp_path: Path) -> None:
    runs = Runs(session, tmp_path)
    put(tmp_path / "s", 0, [1, 12, 25])
    streams = of(tmp_path, "s")
    q = replace(tumbling("q"), stream="s")
    runs.run(Program(streams, (q,)), rows=3)
    put(tmp_path / "s", 1, [27, 33, 39, 41, 52])
    # Another delay, and a column more that the files do not have yet, need no word.
    wider = (replace(streams[0], policy=FixedDelay(1)),)
    changed = replace(q, where="v > 0")
    with pytest.raises(CheckpointError, match=r"query q: changed, .* \(WHERE was not declared, is now v > 0\)"):
        runs.engine(Program(wider, (changed,)))
    runs.run(Program(wider, (changed,)), rows=None, consent=Consent(accept=True))
    assert runs.windows("q") == [(0, 1), (10, 1), (30, 2), (40, 1), (50, 1)]


@only_local
def test_what_is_not_accepted_leaves_the_checkpoint_to_the_old_program(
    session: SparkSession | None, tmp_path: Path
) -> None:
    runs = Runs(session, tmp_path)
    put(tmp_path / "s", 0, [1, 12, 25])
    q = replace(tumbling("q"), stream="s")
    runs.run(Program(of(tmp_path, "s"), (q,)), rows=3)
    with pytest.raises(CheckpointError, match="--accept"):
        runs.engine(Program(of(tmp_path, "s"), (replace(q, where="v > 0"),)))
    runs.run(Program(of(tmp_path, "s"), (q,)), rows=None)
    assert runs.windows("q") == [(0, 1), (10, 1), (20, 1)]


@only_local
@pytest.mark.parametrize("names", [("nope",), ("q",)])
def test_a_backfill_of_nothing_is_refused(session: SparkSession | None, tmp_path: Path, names: Sequence[str]) -> None:
    runs = Runs(session, tmp_path)
    put(tmp_path / "s", 0, [1, 12, 25])
    program = Program(of(tmp_path, "s"), (replace(tumbling("q"), stream="s"),))
    runs.run(program, rows=3)
    with pytest.raises(DeclarationError, match=r"no query 'nope' to backfill|'q' continues with its state"):
        runs.engine(program, Consent(backfill=tuple(names)))


@only_local
def test_a_backfill_reads_a_file_that_was_read_in_part_up_to_where_it_was_read(
    session: SparkSession | None, tmp_path: Path
) -> None:
    runs = Runs(session, tmp_path)
    (tmp_path / "s").mkdir()
    lines = "".join(f'{{"t": {10 * number}, "k": "a", "v": 1}}\n' for number in range(10))
    (tmp_path / "s" / "a.json").write_text(lines)
    [given] = of(tmp_path, "s")
    parted = replace(given, input=Input("json", str(tmp_path / "s"), max_rows=4))
    q, z = (replace(tumbling(name), stream="s") for name in "qz")
    runs.run(Program((parted,), (q,)), rows=4)
    runs.run(Program((parted,), (q, z)), rows=None, consent=Consent(backfill=("z",)))
    assert runs.windows("z") == runs.windows("q") == [(start, 1) for start in range(0, 100, 10)]


@only_local
def test_a_backfill_whose_files_are_gone_or_whose_rows_come_once_is_refused(
    session: SparkSession | None, tmp_path: Path
) -> None:
    runs = Runs(session, tmp_path)
    put(tmp_path / "s", 0, [1, 12, 25])
    [given] = of(tmp_path, "s")
    q, z = (replace(tumbling(name), stream="s") for name in "qz")
    runs.run(Program((given,), (q,)), rows=3)
    (tmp_path / "s" / "0000.parquet").unlink()
    with pytest.raises(InputError, match=r"0000\.parquet was read, and cannot be read again"):
        runs.run(Program((given,), (q, z)), rows=None, consent=Consent(backfill=("z",)))
    with pytest.raises(DeclarationError, match="stream 's' cannot be read again from its beginning"):
        made(
            None,
            Program((given,), (q, z)),
            tmp_path / "checkpoint",
            {},
            inputs={"s": Batches(given, [])},
            consent=Consent(backfill=("z",)),
        )


@only_local
def test_a_column_more_needs_no_word_and_another_type_changes_those_that_read_it(
    session: SparkSession | None, tmp_path: Path
) -> None:
    runs = Runs(session, tmp_path)
    put(tmp_path / "s", 0, [1, 12, 25])
    [given] = of(tmp_path, "s")
    q, counted = (replace(tumbling(name), stream="s") for name in ("q", "counted"))
    counted = replace(counted, select=counted.select[:1])
    runs.run(Program((given,), (q, counted)), rows=3)
    retyped = replace(given, columns=columns("t BIGINT, k STRING, v BIGINT"))
    with pytest.raises(CheckpointError) as refused:
        runs.engine(Program((retyped,), (q, counted)))
    assert "query q: changed" in str(refused.value)
    assert "query counted" not in str(refused.value)
    runs.run(Program((retyped,), (q, counted)), rows=None, consent=Consent(accept=True))
    assert runs.windows("counted") == [(0, 1), (10, 1), (20, 1)]
    assert runs.windows("q") == [(0, 1), (10, 1)]
