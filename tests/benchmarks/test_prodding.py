"""The prodding benchmark measures what the thesis measured: on a short stream, what can be told by counting."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.prodding.bursts import answered, burst_windows
from benchmarks.prodding.figures import aggressiveness
from benchmarks.prodding.runs import EPOCH, Asked, run
from benchmarks.prodding.streams import SECOND, Recorded, bursty, generated
from eventide.plan.declared.rows import Sideline


def test_early_counts_are_those_of_the_rows_that_had_arrived() -> None:
    stream = generated(90, seed=3)
    outcome = run(stream, Asked(30 * SECOND, 10 * SECOND, (0.5, 0.9)))
    pairs = outcome.paired()
    assert pairs.num_rows == 18
    for row in pairs.select(["window_end", "clock", "count", "final_count", "final_clock"]).to_pylist():
        end, clock = row["window_end"] - EPOCH, row["clock"] - EPOCH
        within = (stream.times >= end - 30 * SECOND) & (stream.times < end)
        assert row["final_count"] == within.sum()
        assert row["count"] == (within & (stream.arrivals <= clock)).sum()
        assert row["final_clock"] - EPOCH == max(end, stream.arrivals[stream.times < end].max())


@pytest.mark.slow
def test_accuracy_falls_with_aggressiveness_as_rows_are_missing() -> None:
    even = np.arange(0, 300 * SECOND, SECOND // 4, dtype=np.int64)
    found = aggressiveness(Recorded.of(even, np.ones(len(even)), even), Asked(30 * SECOND, 10 * SECOND))
    worst = [found["count"]["worst"][point] for point in (10, 50)]
    assert worst == pytest.approx([92.5, 52.5]), "the first window is one slide long: 37 and 21 rows of 40"
    assert found["count"]["mean"][50] > 81
    assert found["average"]["mean"] == dict.fromkeys((10, 20, 30, 40, 50), 100.0)


def test_bursts_wait_in_the_queue_and_no_row_overtakes_another() -> None:
    stream = bursty(40, seed=1)
    assert (np.diff(stream.arrivals) >= SECOND // 200).all()
    assert (stream.arrivals > stream.times).all()
    assert (stream.arrivals - stream.times).max() > SECOND


@pytest.mark.slow
def test_early_answers_gain_time_in_bursts() -> None:
    pairs = run(bursty(35, seed=1), Asked(5 * SECOND, SECOND, every=SECOND)).paired()
    gains = pairs["final_clock"].to_numpy() - pairs["clock"].to_numpy()
    assert (gains > 0).all()
    assert gains.max() > SECOND


@pytest.mark.slow
def test_a_burst_that_is_set_aside_leaves_later_windows_in_time_and_every_final_answer_the_same() -> None:
    counts = np.array([20, 20, 20, 700, *[20] * 12])
    times = np.sort(
        np.repeat(np.arange(len(counts)) * SECOND, counts) + np.arange(counts.sum()) % 100 * (SECOND // 100)
    )
    stream = Recorded(times, (np.arange(len(times)) * 37 % 1000).astype(np.float64), times)
    waiting, aside = answered(stream, None), answered(stream, Sideline())
    assert {end: most for end, (_, most) in waiting.final.items()} == {
        end: most for end, (_, most) in aside.final.items()
    }
    # The burst is in the fourth second, so in the windows that end 4 to 8 s after the start; 700 rows take 3.5 s.
    late = [{end for end, (delay, _) in answers.final.items() if delay > 0} for answers in (waiting, aside)]
    holding = {EPOCH + second * SECOND for second in range(4, 9)}
    assert late[1] <= holding
    assert late[0] & holding
    assert waiting.early.keys() & holding


@pytest.mark.slow
def test_no_window_without_a_burst_is_later_because_bursts_are_set_aside() -> None:
    """Seconds with up to 190 rows, where 200 can go, around one with 1,200: none of them is a burst, however late."""
    counts = np.array([190, 150, 1200, 190, 100, 190, 60, 190, 40, 150, 90])
    times = np.concatenate([np.arange(n) * SECOND // n + place * SECOND for place, n in enumerate(counts)])
    stream = Recorded(times, (np.arange(len(times)) * 37 % 1000).astype(np.float64), times)
    waiting, aside = (answered(stream, how).final for how in (None, Sideline(one_in=3)))
    others = waiting.keys() - burst_windows(stream)
    assert {end: most for end, (_, most) in aside.items()} == {end: most for end, (_, most) in waiting.items()}
    assert not [end for end in others if aside[end][0] > waiting[end][0]]
    assert [end for end in others if aside[end][0] < waiting[end][0]]
