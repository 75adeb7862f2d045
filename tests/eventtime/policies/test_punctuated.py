"""Promises from the data against a ledger that remembers every promise and every row."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import DeclarationError
from eventide.eventtime.arrays import as_plain
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.eventtime.policies.punctuated import Punctuated, PunctuatedGenerator
from eventide.eventtime.punctuation import Punctuation

SOURCES = 3
Rows = list[tuple[int, int]]

groups = st.one_of(st.none(), st.lists(st.integers(0, SOURCES - 1), min_size=1, max_size=2).map(tuple))


@st.composite
def punctuations(draw: st.DrawFn) -> Punctuation:
    time = draw(st.integers(0, 40))
    return Punctuation(time, draw(st.one_of(st.none(), st.integers(0, time))), draw(groups))


rounds = st.lists(st.tuples(st.integers(0, SOURCES - 1), st.integers(0, 40)), min_size=1, max_size=4)
stories = st.lists(st.one_of(punctuations(), rounds), max_size=12)


def promised_to(time: int, source: int, taken: list[Punctuation]) -> bool:
    return any(
        (p.start is None or p.start <= time) and time <= p.time and (p.group is None or source in p.group)
        for p in taken
    )


def play(generator: PunctuatedGenerator, step: Punctuation | Rows) -> None:
    if isinstance(step, Punctuation):
        generator.take(step)
    else:
        # Cells of width one: what a row says is known exactly.
        generator.observe(Arrivals.of_rows(0, [s for s, _ in step], [t for _, t in step], cell_width=1))


@given(stories)
def test_every_row_inside_a_promise_is_reported_and_no_other(story: list[Punctuation | Rows]) -> None:
    generator, taken = Punctuated().start(), list[Punctuation]()
    broken_rows = [0] * SOURCES
    for step in story:
        play(generator, step)
        if isinstance(step, Punctuation):
            taken.append(step)
            continue
        broken = [(source, time) for source, time in step if promised_to(time, source, taken)]
        assert {v.source: (v.time, v.rows) for v in generator.violations} == {
            source: (min(t for s, t in broken if s == source), sum(s == source for s, _ in broken))
            for source, _ in broken
        }
        for source, _ in broken:
            broken_rows[source] += 1
        found = generator.broken_rows.tolist()
        assert found + [0] * (SOURCES - len(found)) == broken_rows


@given(stories)
def test_nothing_is_closed_that_nobody_promised(story: list[Punctuation | Rows]) -> None:
    """For each source: closed for it means promised for it, or at or below what all stand at together."""
    generator, taken, joined_at = Punctuated().start(), list[Punctuation](), dict[int, int]()
    for step in story:
        play(generator, step)
        if isinstance(step, Punctuation):
            taken.append(step)
        answer = generator.heartbeats(0)
        for source in range(len(answer.by_source)):
            joined_at.setdefault(source, answer.combined)
            for time in range(41):
                if generator.frontier.is_closed(time, source) and time > max(joined_at[source], answer.combined):
                    assert promised_to(time, source, taken)


@given(stories)
def test_while_no_promise_is_broken_every_bound_is_followed_at_once(story: list[Punctuation | Rows]) -> None:
    generator = Punctuated().start()
    for step in story:
        play(generator, step)
        if generator.broken_rows.any():
            return
        answer = generator.heartbeats(0)
        if isinstance(step, Punctuation) and step.start is None:
            assert all(answer.of(source) >= step.time for source in step.group or range(len(answer.by_source)))
            assert step.group is not None or answer.combined >= step.time


@given(stories, stories)
def test_a_generator_restored_through_json_goes_on_as_before(
    past: list[Punctuation | Rows], future: list[Punctuation | Rows]
) -> None:
    generator = Punctuated().start()
    for step in past:
        play(generator, step)
    resumed = Punctuated().resume(json.loads(json.dumps(generator.snapshot(), default=as_plain)))
    for step in future:
        play(generator, step)
        play(resumed, step)
        assert resumed.violations == generator.violations
        mine, its = resumed.heartbeats(0), generator.heartbeats(0)
        assert (mine.combined, mine.by_source.tolist()) == (its.combined, its.by_source.tolist())
        assert resumed.frontier == generator.frontier


@given(stories)
def test_heartbeats_from_promises_never_go_back(story: list[Punctuation | Rows]) -> None:
    generator = Punctuated().start()
    before = generator.heartbeats(0)
    for step in story:
        play(generator, step)
        after = generator.heartbeats(0)
        assert after.combined >= before.combined
        assert (after.by_source[: len(before.by_source)] >= before.by_source).all()
        before = after


@given(st.integers(0, 50), st.integers(1, 30))
def test_a_source_that_breaks_its_word_the_same_way_again_loses_no_second_row(first: int, breach: int) -> None:
    generator = Punctuated().start()
    late = 0
    for time in range(first, first + 5 * breach, breach):
        generator.take(Punctuation(time, group=(0,)))
        heartbeat = generator.heartbeats(0).of(0)
        late += time - breach + 1 <= heartbeat
        generator.observe(Arrivals.of_row(0, 0, time - breach + 1))
    assert late == 1
    assert generator.broken_rows.tolist() == [5]


def test_a_source_that_lies_by_ages_is_not_followed_any_more() -> None:
    generator = Punctuated().start()
    generator.take(Punctuation(FOREVER - 1, group=(0,)))
    generator.observe(Arrivals.of_row(0, 0, NEVER + 1))
    generator.take(Punctuation(50, group=(1,)))
    assert generator.heartbeats(0).of(1) == 50
    assert generator.violations[0].rows == 1


def test_a_digested_cell_astride_a_promise_counts_one_row() -> None:
    generator = Punctuated().start()
    generator.take(Punctuation(50))
    generator.observe(Arrivals.of_rows(0, [0, 0, 0], [45, 48, 99]))
    assert [(v.time, v.rows) for v in generator.violations] == [(45, 1)]


@pytest.mark.parametrize(
    ("arguments", "way_out"),
    [
        ({"time": 5, "start": 6}, "must not be after"),
        ({"time": FOREVER}, "fit into 64 bits"),
        ({"time": 5, "group": (-1,)}, "numbered 0, 1, 2"),
    ],
)
def test_a_punctuation_that_promises_nonsense_is_refused(arguments: dict[str, int], way_out: str) -> None:
    with pytest.raises(DeclarationError, match=way_out):
        Punctuation(**arguments)  # type: ignore[arg-type]
