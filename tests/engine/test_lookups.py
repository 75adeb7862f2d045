"""Lookups run by run: rows with the versions of a table as of their time, against brute force."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engine.local_backend import LocalBackend
from eventide.engine.lookup_run import LookupRun
from eventide.engine.operators.frontier import Frontier
from eventide.engine.slices import slice_schema
from eventide.errors import DeclarationError
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.plan.bound_lookup import BoundLookup, bind_lookup
from eventide.plan.join import Side
from eventide.plan.lookup import Lookup
from eventide.plan.query import named_as
from eventide.plan.reduce_text import MALFORMED, batch_view, kept_text
from eventide.plan.stream import Stream, columns
from tests.engine.join_oracle import Row

BACKEND = LocalBackend()
ORDERS, PRICES = (Stream(name, columns("t BIGINT, k INT, v INT"), time="t") for name in ("orders", "prices"))
ROWS = pa.schema([("t", pa.int64()), ("k", pa.int32()), ("v", pa.int32()), (MALFORMED, pa.string())])
SELECT = named_as(t="orders.t", v="orders.v", price="prices.v")

small = st.one_of(st.none(), st.integers(0, 3))
rows = st.builds(Row, st.integers(0, 1), st.integers(-5, 30), st.one_of(st.none(), st.integers(0, 2)), small)
steps = st.one_of(st.none(), st.integers(0, 9))
rounds = st.lists(
    st.tuples(st.lists(rows, max_size=6), steps, steps, st.sampled_from(["", "", "restart", "whole"])), max_size=8
)


def bound_lookup(keeps_all: bool, removed: str | None) -> BoundLookup:
    sides = Side("orders", keys=("k",)), Side("prices", keys=("k",))
    lookup = Lookup("priced", *sides, keeps_all, removed, select=SELECT)
    return bind_lookup(lookup, ORDERS, PRICES, BACKEND.type_of)


def chunk_of(bound: BoundLookup, side: int, given: list[Row]) -> pa.Table:
    port = bound.ports[side]
    mine = [{"t": row.t, "k": row.k, "v": row.v, MALFORMED: None} for row in given if row.side == side]
    if not mine:
        return slice_schema(port).empty_table()
    table = pa.Table.from_pylist(mine, ROWS)
    return BACKEND.workbench.ask(kept_text(port), {batch_view(port.stream): table}).cast(slice_schema(port))


def price_of(row: Row, versions: list[Row], removed: bool) -> tuple[bool, int | None]:
    """Whether there is a version as of the row's time, and its value."""
    known = [one for one in versions if row.k is not None and one.k == row.k and one.t <= row.t]
    latest = [one.v for one in known if one.t == max(other.t for other in known)]
    if removed:
        latest = [v for v in latest if v is not None]
    return bool(latest), max((v for v in latest if v is not None), default=None)


def moved(heartbeat: int, by: int | None) -> int:
    if by is None or heartbeat == FOREVER:
        return heartbeat
    return FOREVER if by == FOREVER else (-7 if heartbeat == NEVER else heartbeat) + by


@settings(max_examples=30, deadline=None)
@given(keeps_all=st.booleans(), removed=st.booleans(), rounds=rounds)
def test_every_row_is_told_with_the_version_of_its_key_as_of_its_time(
    keeps_all: bool, removed: bool, rounds: list[tuple[list[Row], int | None, int | None, str]]
) -> None:
    bound = bound_lookup(keeps_all, "v IS NULL" if removed else None)
    run = LookupRun.start(bound, BACKEND.workbench)
    heartbeats, files = (NEVER, NEVER), dict[str, list[pa.Table]]()
    waiting, versions = list[Row](), list[Row]()
    for given_rows, left, right, then in [*rounds, ([], FOREVER, FOREVER, "")]:
        late = [row for row in given_rows if row.t <= heartbeats[row.side]]
        waiting += [row for row in given_rows if row.side == 0 and row not in late]
        versions += [row for row in given_rows if row.side == 1 and row not in late]
        heartbeats = (moved(heartbeats[0], left), moved(heartbeats[1], right))
        ready, waiting = _split(waiting, heartbeats[1])
        found = [(row, *price_of(row, versions, removed)) for row in ready]
        expected = Counter(
            (row.t, row.t + 1, 2 if has else 1, row.t, row.v, price) for row, has, price in found if has or keeps_all
        )
        promised, late_rows = run.frontier, 0
        for side, port in enumerate(bound.ports):
            run, taken = run.take(port.query.name, chunk_of(bound, side, given_rows))
            late_rows += taken.late_rows
        frontiers = {"priced__left": Frontier(heartbeats[0]), "priced__right": Frontier(heartbeats[1])}
        tells = run.would_tell(frontiers)
        run, answer = run.advance(frontiers)
        [told] = answer.parts()
        assert late_rows == len(late)
        assert Counter(tuple(row.values())[:-1] for row in told.to_pylist()) == expected
        assert tells or not expected
        assert all(end - 1 > promised.time for end in told.column("window_end").to_pylist())
        assert all(t >= promised.least.get("t", t) for t in told.column("t").to_pylist())
        assert run.holds.tolist() == sorted({row.t for row in waiting})
        assert run.frontier.time == max(promised.time, min(heartbeats[0], *(row.t - 1 for row in waiting), FOREVER))
        for name, kept in run.kept().items():
            listed = [*files.get(name, []), *([] if kept.added is None else [kept.added])]
            files[name] = [file for file in listed if pc.max(file.column("__t")).as_py() >= kept.live]
            if then == "whole":
                files[name] = [kept.whole()] if kept.whole().num_rows else []
        if then == "restart":
            run = LookupRun.restored(bound, run.bench, json.loads(json.dumps(run.saved())), files)
    assert run.rows == 0
    assert run.frontier.is_over
    assert not any(files.values())


