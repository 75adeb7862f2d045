"""Bounds between streams say of their members what the same bounds say of the sources of one stream."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.eventtime.arrays import as_plain
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.policies.skew.between_streams import BetweenStreams, Member
from eventide.eventtime.policies.skew.bounds import RowBound, TimeBound
from eventide.eventtime.policies.skew.declared import DeclaredSkew
from eventide.eventtime.policies.skew.matrix import SkewMatrix
from eventide.eventtime.policies.wrappers.timeout import Timeout

BOUNDS = st.lists(
    st.one_of(
        st.builds(TimeBound, st.integers(0, 4), st.integers(0, 9)),
        st.builds(RowBound, st.integers(0, 3), st.integers(0, 9)),
    ),
    max_size=2,
)
STREAMS = ("a", "b", "c")


@st.composite
def declarations(draw: st.DrawFn) -> tuple[Timeout, tuple[Member, ...]]:
    """Bounds between two to five members: streams, and sources of streams."""
    possible = [Member(stream, source) for stream in STREAMS for source in (None, "x", "y")]
    members = tuple(draw(st.lists(st.sampled_from(possible), min_size=2, max_size=5, unique=True)))
    n = range(len(members))
    skew = SkewMatrix.of([[draw(BOUNDS) for _ in n] for _ in n], [draw(st.integers(0, 3)) for _ in n])
    return Timeout(DeclaredSkew(skew, clock_unit=1), draw(st.integers(1, 20))), members


rounds = st.lists(
    st.tuples(st.integers(1, 4), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 60)), max_size=5)), max_size=12
)


@settings(max_examples=150)
@given(declarations(), rounds, st.integers(0, 12))
def test_streams_that_share_bounds_are_promised_what_one_generator_promises_to_members(
    declared: tuple[Timeout, tuple[Member, ...]], steps: list[tuple[int, list[tuple[int, int]]]], restart: int
) -> None:
    policy, members = declared
    policies = [BetweenStreams(policy, members, name) for name in dict.fromkeys(one.stream for one in members)]
    parts = [one.start() for one in policies]
    for one in parts[1:]:
        one.share(parts[0])
    whole, clock = policy.start(), 0
    for number, (wait, rows) in enumerate(steps):
        if number == restart:
            saved = [json.loads(json.dumps(one.snapshot(), default=as_plain)) for one in parts]
            parts = [one.resume(state) for one, state in zip(policies, saved, strict=True)]
            for one in parts[1:]:
                one.share(parts[0])
        clock += wait
        of_member = [(member % len(members), time) for member, time in rows]
        whole.observe(Arrivals.of_rows(clock, [member for member, _ in of_member], [time for _, time in of_member]))
        for own, generator in zip(policies, parts, strict=True):
            local = {member: place for place, member in enumerate(own.sources.values())}
            # What is no source by name is a source of the others; here it is the only one.
            local |= {} if own.others is None else {own.others: len(local)}
            here = [(local[member], time) for member, time in of_member if member in local]
            generator.observe(Arrivals.of_rows(clock, [place for place, _ in here], [time for _, time in here]))
        promised = whole.heartbeats(clock).by_source
        for own, generator in zip(policies, parts, strict=True):
            numbers = [*own.sources.values(), *([] if own.others is None else [own.others])]
            beats = generator.heartbeats(clock)
            assert beats.combined == promised[numbers].min()
            assert np.array_equal(beats.by_source, promised[numbers][: len(beats.by_source)])
