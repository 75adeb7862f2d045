"""Promises for ranges of time and of sources, against what each of them says of every source and instant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from eventide.engine.promises import source_names, take_promises
from eventide.eventtime.policies.punctuated import Punctuated

SOURCES = [(segment, lane) for segment in (2, 3, 11, None) for lane in ("a", "b")]
"""As texts, 11 comes before 2."""


@dataclass(frozen=True)
class Promise:
    """A promise up to `time`, where None stands for anything."""

    time: int
    since: int | None
    segment: int | None
    first: int | None
    last: int | None
    lane: str | None

    def is_for(self, segment: int | None, lane: str) -> bool:
        """Whether it speaks for a source."""
        ranged = self.first is not None or self.last is not None
        inside = not ranged or (
            segment is not None
            and (self.first is None or self.first <= segment)
            and (self.last is None or segment <= self.last)
        )
        return inside and self.segment in (None, segment) and self.lane in (None, lane)


LAYOUT = pa.schema(
    [
        ("__s0", pa.int32()),
        ("__s1", pa.string()),
        ("__from", pa.int64()),
        ("__low0", pa.int32()),
        ("__high0", pa.int32()),
        ("__hi", pa.int64()),
    ]
)
TIMES = st.integers(0, 12)
SEGMENTS = st.none() | st.sampled_from([1, 2, 3, 10, 11])
PROMISES = st.lists(
    st.builds(Promise, TIMES, st.none() | TIMES, SEGMENTS, SEGMENTS, SEGMENTS, st.sampled_from([None, "a", "b"])),
    max_size=6,
)


@settings(max_examples=400)
@given(PROMISES)
def test_a_heartbeat_is_the_last_instant_up_to_which_all_was_promised(promises: list[Promise]) -> None:
    """Of each source: every instant up to it is in some promise, alone or in one for everyone."""
    rows = [
        {"__s0": p.segment, "__s1": p.lane, "__from": p.since, "__low0": p.first, "__high0": p.last, "__hi": p.time}
        for p in promises
    ]
    table = pa.Table.from_pylist(rows, LAYOUT)
    columns = ("__s0", "__s1")
    known = source_names(
        pa.table({"__s0": pa.array([segment for segment, _ in SOURCES], pa.int32()), "__s1": [x for _, x in SOURCES]}),
        columns,
    )

    def number(given: pa.Table, names: tuple[str, ...]) -> NDArray[np.intp]:
        found = pc.index_in(source_names(given, names), value_set=known)
        return np.asarray(pc.fill_null(found, len(SOURCES)).to_numpy(), dtype=np.intp)

    generator = Punctuated(known=len(SOURCES)).start()
    take_promises(generator, table, columns, number, lambda: known)
    found = generator.heartbeats(0).by_source
    for place, (segment, lane) in enumerate(SOURCES):
        heard = [one for one in promises if one.is_for(segment, lane)]
        empty = {time for time in range(13) for one in heard if (one.since or 0) <= time <= one.time}
        # Nothing is before 0 here, but whoever hears promises does not know that.
        begun = any(one.since is None for one in heard)
        assert found[place] == next(time for time in range(14) if time not in empty) - 1 if begun else found[place] < 0
