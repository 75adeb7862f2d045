"""Panes and windows against their definitions, counted out."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eventide.engine.operators.windows import closed_by, closing, holding, needed_from
from eventide.eventtime.instant import EDGE, FOREVER, NEVER
from eventide.plan.declared.window import GrowingWindow, Window

sliding = st.builds(Window, range=st.integers(1, 30), slide=st.integers(1, 40), offset=st.integers(-50, 50))
growing = st.builds(
    lambda step, count, offset: GrowingWindow(step * count, step, offset),
    st.integers(1, 8),
    st.integers(1, 6),
    st.integers(-50, 50),
)
windows = sliding | growing
times = st.integers(-200, 200)


def spans_holding(window: Window, time: int) -> list[tuple[int, int]]:
    """The windows that hold an instant, by trying all of them."""
    around = range(time - window.range - window.slide, time + 1)
    if isinstance(window, GrowingWindow):
        starts = [s for s in around if (s - window.offset) % window.range == 0]
        lengths = range(window.slide, window.range + 1, window.slide)
        return [(s, s + length) for s in starts for length in lengths if s <= time < s + length]
    starts = [s for s in around if (s - window.offset) % window.slide == 0]
    return [(s, s + window.range) for s in starts if s <= time < s + window.range]


@given(windows, times)
def test_a_pane_lies_in_the_same_windows_as_every_instant_in_it(window: Window, time: int) -> None:
    pane = window.pane_of(time)
    assert pane <= time < pane + window.pane
    assert list(window.starts_covering(pane)) == sorted({start for start, _ in spans_holding(window, time)})
    assert spans_holding(window, pane) == spans_holding(window, time)


@given(windows, st.lists(times, min_size=1, max_size=20), times, st.integers(0, 60))
def test_the_windows_that_close_are_those_that_end_between_two_bounds(
    window: Window, rows: list[int], heartbeat: int, step: int
) -> None:
    panes = np.unique(np.array([window.pane_of(t) for t in rows], dtype=np.int64))
    before, after = closed_by(window, heartbeat), closed_by(window, heartbeat + step)
    found = closing(window, panes, before, after)
    pairs = set(zip(*(found[name].to_pylist() for name in ("pane", "window_start", "window_end")), strict=True))
    expected = {
        (window.pane_of(t), start, end)
        for t in rows
        for start, end in spans_holding(window, t)
        if heartbeat < end - 1 <= heartbeat + step
    }
    assert pairs == expected


@given(windows, times, st.integers(0, 100))
def test_a_pane_is_needed_exactly_while_one_of_its_windows_is_open_or_retained(
    window: Window, heartbeat: int, retain: int
) -> None:
    bound = closed_by(window, heartbeat)
    needed = needed_from(window, bound, retain)
    for pane in range(window.pane_of(heartbeat - 150), heartbeat + 50, window.pane):
        spans = spans_holding(window, pane)
        if spans and any(end + retain > bound for _, end in spans):
            assert pane >= needed, "a pane that a window needs was freed"
        elif spans and pane < bound - retain:
            assert pane < needed or window.slide > window.range, "a pane that no window needs was kept"


@given(windows, st.lists(times, min_size=1, max_size=5), times)
def test_windows_told_anew_come_with_all_their_panes(window: Window, changed: list[int], heartbeat: int) -> None:
    panes = np.unique(np.array([window.pane_of(t) for t in changed], dtype=np.int64))
    bound = closed_by(window, heartbeat)
    found = holding(window, panes, NEVER, bound)
    spans = {(start, end) for t in changed for start, end in spans_holding(window, t) if end <= bound}
    assert set(zip(found["window_start"].to_pylist(), found["window_end"].to_pylist(), strict=True)) == spans
    assert found.num_rows == sum((end - start) // window.pane for start, end in spans)


def test_the_ends_of_time_close_nothing_and_everything() -> None:
    assert closed_by(Window(10), NEVER) == closed_by(Window(10), -EDGE) == NEVER
    assert closed_by(Window(10), FOREVER) == closed_by(Window(10), EDGE) == FOREVER
