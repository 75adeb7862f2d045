"""Inputs under the engines: every kind ends a bounded run with the same answers, and rejects keep what was broken."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide.engine.local.engine import LocalEngine
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Input, Stream, columns
from eventide.plan.declared.window import Window
from eventide.sinks.sink import Memory
from eventide.sources.local_input import Batches, LocalInput
from eventide.sources.standard_input import StandardInput

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM = Stream(
    "s", columns("t BIGINT, k STRING, v INT, seen BIGINT"), time="t", source=("k",), policy=FixedDelay(1000)
)
QUERY = Query("q", "s", Window(range=10, slide=10), select=named_as(total="sum(v)"), groups=named_as("k"))
ROWS: list[dict[str, Any]] = [{"t": 7 * n % 100, "k": "ab"[n % 2], "v": n, "seen": n} for n in range(100)]


def expected() -> list[tuple[int, str, int]]:
    totals: dict[tuple[int, str], int] = {}
    for row in ROWS:
        window = (row["t"] // 10 * 10 + 10, row["k"])
        totals[window] = totals.get(window, 0) + row["v"]
    return sorted((end, key, total) for (end, key), total in totals.items())


def finals(memory: Memory) -> list[tuple[Any, ...]]:
    return sorted((row["window_end"], row["k"], row["total"]) for row in memory.rows("q"))


def local_run(stream: Stream, folder: Path, given: LocalInput | None = None) -> list[tuple[Any, ...]]:
    memory = Memory()
    inputs = {} if given is None else {"s": given}
    engine = LocalEngine(Program((stream,), (QUERY,)), str(folder / "state"), {"q": memory}, inputs)
    engine.run(bounded=True)
    return finals(memory)


def as_json() -> str:
    return "".join(json.dumps(row) + "\n" for row in ROWS)


def json_folder(folder: Path) -> tuple[Stream, LocalInput | None]:
    (folder / "in").mkdir()
    (folder / "in" / "a.json").write_text(as_json())
    return replace(STREAM, input=Input("json", str(folder / "in"), max_rows=17)), None


def followed(folder: Path) -> tuple[Stream, LocalInput | None]:
    (folder / "log").write_text(as_json())
    return replace(STREAM, input=Input("follow", str(folder / "log"), max_rows=17)), None


def piped(folder: Path) -> tuple[Stream, LocalInput | None]:
    stream = replace(STREAM, input=Input("stdin"))
    return stream, StandardInput(stream, io.BytesIO(as_json().encode()))


def from_python(folder: Path) -> tuple[Stream, LocalInput | None]:
    return STREAM, Batches(STREAM, pa.Table.from_pylist(ROWS).cast(_schema()).to_batches(max_chunksize=9))


def replayed(folder: Path) -> tuple[Stream, LocalInput | None]:
    pq.write_table(pa.Table.from_pylist(ROWS).cast(_schema()), folder / "r.parquet")
    options = (("schedules", str(folder / "schedules")), ("by", "seen"), ("speed", "max"))
    return replace(STREAM, input=Input("replay", str(folder / "r.parquet"), options, max_rows=17)), None


def _schema() -> pa.Schema:
    return pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int32()), ("seen", pa.int64())])


INPUTS = [json_folder, followed, piped, from_python, replayed]
Made = Callable[[Path], tuple[Stream, LocalInput | None]]


@pytest.mark.parametrize("made", INPUTS)
def test_every_local_input_gives_the_same_answers(tmp_path: Path, made: Made) -> None:
    stream, given = made(tmp_path)
    assert local_run(stream, tmp_path, given) == expected()


def test_what_is_malformed_or_has_no_time_is_rejected_with_its_reason(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.json").write_text(as_json() + '{"t": "x", "k": "a", "v": 1}\n{"k": "a", "v": 1}\n')
    stream = replace(STREAM, input=Input("json", str(folder)))
    assert local_run(stream, tmp_path) == expected()
    files = sorted((tmp_path / "state" / "rejects" / "s").rglob("*.parquet"))
    rejects = [row for file in files for row in pq.read_table(file).to_pylist()]
    assert sorted(row["_reason"] for row in rejects) == ["malformed row", "no time"]
    assert '{"t": "x", "k": "a", "v": 1}' in {row["_malformed"] for row in rejects}


@pytest.mark.spark
def test_a_disturbed_replay_gives_the_same_answers_on_both_engines(spark: SparkSession, tmp_path: Path) -> None:
    from eventide.engine.spark.engine import SparkEngine

    stream, _ = replayed(tmp_path)
    assert stream.input is not None
    delays = ("delays", json.dumps([{"mean": 15, "distribution": "uniform", "share": 0.5}]))
    disturbed = replace(stream.input, options=(*stream.input.options, delays))
    stream = replace(stream, input=disturbed, arrival="seen")
    memory = Memory()
    program = Program((stream,), (QUERY,))
    engine = SparkEngine(spark, program, str(tmp_path / "spark"), {"q": memory})
    engine.start(bounded=True).await_end()
    assert finals(memory) == expected()
    assert local_run(stream, tmp_path) == expected()
