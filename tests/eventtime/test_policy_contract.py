"""What every policy must keep, whatever it is: one suite over all examples of `policy_examples.py`."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from eventide.errors import SnapshotError
from eventide.eventtime.arrays import as_plain
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import HeartbeatGenerator, Heartbeats, Policy
from eventide.eventtime.instant import FOREVER, NEVER, shift
from eventide.eventtime.reason import BareAmounts, Explains, left_out_of, reason_of
from tests.eventtime.policy_examples import EXAMPLES

Round = tuple[int, list[tuple[int, int]], int]
"""A clock, rows as (source, time), and how much later the heartbeats are asked again."""

every_policy = pytest.mark.parametrize("policy", EXAMPLES.values(), ids=EXAMPLES.keys())

SMALL = st.integers(-40, 60)
EDGES = st.sampled_from([NEVER + 1, NEVER + 2, -(2**62), -1, 0, 1, 2**62, FOREVER - 2, FOREVER - 1])


@st.composite
def rounds(
    draw: st.DrawFn, clocks: st.SearchStrategy[int] = SMALL, times: st.SearchStrategy[int] = SMALL
) -> list[Round]:
    """Rounds of 0 to 6 rows of up to 4 sources; clocks step forth and, now and then, back."""
    row = st.tuples(st.integers(0, 3), times)
    # Policies that learn for thirty rows must have some to learn from.
    size = draw(st.sampled_from([1, 4, 45]))
    return draw(st.lists(st.tuples(clocks, st.lists(row, max_size=6), st.integers(0, 9)), min_size=1, max_size=size))


def digest(clock: int, rows: list[tuple[int, int]]) -> Arrivals:
    return Arrivals.of_rows(clock, [source for source, _ in rows], [time for _, time in rows], cell_width=10)


def asked(generator: HeartbeatGenerator, rounds: list[Round]) -> list[Heartbeats]:
    """All answers: after each round, and once more a little later."""
    answers = []
    for clock, rows, later in rounds:
        generator.observe(digest(clock, rows))
        answers.append(generator.heartbeats(clock))
        answers.append(generator.heartbeats(shift(clock, later)))
    return answers


def plain(answers: list[Heartbeats]) -> list[tuple[int, list[int]]]:
    return [(answer.combined, answer.by_source.tolist()) for answer in answers]


@every_policy
def test_policy_and_generator_have_the_two_small_interfaces(policy: Policy) -> None:
    assert isinstance(policy, Policy)
    assert isinstance(policy.start(), HeartbeatGenerator)


@every_policy
def test_equal_declarations_are_equal_and_fit_into_a_set(policy: Policy) -> None:
    assert len({policy, type(policy)(**vars(policy))}) == 1


@every_policy
@limits(max_examples=20)
@given(rounds())
def test_heartbeats_never_go_back_and_no_source_is_forgotten(policy: Policy, rounds: list[Round]) -> None:
    answers = asked(policy.start(), rounds)
    for before, after in pairwise(answers):
        assert after.combined >= before.combined
        known = len(before.by_source)
        assert len(after.by_source) >= known
        assert (after.by_source[:known] >= before.by_source).all()


@every_policy
@limits(max_examples=15)
@given(rounds())
def test_what_is_promised_for_all_is_promised_for_each(policy: Policy, rounds: list[Round]) -> None:
    for answer in asked(policy.start(), rounds):
        assert (answer.by_source >= answer.combined).all()


@every_policy
@limits(max_examples=10)
@given(rounds())
def test_the_same_rounds_give_the_same_heartbeats(policy: Policy, rounds: list[Round]) -> None:
    assert plain(asked(policy.start(), rounds)) == plain(asked(policy.start(), rounds))


@every_policy
@limits(max_examples=15)
@given(rounds())
def test_heartbeats_that_were_handed_out_do_not_change_afterwards(policy: Policy, rounds: list[Round]) -> None:
    generator = policy.start()
    answers, copies = [], []
    for one in rounds:
        answers += asked(generator, [one])
        copies += plain(answers[-2:])
    assert plain(answers) == copies


@every_policy
@limits(max_examples=15)
@given(rounds(), st.integers(1, 50))
def test_a_clock_that_steps_back_is_taken_as_standing_still(policy: Policy, rounds: list[Round], back: int) -> None:
    generator, twin = policy.start(), policy.start()
    highest = NEVER
    for clock, _, later in rounds:
        highest = max(highest, clock)
        generator.observe(Arrivals.silence(highest))
        twin.observe(Arrivals.silence(highest))
        highest += later
        twin.heartbeats(highest)
        before = generator.heartbeats(highest)
        assert plain([generator.heartbeats(highest - back)]) == plain([before])
        assert plain([twin.heartbeats(highest)]) == plain([before])


@every_policy
@limits(max_examples=20)
@given(rounds(), rounds())
def test_a_snapshot_through_json_changes_nothing_at_any_point(
    policy: Policy, past: list[Round], future: list[Round]
) -> None:
    generator = policy.start()
    asked(generator, past)
    saved = json.dumps(generator.snapshot(), default=as_plain)
    resumed = policy.resume(json.loads(saved))
    assert json.dumps(resumed.snapshot(), default=as_plain) == saved
    assert plain(asked(resumed, future)) == plain(asked(generator, future))


@every_policy
def test_a_snapshot_of_another_kind_is_refused(policy: Policy) -> None:
    with pytest.raises(SnapshotError, match="not of"):
        policy.resume({**policy.start().snapshot(), "kind": "something else"})


@every_policy
def test_a_snapshot_of_another_version_is_refused(policy: Policy) -> None:
    with pytest.raises(SnapshotError, match="not of"):
        policy.resume({**policy.start().snapshot(), "version": -1})


@every_policy
@limits(max_examples=30)
@given(rounds(clocks=EDGES, times=EDGES))
def test_the_ends_of_int64_neither_raise_nor_wrap_around(policy: Policy, rounds: list[Round]) -> None:
    answers = asked(policy.start(), rounds)
    for before, after in pairwise(answers):
        assert NEVER <= before.combined <= after.combined <= FOREVER


@every_policy
@limits(max_examples=15)
@given(rounds(), SMALL)
def test_a_new_source_never_pulls_a_heartbeat_back(policy: Policy, rounds: list[Round], time: int) -> None:
    generator = policy.start()
    before = asked(generator, rounds)[-1]
    clock = max(clock + later for clock, _, later in rounds)
    generator.observe(Arrivals.of_row(clock, source=9, time=time))
    after = generator.heartbeats(clock)
    assert after.combined >= before.combined
    assert after.of(9) >= before.combined
    assert (after.by_source[: len(before.by_source)] >= before.by_source).all()


@every_policy
def test_a_policy_that_has_seen_nothing_says_nothing_of_sources_it_does_not_know(policy: Policy) -> None:
    answer = policy.start().heartbeats(0)
    assert answer.by_source.dtype == np.int64
    assert answer.of(1000) == NEVER


@every_policy
@limits(max_examples=10)
@given(rounds())
def test_every_policy_says_why_and_changes_nothing_by_that(policy: Policy, rounds: list[Round]) -> None:
    generator, unasked = policy.start(), policy.start()
    assert isinstance(generator, Explains)
    for one in rounds:
        [_, answer] = asked(generator, [one])
        for source in range(len(answer.by_source) + 1):
            assert "{" not in reason_of(generator, min(source, 9)).words(BareAmounts())
        for out in left_out_of(generator):
            assert len(out.sources) > 0
            assert out.reason.words(BareAmounts())
        asked(unasked, [one])
    assert json.dumps(generator.snapshot(), default=as_plain) == json.dumps(unasked.snapshot(), default=as_plain)