def _split(waiting: list[Row], heartbeat: int) -> tuple[list[Row], list[Row]]:
    return [row for row in waiting if row.t <= heartbeat], [row for row in waiting if row.t > heartbeat]


def test_versions_that_later_ones_have_replaced_are_freed() -> None:
    bound = bound_lookup(keeps_all=True, removed="v IS NULL")
    run = LookupRun.start(bound, BACKEND.workbench)
    most = 0
    for t in range(60):
        updates = [Row(1, t, key, t) for key in range(5)]
        run, _ = run.take("priced__right", chunk_of(bound, 1, updates))
        run, _ = run.advance({"priced__left": Frontier(t), "priced__right": Frontier(t)})
        most = max(most, run.rows)
    assert most <= 15
    ended = [Row(1, 60, key, None) for key in range(5)]
    run, _ = run.take("priced__right", chunk_of(bound, 1, ended))
    run, _ = run.advance({"priced__left": Frontier(60), "priced__right": Frontier(60)})
    run, _ = run.take("priced__right", chunk_of(bound, 1, [Row(1, 61, 0, 1)]))
    run, _ = run.advance({"priced__left": Frontier(61), "priced__right": Frontier(61)})
    assert run.rows == 1


def test_a_version_that_has_ended_does_not_come_back_after_a_restart() -> None:
    bound = bound_lookup(keeps_all=True, removed="v IS NULL")
    run = LookupRun.start(bound, BACKEND.workbench)
    files = []
    for versions, heartbeat in (([Row(1, 1, 0, 5), Row(1, 9, 1, 6)], 0), ([Row(1, 5, 0, None)], 20)):
        run, _ = run.take("priced__right", chunk_of(bound, 1, versions))
        run, _ = run.advance({"priced__left": Frontier(heartbeat), "priced__right": Frontier(heartbeat)})
        files.append(run.kept()["right"].added)
    assert run.kept()["right"].live == 9
    # The file with the end of the first version is done with, the one with its beginning is not.
    run = LookupRun.restored(bound, run.bench, run.saved(), {"right": files[:1]})
    run, _ = run.take("priced__left", chunk_of(bound, 0, [Row(0, 21, 0, 1), Row(0, 21, 1, 2)]))
    _, answer = run.advance({"priced__left": Frontier(21), "priced__right": Frontier(21)})
    [told] = answer.parts()
    assert told.select(["v", "price"]).to_pylist() == [{"v": 1, "price": None}, {"v": 2, "price": 6}]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"removed": "v + 1"}, "'v + 1' is no condition on single versions"),
        ({"removed": "prise IS NULL"}, "has no column 'prise'"),
        ({"where": "prices.w > 1"}, "input 'prices' has no column 'w'"),
        ({"versions": Side("prices", keys=("array(k)",))}, "cast one to the type of the other"),
    ],
)
def test_a_lookup_that_cannot_work_is_refused_with_the_way_out(words: dict[str, Any], said: str) -> None:
    plain: dict[str, Any] = {"rows": Side("orders", keys=("k",)), "versions": Side("prices", keys=("k",))}
    with pytest.raises(DeclarationError) as refused:
        bind_lookup(Lookup("priced", **plain | words), ORDERS, PRICES, BACKEND.type_of)
    assert said in str(refused.value)
