from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import DeclarationError, SnapshotError
from eventide.eventtime.arrays import as_plain
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.eventtime.policies.skew.estimated import (
    FALLS_UNTIL_FASTER,
    WIDEST,
    Adaptivity,
    ClockSpan,
    EstimatedSkew,
    SkewEstimates,
)

Round = tuple[int, list[tuple[int, int]]]
"""A clock, and (source, time) of the rows that arrive at it."""

adaptivities = st.builds(
    Adaptivity,
    window=st.none() | st.integers(1, 5) | st.integers(1, 8).map(ClockSpan),
    weight=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    tolerated=st.none() | st.sampled_from([0.1, 0.5]),
)
policies = st.builds(
    EstimatedSkew,
    adaptivities,
    clock_unit=st.integers(1, 3),
    units_ahead=st.integers(0, 3),
    pairwise=st.booleans(),
    known=st.integers(0, 2),
)


@st.composite
def streams(draw: st.DrawFn) -> list[Round]:
    clock, rounds = draw(st.integers(-5, 5)), []
    for _ in range(draw(st.integers(1, 15))):
        rows = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(-8, 3)), max_size=4))
        rounds.append((clock, [(source, clock + delay) for source, delay in rows]))
        clock += draw(st.integers(0, 4))
    return rounds


def arrivals(at: Round) -> Arrivals:
    return Arrivals.of_rows(at[0], [s for s, _ in at[1]], [t for _, t in at[1]])


