"""Joins run by run, against brute force over the accepted rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.engine.operators.frontier import OperatorFrontier
from eventide.engine.operators.join import JoinOperator
from eventide.engine.operators.operator import InputProgress, Output
from eventide.engine.operators.placement import state_bytes
from eventide.engine.relations.executor import Executor
from eventide.engine.relations.relation import Relation
from eventide.errors import DeclarationError
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.plan.bound.join import BoundJoin, bind_join
from eventide.plan.declared.join import Band, Join, JoinKind, Side
from eventide.plan.declared.query import named_as
from eventide.plan.declared.stream import Derived, Stream, TimeKind, Timestamps, columns
from eventide.plan.declared.window import Window
from tests.engine.join_oracle import Oracle, OracleBand, Row
from tests.engine.operators_alone import BACKEND, came, emitted, in_files, in_one_part, inputs, restarted

SCHEMA = "t BIGINT, k INT, v INT"
A, B = (Stream(name, columns(SCHEMA), time="t") for name in "ab")
ROWS = pa.schema([("t", pa.int64()), ("k", pa.int32()), ("v", pa.int32())])
SELECT = named_as(at="a.t", av="a.v", bt="b.t", bv="b.v", first="coalesce(b.t, a.t div 2)")

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
    # What rows of one side, or of both, say themselves.
    "until": (
        OracleBand(Band("t", "t", 0, None), lambda t: t, lambda t: t),
        OracleBand(Band("t + 6 * v - 3", "t", None, 0), lambda t: t, lambda t: t, 0, lambda row: _plus(row, 6, -3)),
    ),
    "until, at most": (
        OracleBand(Band("t", "t", -9, 2), lambda t: t, lambda t: t),
        OracleBand(Band("2 * t", "t + 5 * v", -1, None), lambda t: 2 * t, lambda t: t, 1, lambda row: _plus(row, 5, 0)),
    ),
    "stretches that overlap": (
        OracleBand(Band("t + 4 * v", "t", None, -1), lambda t: t, lambda t: t, 0, lambda row: _plus(row, 4, 0)),
        OracleBand(Band("t", "t + 7 * v", 1, None), lambda t: t, lambda t: t, 1, lambda row: _plus(row, 7, 0)),
    ),
    "several": (
        OracleBand(Band("t", "t", -9, 9), lambda t: t, lambda t: t),
        OracleBand(Band("t div 4", "t div 4", 0, 1), lambda t: int(t / 4), lambda t: int(t / 4)),
    ),
}


def _plus(row: Row, factor: int, shift: int) -> int | None:
    return None if row.v is None else row.t + factor * row.v + shift


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


def came_to(run: JoinOperator, side: int, given: list[Row]) -> Relation:
    """Rows as they come through the port of a side."""
    mine = [{"t": row.t, "k": row.k, "v": row.v} for row in given if row.side == side]
    return came(run, run.bound.ports[side], pa.Table.from_pylist(mine, ROWS))


def held(run: JoinOperator) -> int:
    """How many rows are held."""
    return sum(side.rows for side in run.held)


def step(run: JoinOperator, given: list[Row], heartbeats: tuple[int, int]) -> tuple[JoinOperator, pa.Table, int]:
    """One round: what is emitted, and how many rows were late."""
    late = 0
    for side, port in enumerate(run.bound.ports):
        run, ingested = run.ingest(port.query.name, came_to(run, side, given))
        late += ingested.late_rows
    reached = of(run.bound, left=heartbeats[0], right=heartbeats[1])
    would, before = run.would_emit(reached), held(run)
    after, output = run.advance(reached)
    rows = emitted(output)
    assert would or (rows.num_rows == 0 and held(after) == before)
    return after, rows, late


@settings(max_examples=30, deadline=None)
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
    executor: Executor,
) -> None:
    bound = bound_join(BANDS[band], keyed, kind=kind, condition=condition, where=where, select=SELECT)
    oracle = Oracle(kind, BANDS[band], keyed, CONDITIONS[condition], WHERES[where])
    run = JoinOperator.start(bound, executor)
    if one_by_one:
        rounds = [part for one in rounds for part in (*(([row], 0, 0, "") for row in one[0]), ([], *one[1:]))]
    heartbeats = (NEVER, NEVER)
    for number, (given_rows, left, right, then) in enumerate([*rounds, ([], FOREVER, FOREVER, "")]):
        executor.files.begin(number)
        heartbeats = (_moved(heartbeats[0], left), _moved(heartbeats[1], right))
        promised = run.frontier
        late, expected = oracle.round(given_rows, heartbeats)
        run, told, late_rows = step(run, given_rows, heartbeats)
        assert late_rows == len(late)
        got = [tuple(row.values())[:-2] for row in told.to_pylist()]
        assert Counter(got) == expected
        assert got == sorted(got, key=_order)
        assert all(row[1] - 1 > promised.time for row in got)
        for name, least in promised.least.items():
            assert all(value is None or value >= least for value in told.column(name).to_pylist())
        for name, least_of in bound.results.carries:
            # Only the running operator knows how far back partners lie that rows ask for themselves.
            assert least_of is not None or not all(one.band.is_closed for one in BANDS[band])
            for row in told.select(["window_end", name]).to_pylist():
                assert least_of is None or row[name] is None or row[name] >= least_of(row["window_end"] - 1)
        assert run.frontier.time == oracle.promised
        assert held(run) == oracle.holds.total()
        assert run.holds.tolist() == sorted(oracle.holds)
        run = in_files(in_one_part(run) if then == "whole" else run)
        if then == "restart":
            run = restarted(JoinOperator.start(bound, executor), run)
        assert held(run) == oracle.holds.total()
        assert run.frontier.time == oracle.promised
    assert held(run) == 0
    assert state_bytes(run) == 0
    assert run.frontier.is_over
    assert not any(rows.parts for rows in run.state.values())


def _moved(heartbeat: int, by: int | None) -> int:
    if by is None or heartbeat == FOREVER:
        return heartbeat
    return FOREVER if by == FOREVER else (-15 if heartbeat == NEVER else heartbeat) + by


def _order(row: tuple[Any, ...]) -> list[tuple[bool, int]]:
    return [(value is not None, value or 0) for value in (row[1], row[0], *row[2:])]


def of(bound: BoundJoin, **sides: Any) -> list[InputProgress]:
    """How far both inputs have come."""
    return inputs(**{f"{bound.name}__{side}": one for side, one in sides.items()})


def emitted_rows(output: Output) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = emitted(output).to_pylist()
    return rows


def test_a_row_behind_its_heartbeat_counts_while_its_epoch_is_open_and_keeps_what_was_promised(
    executor: Executor,
) -> None:
    bound = bound_join(BANDS["epochs"], select=SELECT)
    run, _, _ = step(JoinOperator.start(bound, executor), [], (12, 7))
    promised = run.frontier
    # Both are in the epoch from 7 to 13, which is over for neither side; only the row at 7 is too late for a reader.
    run, told, late = step(run, [Row(0, 9, None, 1), Row(0, 7, None, 2), Row(1, 8, None, 3)], (12, 7))
    assert late == 1
    assert told.select(["at", "bt"]).to_pylist() == [{"at": 9, "bt": 8}]
    assert promised == OperatorFrontier(7, {"at": 8, "bt": 8, "first": 4})
    _, told, late = step(run, [Row(0, 13, None, 1), Row(0, 6, None, 2)], (14, 13))
    assert late == 1
    assert told.column("at").to_pylist() == [13]


def test_columns_that_both_inputs_have_get_the_name_of_the_input_before_them() -> None:
    other = Stream("b", columns("t BIGINT, w STRING"), time="t")
    bound = bind_join(Join("j", Side("a"), Side("b"), (Band("t", "t"),)), A, other, BACKEND.type_of)
    assert [(column.name, column.type) for column in bound.outputs] == [
        ("a_t", "BIGINT"), ("k", "INT"), ("v", "INT"), ("b_t", "BIGINT"), ("w", "STRING"),
    ]  # fmt: skip


def test_times_are_compared_in_microseconds_and_spans_cover_both_rows(executor: Executor) -> None:
    timed = Stream("a", columns("ts TIMESTAMP, v INT"), time="ts")
    dated = Stream("b", columns("day DATE, w INT"), time="day")
    band = Band("date_trunc('DAY', ts)", "day + INTERVAL 1 DAY")
    bound = bind_join(Join("j", Side("a"), Side("b"), (band,)), timed, dated, BACKEND.type_of)
    day, hour = 86_400_000_000, 3_600_000_000
    left = pa.table({"ts": pa.array([3 * day + hour], pa.timestamp("us", "UTC")), "v": pa.array([1], pa.int32())})
    right = pa.table({"day": pa.array([2, 3], pa.date32()), "w": pa.array([5, 6], pa.int32())})
    run = JoinOperator.start(bound, executor)
    for port, table in zip(bound.ports, (left, right), strict=True):
        run, _ = run.ingest(port.query.name, came(run, port, table))
    run, output = run.advance(of(bound, left=3 * day, right=2 * day - 1))
    [row] = emitted_rows(output)
    assert (row["window_start"], row["window_end"], row["v"], row["w"]) == (2 * day, 3 * day + hour + 1, 1, 5)
    # The left row waits for other rows of the second day; the right ones for rows of the day after their own.
    assert run.holds.tolist() == [2 * day, 3 * day, 3 * day + hour]
    run, _ = run.advance(of(bound, left=4 * day - 1, right=2 * day))
    assert run.holds.tolist() == [3 * day]


def test_a_stream_joins_itself(executor: Executor) -> None:
    join = Join("j", Side("a", "x"), Side("a", "y"), (Band("t", "t", 1, 2),), select=named_as(v="x.v", w="y.v"))
    bound = bind_join(join, A, A, BACKEND.type_of)
    rows = [Row(side, t, None, t) for side in (0, 1) for t in (1, 2, 4)]
    run, told, _ = step(JoinOperator.start(bound, executor), rows, (4, 4))
    assert [(row["v"], row["w"]) for row in told.to_pylist()] == [(1, 2), (2, 4)]
    # Rows 3 and 4 could still have row 5 and 6 for partners; none is before them.
    assert held(run) == 1


def test_rows_without_a_time_of_their_own_are_joined_by_the_clock(executor: Executor) -> None:
    latent = Stream("a", columns("v INT"), timestamps=Timestamps.LATENT)
    timed = Stream("b", columns("ts TIMESTAMP, w INT"), time="ts")
    join = Join("j", Side("a"), Side("b"), (Band("_time", "ts", -5, 0),), JoinKind.LEFT)
    bound = bind_join(join, latent, timed, BACKEND.type_of)
    run = JoinOperator.start(bound, executor)
    left = pa.table({"v": pa.array([1], pa.int32())})
    run, _ = run.ingest("j__left", came(run, bound.ports[0], left, clock=100))
    assert run.would_emit(of(bound, left=99, right=90))
    run, output = run.advance(of(bound, left=99, right=90))
    assert emitted_rows(output) == []
    assert not run.would_emit(of(bound, left=150, right=99))
    run, output = run.advance(of(bound, left=150, right=100))
    assert [(row["window_start"], row["window_end"], row["v"], row["w"]) for row in emitted_rows(output)] == [
        (100, 101, 1, None)
    ]


def test_results_of_queries_are_joined_by_their_groups_with_time(executor: Executor) -> None:
    flows = [
        Derived.of(name, columns("tb BIGINT, n BIGINT"), TimeKind.SEQUENCE, Window(60), (("tb", lambda t: t // 60),))
        for name in ("flow1", "flow2")
    ]
    join = Join("j", Side("flow1"), Side("flow2"), (Band("tb", "tb"),), JoinKind.FULL)
    bound = bind_join(join, flows[0], flows[1], BACKEND.type_of)
    assert [column.name for column in bound.outputs] == ["flow1_tb", "flow1_n", "flow2_tb", "flow2_n"]
    assert dict(bound.results.carries) == {"flow1_tb": None, "flow2_tb": None}
    run = JoinOperator.start(bound, executor)
    for side, epochs in enumerate(([0, 1], [1])):
        port = bound.ports[side]
        table = pa.table(
            {
                "tb": pa.array(epochs, pa.int64()), "n": pa.array(epochs, pa.int64()),
                "window_start": pa.array([60 * tb for tb in epochs], pa.int64()),
                "window_end": pa.array([60 * tb + 60 for tb in epochs], pa.int64()),
            }
        )  # fmt: skip
        run, ingested = run.ingest(port.query.name, came(run, port, table))
        assert ingested.late_rows == 0
    run, output = run.advance(of(bound, left=OperatorFrontier(119, {"tb": 2}), right=OperatorFrontier(119, {"tb": 2})))
    assert [
        (row["window_start"], row["window_end"], row["flow1_tb"], row["flow2_tb"]) for row in emitted_rows(output)
    ] == [
        (0, 60, 0, None),
        (60, 120, 1, 1),
    ]
    assert held(run) == 0
    assert run.frontier == OperatorFrontier(119, {"flow1_tb": 2, "flow2_tb": 2})


def test_a_row_whose_band_is_null_is_emitted_alone_at_once_and_not_held(executor: Executor) -> None:
    """A full join tells rows without a partner, so what is joined with its results may lack the time to compare."""
    left, right = (
        Derived.of(name, columns("tb BIGINT"), TimeKind.SEQUENCE, Window(60), (("tb", lambda t: t // 60),))
        for name in ("flow1", "flow2")
    )
    bound = bind_join(
        Join("j", Side("flow1"), Side("flow2"), (Band("tb", "tb"),), JoinKind.LEFT),
        left,
        right,
        BACKEND.type_of,
    )
    run = JoinOperator.start(bound, executor)
    table = pa.table({"tb": [None, 1], "window_start": [60, 60], "window_end": [120, 120]})
    run, _ = run.ingest("j__left", came(run, bound.ports[0], table))
    run, output = run.advance(of(bound, left=59, right=59))
    assert [row["flow1_tb"] for row in emitted_rows(output)] == [None]
    assert held(run) == 1
    run, output = run.advance(of(bound, left=OperatorFrontier(119, {"tb": 2}), right=OperatorFrontier(119, {"tb": 2})))
    assert [row["flow1_tb"] for row in emitted_rows(output)] == [1]
    assert held(run) == 0


def test_a_value_that_cannot_be_computed_is_lost_and_the_row_is_told(executor: Executor) -> None:
    bound = bound_join((SAME,), select=named_as(ratio="a.v div b.v", bv="b.v"))
    rows = [Row(0, 1, None, 6), Row(1, 1, None, 0), Row(1, 1, None, 2)]
    _, told, _ = step(JoinOperator.start(bound, executor), rows, (1, 1))
    assert [tuple(row.values())[2:] for row in told.to_pylist()] == [
        (2, None, 0, "a.v div b.v fails"),
        (2, 3, 2, None),
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            {"bands": (Band("v", "t"),)},
            "'v' is no temporal attribute of 'a', so rows could never be let go: relate 't'",
        ),
        ({"bands": (Band("t", "-t"),)}, "'t' grows with time and '-t' falls"),
        ({"bands": (Band("ceil(t / 2) / 3", "t"),)}, "cannot be computed exactly: use floor, ceil or div"),
        ({"bands": (Band("CAST(t AS DECIMAL(9, 1))", "t"),)}, "cannot be computed exactly: use floor, ceil or div"),
        ({"condition": "a.sped > 1"}, "join 'j': input 'a' has no column 'sped'"),
        ({"condition": "t > 1"}, "both inputs have a column 't': write a.t or b.t"),
        ({"condition": "a.v + 1"}, "'a.v + 1' is INT, not a condition"),
        ({"where": "sum(a.v) > 1"}, "aggregate in a query over the join"),
        ({"select": named_as(rows="a.v")}, "'rows' is a column of every result"),
        ({"left": Side("a", keys=("k",)), "right": Side("b", keys=("array(k)",))}, "cast one to the type"),
        ({"left": Side("a", keys=("map(k, 1)",)), "right": Side("b", keys=("map(k, 1)",))}, "compare parts of them"),
        ({"left": Side("a", where="v")}, "'v' is INT, not a condition"),
    ],
)
def test_what_could_not_be_joined_is_refused_with_the_way_out(words: dict[str, Any], said: str) -> None:
    plain: dict[str, Any] = {"name": "j", "left": Side("a"), "right": Side("b"), "bands": (Band("t", "t"),)}
    with pytest.raises(DeclarationError) as refused:
        bind_join(Join(**plain | words), A, B, BACKEND.type_of)
    assert said in str(refused.value)


def test_times_and_plain_numbers_are_not_compared() -> None:
    timed = Stream("b", columns("t TIMESTAMP"), time="t")
    with pytest.raises(DeclarationError, match="'a' counts in plain numbers and 'b' in times"):
        bind_join(Join("j", Side("a"), Side("b"), (Band("t", "t"),)), A, timed, BACKEND.type_of)


def test_a_row_that_lives_long_keeps_no_others_when_segments_become_one(executor: Executor) -> None:
    bound = bound_join(BANDS["until"], select=SELECT)
    run = JoinOperator.start(bound, executor)
    # Every tenth row asks to be kept for long, the others are over at once; each round is a segment.
    for t in range(30):
        run, _, _ = step(run, [Row(0, t, None, 900 if t % 10 == 0 else 0)], (t, t - 1))
    assert held(run) == 3
    assert len(run.held[0].parts) <= 25
    run, told, _ = step(run, [Row(1, 5000, None, 7)], (30, 4999))
    assert [row["at"] for row in told.to_pylist()] == [0, 10, 20]
