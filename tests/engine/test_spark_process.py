"""The process that Spark runs in: what it says is in the log, SIGTERM passes it by, a broken start leaves none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eventide.launch.spark_session import started_well

pytestmark = pytest.mark.spark


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Where PySpark takes the function that starts a process; as if it had started none."""
    from pyspark import SparkContext, java_gateway

    monkeypatch.setattr(SparkContext, "_gateway", None)
    return java_gateway


def test_a_start_that_is_broken_off_leaves_no_process_behind(gateway: Any, tmp_path: Path) -> None:
    """It waited for ever, unseen, for somebody to ask it: a gigabyte for every Ctrl-C in the first seconds."""
    ordinary = gateway.Popen
    starting = started_well(tmp_path / "log")
    starting.__enter__()
    process = gateway.Popen(["sleep", "600"])
    assert not starting.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert process.returncode == -9
    assert gateway.Popen is ordinary


def test_sigterm_passes_it_by_and_its_words_are_in_the_log(gateway: Any, tmp_path: Path) -> None:
    with started_well(tmp_path / "log"):
        process = gateway.Popen(["sh", "-c", "kill -TERM $$; echo alive; echo and well >&2"])
        assert process.wait() == 0
    assert (tmp_path / "log").read_text() == "alive\nand well\n"
