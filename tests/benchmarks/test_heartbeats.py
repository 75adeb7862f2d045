"""The heartbeat benchmark computes what its last line says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.heartbeats import recordings
from benchmarks.heartbeats.baselines import BASELINES
from benchmarks.heartbeats.recordings import RUNS, Run
from benchmarks.heartbeats.streams import Measured, Stream, Task
from benchmarks.heartbeats.summary import details, headline
from eventide.profile.dry_run import Outcome, timetable
from eventide.profile.profiling import CLAIRVOYANT, FIXED_BEST, OURS, clairvoyant, fixed_best

PLAIN = Outcome(
    drop_ratio=0.0,
    drop_ratio_after_1000=0.0,
    worst_source_drop_ratio=0.0,
    worst_stretch_drop_ratio=0.0,
    lag_mean=100.0,
    lag_p95=200.0,
    buffered_mean_rows=1.0,
)
A, B, HARD = Stream("a", real=True), Stream("b", real=True), Stream("backlog", real=False)


def test_the_worst_excess_is_of_all_streams_at_one_and_five_percent_only() -> None:
    lost = [(A, 0.001, 0.009), (A, 0.01, 0.008), (B, 0.05, 0.045), (HARD, 0.01, 0.0105)]
    measured = [Measured(s, p, OURS, replace(PLAIN, drop_ratio_after_1000=x)) for s, p, x in lost]
    measured.append(Measured(A, 0.01, "kim", replace(PLAIN, drop_ratio_after_1000=0.9)))
    measured += [Measured(s, 0.01, yardstick, PLAIN) for s in (A, HARD) for yardstick in (CLAIRVOYANT, FIXED_BEST)]
    found = headline(measured)
    assert found["own_policy_worst_excess"] == pytest.approx(1.05)
    assert found["own_policy_worst_excess_0.1"] == pytest.approx(9.0)


def test_what_lies_beyond_the_promise_is_shown_apart() -> None:
    lost = [(Stream("growing_disorder", real=False), 0.5), (HARD, 0.015), (A, 0.012)]
    measured = [
        Measured(s, 0.01, OURS, replace(PLAIN, worst_source_drop_ratio=x, drop_ratio_after_1000=x / 2)) for s, x in lost
    ]
    measured += [Measured(s, 0.01, yardstick, PLAIN) for s, _ in lost for yardstick in (CLAIRVOYANT, FIXED_BEST)]
    found = headline(measured)
    assert found["own_policy_worst_source_excess"] == pytest.approx(1.5)
    assert found["own_policy_worst_excess"] == pytest.approx(0.75)
    assert found["beyond_the_promise"] == {"growing_disorder": {"0.01": pytest.approx(25.0)}}


def test_the_lag_against_the_best_fixed_delay_is_a_geometric_mean_over_recordings() -> None:
    lags = [(A, 50.0, 100.0, 5.0), (B, 200.0, 100.0, 100.0), (HARD, 900.0, 1.0, 1.0)]
    measured = [
        Measured(stream, 0.01, policy, replace(PLAIN, lag_mean=lag))
        for stream, ours, best, limit in lags
        for policy, lag in ((OURS, ours), (FIXED_BEST, best), (CLAIRVOYANT, limit))
    ]
    found = headline(measured)
    assert found["lag_vs_best_fixed"] == pytest.approx(1.0)
    assert found["lag_vs_clairvoyant"] == pytest.approx({"a": 10.0, "b": 2.0})


def test_without_recordings_their_figures_are_null() -> None:
    measured = [Measured(HARD, 0.05, policy, PLAIN) for policy in (OURS, FIXED_BEST, CLAIRVOYANT)]
    found = headline(measured)
    assert found["lag_vs_best_fixed"] is None
    assert found["lag_vs_clairvoyant"] == {}
    assert found["own_policy_worst_excess_0.1"] is None


@pytest.mark.slow
def test_a_policy_that_does_not_listen_to_the_drop_ratio_has_one_outcome_for_all() -> None:
    measured = Task(Stream("in_order", real=False), (0.01, 0.05), ("own_progress", CLAIRVOYANT)).run()
    own = [one.outcome for one in measured if one.policy == "own_progress"]
    assert len(own) == 2
    assert own[0] == own[1]
    assert set(details(measured)["in_order"]["0.05"]) == {"own_progress", CLAIRVOYANT}


def test_a_recording_that_is_not_there_is_no_error() -> None:
    assert Run("nowhere", "no_such_file.csv.gz").load() is None


@pytest.mark.slow
@pytest.mark.skipif(not recordings.FOLDER.exists(), reason="the shared recordings are not beside the repository")
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_the_yardsticks_are_those_of_the_baselines(run: Run) -> None:
    recording = run.load()
    assert recording is not None
    plan = timetable(recording, None)
    for permitted, before in BASELINES.items():
        best, limit = fixed_best(plan, permitted).run.outcome, clairvoyant(plan, permitted)
        assert best.drop_ratio == pytest.approx(before["fixed_best"][run.name].drop_ratio, abs=0.00006)
        assert best.lag_mean == pytest.approx(1000 * before["fixed_best"][run.name].lag_ms, rel=0.03)
        # Which of equally late rows are dropped is open, and the table shows whole milliseconds.
        assert limit.lag_mean == pytest.approx(1000 * before["clairvoyant"][run.name].lag_ms, rel=0.02, abs=500)
