"""Starting, watching, changing and stopping an engine, on Spark and on the local one."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.crash.differences import Differences, calm, differences
from benchmarks.crash.outcome import Outcome
from benchmarks.crash.program import engine
from benchmarks.crash.recording import record
from benchmarks.harness import REPOSITORY
from eventide.engine.round.report import STEPS
from eventide.errors import CheckpointError, DeclarationError, EngineError
from eventide.launch import logs
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.window import SessionWindow
from eventide.sinks.sink import Memory
from tests.engine.small_streams import made, put, stream, tumbling, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = 6
SLIDING = ("sliding",)


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def session(request: pytest.FixtureRequest) -> SparkSession | None:
    """Each test on both engines: None is the local one."""
    found: SparkSession | None = request.getfixturevalue("spark") if request.param == "spark" else None
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return calm(tmp_path_factory.mktemp("calm"), FILES, SLIDING)


def test_an_engine_that_was_stopped_is_continued_exactly(
    session: SparkSession | None, expected: Outcome, tmp_path: Path
) -> None:
    record(tmp_path, FILES)
    running = engine(tmp_path, session, chosen=SLIDING)
    running.on_round(lambda work: running.stop() if work.number == 2 else None)
    running.start(bounded=True).await_end()
    assert running.status().round == 2
    assert not running.status().ended
    again = engine(tmp_path, session, chosen=SLIDING).start(bounded=True)
    again.await_end()
    assert again.status().ended
    assert differences(tmp_path, expected) == Differences()


def test_an_engine_that_has_ended_still_tells_which_sessions_are_open(tmp_path: Path) -> None:
    # Stopping `eventide run` failed: what is open was to be computed by an executor that had gone.
    put(tmp_path / "in", 0, [1, 5])
    sessions = Query("q", "s", SessionWindow(10), named_as(n="count(*)"))
    running = made(None, Program((stream(tmp_path / "in"),), (sessions,)), tmp_path / "state", {})
    running.on_round(lambda work: running.stop())
    running.start().await_end()
    [query] = running.status().queries
    assert query.waits_for is not None
    assert query.waits_for["window_start"] == 1


@pytest.mark.parametrize(
    ("number", "engine_name"),
    [
        (signal.SIGINT, "local"),
        (signal.SIGTERM, "local"),
        # A SIGTERM on Spark ends the run that tests/commands/test_prod_command.py asks.
        pytest.param(signal.SIGINT, "spark", marks=[pytest.mark.spark, pytest.mark.slow]),
    ],
)
def test_a_signal_ends_the_program_after_its_round_and_nothing_but_its_own_words_is_printed(
    number: signal.Signals, engine_name: str, expected: Outcome, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    record(tmp_path, FILES)
    command = [sys.executable, "-m", "benchmarks.crash.program", str(tmp_path), "--engine", engine_name]
    command += ["--query", "sliding", "--endless", "--tell"]
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        # Ctrl-C reaches every process of a terminal, a JVM too; SIGTERM is sent to one.
        os.killpg(process.pid, number) if number is signal.SIGINT else process.send_signal(number)
        rest, errors = process.communicate()
    assert process.returncode == 0
    assert errors == ""
    told = [first, *rest.splitlines(keepends=True)]
    assert told == [f"round {round}\n" for round in range(len(told))]
    spark = request.getfixturevalue("spark") if engine_name == "spark" else None
    engine(tmp_path, spark, chosen=SLIDING).start(bounded=True).await_end()
    assert differences(tmp_path, expected) == Differences()


def test_a_program_that_ends_without_a_word_ends_its_engine_after_the_round(expected: Outcome, tmp_path: Path) -> None:
    record(tmp_path, FILES)
    program = """
import sys, threading
from pathlib import Path
from benchmarks.crash.program import engine
running, begun = engine(Path(sys.argv[1]), chosen=("sliding",)), threading.Event()
running.on_round(lambda work: begun.set())
running.start()
begun.wait()
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    engine(tmp_path, chosen=SLIDING).start(bounded=True).await_end()
    assert differences(tmp_path, expected) == Differences()


def test_in_the_middle_of_a_round_the_status_is_that_of_the_round_before(
    session: SparkSession | None, tmp_path: Path
) -> None:
    record(tmp_path, FILES)
    seen: list[int] = []

    def look(round: int, step: str) -> None:
        if step == "emit":
            seen.append(running.status().streams[0].rows)

    running = engine(tmp_path, session, chosen=SLIDING, observer=look)
    running.start(bounded=True).await_end()
    assert seen == [200 * round for round in range(FILES + 1)]


