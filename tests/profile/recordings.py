"""Random recordings for the tests of the dry run: few rows, few sources, many ties, both clocks in small integers."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from eventide.profile.reading import Recording


@st.composite
def recordings(draw: st.DrawFn, most_rows: int = 40) -> Recording:
    """Up to some rows of three sources, with silences, ties, stragglers and rows of the future."""
    rows = draw(st.integers(1, most_rows))
    gaps = draw(st.lists(st.sampled_from([0, 0, 1, 2, 7, 60]), min_size=rows, max_size=rows))
    delays = draw(st.lists(st.integers(-5, 20), min_size=rows, max_size=rows))
    sources = draw(st.lists(st.sampled_from("abc"), min_size=rows, max_size=rows))
    arrival = np.cumsum(gaps) + draw(st.integers(-50, 50))
    return Recording.of("random", arrival - np.array(delays), arrival, sources)
