"""Adaptive disorder control against figure 3 written out, row by row, with a plain list."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import count
from statistics import NormalDist, fmean, mean, pstdev, pvariance

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.instant import NEVER
from eventide.eventtime.policies.kim import Kim, KimAdhoc, Moments, VSeq, buffer_rows

Row = tuple[int, int]
"""How long after the row before, and how late."""

# Long enough for VSeq to fill, to shrink and to grow again.
streams = st.lists(st.tuples(st.integers(0, 30), st.integers(-5, 60)), min_size=25, max_size=150)


def stream(rows: list[Row]) -> list[tuple[int, int]]:
    """(clock, time) of every row."""
    clock, arrived = 1_700_000_000_000, []
    for interval, delay in rows:
        clock += interval
        arrived.append((clock, clock - delay))
    return arrived


def figure_3(arrived: list[tuple[int, int]], drop_ratio: float) -> list[int]:
    """The heartbeat after every row: the steps of the figure, nothing remembered but the list, nothing rounded."""
    c = Fraction(NormalDist().inv_cdf(1 - drop_ratio) ** 2)
    vseq: list[tuple[int, int]] = []
    size, punctuation, shown = 30, NEVER, []
    for clock, time in arrived:
        vseq = [*vseq, (clock, time)][-size:]
        theta = Fraction(vseq[-1][0] - vseq[0][0], len(vseq))
        if len(vseq) == size and theta > 0:
            delays = [Fraction(at - of) for at, of in vseq]
            mu = mean(delays)
            spread = 2 * c * pvariance(delays) / theta**2
            n = next(n for n in count() if (n + 1) ** 2 - c * (n + 1) - spread >= 0)
            punctuation = max(punctuation, math.floor(clock - mu - n * theta))
            size = max(30, n)
            vseq = vseq[-size:]
        shown.append(punctuation)
    return shown


@limits(max_examples=60)
@given(streams, st.sampled_from([0.15, 0.1, 0.05, 0.025, 0.01]), st.integers(25, 150))
def test_with_rounds_of_one_row_kim_follows_figure_3_to_the_letter(
    rows: list[Row], drop_ratio: float, restart: int
) -> None:
    arrived = stream(rows)
    policy = Kim(drop_ratio)
    generator = policy.start()
    for number, ((clock, time), expected) in enumerate(zip(arrived, figure_3(arrived, drop_ratio), strict=True)):
        if number == restart:
            generator = policy.resume(generator.snapshot())
        generator.observe(Arrivals.of_row(clock, 0, time))
        assert generator.heartbeats(clock).combined == expected


@given(st.floats(0, 30), st.floats(0, 1000), st.floats(0.01, 1000))
def test_equation_7_gives_the_largest_whole_number_that_satisfies_it(c: float, sigma: float, theta: float) -> None:
    n = buffer_rows(c, sigma, theta)

    def left_side(rows: int) -> float:
        return rows**2 - c * rows - 2 * c * (sigma / theta) ** 2

    rounding = 1e-9 * (1 + n * n + c * n)
    assert n == 0 or left_side(n) < rounding
    assert left_side(n + 1) >= -rounding


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 500)), min_size=1, max_size=50), max_size=12))
def test_vseq_holds_the_moments_of_whole_rounds(rounds: list[list[tuple[int, int]]]) -> None:
    vseq = VSeq()
    vseq.resize(10**6)
    delays = []
    for tick, rows in enumerate(rounds):
        clock = 10_000 + 100 * tick
        vseq.add(clock, Arrivals.of_rows(clock, [s for s, _ in rows], [clock - d for _, d in rows], cell_width=50))
        delays += [delay for _, delay in rows]
    assert vseq.delays.rows == len(delays)
    assert vseq.delays.mean == pytest.approx(fmean(delays) if delays else 0)
    assert vseq.delays.deviation == pytest.approx(pstdev(delays) if delays else 0, abs=1e-4)


@given(st.lists(st.integers(1, 80), max_size=20), st.lists(st.integers(0, 200), max_size=5))
def test_vseq_never_holds_more_rows_than_its_size_nor_fewer_than_it_could(rounds: list[int], sizes: list[int]) -> None:
    vseq = VSeq()
    seen = 0
    for tick, rows in enumerate(rounds):
        before = min(seen, vseq.size)
        vseq.add(tick, Arrivals.of_rows(tick, [0] * rows, range(rows)))
        seen = before + rows
        assert vseq.delays.rows == min(seen, vseq.size)
        assert vseq.ready == (seen >= vseq.size)
        if sizes:
            vseq.resize(sizes[tick % len(sizes)])
            assert vseq.size >= 30
            seen = vseq.delays.rows


@given(st.lists(st.integers(0, 100), min_size=2, max_size=80), st.integers(1, 20))
def test_moments_of_a_sliding_set_keep_their_digits_beside_a_huge_offset(numbers: list[int], width: int) -> None:
    moments = Moments()
    for position, number in enumerate(numbers):
        moments.add(1, 1e12 + number, 0.0)
        if position >= width:
            moments.remove(1, 1e12 + numbers[position - width], 0.0)
    last = numbers[-width:]
    assert moments.deviation == pytest.approx(pstdev(last), abs=0.1)


def test_a_round_larger_than_the_list_takes_its_interval_from_the_round_before() -> None:
    generator = Kim(0.01).start()
    for clock in (1000, 2000):
        generator.observe(Arrivals.of_rows(clock, [0] * 100, [clock - 50] * 100))
    # theta = 1000 / 100, mu = 50, sigma = 0: five rows of ten.
    assert generator.heartbeats(2000).combined == 2000 - 50 - 5 * 10


def test_while_the_clock_does_not_move_the_last_heartbeat_stands() -> None:
    generator = Kim(0.01).start()
    for time in range(100):
        generator.observe(Arrivals.of_row(500, 0, time))
    assert generator.heartbeats(500).combined == NEVER


def test_the_slack_lets_go_when_the_estimate_is_small_enough_again() -> None:
    generator = Kim(0.01, slack=6).start()
    for tick in range(0, 300, 10):
        generator.observe(Arrivals.of_row(tick + 5, 0, tick))
    assert generator.buffer_size == 5
    assert generator.heartbeats(295).combined == 241


@pytest.mark.parametrize("policy", [Kim, KimAdhoc])
@pytest.mark.parametrize("drop_ratio", [0, 1, -0.1, 5, math.nan])
def test_a_drop_ratio_outside_0_and_1_is_refused(policy: type[Kim | KimAdhoc], drop_ratio: float) -> None:
    with pytest.raises(DeclarationError, match=r"write 0\.03 for 3 %"):
        policy(drop_ratio)
