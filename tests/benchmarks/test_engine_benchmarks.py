"""What the engines' benchmarks measure with is right: their files, their truth, their clocks. Times are not tested."""

from __future__ import annotations

import doctest
import importlib
import json
import os
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import benchmarks
from benchmarks import overhead
from benchmarks.disorder import SECOND, START, Disorder, Disordered
from benchmarks.processes import PeakMemory, cpu_seconds
from benchmarks.question import QUESTIONS, SLIDING6, TUMBLING, Question, Truth
from benchmarks.scale import windows
from benchmarks.spark_native import __main__ as spark_native
from benchmarks.spark_native.latency import NativeFiles, closers, eventide_files
from benchmarks.spark_native.sides import SIDES, Task
from benchmarks.spark_native.throughput import Throughput
from eventide.engine.round.reduce import cell_width
from eventide.eventtime.arrivals import Arrivals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = Disorder(rows=3_000, groups=5, files=6, seconds=200, mean_delay=3.0)

Answers = dict[tuple[int, int], tuple[int, int, int]]


@pytest.fixture
def data(tmp_path: Path) -> Disordered:
    return SMALL.into(tmp_path / "in")


def rows_of(data: Disordered) -> list[tuple[int, int, int, int, str]]:
    """Time, arrival, key, value and file of every row, file by file."""
    files = f"read_parquet('{data.folder}/*.parquet', filename = true)"
    found = duckdb.connect().execute(f"SELECT epoch_us(ts), epoch_us(arrived), k, v, filename FROM {files}").fetchall()
    return [(int(ts), int(at), int(k), int(v), Path(name).name) for ts, at, k, v, name in found]


def brute_force(question: Question, data: Disordered) -> Answers:
    """(window end, key) -> sum, count, maximum, row by row."""
    answers: Answers = {}
    for time, _, k, v, _ in rows_of(data):
        start = time // (question.slide * SECOND) * question.slide * SECOND
        while start + question.range * SECOND > time:
            end = start + question.range * SECOND
            total, n, most = answers.get((end, k), (0, 0, v))
            answers[end, k] = total + v, n + 1, max(most, v)
            start -= question.slide * SECOND
    return answers


