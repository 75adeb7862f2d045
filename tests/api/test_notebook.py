"""A running query in a real notebook shell: what a cell shows, and how it is drawn again."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

import eventide
from eventide.eventtime.policies.own_progress import OwnProgress


@pytest.fixture
def cell() -> Iterator[CapturingDisplayPublisher]:
    """Whatever cells display while the test runs."""
    shell = InteractiveShell.instance()
    publisher, before = CapturingDisplayPublisher(shell=shell), shell.display_pub  # type: ignore[no-untyped-call]
    shell.display_pub = publisher
    yield publisher
    shell.display_pub = before
    InteractiveShell.clear_instance()


def texts(cell: CapturingDisplayPublisher) -> list[str]:
    return [str(one["data"].get("text/html", "")) for one in cell.outputs]


def awaited(cell: CapturingDisplayPublisher, words: str) -> str:
    """The last that was displayed, as soon as these words are in it."""
    deadline = time.monotonic() + 60
    while not any(words in one for one in texts(cell)[-1:]):
        assert time.monotonic() < deadline, texts(cell)[-1:]
        time.sleep(0.01)
    return texts(cell)[-1]


def rows(times: list[int], sensor: str) -> pa.RecordBatch:
    return pa.record_batch({"t": times, "sensor": [sensor] * len(times), "v": times})


def test_a_notebook_shows_who_holds_time_back_and_why_a_window_is_open_until_the_end(
    cell: CapturingDisplayPublisher,
) -> None:
    coming: queue.Queue[pa.RecordBatch | None] = queue.Queue()
    both = pa.Table.from_batches([rows([1, 12], "<b>north</b>"), rows([2, 45], "south")])
    coming.put(both.combine_chunks().to_batches()[0])
    sensors = eventide.stream(iter(coming.get, None), time="t", source="sensor", name="sensors").policy(OwnProgress())
    with sensors.window(10).agg(total="sum(v)").named("totals").start() as running:
        shell: Any = InteractiveShell.instance()
        shell.user_ns["totals"] = running
        shell.run_cell("totals")
        shown = awaited(cell, "holds time back")
        assert "<b>totals</b> running" in shown
        assert "&lt;b&gt;north&lt;/b&gt;: 34 behind, holds time back" in shown
        assert "south: 1 behind" in shown
        assert "window 10 to 20 waits for &lt;b&gt;north" in shown
        coming.put(rows([50], "<b>north</b>"))
        coming.put(None)
        running.awaitTermination(60)
        last = awaited(cell, "<b>totals</b> ended")
    assert "the last 4 of 4 results" in last
    assert {one["transient"].get("display_id") for one in cell.outputs} == {cell.outputs[0]["transient"]["display_id"]}
