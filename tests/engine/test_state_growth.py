"""State that grows while a source is silent."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from eventide.engine.introspection.status import StateGrowth
from eventide.engine.local.engine import LocalEngine
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import Window
from eventide.sources.local_input import Batches

STREAM = Stream("s", columns("t BIGINT, k STRING"), time="t", source=("k",), policy=OwnProgress())


def grown(tmp_path: Path, silent: bool) -> list[pa.Table]:
    """One row of each source, then many of `a`, and of `b` unless it is silent."""
    first = pa.table({"t": [0, 0], "k": ["a", "b"]})
    who = ["a"] if silent else ["a", "b"]
    more = [
        pa.table({"t": [t for t in range(100 * n, 100 * n + 100) for _ in who], "k": who * 100}) for n in range(1, 40)
    ]
    batches = [first, *more]
    query = Query("q", "s", Window(1), named_as(n="count(*)"), groups=named_as("k"))
    engine = LocalEngine(Program((STREAM,), (query,)), str(tmp_path), {}, {"s": Batches(STREAM, batches)})
    engine._limits = {"s": 100 * len(who)}
    engine.growth = StateGrowth(large=4096)
    engine.run(bounded=False)
    return batches


def test_growth_is_told_again_each_time_it_has_doubled_with_who_is_silent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grown(tmp_path, silent=True)
    told = [record.getMessage() for record in caplog.records if "state has grown" in record.getMessage()]
    assert 3 <= len(told) <= 8
    assert all("waits for source 'b' of stream 's', silent since " in one for one in told)
    assert all("IDLE AFTER" in one for one in told)


def test_nothing_is_told_where_all_sources_speak(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    grown(tmp_path, silent=False)
    assert "state has grown" not in caplog.text


def test_the_rate_of_rows_is_0_after_a_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After minutes without a row the status line still said 18 rows/s."""
    with LocalEngine(Program((STREAM,)), str(tmp_path), {}, {"s": Batches(STREAM, [])}) as engine:
        engine._pace.extend([(0.0, 0), (1.0, 100)])
        for now, rate in ((2.0, 100.0), (5.9, 100.0), (60.0, 0.0)):
            monkeypatch.setattr("eventide.engine.running.time.monotonic", lambda now=now: now)
            assert engine._rows_per_second() == rate
        monkeypatch.undo()


def test_a_stop_that_fails_is_told_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def stop() -> None:
        raise RuntimeError("TimeoutException: 30000 ms\n\tat java.base")

    with (
        LocalEngine(Program((STREAM,)), str(tmp_path), {}, {"s": Batches(STREAM, [])}) as engine,
        monkeypatch.context() as patched,
    ):
        patched.setattr(engine, "stop", stop)
        engine._stop_in_words()
    assert caplog.messages == ["the engine could not be stopped at once: RuntimeError: TimeoutException: 30000 ms"]