def test_the_status_tells_how_it_stands_as_an_object_and_as_json(session: SparkSession | None, tmp_path: Path) -> None:
    record(tmp_path, FILES)
    running = engine(tmp_path, session, chosen=SLIDING)
    seen: list[dict[str, Any]] = []
    running.on_round(lambda work: seen.append(json.loads(json.dumps(running.status().as_json()))))
    ended = threading.Event()
    failures: list[BaseException] = []

    def look_all_the_time() -> None:
        try:
            while not ended.is_set():
                running.status()
        except BaseException as failure:
            failures.append(failure)

    onlooker = threading.Thread(target=look_all_the_time)
    onlooker.start()
    running.start(bounded=True).await_end()
    ended.set()
    onlooker.join()
    assert failures == []
    assert [status["round"] for status in seen] == list(range(FILES + 1))
    status = seen[FILES - 1]
    [readings], [sliding] = status["streams"], status["queries"]
    assert status["engine"] == ("local" if session is None else "spark")
    assert set(status["seconds"]) == set(STEPS)
    assert status["rows_per_second"] > 0
    assert readings["rows"] == FILES * 200
    assert readings["lag"] == readings["latest"] - readings["heartbeat"] > 0
    assert 0 < readings["drop_ratio"] == readings["late"] / readings["wanted"] < 0.2
    assert readings["rejected"] > 0
    assert readings["sources"] == 3
    assert min(sliding["open_slices"], sliding["state_rows"], sliding["state_bytes"]) > 0
    assert sliding["placement"] == "driver"
    last = running.status()
    assert (last.ended, last.queries[0].open_slices, last.warnings) == (True, 0, ())


def test_queries_come_and_go_while_it_runs_and_a_restart_has_to_know_them(
    session: SparkSession | None, tmp_path: Path
) -> None:
    inputs, checkpoint, sink = tmp_path / "in", tmp_path / "checkpoint", Memory()
    put(inputs, 0, [1, 12, 25])
    program = Program((stream(inputs),), (tumbling("first"),))
    running = made(session, program, checkpoint, {"first": sink})
    with pytest.raises(DeclarationError, match="there is no query 'third'; there are: first"):
        running.remove("third")
    running.start()
    wait_until(lambda: len(sink.rows("first")) == 2, running)
    running.add(tumbling("second"), sink)
    # Rows of the window in which it was added are not for it: it would have seen them only in part.
    put(inputs, 1, [27, 31, 45])
    wait_until(lambda: len(sink.rows("second")) == 1, running)
    running.remove("first")
    put(inputs, 2, [46, 58, 61])
    wait_until(lambda: len(sink.rows("second")) == 3, running)
    running.stop()
    ends = {query: [row["window_end"] for row in sink.rows(query)] for query in ("first", "second")}
    assert ends == {"first": [10, 20, 30, 40], "second": [40, 50, 60]}
    assert [row["n"] for row in sink.rows("second")] == [1, 2, 1]
    with pytest.raises(EngineError, match="cannot add query 'third': the engine has ended"):
        running.add(tumbling("third"))
    with pytest.raises(CheckpointError) as refused:
        made(session, program, checkpoint, {})
    assert "query second: removed, its state is dropped" in str(refused.value)
    assert "query first: added" in str(refused.value)
    assert "give the changed program another checkpoint" in str(refused.value)
    now = Program((stream(inputs),), (tumbling("second"),))
    made(session, now, checkpoint, {"second": sink}).start(bounded=True).await_end()
    assert [row["window_end"] for row in sink.rows("second")] == [40, 50, 60, 70]


def test_a_query_that_was_added_is_known_to_a_restart_even_if_no_row_came_since(
    session: SparkSession | None, tmp_path: Path
) -> None:
    inputs, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    put(inputs, 0, [1, 12, 25])
    program = Program((stream(inputs),), (tumbling("first"),))
    with made(session, program, checkpoint, {}) as running:
        running.start()
        wait_until(lambda: running.status().round >= 0, running)
        running.add(tumbling("second"))
    with made(session, program.with_query(tumbling("second")), checkpoint, {}) as again:
        assert {query.name for query in again.status().queries} == {"first", "second"}


def test_two_engines_on_one_checkpoint_are_refused(session: SparkSession | None, tmp_path: Path) -> None:
    put(tmp_path / "in", 0, [1])
    program = Program((stream(tmp_path / "in"),), (tumbling("first"),))
    with made(session, program, tmp_path / "checkpoint", {}):
        for other in (session, None):
            with pytest.raises(CheckpointError, match=r"another engine works on the checkpoint .* stop it, or give"):
                made(other, program, tmp_path / "checkpoint", {})
    made(session, program, tmp_path / "checkpoint", {}).stop()


