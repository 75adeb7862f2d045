"""Signals around the start and the end of an engine."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventide.engine.running import Running
from eventide.plan.declared.program import Program
from tests.engine.small_streams import made, put, stream, tumbling


class HurryError(BaseException):
    """What SIGTERM raised before there was an engine."""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Running]:
    """An engine that has not been started, while SIGTERM raises an error."""

    def hurry(*_: object) -> None:
        raise HurryError

    put(tmp_path / "in", 0, [1])
    program = Program((stream(tmp_path / "in"),), (tumbling("first"),))
    before = signal.signal(signal.SIGTERM, hurry)
    with made(None, program, tmp_path / "checkpoint", {}) as running:
        yield running
    signal.signal(signal.SIGTERM, before)


def test_a_signal_before_the_start_does_what_it_did_before(engine: Running) -> None:
    """It ended the engine, and then the start complained that the engine had been started."""
    engine.stop_on_signals()
    with pytest.raises(HurryError):
        signal.raise_signal(signal.SIGTERM)
    assert not engine.begun


def test_who_waited_for_the_end_finds_no_thread_of_the_engine(engine: Running) -> None:
    """What the interpreter froze in a thread when it ended, DuckDB told as a page of leaks."""
    engine.start()
    engine.stop_on_signals()
    signal.raise_signal(signal.SIGTERM)
    engine.await_end()
    assert [thread.name for thread in threading.enumerate() if thread.name in ("eventide", "eventide-stop")] == []
