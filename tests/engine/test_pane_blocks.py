from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eventide.engine.operators.slices import in_blocks
from eventide.engine.operators.windows import closing
from eventide.eventtime.instant import NEVER
from eventide.plan.declared.window import Window


@given(
    st.sets(st.integers(-50, 50), min_size=1),
    st.integers(1, 40),
    st.integers(1, 12),
    st.integers(-60, 60),
    st.integers(2, 9),
)
def test_every_pane_of_a_window_stands_once_for_it(
    panes: set[int], length: int, slide: int, bound: int, size: int
) -> None:
    window = Window(length, slide)
    held = np.array(sorted({window.pane_of(pane) for pane in panes}))
    pairs = closing(window, held, NEVER, bound)
    shared, blocks = in_blocks(pairs, size)
    inside: dict[int, list[int]] = {}
    for pane, block in zip(blocks["__of"].to_pylist(), blocks["__block"].to_pylist(), strict=True):
        inside.setdefault(block, []).append(pane)
    spelled = [(pane, *rest) for name, *rest in _rows(shared) for pane in inside.get(name, [name])]
    assert Counter(spelled) == Counter(map(tuple, _rows(pairs)))
    assert list(shared["window_start"].to_pylist()) == sorted(shared["window_start"].to_pylist())


def test_windows_of_many_panes_are_made_of_few_pieces() -> None:
    window = Window(600, 10)
    pairs = closing(window, np.arange(0, 1200, 10), after=600, closed_before=1000)
    shared, blocks = in_blocks(pairs, 7)
    assert pairs.num_rows == 40 * 60
    assert shared.num_rows + blocks.num_rows < pairs.num_rows / 3


def _rows(table: pa.Table) -> list[list[int]]:
    return [list(row.values()) for row in table.to_pylist()]