@pytest.mark.spark
@pytest.mark.parametrize("order", [("local", "spark"), ("spark", "local")], ids=" then ".join)
def test_a_checkpoint_of_one_engine_is_not_continued_by_the_other(
    order: tuple[str, str], spark: SparkSession, tmp_path: Path
) -> None:
    put(tmp_path / "in", 0, [1, 12, 25])
    program = Program((stream(tmp_path / "in"),), (tumbling("first"),))
    one, other = (spark if name == "spark" else None for name in order)
    made(one, program, tmp_path / "checkpoint", {}).start(bounded=True).await_end()
    with pytest.raises(CheckpointError, match=f"made by the {order[0]} engine|made by the {order[0].title()}"):
        made(other, program, tmp_path / "checkpoint", {}).start(bounded=True).await_end()
    made(one, program, tmp_path / "checkpoint", {}).start(bounded=True).await_end()


@pytest.mark.spark
def test_without_sparks_log_of_what_was_read_nothing_is_continued(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "in", 0, [1, 12, 25])
    program = Program((stream(tmp_path / "in"),), (tumbling("first"),))
    with made(spark, program, tmp_path / "checkpoint", {}) as running:
        running.on_round(lambda work: running.stop())
        running.start().await_end()
    shutil.rmtree(tmp_path / "checkpoint" / "spark")
    with pytest.raises(
        CheckpointError, match=r"Spark's log of what was read has no batch 0 .* restore them from a copy"
    ):
        made(spark, program, tmp_path / "checkpoint", {}).start()


@pytest.mark.spark
def test_a_round_that_takes_long_is_finished_when_its_engine_is_stopped(spark: SparkSession, tmp_path: Path) -> None:
    """The thread that ticks saw the wish to stop, and Spark cancelled the job of the round under way."""
    put(tmp_path / "in", 0, [1, 12, 25])
    slowly = replace(tumbling("first"), where="reflect('java.lang.Thread', 'sleep', CAST(300 AS BIGINT)) = 'null'")
    program, memory = Program((stream(tmp_path / "in"),), (slowly,)), Memory()
    running = made(spark, program, tmp_path / "checkpoint", {"first": memory}, tick=0.02).start()
    wait_until(lambda: bool(spark.sparkContext.statusTracker().getActiveJobsIds()), running)
    running.stop()
    assert running.await_end()
    assert (running.engine.state.round, memory.table("first").column("total").to_pylist()) == (0, [1, 1])


def test_an_engine_is_started_once(tmp_path: Path) -> None:
    put(tmp_path / "in", 0, [1])
    program = Program((stream(tmp_path / "in"),), (tumbling("first"),))
    with made(None, program, tmp_path / "checkpoint", {}) as running:
        running.start()
        with pytest.raises(EngineError, match="was started before: make a new one"):
            running.start()


def test_what_a_sink_raises_ends_the_engine_and_the_next_one_goes_on(
    session: SparkSession | None, tmp_path: Path
) -> None:
    class Broken(Memory):
        def emit(self, results: Any) -> None:
            raise RuntimeError("the cable is out\nsecond line")

    put(tmp_path / "in", 0, [1, 12, 25])
    program = Program((stream(tmp_path / "in"),), (tumbling("first"),))
    with pytest.raises(EngineError, match=r"RuntimeError: the cable is out$"):
        made(session, program, tmp_path / "checkpoint", {"first": Broken()}).start(bounded=True).await_end()
    sink = Memory()
    made(session, program, tmp_path / "checkpoint", {"first": sink}).start(bounded=True).await_end()
    assert [row["window_end"] for row in sink.rows("first")] == [10, 20, 30]


@pytest.fixture
def log_file(tmp_path: Path) -> Iterator[Path]:
    """A log of JSON lines, while the test runs."""
    handler = logs.configure(json=True, file=tmp_path / "log", level="debug")
    yield tmp_path / "log"
    handler.close()
    root = logging.getLogger(logs.ROOT)
    root.removeHandler(handler)
    root.propagate = True


def test_every_line_of_the_log_is_one_event_with_its_figures(log_file: Path, tmp_path: Path) -> None:
    record(tmp_path, 2)
    engine(tmp_path, chosen=SLIDING).start(bounded=True).await_end()
    lines = [json.loads(line) for line in log_file.read_text(encoding="utf-8").splitlines()]
    assert [line["event"] for line in lines] == ["starting", "round", "round", "round", "ended"]
    assert [line["round"] for line in lines[1:4]] == [0, 1, 2]
    assert lines[1]["level"] == "DEBUG"
    assert lines[1]["reduce_ms"] > 0
    assert lines[3]["results"] > 0


def test_a_log_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"cannot write the log to .*: No such file or directory: name another"):
        logs.configure(file=tmp_path / "no" / "log")