@dataclass
class Cell:
    """Figure 4 for one cell, a round at a time, in plain numbers."""

    adaptivity: Adaptivity
    lag: int = 0
    most: int = 0
    rows: int = 0
    calm: int = 0
    falls: int = 0
    window: int = 0
    begun: int | None = None

    def __post_init__(self) -> None:
        self.window = self.adaptivity.length or 0

    def learn(self, shown: int, rows: int, clock: int) -> None:
        self.rows += rows
        self.calm += rows
        self.begun = clock if self.begun is None else self.begun
        if shown > self.lag:
            self.lag, self.most, self.rows, self.falls, self.begun = shown, 0, 0, 0, clock
            self._exceeded()
            self.calm = 0
        else:
            self.most = max(self.most, shown)
            by_clock = isinstance(self.adaptivity.window, ClockSpan)
            passed = clock - self.begun if by_clock else self.rows
            if self.adaptivity.window is not None and self.adaptivity.weight < 1 and passed > self.window:
                self._window_is_full()
                self.most, self.rows, self.begun = 0, 0, clock

    def _window_is_full(self) -> None:
        if self.most < self.lag:
            self.lag -= max(1, int((self.lag - self.most) * (1 - self.adaptivity.weight)))
            self.falls += 1
        else:
            self.falls = 0
        if self.adaptivity.tolerated is not None and self.falls == FALLS_UNTIL_FASTER:
            assert self.adaptivity.length is not None
            self.window, self.falls = max(self.window // 2, self.adaptivity.length // WIDEST, 1), 0

    def _exceeded(self) -> None:
        length, tolerated = self.adaptivity.length, self.adaptivity.tolerated
        if length and tolerated and self.calm < 1 / tolerated:
            self.window = min(self.window * 2, length * WIDEST)


class Plain:
    """Section 6 with a list of all rows and a dictionary of cells."""

    def __init__(self, policy: EstimatedSkew) -> None:
        self.policy = policy
        self.rows: list[tuple[int, int, int]] = []
        self.cells: dict[tuple[int, int | str, int], Cell] = {}

    def reached(self, reference: int | str, units: int, clock: int) -> int:
        slot = clock // self.policy.clock_unit
        return max(
            (
                t
                for c, s, t in self.rows
                if reference in (s, "all") and (units == 0 or c // self.policy.clock_unit <= slot - units)
            ),
            default=NEVER,
        )

    def references(self, j: int) -> set[int | str]:
        return {s for _, s, _ in self.rows} if self.policy.pairwise else {j, "all"}

    def observe(self, at: Round) -> None:
        clock, rows = at
        for j in {s for s, _ in rows}:
            earliest = min(t for s, t in rows if s == j)
            for reference in self.references(j):
                for units in range(self.policy.units_ahead + 1):
                    ago = self.reached(reference, units, clock)
                    if ago > NEVER:
                        cell = self.cells.setdefault((j, reference, units), Cell(self.policy.adaptivity))
                        cell.learn(max(ago - earliest + 1, 0), sum(s == j for s, _ in rows), clock)
        self.rows += [(clock, s, t) for s, t in rows]

    def promised(self, j: int, clock: int) -> int:
        if all(s != j for _, s, _ in self.rows):
            return NEVER
        unknown = Cell(self.policy.adaptivity)
        found = [
            ago - self.cells.get((j, reference, units), unknown).lag
            for reference in self.references(j)
            for units in range(self.policy.units_ahead + 1)
            if (ago := self.reached(reference, units, clock)) > NEVER
        ]
        return max(found)


@settings(max_examples=200)
@given(policies, streams())
def test_heartbeats_equal_those_of_figure_4_in_plain_numbers(policy: EstimatedSkew, rounds: list[Round]) -> None:
    generator, plain = policy.start(), Plain(policy)
    combined, shown = NEVER, dict.fromkeys(range(4), NEVER)
    for at in rounds:
        generator.observe(arrivals(at))
        plain.observe(at)
        heartbeats = generator.heartbeats(at[0])
        promised = {j: plain.promised(j, at[0]) for j in range(4)}
        waited_for = [h for j, h in promised.items() if h > NEVER or j < policy.known]
        combined = max(combined, min(waited_for, default=NEVER))
        shown = {j: max(shown[j], promised[j], combined) for j in range(4)}
        assert heartbeats.combined == combined
        assert heartbeats.by_source.tolist() == [shown[j] for j in range(len(heartbeats.by_source))]


@settings(max_examples=100)
@given(policies, streams(), st.integers(0, 15))
def test_saved_and_resumed_it_goes_on_to_the_same_heartbeats_which_never_go_back(
    policy: EstimatedSkew, rounds: list[Round], stop: int
) -> None:
    through, resumed = policy.start(), policy.start()
    before = NEVER
    for k, at in enumerate(rounds):
        if k == stop:
            resumed = policy.resume(json.loads(json.dumps(resumed.snapshot(), default=as_plain)))
        for generator in (through, resumed):
            generator.observe(arrivals(at))
        here, there = through.heartbeats(at[0] + 1), resumed.heartbeats(at[0] + 1)
        assert (here.combined, here.by_source.tolist()) == (there.combined, there.by_source.tolist())
        assert here.combined >= before
        before = here.combined


@settings(max_examples=100)
@given(policies, streams())
def test_with_the_maximum_estimate_what_was_seen_once_is_never_late_again(
    policy: EstimatedSkew, rounds: list[Round]
) -> None:
    """The same stream again, later in clock and time: now every row comes above its heartbeat."""
    policy = replace(policy, adaptivity=Adaptivity(window=None))
    generator = policy.start()
    for at in rounds:
        generator.observe(arrivals(at))
        generator.heartbeats(at[0])
    later = 600
    before = generator.heartbeats(rounds[-1][0])
    for clock, rows in rounds:
        again = (clock + later, [(s, t + later) for s, t in rows])
        assert all(t > before.of(s) and t > before.combined for s, t in again[1])
        generator.observe(arrivals(again))
        before = generator.heartbeats(again[0])


@settings(max_examples=200)
@given(
    st.lists(st.integers(0, 9), max_size=8),
    st.lists(st.integers(0, 9), min_size=1, max_size=8),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.3, 0.5]),
)
def test_a_round_never_estimates_less_than_its_rows_one_by_one(
    before: list[int], together: list[int], window: int, weight: float
) -> None:
    adaptivity = Adaptivity(window, weight, tolerated=None)
    by_row, by_round = (SkewEstimates(adaptivity, references=1, units=1) for _ in range(2))

    def learn(estimates: SkewEstimates, shown: int, rows: int) -> None:
        estimates.learn(np.array([0]), np.array([[[shown]]]), np.array([[[True]]]), np.array([rows]))

    for estimates in (by_row, by_round):
        estimates.grow(targets=1, references=1)
        for shown in before:
            learn(estimates, shown, 1)
    for shown in together:
        learn(by_row, shown, 1)
    learn(by_round, max(together), len(together))
    assert by_round.lag[0, 0, 0] >= by_row.lag[0, 0, 0]


@given(streams(), st.integers(1, 5))
def test_the_width_of_cells_changes_nothing(rounds: list[Round], width: int) -> None:
    policy = EstimatedSkew(units_ahead=2)
    whole, cut = policy.start(), policy.start()
    for clock, rows in rounds:
        whole.observe(arrivals((clock, rows)))
        cut.observe(Arrivals.of_rows(clock, [s for s, _ in rows], [t for _, t in rows], cell_width=width))
        assert cut.heartbeats(clock).by_source.tolist() == whole.heartbeats(clock).by_source.tolist()


