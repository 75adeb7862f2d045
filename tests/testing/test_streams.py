"""The generated hard streams are what they say they are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from eventide.profile.reading import Recording
from eventide.testing import HARD_CASES
from eventide.testing.streams import SECOND, START

SEEDS = (0, 1, 20_240_607)
IN_ORDER_WITHIN_SOURCES = (
    "backlog",
    "clock_offsets",
    "silent_half",
    "outage_and_flush",
    "rare_speakers",
    "in_order",
    "batch_upload",
)


def delays(recording: Recording) -> NDArray[np.int64]:
    """How long each row travelled, as far as its stamp tells."""
    return recording.arrival - recording.time


def out_of_order_within_sources(recording: Recording) -> int:
    """Rows that arrive after a later row of their own source, counted row by row."""
    latest: dict[int, int] = {}
    count = 0
    for time, source in zip(recording.time.tolist(), recording.source.tolist(), strict=True):
        count += time < latest.get(source, time)
        latest[source] = max(time, latest.get(source, time))
    return count


def lateness(recording: Recording) -> NDArray[np.int64]:
    """How far each row is behind the latest time seen up to it."""
    return np.maximum.accumulate(recording.time) - recording.time


@pytest.mark.parametrize("name", HARD_CASES)
def test_the_same_seed_gives_the_same_stream_and_another_seed_another(name: str) -> None:
    first, again, other = HARD_CASES[name](5), HARD_CASES[name](5), HARD_CASES[name](6)
    assert first.time.tolist() == again.time.tolist()
    assert first.arrival.tolist() == again.arrival.tolist()
    assert first.source.tolist() == again.source.tolist()
    assert first.time.tolist() != other.time.tolist()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", HARD_CASES)
def test_rows_come_by_arrival_and_are_as_many_as_promised(name: str, seed: int) -> None:
    recording = HARD_CASES[name](seed)
    assert recording.name == name
    assert (np.diff(recording.arrival) >= 0).all()
    assert 20_000 <= recording.rows <= 60_000
    assert recording.time.dtype == recording.arrival.dtype == np.int64


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", IN_ORDER_WITHIN_SOURCES)
def test_sources_that_keep_order_keep_it(name: str, seed: int) -> None:
    assert out_of_order_within_sources(HARD_CASES[name](seed)) == 0


@pytest.mark.parametrize(
    "name", ["heavy_tail", "lognormal_network", "uniform_shuffle", "reordered_batches", "sequence"]
)
def test_sources_that_do_not_keep_order_mix_their_own_rows(name: str) -> None:
    recording = HARD_CASES[name](0)
    assert out_of_order_within_sources(recording) > recording.rows // 10


def test_the_backlog_grows_to_a_minute_on_one_source_and_is_gone_in_the_end() -> None:
    recording = HARD_CASES["backlog"](0)
    delay, slow = delays(recording), recording.source == recording.source_names.index("0")
    assert 59 * SECOND < delay[slow].max() < 62 * SECOND
    assert delay[~slow].max() < SECOND
    assert delay[slow & (recording.time > START + 420 * SECOND)].max() < SECOND


@pytest.mark.parametrize(("name", "factor"), [("delay_step", 10.0), ("delay_step_down", 0.1)])
def test_the_step_changes_the_mean_delay_tenfold(name: str, factor: float) -> None:
    recording = HARD_CASES[name](0)
    late_half = recording.time >= START + 300 * SECOND
    delay = delays(recording)
    assert delay[late_half].mean() / delay[~late_half].mean() == pytest.approx(factor, rel=0.1)


def test_the_drift_multiplies_the_mean_delay_by_twenty_and_never_at_once() -> None:
    recording = HARD_CASES["drifting_delay"](0)
    minute = (recording.time - START) // (60 * SECOND)
    means = np.array([delays(recording)[minute == m].mean() for m in range(10)])
    assert 10 < means[-1] / means[0] < 20
    assert (means[1:] / means[:-1] < 2).all()


def test_the_clocks_that_jump_are_one_ahead_and_one_behind_by_thirty_seconds() -> None:
    recording = HARD_CASES["clock_jump"](0)
    second_half = recording.arrival >= START + 301 * SECOND
    typical = {
        name: np.median(delays(recording)[second_half & (recording.source == number)]) / SECOND
        for number, name in enumerate(recording.source_names)
    }
    assert typical.pop("0") == pytest.approx(-30, abs=0.5)
    assert typical.pop("1") == pytest.approx(30, abs=0.5)
    assert all(abs(delay) < 0.5 for delay in typical.values())


def test_clock_offsets_go_both_ways_by_seconds() -> None:
    recording = HARD_CASES["clock_offsets"](0)
    typical = [np.median(delays(recording)[recording.source == s]) for s in range(20)]
    assert min(typical) < -2 * SECOND
    assert max(typical) > 2 * SECOND


def test_the_silent_half_says_nothing_and_returns_with_fresh_rows() -> None:
    recording = HARD_CASES["silent_half"](0)
    silent = np.isin(recording.source, [recording.source_names.index(str(s)) for s in range(5)])
    within = (recording.time >= START + 200 * SECOND) & (recording.time < START + 400 * SECOND)
    assert not (silent & within).any()
    assert (~silent & within).any()
    assert delays(recording)[silent & (recording.time >= START + 400 * SECOND)].max() < 10 * SECOND


def test_every_outage_ends_in_a_flush_of_1300_rows_of_45_seconds() -> None:
    recording = HARD_CASES["outage_and_flush"](0)
    instants, counts = np.unique(recording.arrival, return_counts=True)
    flushes = instants[counts >= 1_300]
    assert ((flushes - START) // SECOND).tolist() == [105, 225, 345, 465]
    for flush in flushes:
        times = recording.time[recording.arrival == flush]
        assert (np.diff(times) >= 0).all()
        assert 44 * SECOND < times[-1] - times[0] <= 46 * SECOND


def test_the_heavy_tail_has_a_longest_delay_far_from_the_usual_one() -> None:
    delay = delays(HARD_CASES["heavy_tail"](0))
    assert delay.max() > 200 * np.median(delay)


def test_bursts_bring_2000_rows_in_100_ms_that_queue_up() -> None:
    recording = HARD_CASES["bursts"](0)
    begin = START + 10 * SECOND
    burst = (recording.time >= begin) & (recording.time < begin + SECOND // 10)
    assert burst.sum() >= 2_000
    rows = np.argsort(recording.time[burst], kind="stable")
    delay = delays(recording)[burst][rows]
    assert delay[-500:].mean() > 4 * delay[:500].mean()


def test_exactly_one_row_is_ten_years_ahead() -> None:
    ahead = -delays(HARD_CASES["future_row"](0))
    assert (ahead > 3_600 * SECOND).sum() == 1
    assert ahead.max() > 9.9 * 365 * 86_400 * SECOND


def test_one_row_in_5000_is_hours_ahead() -> None:
    ahead = -delays(HARD_CASES["future_rows"](0))
    assert (ahead > 0.9 * 3_600 * SECOND).sum() == 6
    assert ahead.max() < 13 * 3_600 * SECOND


def test_new_sources_appear_all_through_the_run() -> None:
    recording = HARD_CASES["new_sources"](0)
    first_sight = recording.arrival[np.unique(recording.source, return_index=True)[1]] - START
    per_minute = np.histogram(first_sight, bins=np.arange(0, 601, 60) * SECOND)[0]
    assert (per_minute[:9] > 5).all()


def test_rare_speakers_are_200_and_speak_ten_times_each_or_so() -> None:
    counts = np.bincount(HARD_CASES["rare_speakers"](0).source)
    assert len(counts) == 202
    assert (counts > 10_000).sum() == 2
    assert 5 < np.median(counts) < 15


def test_hundreds_of_rows_share_one_time() -> None:
    recording = HARD_CASES["simultaneous"](0)
    counts = np.unique(recording.time, return_counts=True)[1]
    assert (recording.time % SECOND == 0).all()
    assert counts.min() > 100


def test_periodic_sources_speak_every_half_second_exactly() -> None:
    recording = HARD_CASES["periodic"](0)
    for source in range(20):
        assert set(np.diff(np.sort(recording.time[recording.source == source])).tolist()) == {SECOND // 2}


def test_every_device_of_the_lognormal_network_has_its_own_delay() -> None:
    recording = HARD_CASES["lognormal_network"](0)
    medians = [np.median(delays(recording)[recording.source == s]) for s in range(30)]
    assert max(medians) > 5 * min(medians)


def test_storms_are_fifty_times_as_slow_as_calm() -> None:
    recording = HARD_CASES["alternating"](0)
    stormy = (recording.time - START) // (30 * SECOND) % 2 == 1
    assert delays(recording)[stormy].mean() / delays(recording)[~stormy].mean() == pytest.approx(50, rel=0.1)


def test_the_uniform_shuffle_is_one_source_within_two_seconds() -> None:
    recording = HARD_CASES["uniform_shuffle"](0)
    assert recording.source_names == ("0",)
    assert 0 <= delays(recording).min() < delays(recording).max() <= 2 * SECOND


def test_a_batch_upload_is_one_instant_per_source_and_minute() -> None:
    recording = HARD_CASES["batch_upload"](0)
    for source in range(12):
        uploads = np.unique(recording.arrival[recording.source == source])
        assert set(np.diff(uploads).tolist()) == {60 * SECOND}
    assert delays(recording).max() <= 60 * SECOND


def test_many_sources_are_2000() -> None:
    assert len(HARD_CASES["many_sources"](0).source_names) == 2_000


def test_growing_disorder_grows() -> None:
    recording = HARD_CASES["growing_disorder"](0)
    worst = [stretch.max() for stretch in np.array_split(lateness(recording), 5)]
    assert all(after > 1.1 * before for before, after in pairwise(worst))


def test_three_percent_of_the_rows_arrive_twice() -> None:
    recording = HARD_CASES["duplicates"](0)
    pairs = np.stack((recording.source, recording.time))
    distinct, counts = np.unique(pairs, axis=1, return_counts=True)
    twice = distinct[:, counts >= 2]
    assert 1_190 <= twice.shape[1] <= 1_210
    for source, time in twice.T[:50].tolist():
        copies = recording.arrival[(recording.source == source) & (recording.time == time)]
        assert SECOND <= copies[1] - copies[0] <= 10 * SECOND


def test_every_file_is_read_from_the_back() -> None:
    recording = HARD_CASES["reordered_batches"](0)
    times = recording.time[recording.source == 0]
    for file in np.split(times[: len(times) // 500 * 500], len(times) // 500):
        assert (np.diff(file) <= 0).all()


def test_sequence_numbers_are_each_there_once_and_within_fifty_places() -> None:
    recording = HARD_CASES["sequence"](0)
    assert sorted(recording.time.tolist()) == list(range(30_000))
    assert np.abs(recording.time - recording.arrival).max() <= 50
