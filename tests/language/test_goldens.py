"""Every case of tests/queries gives the answers that are written beside it, on both engines."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eventide.engine.local.engine import LocalEngine
from eventide.language.script import Script, read_script
from eventide.plan.declared.program import Program
from eventide.plan.declared.stream import Input
from eventide.sinks.sink import Memory
from tests.choice import chosen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = Path(__file__).parent.parent / "queries"
NAMES = sorted(path.stem for path in CASES.glob("*.sql"))
# A file through Spark takes seconds. Of these each shows a clause of its own; `--all` runs the others.
ALWAYS_ON_SPARK = {
    "disorder_drop_ratio",
    "gigascope_three_interfaces",
    "joins_of_each_kind",
    "lookups_as_of",
    "names_and_expressions",
    "q1_1_average_speed",
    "sample_of_everything",
    "spark_window",
    "top_of_each_window",
    "windows_of_rows",
}


def lines(name: str, part: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CASES / f"{name}.{part}.jsonl").read_text().splitlines() if line.strip()]


def script_of(name: str) -> Script:
    path = CASES / f"{name}.sql"
    return read_script(path.read_text(), path.name)


def with_rows(script: Script, name: str, folder: Path) -> Program:
    """The program, every stream reading its rows of the case."""
    given = lines(name, "input")
    streams = []
    for stream in script.program.streams:
        mine = [row for row in given if row.get("stream", stream.name) == stream.name]
        place = folder / stream.name
        place.mkdir()
        text = "".join(json.dumps({k: v for k, v in row.items() if k != "stream"}) + "\n" for row in mine)
        (place / "rows.json").write_text(text)
        streams.append(replace(stream, input=Input("json", str(place))))
    return replace(script.program, streams=tuple(streams))


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    return round(value, 6) if isinstance(value, float) else value


def told(script: Script, memory: Memory, expected: list[dict[str, Any]]) -> tuple[Counter[str], Counter[str]]:
    """The expected results and the found ones, of each the columns that matter, as texts that can be counted."""
    found = [
        {key: plain(value) for key, value in row.items()}
        for output in script.outputs
        for row in memory.rows(output.query)
    ]
    only = script.outputs[0].query
    wanted = [{"query": only, **line} for line in expected]
    columns = {query: sorted(line) for line in wanted for query in [line["query"]]}
    for line in wanted:
        assert sorted(line) == columns[line["query"]], "all lines of one query must name the same columns"
    shown = [{key: row.get(key) for key in columns.get(row["query"], sorted(row))} for row in found]
    return Counter(json.dumps(w, sort_keys=True) for w in wanted), Counter(json.dumps(s, sort_keys=True) for s in shown)


def run_local(name: str, folder: Path) -> tuple[Counter[str], Counter[str]]:
    script, memory = script_of(name), Memory()
    program = with_rows(script, name, folder)
    sinks = {output.query: memory for output in script.outputs}
    LocalEngine(program, str(folder / "state"), sinks).run(bounded=True)
    return told(script, memory, lines(name, "expected"))


@pytest.mark.parametrize("name", NAMES)
def test_the_local_engine_gives_the_answers(name: str, tmp_path: Path) -> None:
    expected, found = run_local(name, tmp_path)
    assert found == expected


@pytest.mark.spark
@pytest.mark.parametrize("name", chosen(NAMES, lambda name: name in ALWAYS_ON_SPARK))
def test_spark_gives_the_answers(name: str, tmp_path: Path, spark: SparkSession) -> None:
    from eventide.engine.spark.engine import SparkEngine

    script, memory = script_of(name), Memory()
    program = with_rows(script, name, tmp_path)
    sinks = {output.query: memory for output in script.outputs}
    SparkEngine(spark, program, str(tmp_path / "state"), sinks).start(bounded=True).await_end()
    expected, found = told(script, memory, lines(name, "expected"))
    assert found == expected


def test_every_case_is_whole() -> None:
    assert set(NAMES) > ALWAYS_ON_SPARK
    for name in NAMES:
        assert lines(name, "input"), f"{name}.input.jsonl has no rows"
        assert lines(name, "expected"), f"{name}.expected.jsonl expects nothing"
