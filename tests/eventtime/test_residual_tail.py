"""The tail of residuals against an oracle that keeps them all, and what it forgets."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from eventide.eventtime.residual_tail import PROOF_ROWS, ResidualTail


class EveryResidual:
    """The oracle: two blocks, whole."""

    def __init__(self, block_rows: int) -> None:
        self.block_rows, self.now, self.before, self.total = block_rows, list[int](), list[int](), 0

    def add(self, residual: int) -> None:
        self.now.append(residual)
        self.total += 1
        if len(self.now) >= min(self.block_rows, max(self.total // 2, PROOF_ROWS)):
            self.now, self.before = [], self.now

    def slack(self, level: float) -> int:
        every = sorted(self.now + self.before)
        slack = every[-int(level * len(every)) - 1]
        return slack if len(every) >= PROOF_ROWS else max(slack, 0)


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=300), st.floats(0, 1))
def test_the_slack_is_that_of_all_residuals_of_two_blocks(residuals: list[int], share: float) -> None:
    tail, oracle = ResidualTail(0.1, block_rows=100), EveryResidual(100)
    for residual in residuals:
        tail.add([residual], rows=1)
        oracle.add(residual)
    level = 2 * 0.1 * share
    assert tail.slack(level) == oracle.slack(level)
    again = ResidualTail(0.1, block_rows=100)
    again.restore(json.loads(json.dumps(tail.snapshot())))
    assert again.slack(level) == tail.slack(level)


def test_an_excursion_is_forgotten_after_two_blocks() -> None:
    tail = ResidualTail(0.01, block_rows=100)
    for residual in [1] * 400 + [1_000] * 30 + [1] * 200:
        tail.add([residual], rows=1)
    assert tail.slack(0.0) == 1
