"""Lookups run by run: rows with the versions of a table as of their time, against brute force."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engine.operators.lookup import LookupOperator
from eventide.engine.operators.placement import state_rows
from eventide.engine.relations.executor import Executor
from eventide.engine.relations.relation import Relation
from eventide.errors import DeclarationError
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.plan.bound.lookup import BoundLookup, bind_lookup
from eventide.plan.declared.join import Lookup, Side
from eventide.plan.declared.query import named_as
from eventide.plan.declared.stream import Stream, columns
from tests.engine.join_oracle import Row
from tests.engine.operators_alone import BACKEND, came, emitted, in_files, in_one_part, inputs, restarted

ORDERS, PRICES = (Stream(name, columns("t BIGINT, k INT, v INT"), time="t") for name in ("orders", "prices"))
ROWS = pa.schema([("t", pa.int64()), ("k", pa.int32()), ("v", pa.int32())])
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


def came_to(run: LookupOperator, side: int, given: list[Row]) -> Relation:
    """Rows as they come through the port of a side."""
    mine = [{"t": row.t, "k": row.k, "v": row.v} for row in given if row.side == side]
    return came(run, run.bound.ports[side], pa.Table.from_pylist(mine, ROWS))


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
    keeps_all: bool, removed: bool, rounds: list[tuple[list[Row], int | None, int | None, str]], executor: Executor
) -> None:
    bound = bound_lookup(keeps_all, "v IS NULL" if removed else None)
    run = LookupOperator.start(bound, executor)
    heartbeats = (NEVER, NEVER)
    waiting, versions = list[Row](), list[Row]()
    for number, (given_rows, left, right, then) in enumerate([*rounds, ([], FOREVER, FOREVER, "")]):
        executor.files.begin(number)
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
            run, ingested = run.ingest(port.query.name, came_to(run, side, given_rows))
            late_rows += ingested.late_rows
        reached = inputs(priced__left=heartbeats[0], priced__right=heartbeats[1])
        would = run.would_emit(reached)
        run, output = run.advance(reached)
        told = emitted(output)
        assert late_rows == len(late)
        assert Counter(tuple(row.values())[:-1] for row in told.to_pylist()) == expected
        assert would or not expected
        assert all(end - 1 > promised.time for end in told.column("window_end").to_pylist())
        assert all(t >= promised.least.get("t", t) for t in told.column("t").to_pylist())
        assert run.holds.tolist() == sorted({row.t for row in waiting})
        assert run.frontier.time == max(promised.time, min(heartbeats[0], *(row.t - 1 for row in waiting), FOREVER))
        run = in_files(in_one_part(run) if then == "whole" else run)
        if then == "restart":
            run = restarted(LookupOperator.start(bound, executor), run)
            assert run.holds.tolist() == sorted({row.t for row in waiting})
    assert state_rows(run) == 0
    assert run.frontier.is_over
    assert not any(rows.parts for rows in run.state.values())


def _split(waiting: list[Row], heartbeat: int) -> tuple[list[Row], list[Row]]:
    return [row for row in waiting if row.t <= heartbeat], [row for row in waiting if row.t > heartbeat]


def test_versions_that_later_ones_have_replaced_are_freed(executor: Executor) -> None:
    run = LookupOperator.start(bound_lookup(keeps_all=True, removed="v IS NULL"), executor)
    most = 0
    for t in range(60):
        run = _told_of(run, [Row(1, t, key, t) for key in range(5)], t)
        most = max(most, state_rows(run))
    assert most <= 15
    run = _told_of(run, [Row(1, 60, key, None) for key in range(5)], 60)
    run = _told_of(run, [Row(1, 61, 0, 1)], 61)
    assert state_rows(run) == 1


def _told_of(run: LookupOperator, versions: list[Row], heartbeat: int) -> LookupOperator:
    """One more round, in which versions come."""
    run, _ = run.ingest("priced__right", came_to(run, 1, versions))
    return run.advance(inputs(priced__left=heartbeat, priced__right=heartbeat))[0]


def test_a_version_that_has_ended_does_not_come_back_after_a_restart(executor: Executor) -> None:
    bound = bound_lookup(keeps_all=True, removed="v IS NULL")
    run = in_files(_told_of(LookupOperator.start(bound, executor), [Row(1, 1, 0, 5), Row(1, 9, 1, 6)], 0))
    # The version that has ended is freed with its end, once versions are many; its file held another one, too.
    run = in_files(_told_of(run, [Row(1, 5, 0, None), Row(1, 10, 2, 7), Row(1, 11, 2, 8)], 20))
    assert run.state["right"].least("__t") == 9
    run = restarted(LookupOperator.start(bound, executor), run)
    run, _ = run.ingest("priced__left", came_to(run, 0, [Row(0, 21, 0, 1), Row(0, 21, 1, 2)]))
    _, output = run.advance(inputs(priced__left=21, priced__right=21))
    assert emitted(output).select(["v", "price"]).to_pylist() == [{"v": 1, "price": None}, {"v": 2, "price": 6}]


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