def test_time_that_passes_lets_a_burst_be_promised_without_new_rows() -> None:
    """Rows of a burst come within two units: later than that, all up to its largest time is promised."""
    policy = EstimatedSkew(Adaptivity(window=None), clock_unit=10, units_ahead=3)
    generator = policy.start()
    for start in range(0, 1000, 100):
        for clock, time in [(start, start), (start + 10, start - 5)]:
            generator.observe(Arrivals.of_row(clock, 0, time))
    assert generator.heartbeats(911).combined == 900 - 6
    assert [generator.heartbeats(clock).combined for clock in (919, 920)] == [894, 900]


def test_a_spike_is_forgotten_after_calm_windows() -> None:
    generator = EstimatedSkew(Adaptivity(window=10, weight=0.5, tolerated=None)).start()
    heard = []
    for k, time in enumerate([1000, 900, *range(1001, 1101)]):
        generator.observe(Arrivals.of_row(k, 0, time))
        heard.append(time - generator.heartbeats(k).combined)
    assert heard[20] > 0
    assert heard[-1] == 0


def test_estimates_that_keep_being_exceeded_lengthen_the_window_and_calm_shortens_it() -> None:
    generator = EstimatedSkew(Adaptivity(window=16, tolerated=0.1)).start()

    def windows() -> list[int]:
        window: list[list[list[int]]] = generator.snapshot()["estimates"]["window"]
        return window[0][0]

    for clock, time in enumerate([100, 90, 80, 70]):
        generator.observe(Arrivals.of_row(clock, 0, time))
    assert windows() == [16 * 2**3]
    for clock in range(5000):
        generator.observe(Arrivals.of_row(clock + 4, 0, clock + 1000))
    assert windows()[0] < 16 * 2**3


def test_a_known_source_is_waited_for_and_a_discovered_one_is_not() -> None:
    row = Arrivals.of_row(0, 0, 50)
    for known, combined in ((0, 50), (2, NEVER)):
        generator = EstimatedSkew(known=known).start()
        generator.observe(row)
        assert generator.heartbeats(0).combined == combined


def test_a_silent_source_goes_on_behind_the_others() -> None:
    generator = EstimatedSkew(Adaptivity(window=None)).start()
    generator.observe(Arrivals.of_rows(0, [0], [100]))
    generator.observe(Arrivals.of_rows(1, [1], [80]))
    for clock in range(2, 50):
        generator.observe(Arrivals.of_row(clock, 0, 100 + clock))
    assert generator.heartbeats(50).of(1) == 149 - 21


@pytest.mark.parametrize("pairwise", [False, True])
def test_instants_at_the_edges_saturate(pairwise: bool) -> None:
    generator = EstimatedSkew(Adaptivity(window=1, weight=0.0), units_ahead=4, pairwise=pairwise).start()
    before = NEVER
    for clock, time in [
        (NEVER + 1, FOREVER - 1),
        (0, NEVER + 1),
        (5, NEVER + 2),
        (6, 0),
        (FOREVER - 1, 7),
        (FOREVER - 1, 7),
    ]:
        generator.observe(Arrivals.of_row(clock, 0, time))
        heartbeat = generator.heartbeats(clock).combined
        assert heartbeat >= before
        before = heartbeat
    assert before == FOREVER - 1


def test_without_rows_nothing_is_promised() -> None:
    generator = EstimatedSkew().start()
    generator.observe(Arrivals.silence(10))
    assert generator.heartbeats(10**9).combined == NEVER
    assert len(EstimatedSkew().resume(generator.snapshot()).heartbeats(0).by_source) == 0


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"clock_unit": 0}, "clock_unit 0"),
        ({"units_ahead": -1}, "units_ahead -1"),
        ({"known": -1}, "-1 known"),
    ],
)
def test_what_cannot_hold_is_refused(wrong: dict[str, int], says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        EstimatedSkew(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("window", "weight", "tolerated", "says"),
    [
        (0, 0.5, 0.1, "window of 0"),
        (5, 1.5, 0.1, "from 0 to 1"),
        (ClockSpan(0), 0.5, 0.1, "window of 0 of the clock"),
        (5, -0.1, 0.1, "weight"),
        (5, 0.5, 1.0, "0.01 for 1 %"),
    ],
)
def test_adaptivity_that_cannot_hold_is_refused(
    window: int | ClockSpan, weight: float, tolerated: float, says: str
) -> None:
    with pytest.raises(DeclarationError, match=says):
        Adaptivity(window, weight, tolerated)


def test_a_snapshot_of_other_references_is_refused() -> None:
    with pytest.raises(SnapshotError, match="resume with the policy that saved it"):
        EstimatedSkew().resume(EstimatedSkew(pairwise=True).start().snapshot())