def written(answers: Answers, path: Path) -> str:
    """Results as a side would leave them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(
        {
            "window_end": pa.array([end for end, _ in answers], pa.timestamp("us", "UTC")),
            "k": pa.array([k for _, k in answers], pa.int32()),
            **{name: pa.array([a[i] for a in answers.values()], pa.int64()) for i, name in enumerate(("total", "n"))},
            "most": pa.array([a[2] for a in answers.values()], pa.int32()),
        }
    )
    pq.write_table(table, path)
    return str(path)


# The files


def test_files_hold_every_row_in_the_order_of_arrival_and_are_dated_in_it(data: Disordered) -> None:
    rows = sorted(rows_of(data), key=lambda row: row[1])
    assert len(rows) == data.rows == SMALL.rows
    assert [row[4] for row in rows] == sorted(row[4] for row in rows)
    dates = [path.stat().st_mtime for path in data.files]
    assert dates == sorted(set(dates))


def test_rows_are_late_by_what_was_asked_for_and_never_by_more_than_the_delay(data: Disordered) -> None:
    late = [at - ts for ts, at, *_ in rows_of(data)]
    assert max(late) < data.delay
    assert sum(late) / len(late) == pytest.approx(SMALL.mean_delay * SECOND, rel=0.1)
    assert sum(delay < SMALL.mean_delay * SECOND for delay in late) / len(late) == pytest.approx(0.632, abs=0.05)


def test_a_fixed_delay_loses_no_row(data: Disordered) -> None:
    largest = START
    for ts, *_ in sorted(rows_of(data), key=lambda row: row[1]):
        assert ts > largest - data.delay
        largest = max(largest, ts)


def test_the_same_declaration_gives_the_same_rows_and_another_seed_gives_others(tmp_path: Path) -> None:
    again, other = SMALL.into(tmp_path / "again"), Disorder(3_000, 5, 6, 200, 3.0, seed=2).into(tmp_path / "other")
    first = SMALL.into(tmp_path / "first")
    assert rows_of(first) == rows_of(again)
    assert rows_of(first) != rows_of(other)


def test_the_first_files_keep_their_rows_and_dates(data: Disordered, tmp_path: Path) -> None:
    some = data.first(2, tmp_path / "some")
    assert len(rows_of(some)) == some.rows == 1_000
    assert [path.stat().st_mtime for path in some.files] == [path.stat().st_mtime for path in data.files[:2]]


# The truth


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_the_truth_is_what_brute_force_finds(question: Question, data: Disordered, tmp_path: Path) -> None:
    answers = brute_force(question, data)
    results = written(answers, tmp_path / "out" / "a.parquet")
    assert Truth(question, data).check("a side", results, complete=True) == len(answers)


def test_a_side_that_may_leave_out_the_last_windows_may_leave_out_no_other(data: Disordered, tmp_path: Path) -> None:
    answers = brute_force(SLIDING6, data)
    last = max(end for end, _ in answers)
    truth = Truth(SLIDING6, data)
    short = {key: answer for key, answer in answers.items() if key[0] < last}
    results = written(short, tmp_path / "short" / "a.parquet")
    truth.check("a side", results, complete=False)
    with pytest.raises(SystemExit, match="rows are missing"):
        truth.check("a side", results, complete=True)
    del short[next(iter(short))]
    with pytest.raises(SystemExit, match="1 rows are missing"):
        truth.check("a side", written(short, tmp_path / "hole" / "a.parquet"), complete=False)


def test_a_wrong_value_and_a_row_given_twice_are_both_told(data: Disordered, tmp_path: Path) -> None:
    answers = brute_force(TUMBLING, data)
    truth = Truth(TUMBLING, data)
    written(answers, tmp_path / "twice" / "a.parquet")
    written(dict([next(iter(answers.items()))]), tmp_path / "twice" / "b.parquet")
    with pytest.raises(SystemExit, match="0 rows are missing and 1 are too many"):
        truth.check("a side", str(tmp_path / "twice" / "*.parquet"), complete=True)
    key = next(iter(answers))
    wrong = {**answers, key: (answers[key][0] + 1, *answers[key][1:])}
    with pytest.raises(SystemExit, match="a side does not give the right answers to tumbling: 1 rows are missing"):
        truth.check("a side", written(wrong, tmp_path / "wrong" / "a.parquet"), complete=True)


def test_a_side_without_results_is_no_right_side(data: Disordered, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="gave no results"):
        Truth(TUMBLING, data).check("a side", str(tmp_path / "nothing" / "*.parquet"), complete=False)


@pytest.mark.slow
@pytest.mark.spark
def test_every_side_gives_the_truth(spark: SparkSession, data: Disordered, tmp_path: Path) -> None:
    truth = Truth(SLIDING6, data)
    for side in SIDES:
        task = Task(SLIDING6, data, 3, tmp_path / side.name)
        ran = side.run(spark, task)
        assert truth.check(side.name, str(task.results / side.pattern), side.complete) > 0
        if side.name == "eventide":
            assert {path.suffix for path in eventide_files(task.results)} == {".parquet"}
        else:
            # Two rounds have rows; what Spark's log names is what is there.
            assert len(ran.round_ms) == 2
            assert set(NativeFiles(task.results)()) == set(task.results.glob("part-*.parquet"))


# What is measured


def test_a_window_is_closed_by_the_first_file_that_is_far_enough_beyond_its_end() -> None:
    maxima, delay = [14, 9, 33, 35, 70], 4
    ends = range(10, 90, 10)
    found = closers(maxima, ends, delay)
    for end in ends:
        able = [number for number, largest in enumerate(maxima) if largest - delay >= end]
        assert found.get(end) == (able[0] if able else None)


def test_files_of_spark_count_once_its_log_names_them(tmp_path: Path) -> None:
    logs = tmp_path / "_spark_metadata"
    readable = NativeFiles(tmp_path)
    (tmp_path / "part-0.parquet").touch()
    assert readable() == []
    logs.mkdir()
    lines = [json.dumps({"path": f"file:///anywhere/part-{i}.parquet", "action": "add"}) for i in range(2)]
    (logs / ".0.tmp").write_text("v1\n")
    (logs / "0").write_text("v1\n" + lines[0])
    assert readable() == [tmp_path / "part-0.parquet"]
    (logs / "9.compact").write_text("\n".join(["v1", *lines]))
    assert set(readable()) == {tmp_path / "part-0.parquet", tmp_path / "part-1.parquet"}


def test_the_last_line_of_the_native_benchmark_has_its_names() -> None:
    by_side = (("eventide", 6.0), ("eventide_sql", 3.0), ("window", 2.0))
    rates = {(q.name, side): [rate] for q in QUESTIONS for side, rate in by_side}
    measured = Throughput({**rates, ("tumbling", "noop"): [8.0]}, 10, {})
    round_ms = {"sliding6": {"eventide": 7.0, "window": 10.0}, "tumbling": {"eventide": 8.0, "window": 10.0}}
    found = spark_native.headline(measured, round_ms, {"eventide": 1.0, "window": 4.0})
    assert {name: found[name] for name in found if name.endswith(("ratio", "fraction")) and "chain" not in name} == {
        "tumbling_round_ratio": 0.8,
        "sliding60_throughput_ratio": 3.0,
        "sliding6_throughput_ratio": 3.0,
        "tumbling_throughput_ratio": 3.0,
        "scan_fraction": 0.75,
        "sliding60_sql_throughput_ratio": 1.5,
        "tumbling_sql_throughput_ratio": 1.5,
        "sql_scan_fraction": 0.375,
        "round_ratio": 0.7,
        "final_latency_ratio": 0.25,
    }


def test_growth_is_of_seconds_per_row_from_the_smallest_to_the_largest() -> None:
    def cell(groups: int, slices: int, rows: int, seconds: float, moved: float | None = None) -> windows.Cell:
        return windows.Cell(groups, slices, rows, seconds, 100.0 + seconds, 200.0, slices, 1.0, moved)

    found = windows.headline(
        [cell(10, 1, 100, 1.0), cell(1_000, 1, 200, 3.0)],
        [cell(10, 1, 100, 2.0), cell(10, 60, 100, 5.0)],
        [cell(1_000, 60, 100, 9.0, moved=32.5), cell(1_000, 60, 100, 8.0)],
    )
    assert (found["cost_growth"], found["slices_growth"], found["switched_at_mb"]) == (1.5, 2.5, 32.5)
    assert (found["driver_rss_mb"], found["driver_rss_mb_kept"], found["driver_rss_mb_small"]) == (109.0, 108.0, 101.0)


def test_recorded_heartbeats_come_again_round_by_round_also_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "left.json"
    file.write_text("[3, 8, 8, 20]")
    policy = overhead.Recorded(0, str(file))

    def rounds(generator: overhead.RecordedGenerator, count: int) -> Iterator[int]:
        for number in range(count):
            generator.observe(Arrivals.of_row(clock=number, source=0, time=1_000))
            yield generator.heartbeats(number).combined

    assert list(rounds(policy.start(), 4)) == [3, 8, 8, 20]
    begun = policy.start()
    assert list(rounds(begun, 2)) == [3, 8]
    assert list(rounds(policy.resume(begun.snapshot()), 2)) == [8, 20]


def test_without_heartbeats_no_summary_finer_than_slices_is_made(tmp_path: Path) -> None:
    data = dict.fromkeys(overhead.NAMES, Disordered(tmp_path, (), 0, SECOND))
    pane = TUMBLING.slide * SECOND
    for kind in overhead.KINDS:
        policies = overhead.policies_of(kind, data, tmp_path)
        fine = [cell_width(stream, [pane]) < pane for stream in overhead.program(data, policies).streams]
        assert fine == [kind == ("learned", "with")] * 2


def test_runs_whose_results_differ_cannot_be_compared(tmp_path: Path) -> None:
    for name, total in (("one", 1), ("same", 1), ("other", 2)):
        (tmp_path / name / "results").mkdir(parents=True)
        told = {"query": "q", "window_end": 10, "round": 0, "heartbeat": 12, "k": 1, "total": total, "n": 1, "most": 1}
        pq.write_table(pa.Table.from_pylist([told]), tmp_path / name / "results" / "q.parquet")
    assert overhead.same_results(tmp_path / "one", tmp_path / "same") == 1
    with pytest.raises(SystemExit, match="1 of 1 results differ"):
        overhead.same_results(tmp_path / "one", tmp_path / "other")


def test_processor_time_and_memory_are_those_that_were_used() -> None:
    me = os.getpid()
    before = cpu_seconds(me)
    with PeakMemory([me], every=0.01) as peak:
        held = peak.mb[me]
        block = bytearray(os.urandom(1)) * (64 * 2**20)
        while cpu_seconds(me) - before < 0.05:
            block[0] ^= 1
    assert peak.mb[me] - held > 32


@pytest.mark.parametrize(
    "name",
    [found.name for found in pkgutil.walk_packages(benchmarks.__path__, "benchmarks.")],
)
def test_examples_in_benchmarks_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
