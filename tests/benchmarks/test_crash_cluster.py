"""A worker of a real cluster dies in the middle of a round of the benchmark's program, and another one comes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.crash import workers
from benchmarks.crash.moment import QUERIES


def test_every_kind_of_operator_is_on_the_cluster_when_a_worker_dies() -> None:
    assert set(workers.CHOSEN) <= set(QUERIES)
    assert {"sliding", "paired", "in_order", "known", "by_device"} == set(workers.CHOSEN)


@pytest.mark.spark
@pytest.mark.slow
def test_a_worker_that_dies_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    found = workers.measure(runs=1, folder=tmp_path, files=6, chosen=("sliding", "by_device"))
    assert (found["lost"], found["duplicated"], found["worker_kills"], found["runs"]) == (0, 0, 1, 1)
