"""Schedules of replays: nothing lost, nothing doubled, nothing early; silences hold; seeds decide."""

from __future__ import annotations

import datetime
import gzip
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import DeclarationError, InputError
from eventide.plan.declared.stream import Input, Stream, columns
from eventide.sources.local_input import LocalInput, open_input
from eventide.sources.replay import schedule as replay_schedule
from eventide.sources.replay.delivery import ReplayInput, planned
from eventide.sources.replay.replay import Burst, Delay, Replay, Silence, amounts, extra_delay, replay_of, uniform
from eventide.sources.replay.schedule import Schedule
from tests.sources.input_contract import continues_from_every_position


def cars(
    path: Path, declared: str = "t BIGINT, car STRING, n INT", arrival: str | None = None, **options: Any
) -> Stream:
    options = {"schedules": path.parent / "schedules", **options}
    texts = ((name, json.dumps(value) if isinstance(value, list) else str(value)) for name, value in options.items())
    given = Input("replay", str(path), tuple(texts))
    return Stream("cars", columns(declared), time="t", source=("car",), arrival=arrival, input=given)


def record(path: Path, times: list[int | None], names: list[str] | None = None) -> Path:
    names = names or ["a"] * len(times)
    table = {"t": pa.array(times, pa.int64()), "car": names, "n": pa.array(range(len(times)), pa.int32())}
    pq.write_table(pa.table(table), path)
    return path


def due_rows(schedule: Schedule) -> list[tuple[int, int]]:
    """The due time and the number of every row, in the order of delivery."""
    if not schedule.rows:
        return []
    numbers = pa.Table.from_batches(schedule.read(0, schedule.rows))["n"].to_pylist()
    return [(schedule.due(place) or 0, number) for place, number in enumerate(numbers)]


