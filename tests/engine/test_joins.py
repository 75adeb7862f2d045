"""Joins run by run, against brute force over the accepted rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engine.join_run import JoinRun
from eventide.engine.local_backend import LocalBackend
from eventide.engine.operator_run import Frontier
from eventide.engine.slices import slice_schema
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.plan.bound_join import BoundJoin, bind_join
from eventide.plan.join import Band, Join, JoinKind, Side
from eventide.plan.query import named_as
from eventide.plan.reduce_text import MALFORMED, batch_view, kept_text
from eventide.plan.stream import Stream, columns
from tests.engine.join_oracle import Oracle, OracleBand, Row

BACKEND = LocalBackend()
SCHEMA = "t BIGINT, k INT, v INT"
A, B = (Stream(name, columns(SCHEMA), time="t") for name in "ab")
ROWS = pa.schema([("t", pa.int64()), ("k", pa.int32()), ("v", pa.int32()), (MALFORMED, pa.string())])
SELECT = named_as(at="a.t", av="a.v", bt="b.t", bv="b.v")

SAME = OracleBand(Band("t", "t"), lambda t: t, lambda t: t)
BANDS = {
    "equal": (SAME,),
    "around": (OracleBand(Band("t", "t", -5, 5), lambda t: t, lambda t: t),),
    "after": (OracleBand(Band("t", "t", 2, 3), lambda t: t, lambda t: t),),
    "epochs": (OracleBand(Band("t div 7", "t div 7"), lambda t: int(t / 7), lambda t: int(t / 7)),),
    "doubled": (OracleBand(Band("t", "2 * t"), lambda t: t, lambda t: 2 * t),),
    "halved": (OracleBand(Band("t / 2", "t + 1"), lambda t: t / 2, lambda t: t + 1),),
    "falling": (OracleBand(Band("-t", "3 - t", -2, 1), lambda t: -t, lambda t: 3 - t),),
    "epochs around": (OracleBand(Band("t div 5", "floor(t / 5)", -1, 1), lambda t: int(t / 5), lambda t: t // 5),),
    "several": (
        OracleBand(Band("t", "t", -9, 9), lambda t: t, lambda t: t),
        OracleBand(Band("t div 4", "t div 4", 0, 1), lambda t: int(t / 4), lambda t: int(t / 4)),
    ),
}
CONDITIONS: dict[str | None, Callable[[Row, Row], bool]] = {
    None: lambda left, right: True,
    "a.v < b.v": lambda left, right: left.v is not None and right.v is not None and left.v < right.v,
    # Where there is no such number, this fails, and so is not true.
    "10 div a.v >= b.v": lambda left, right: bool(left.v and right.v is not None and 10 // left.v >= right.v),
}
WHERES: dict[str | None, Callable[[Row | None, Row | None], bool]] = {
    None: lambda left, right: True,
    "a.v IS NULL OR b.v IS NULL OR a.v + b.v > 3": lambda left, right: (
        left is None or right is None or left.v is None or right.v is None or left.v + right.v > 3
    ),
}

small = st.one_of(st.none(), st.integers(0, 3))
rows = st.builds(Row, st.integers(0, 1), st.integers(-12, 40), small, small)
steps = st.one_of(st.none(), st.integers(0, 12))
rounds = st.lists(
    st.tuples(st.lists(rows, max_size=5), steps, steps, st.sampled_from(["", "", "restart", "whole"])), max_size=8
)


def bound_join(bands: tuple[OracleBand, ...], keyed: bool = False, **words: Any) -> BoundJoin:
    keys = ("k",) if keyed else ()
    join = Join("j", Side("a", keys=keys), Side("b", keys=keys), tuple(band.band for band in bands), **words)
    return bind_join(join, A, B, BACKEND.type_of)


def chunk_of(bound: BoundJoin, side: int, given: list[Row]) -> pa.Table:
    """Rows as they come through a port."""
    port = bound.ports[side]
    mine = [{"t": row.t, "k": row.k, "v": row.v, MALFORMED: None} for row in given if row.side == side]
    table = pa.Table.from_pylist(mine, ROWS)
    if not mine:
        return slice_schema(port).empty_table()
    return BACKEND.workbench.ask(kept_text(port), {batch_view(port.stream): table}).cast(slice_schema(port))


class Disk:
    """The series of a run as files, some of them dropped or put together as the engine does."""

    def __init__(self) -> None:
        self.files: dict[str, list[pa.Table]] = {}

    def write(self, run: JoinRun, whole: bool) -> None:
        for name, kept in run.kept().items():
            files = [*self.files.get(name, []), *([] if kept.added is None else [kept.added])]
            files = [file for file in files if pc.max(file.column("__t")).as_py() >= kept.live]
            if whole:
                assert kept.whole().num_rows <= sum(file.num_rows for file in files)
                files = [kept.whole()] if kept.whole().num_rows else []
            self.files[name] = files

    def restored(self, run: JoinRun) -> JoinRun:
        saved = json.loads(json.dumps(run.saved()))
        return JoinRun.restored(run.bound, run.bench, saved, self.files)


def step(run: JoinRun, given: list[Row], heartbeats: tuple[int, int]) -> tuple[JoinRun, pa.Table, int]:
    """One round: what is told, and how many rows were late."""
    late = 0
    for side, port in enumerate(run.bound.ports):
        run, taken = run.take(port.query.name, chunk_of(run.bound, side, given))
        late += taken.late_rows
    left, right = (port.query.name for port in run.bound.ports)
    frontiers = {left: Frontier(heartbeats[0]), right: Frontier(heartbeats[1])}
    tells, before = run.would_tell(frontiers), run.rows
    after, answer = run.advance(frontiers)
    [told] = answer.parts()
    assert tells or (told.num_rows == 0 and after.rows == before)
    return after, told, late


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(JoinKind),
    band=st.sampled_from(sorted(BANDS)),
    keyed=st.booleans(),
    condition=st.sampled_from(list(CONDITIONS)),
    where=st.sampled_from(list(WHERES)),
    rounds=rounds,
    one_by_one=st.booleans(),
)
def test_pairs_and_rows_alone_are_told_as_brute_force_tells_them(
    kind: JoinKind,
    band: str,
    keyed: bool,
    condition: str | None,
    where: str | None,
    rounds: list[tuple[list[Row], int | None, int | None, str]],
    one_by_one: bool,
) -> None:
    bound = bound_join(BANDS[band], keyed, kind=kind, condition=condition, where=where, select=SELECT)
    oracle = Oracle(kind, BANDS[band], keyed, CONDITIONS[condition], WHERES[where])
    run, disk = JoinRun.start(bound, BACKEND.workbench), Disk()
    if one_by_one:
        rounds = [part for one in rounds for part in (*(([row], 0, 0, "") for row in one[0]), ([], *one[1:]))]
    heartbeats = (NEVER, NEVER)
    for given_rows, left, right, then in [*rounds, ([], FOREVER, FOREVER, "")]:
        heartbeats = (_moved(heartbeats[0], left), _moved(heartbeats[1], right))
        promised = run.frontier
        late, expected = oracle.round(given_rows, heartbeats)
        run, told, late_rows = step(run, given_rows, heartbeats)
        assert late_rows == len(late)
        got = [tuple(row.values())[:-1] for row in told.to_pylist()]
        assert Counter(got) == expected
        assert got == sorted(got, key=_order)
        assert all(row[1] - 1 > promised.time for row in got)
        for name, least in promised.least.items():
            assert all(value is None or value >= least for value in told.column(name).to_pylist())
        assert run.frontier.time == oracle.promised
        assert run.rows == oracle.holds.total()
        assert run.holds.tolist() == sorted(oracle.holds)
        disk.write(run, whole=then == "whole")
        if then == "restart":
            run = disk.restored(run)
            assert run.rows == oracle.holds.total()
            assert run.frontier.time == oracle.promised
    assert run.rows == 0
    assert run.bytes == 0
    assert run.frontier.is_over
    assert not any(disk.files.values())


def _moved(heartbeat: int, by: int | None) -> int:
    if by is None or heartbeat == FOREVER:
        return heartbeat
    return FOREVER if by == FOREVER else (-15 if heartbeat == NEVER else heartbeat) + by


def _order(row: tuple[Any, ...]) -> list[tuple[bool, int]]:
    return [(value is not None, value or 0) for value in (row[1], row[0], *row[2:])]
