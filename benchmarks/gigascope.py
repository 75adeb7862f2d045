"""Memory of merges and joins against the heartbeat interval: `python -m benchmarks.gigascope [--quick] [--json FILE]`.

The experiments of the Gigascope paper (sections 7.1 and 7.2), in virtual time on the local engine. Packets of two busy
links and of a control link on which almost nothing happens; all go by a clock with a declared largest skew.

- *merge*: packets of all three links in the order of time. While nothing is known of the control link, those of the
  busy links wait.
- *join*: flows of 10 seconds on main1 with the control link (`flow1`), those on main2 (`flow2`), and the full outer
  join of both on time bucket and addresses.

What counts is the peak of the memory that operators and queries hold, for intervals of 1 to 60 seconds and on demand.
Theirs grows linearly up to 420 MB (merge, 30 s) and 520 MB (join, 60 s), at 100,000 packets a second.

The last line is one JSON object, for `merge` and `join`: `peak_bytes` by interval and on demand, `slope_r2` (how much
of it a straight line explains), `on_demand_over_1s`; beside them the lesser `slope_r2` of both, and the merge's
`on_demand_over_1s`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.harness import finish, options, say, scratch, show_table
from benchmarks.virtual_time import SECOND, Arrival, play
from eventide.eventtime.policies.on_demand import OnDemand
from eventide.eventtime.scheduling.options import IdlePolling, Scheduling
from eventide.plan.declared.join import Band, Join, JoinKind, Side
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import Window

COLUMNS = "ts TIMESTAMP, protocol INT, srcIP BIGINT, destIP BIGINT, srcPort INT, destPort INT"
ADDRESS = ("protocol", "srcIP", "destIP", "srcPort", "destPort")
LINKS = ("main1", "main2", "control")
SKEW = SECOND
"""The largest skew between two packets of a link, as it is declared."""

INTERVALS = (1, 10, 20, 30, 40, 50, 60)
START = 1_699_999_980 * SECOND
"""A full minute: the first intervals of all lengths begin together."""


@dataclass(frozen=True)
class Size:
    """Packets a second on a busy link, addresses, seconds of traffic, and the length of a round."""

    rate: int
    flows: int
    seconds: int
    round: int = SECOND // 2

    @property
    def until(self) -> int:
        """The last clock."""
        return START + self.seconds * SECOND


def streams() -> tuple[Stream, ...]:
    """The three links."""
    return tuple(Stream(name, columns(COLUMNS), time="ts", policy=OnDemand(SKEW)) for name in LINKS)


def merge_query() -> tuple[Program, str]:
    """All packets in the order of time; the control link is silent for a minute and more."""
    return Program(streams(), operators=(Rows("packets", LINKS, ordered=True),)), "packets"


def join_query() -> tuple[Program, str]:
    """flow1, flow2 and their full outer join, as the paper prints them."""
    bucket = Window(10 * SECOND)
    flows = tuple(
        Query(name, read, bucket, named_as(cnt="count(*)"), groups=named_as(*ADDRESS))
        for name, read in (("flow1", "main1_and_control"), ("flow2", "main2"))
    )
    shown = named_as(cnt1="flow1.cnt", cnt2="flow2.cnt")
    whole = Join(
        "full_flow",
        Side("flow1", keys=ADDRESS),
        Side("flow2", keys=ADDRESS),
        (Band("window_start", "window_start"),),
        JoinKind.FULL,
        select=shown,
    )
    both = Rows("main1_and_control", ("main1", "control"))
    return Program(streams(), flows, (both, whole)), "full_flow"


def packets(size: Size, seed: int) -> Iterator[Arrival]:
    """Round by round: busy links in every one, the control link in the first, and then no more."""
    random = np.random.default_rng(seed)
    count = size.rate * size.round // SECOND
    for number in range(size.seconds * SECOND // size.round):
        clock = START + (number + 1) * size.round
        rows = {name: _table(random, clock, count, size) for name in LINKS[:2]}
        if number == 0:
            rows["control"] = _table(random, clock, 1, size)
        yield clock, rows


def _table(random: np.random.Generator, clock: int, count: int, size: Size) -> pa.Table:
    flow = random.integers(size.flows, size=count)
    sent = np.sort(clock - random.integers(1, size.round, size=count))
    return pa.table(
        {
            "ts": pa.array(sent, pa.timestamp("us", "UTC")),
            "protocol": pa.array(np.where(flow % 3 == 0, 17, 6).astype(np.int32)),
            "srcIP": pa.array(flow.astype(np.int64) * 7919),
            "destIP": pa.array(flow.astype(np.int64) * 104_729),
            "srcPort": pa.array((1024 + flow % 60_000).astype(np.int32)),
            "destPort": pa.array(np.where(flow % 2 == 0, 80, 443).astype(np.int32)),
        }
    )


def peak(query: tuple[Program, str], size: Size, asking: IdlePolling, folder: Path) -> int:
    """The most memory that is held between two rounds."""
    program, told = query
    return play(program, (told,), packets(size, seed=3), size.until, folder, Scheduling(asking)).peak_bytes


def explained(interval: list[int], bytes_held: list[int]) -> float:
    """How much of the variance a straight line explains.

    >>> explained([1, 2, 3], [10, 20, 30])
    1.0
    """
    slope, base = np.polyfit(interval, bytes_held, 1)
    held = np.array(bytes_held, dtype=float)
    rest = held - (slope * np.array(interval) + base)
    whole = held - held.mean()
    return round(1 - float(rest @ rest) / float(whole @ whole), 6) if whole.any() else 0.0


def measured(name: str, query: tuple[Program, str], size: Size, intervals: tuple[int, ...], folder: Path) -> Any:
    """The peaks of one query."""
    held = [peak(query, size, IdlePolling.every(one * SECOND), folder / f"{name}-{one}") for one in intervals]
    asked = peak(query, size, IdlePolling.on_demand(), folder / f"{name}-asked")
    rows = [*((f"every {one} s", _shown(size)) for one, size in zip(intervals, held, strict=True))]
    show_table(f"{name}: peak memory", ("timestamps", "held"), [*rows, ("on demand", _shown(asked))])
    return {
        "peak_bytes": {**{str(one): size for one, size in zip(intervals, held, strict=True)}, "on demand": asked},
        "slope_r2": explained(list(intervals), held),
        "on_demand_over_1s": asked / held[0],
    }


def _shown(size: int) -> str:
    return f"{size / 1e6:.2f} MB"


def main() -> None:
    """Both queries."""
    asked = options("peak memory of a merge and a full outer join against the interval of heartbeats")
    size = Size(500, 500, 65, round=SECOND) if asked.quick else Size(20_000, 20_000, 130)
    intervals = INTERVALS[::3] if asked.quick else INTERVALS
    say(f"{size.rate:,} packets a second on each busy link, {size.seconds} s of them")
    with scratch() as folder:
        found = {
            name: measured(name, query, size, intervals, folder)
            for name, query in (("merge", merge_query()), ("join", join_query()))
        }
    worst = min(one["slope_r2"] for one in found.values())
    finish(asked, {**found, "slope_r2": worst, "on_demand_over_1s": found["merge"]["on_demand_over_1s"]})


if __name__ == "__main__":
    main()
