"""What the benchmark of group-wise closing measures with is right. Times of the machine are not tested."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.group_wise import MILLISECOND, SECOND, WINDOW, compared, delay_that_loses, fleet, rounds_of


def test_each_device_of_the_fleet_is_in_order_and_the_fleet_is_not() -> None:
    rows = fleet(devices=20, seconds=60)
    assert (np.diff(rows.arrival) >= 0).all()
    assert (np.diff(rows.time) < 0).any()
    for device in range(20):
        assert (np.diff(rows.time[rows.source == device]) >= 0).all()


def test_the_delay_is_the_smallest_that_loses_so_little() -> None:
    rows = fleet(devices=10, seconds=120)
    number, _ = rounds_of(rows.arrival, SECOND)

    def lost(delay: int) -> int:
        seen, late = -(2**62), 0
        for round_ in range(int(number.max()) + 1):
            times = rows.time[number == round_]
            late += int((times - times % WINDOW + WINDOW <= seen - delay + 1).sum())
            seen = max(seen, int(times.max()))
        return late

    for share in (0.0, 0.05):
        delay = delay_that_loses(share, rows, number)
        assert lost(delay) <= share * len(number) < lost(delay - MILLISECOND)


@pytest.mark.slow
def test_the_three_ways_lose_alike_and_sources_alone_wait_least(tmp_path: Path) -> None:
    found = compared(fleet(devices=5, seconds=120), 5 * SECOND, tmp_path)
    assert found["by_source"].drop_ratio == found["together"].drop_ratio >= found["watermark"].drop_ratio
    assert found["by_source"].lag < min(found["together"].lag, found["watermark"].lag)
    assert found["by_source"].result_lag < min(found["together"].result_lag, found["watermark"].result_lag)
