"""States that an earlier version saved: `saved_states.jsonl` is never written again, only added to for a new policy.

A line has an example of `policy_examples.py`, its state after `PAST`, and the heartbeats that it then gave in `FUTURE`.
Where the policy was replaced since, the line is `upgraded`: the state is as it was saved, the heartbeats are those that
the policy of today gives from it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eventide.eventtime.arrays import as_plain
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import HeartbeatGenerator
from eventide.eventtime.policies.kim import Kim
from eventide.eventtime.policies.punctuated import Punctuated, PunctuatedGenerator
from eventide.eventtime.punctuation import Punctuation
from tests.eventtime.policy_examples import EXAMPLES

POLICIES = {**EXAMPLES, "punctuated, with promises": Punctuated(known=2), "kim with a slack": Kim(0.3, slack=2)}
SAVED: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("saved_states.jsonl").read_text().splitlines()
]
PAST, FUTURE = range(0, 240, 5), range(240, 300, 5)


def heartbeats(generator: HeartbeatGenerator, clocks: range) -> list[list[Any]]:
    """What is promised round by round: three sources of which one is often silent, rows out of order, promises."""
    answers = []
    for clock in clocks:
        sources = [0, 0, 1, *([2] if clock % 35 == 0 else [])]
        times = [clock - (7 * clock * (place + 1)) % 23 for place in range(len(sources))]
        generator.observe(Arrivals.of_rows(clock, sources, times, cell_width=10))
        if isinstance(generator, PunctuatedGenerator) and clock % 20 == 0:
            generator.take(Punctuation(clock - 15, group=(0, 1, 2)))
            generator.take(Punctuation(clock + 60, start=clock + 40))
        answer = generator.heartbeats(clock + 2)
        answers.append([answer.combined, answer.by_source.tolist()])
    return answers


@pytest.mark.parametrize("saved", SAVED, ids=[one["policy"] for one in SAVED])
def test_a_state_saved_by_an_earlier_version_goes_on_to_the_same_heartbeats(saved: dict[str, Any]) -> None:
    generator = POLICIES[saved["policy"]].resume(saved["state"])
    if not saved.get("upgraded"):
        assert json.loads(json.dumps(generator.snapshot(), default=as_plain)).keys() == saved["state"].keys()
    assert heartbeats(generator, FUTURE) == saved["heartbeats"]


def test_there_is_a_saved_state_of_every_kind_of_policy() -> None:
    kinds = {policy.start().snapshot()["kind"] for policy in POLICIES.values()}
    assert {one["state"]["kind"] for one in SAVED} == kinds