def delivered(replay: Replay, at: int, extra: int, source: str) -> int | None:
    """When a row is delivered, told the long way; None: never."""
    for burst in replay.bursts:
        end = burst.start + burst.length
        if burst.start <= at < end:
            at = end - -(-(end - at) * 10 // int(burst.factor * 10))
    at += extra
    for silence in sorted(replay.silences, key=lambda one: one.start):
        if silence.start <= at < silence.start + silence.length and (not silence.sources or source in silence.sources):
            if silence.then == "never":
                return None
            at = silence.start + silence.length
    return at


SOURCES = st.sampled_from([(), ("a",), ("b", "c")])
DELAYS = st.builds(
    Delay,
    mean=st.integers(0, 300),
    distribution=st.sampled_from(Delay.KINDS),
    spread=st.none() | st.integers(0, 100),
    share=st.sampled_from([0.0, 0.3, 1.0]),
    at_most=st.none() | st.integers(0, 400),
    sources=SOURCES,
)
BURSTS = st.builds(Burst, st.integers(0, 900), st.integers(1, 300), st.sampled_from([1.5, 2.0, 10.0]))
SILENCES = st.builds(Silence, st.integers(0, 900), st.integers(1, 300), SOURCES, st.sampled_from(["at once", "never"]))
ROWS = st.lists(st.tuples(st.none() | st.integers(0, 1000), st.sampled_from("abc")), min_size=1, max_size=30)


@settings(max_examples=60)
@given(
    ROWS,
    st.lists(DELAYS, max_size=2),
    st.lists(BURSTS, max_size=1),
    st.lists(SILENCES, max_size=3),
    st.sampled_from(["max", "0.5", "1", "7"]),
    st.integers(0, 3),
)
def test_every_row_is_delivered_once_and_when_it_was_declared(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int | None, str]],
    delays: list[Delay],
    bursts: list[Burst],
    silences: list[Silence],
    speed: str,
    seed: int,
) -> None:
    times, names = [time for time, _ in rows], [name for _, name in rows]
    path = record(tmp_path_factory.mktemp("replay") / "r.parquet", times, names)
    parts: dict[str, Any] = {"delays": delays, "bursts": bursts, "silences": silences}
    said: dict[str, Any] = {kind: [asdict(one) for one in given] for kind, given in parts.items()}
    stream = cars(path, speed=speed, seed=seed, **said)
    replay = replay_of(stream)
    extra = extra_delay(replay, np.arange(len(rows)), np.array(names, dtype=object)).tolist()
    start = before = min((time for time in times if time is not None), default=0)
    expected = []
    for number, (time, name) in enumerate(rows):
        before = before if time is None else time
        at = delivered(replay, before - start, extra[number], name)
        if at is not None:
            expected.append((0 if speed == "max" else int(at // float(speed)), number))
    schedule = planned(stream)
    found = due_rows(schedule)
    assert sorted(found) == sorted(expected)
    dues = [due for due, _ in found]
    assert dues == sorted(dues)
    for elapsed in (-1, 0, 5, 500, 10_000):
        assert schedule.due_by(elapsed) == sum(due <= elapsed for due in dues)
    if "never" not in {silence.then for silence in silences}:
        assert len(found) == len(rows)


@given(DELAYS, st.integers(0, 10))
def test_delays_are_never_negative_nor_beyond_their_bound(delay: Delay, seed: int) -> None:
    found = amounts(delay, np.arange(200), seed, 1)
    assert found.min() >= 0
    assert delay.at_most is None or found.max() <= delay.at_most


def test_delays_follow_their_distribution_and_share() -> None:
    rows = np.arange(100_000)
    for kind, spread, deviation in (
        ("uniform", None, 1000 / 3**0.5),
        ("exponential", None, 1000),
        ("normal", 100, 100),
    ):
        found = amounts(Delay(1000, kind, spread), rows, 5, 1)
        assert abs(found.mean() - 1000) < 20
        assert abs(found.std() - deviation) < 20
    replay = Replay("x", "t", delays=(Delay(1000, share=0.25),), seed=5)
    assert abs((extra_delay(replay, rows, None) > 0).mean() - 0.25) < 0.01
    draws = uniform(rows, 5, 0)
    assert abs(np.corrcoef(draws, uniform(rows, 6, 0))[0, 1]) < 0.02
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 0.02


def test_the_seed_decides_and_nothing_else(tmp_path: Path) -> None:
    path = record(tmp_path / "r.parquet", list(range(50)))
    delays = [{"mean": 1000, "distribution": "exponential"}]
    one, other = (due_rows(planned(cars(path, delays=delays, seed=seed))) for seed in (1, 2))
    assert one != other
    again = cars(path, delays=delays, seed=1, schedules=tmp_path / "elsewhere")
    assert due_rows(planned(again)) == one


def test_arrivals_tell_the_time_of_delivery_in_the_time_of_the_recording(tmp_path: Path) -> None:
    """So that policies see the declared delays, whatever the speed, also where nobody recorded arrivals."""
    moment = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    pq.write_table(
        pa.table({"t": pa.array([moment] * 3, pa.timestamp("us", "UTC")), "car": list("abc")}), tmp_path / "r"
    )
    declared = "t TIMESTAMP, car STRING, seen TIMESTAMP"
    delays = [{"mean": 2_000_000, "sources": ["b"]}]
    stream = cars(tmp_path / "r", declared, "seen", format="parquet", by="event", delays=delays, speed="max")
    schedule = planned(stream)
    rows = pa.Table.from_batches(schedule.read(0, 3)).to_pylist()
    assert [(row["car"], (row["seen"] - moment).total_seconds()) for row in rows] == [("a", 0), ("c", 0), ("b", 2)]


def test_a_recording_of_text_keeps_its_malformed_rows_in_their_place(tmp_path: Path) -> None:
    text = "t,car,n\n5,a,0\nbroken\n3,a,2\n,a,3\n"
    (tmp_path / "r.csv.gz").write_bytes(gzip.compress(text.encode()))
    schedule = planned(cars(tmp_path / "r.csv.gz"))
    rows = pa.Table.from_batches(schedule.read(0, schedule.rows)).to_pylist()
    assert [(row["n"], row["_malformed"]) for row in rows] == [(2, None), (3, None), (0, None), (None, "broken")]


def test_a_schedule_is_made_once_and_anew_when_the_recording_changes(tmp_path: Path) -> None:
    path = record(tmp_path / "r.parquet", [1, 2])
    first = planned(cars(path)).path
    made = Path(first).stat().st_mtime_ns
    assert planned(cars(path)).path == first
    assert Path(first).stat().st_mtime_ns == made
    record(path, [1, 2, 3])
    assert planned(cars(path)).rows == 3


def test_slices_may_begin_and_end_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from eventide.sources.replay import delivery as replay_delivery

    monkeypatch.setattr(replay_schedule, "BATCH", 4)
    monkeypatch.setattr(replay_delivery, "BATCH", 4)
    monkeypatch.setattr(replay_delivery, "AT_ONCE", 8)
    schedule = planned(cars(record(tmp_path / "r.parquet", [100 + 2 * n for n in range(23)])))
    for start in range(24):
        for stop in range(start, 24):
            found = [n for batch in schedule.read(start, stop) for n in batch.column("n").to_pylist()]
            assert found == list(range(start, stop))
    assert [schedule.due_by(elapsed) for elapsed in range(-1, 46)] == [0, *(n // 2 + 1 for n in range(44)), 23, 23]
    assert schedule.due(22) == 44
    assert schedule.due(23) is None


def test_the_local_input_gives_rows_as_they_fall_due_and_continues(tmp_path: Path) -> None:
    now = 0
    stream = cars(record(tmp_path / "r.parquet", [100, 110, 105, 120]), speed=2)

    def opened() -> ReplayInput:
        return ReplayInput(stream, lambda: now)

    replayed = opened()
    assert isinstance(replayed, LocalInput)
    taken = []
    for now in (0, 1, 2, 5, 9, 10):  # noqa: B007 - the clock reads it
        table = replayed.take(10, 0.0)
        taken.append([] if table is None else table["n"].to_pylist())
    assert taken == [[0], [], [2], [1], [], [3]]
    assert replayed.ended
    now = 1000
    found = continues_from_every_position(opened_at_zero(opened), 1)
    assert [row["n"] for row in found] == [0, 2, 1, 3]


def opened_at_zero(opened: Any) -> Any:
    def one() -> LocalInput:
        given: LocalInput = opened()
        given.seek({"rows": 0, "start": 0})
        return given

    return one


def test_a_replay_is_an_input_by_its_name(tmp_path: Path) -> None:
    stream = cars(record(tmp_path / "r.parquet", [100, 200]), speed="max")
    given = open_input(stream)
    table = given.take(10, 0.0)
    assert table is not None
    assert table.column_names == ["t", "car", "n", "_malformed"]
    assert table["t"].to_pylist() == [100, 200]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"speed": "fast"}, "the speed 'fast' is no number"),
        ({"speed": "-1"}, "never ends"),
        ({"delays": "5"}, "write a JSON list of objects with the fields mean"),
        ({"delays": '[{"main": 5}]'}, "write a JSON list of objects with the fields mean"),
        ({"delays": '[{"mean": -5}]'}, "a delay cannot be negative"),
        ({"delays": '[{"mean": 5, "distribution": "cauchy"}]'}, "not distributed as 'cauchy'"),
        ({"bursts": '[{"start": 0, "length": 9, "factor": 2}, {"start": 5, "length": 9, "factor": 2}]'}, "overlap"),
        ({"silences": '[{"start": 0, "length": 0}]'}, "a length above 0"),
        ({"by": "arrival"}, "a replay by arrival needs a column"),
        ({"by": "cra"}, "did you mean 'car'"),
        ({"by": "car"}, "cannot be replayed by 'car': it is STRING"),
        ({"spede": "1"}, "a replay has no option spede"),
        ({"seed": "x"}, "seed 'x' is no whole number"),
    ],
)
def test_what_cannot_be_declared_is_told(tmp_path: Path, options: dict[str, str], told: str) -> None:
    with pytest.raises(DeclarationError) as failure:
        planned(cars(record(tmp_path / "r.parquet", [1]), **options))
    assert told in str(failure.value)


def test_a_recording_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing at"):
        planned(cars(tmp_path / "r.parquet"))
    with pytest.raises(DeclarationError, match="does not follow from its name: give the option format"):
        planned(cars(tmp_path / "r.data"))
    (tmp_path / "r.json").write_text("\n")
    with pytest.raises(InputError, match="has no rows to replay"):
        planned(cars(tmp_path / "r.json"))
