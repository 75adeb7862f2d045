"""A program that changes over its checkpoint: what stays goes on as if nothing had changed, what comes begins right."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from eventide.engine.checkpoint.copying import copy
from eventide.engine.local.engine import LocalEngine
from eventide.engine.running import Running
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.wrappers.timeout import Timeout
from eventide.plan.declared.evolution import Consent
from eventide.plan.declared.join import Band, Join, Side
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Input, Stream, columns
from eventide.plan.declared.window import Window
from eventide.sinks.sink import Memory
from eventide.storage.local import LocalStorage
from tests.engine.small_streams import made, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALWAYS = -(10**6)
JITTER = 5
"""No row is behind the largest time before it by more, and no policy here waits for less: none is late."""

Row = tuple[int, str, int]
Result = tuple[object, ...]


@dataclass(frozen=True)
class Kind:
    """A kind of query that a program may have, in several variants; `over` are the streams that it reads."""

    over: tuple[str, ...]
    length: int
    slide: int
    reads_w: bool = False

    def declared(self, name: str, least: int) -> tuple[tuple[Query, ...], tuple[Rows | Join, ...]]:
        """The queries and operators of it; a variant takes values from `least` on."""
        if name == "sums":
            made = named_as(n="count(*)", total="sum(v)")
            return (Query(name, "a", Window(self.length, self.slide), made, named_as("k"), where=f"v >= {least}"),), ()
        if self.reads_w:
            made = named_as(n="count(*)", total="sum(w)")
            return (Query(name, "a", Window(self.length, self.slide), made, where=f"v >= {least}"),), ()
        merged = f"{name}_rows"
        if name == "slides":
            query = Query(name, merged, Window(self.length, self.slide), named_as(n="count(*)", total="sum(w)"))
            return (query,), (Rows(merged, ("a", "b"), named_as("k", "t", w="v + 1"), f"v >= {least}"),)
        sides = Side("a", keys=("k",), where=f"v >= {least}"), Side("b", keys=("k",))
        select = named_as(at="a.t", x="a.v", y="b.v")
        query = Query(name, merged, Window(self.length, self.slide), named_as(n="count(*)", total="sum(x + y)"))
        return (query,), (Join(merged, *sides, (Band("t", "t", -2, 2),), select=select),)

    def oracle(self, name: str, least: int, rows: Mapping[str, list[Row]], begins: int) -> Counter[Result]:
        """What a batch over these rows gives, in windows that start at `begins` or later."""
        own = {of: [row for row in some if row[0] >= begins] for of, some in rows.items()}
        timed: list[tuple[int, tuple[object, ...], int]]
        if name == "sums":
            timed = [(t, (k,), v) for t, k, v in own["a"] if v >= least]
        elif self.reads_w:
            timed = [(t, (), v) for t, _, v in own["a"] if v >= least]
        elif name == "slides":
            timed = [(t, (), v + 1) for t, _, v in (*own["a"], *own["b"]) if v >= least]
        else:
            timed = [
                (max(t, u), (), v + w)
                for t, k, v in own["a"]
                for u, other, w in own["b"]
                if k == other and -2 <= u - t <= 2 and v >= least
            ]
        found: dict[tuple[int, tuple[object, ...]], list[int]] = {}
        for t, group, value in timed:
            first = t - t % self.slide
            for start in range(first, t - self.length, -self.slide):
                if start >= begins:
                    found.setdefault((start, group), []).append(value)
        return Counter((start, *group, len(values), sum(values)) for (start, group), values in found.items())


KINDS = {
    "sums": Kind(("a",), 10, 10),
    "slides": Kind(("a", "b"), 12, 4),
    "pairs": Kind(("a", "b"), 10, 5),
    "weights": Kind(("a",), 10, 5, reads_w=True),
}


@dataclass(frozen=True)
class Version:
    """A program: its kinds and variants, the policies of its streams, and the type of a column more, if any."""

    least: Mapping[str, int]
    policies: tuple[Policy, Policy]
    w: str | None
    backfill: bool

    def variant(self, name: str) -> object:
        """What changes a kind of query, if it changes; None where it is not in the program."""
        return None if name not in self.least else (self.least[name], KINDS[name].reads_w and self.w)

    def program(self, folder: Path) -> Program:
        more = columns("t BIGINT, k STRING, v INT" + ("" if self.w is None else f", w {self.w}"))
        streams = tuple(
            Stream(name, more, "t", policy=policy, input=Input("parquet", str(folder / name), max_files=1))
            for name, policy in zip("ab", self.policies, strict=True)
        )
        parts = [KINDS[name].declared(name, least) for name, least in self.least.items()]
        queries = tuple(query for part, _ in parts for query in part)
        return Program(streams, queries, tuple(one for _, part in parts for one in part))


Step = tuple[Version, dict[str, list[Row]], bool]
"""A round: its program, the rows of both streams, and whether a copy of the checkpoint is taken, to go on with."""


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Policies of two kinds, by which no row is late."""
    fixed = FixedDelay(draw(st.integers(JITTER, 20)))
    return Timeout(fixed, after=10**15) if draw(st.booleans()) else fixed


@st.composite
def histories(draw: st.DrawFn, least_rows: int = 0) -> list[Step]:
    """Some rounds, about half of which go on with the version before; each stream has so many rows in each, or more."""
    found: list[Step] = []
    reached = {"a": 0, "b": 0}
    version: Version | None = None
    for _ in range(draw(st.integers(2, 6))):
        if version is None or draw(st.booleans()):
            w = draw(st.sampled_from((None, "INT", "BIGINT")))
            possible = sorted(name for name, kind in KINDS.items() if w is not None or not kind.reads_w)
            names = draw(st.sets(st.sampled_from(possible), min_size=1))
            least = {name: draw(st.integers(0, 2)) for name in sorted(names)}
            version = Version(least, (draw(policies()), draw(policies())), w, draw(st.booleans()))
        rows: dict[str, list[Row]] = {}
        for name in "ab":
            steps = draw(
                st.lists(
                    st.tuples(st.integers(-JITTER, 9), st.sampled_from("xy"), st.integers(0, 3)),
                    min_size=least_rows,
                    max_size=5,
                )
            )
            rows[name] = []
            for step, key, value in steps:
                time = max(0, reached[name] + step)
                reached[name] = max(reached[name], time)
                rows[name].append((time, key, value))
        found.append((version, rows, draw(st.booleans())))
    return found


@dataclass
class Life:
    """A kind of query from the round in which it began, with the time before which no window of it starts."""

    variant: object
    begins: int
    least: int
    from_round: int


@contextmanager
def folders() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def write(folder: Path, number: int, rows: Iterable[Row]) -> None:
    times, keys, values = zip(*rows, strict=True)
    table = pa.table({"t": times, "k": keys, "v": pa.array(values, pa.int32()), "w": pa.array(values, pa.int32())})
    pq.write_table(table, folder / f"{number:04d}.parquet")


Advance = Callable[[Running, int, bool], None]
"""Runs an engine until so many rows have come in all; to the end of everything, where it is the last round."""


def by_hand(engine: Running, rows: int, is_last: bool) -> None:
    assert isinstance(engine, LocalEngine)
    engine.recover()
    engine.step(bounded=True)
    if is_last:
        engine.end()


def by_itself(engine: Running, rows: int, is_last: bool) -> None:
    engine.start(bounded=is_last)
    if is_last:
        engine.await_end()
        return
    wait_until(lambda: sum(one.rows for one in engine.status().streams) >= rows, engine)
    engine.stop()
    engine.await_end()


@settings(deadline=None, max_examples=15, phases=[Phase.explicit, Phase.generate])
@given(histories())
def test_queries_that_stay_and_queries_that_come_give_what_a_batch_over_their_rows_gives(
    history: list[Step],
) -> None:
    check(None, history, by_hand)


@pytest.mark.slow
@pytest.mark.spark
@settings(deadline=None, max_examples=6, phases=[Phase.explicit, Phase.generate])
@given(history=histories(least_rows=1))
def test_queries_that_stay_and_queries_that_come_give_it_on_spark_too(spark: SparkSession, history: list[Step]) -> None:
    check(spark, history, by_itself)


def check(session: SparkSession | None, history: list[Step], advance: Advance) -> None:
    """Play a history, and compare the results of each query, while it was as it is, with a batch."""
    with folders() as folder:
        for name in "ab":
            (folder / name).mkdir()
        sink, lives, ended = Memory(), dict[str, Life](), list[tuple[str, Life, int]]()
        given: dict[int, dict[str, list[Row]]] = {}
        engine_round, before, checkpoint = 0, None, folder / "checkpoint"
        for number, (version, rows, is_saved) in enumerate(history):
            if before is not None and version != before:
                ended += [
                    (n, lives.pop(n), engine_round) for n in list(lives) if version.variant(n) != lives[n].variant
                ]
            fresh = [name for name in version.least if name not in lives]
            backfilled = version.backfill and before is not None
            for name in fresh:
                seen = [row[0] for some in given.values() for of in KINDS[name].over for row in some[of]]
                start, slide = max(seen, default=-1) + 1, KINDS[name].slide
                # An aggregate begins with a window, and takes no row of before.
                start = -(-start // slide) * slide if name == "sums" else start
                begins = ALWAYS if backfilled or not seen else start
                lives[name] = Life(version.variant(name), begins, version.least[name], engine_round)
            for name, some in rows.items():
                if some:
                    write(folder / name, number, some)
            given[number] = rows
            program = version.program(folder)
            consent = Consent(True, tuple(fresh) if backfilled else ())
            sinks = dict.fromkeys(version.least, sink)
            come = sum(len(some) for rows in given.values() for some in rows.values())
            with made(session, program, checkpoint, sinks, consent=consent) as engine:
                advance(engine, come, number == len(history) - 1)
                engine_round = engine.engine.next_round
                if is_saved and engine_round > 0:
                    saved = folder / f"saved after {number}"
                    copy(LocalStorage(str(checkpoint)), LocalStorage(str(saved)))
                    checkpoint = saved
            before = version
        ended += [(name, life, engine_round) for name, life in lives.items()]
        every = {of: [row for some in given.values() for row in some[of]] for of in "ab"}
        for name, life, until in ended:
            kind = KINDS[name]
            wanted = kind.oracle(name, life.least, every, life.begins)
            keys = ("window_start", *(("k",) if name == "sums" else ()), "n", "total")
            told = Counter(
                tuple(row[key] for key in keys)
                for row in (sink.rows(name) if name in sink.queries else [])
                if life.from_round <= row["round"] < until
            )
            if name in lives and life is lives[name]:
                assert told == wanted, (name, life)
            else:
                assert told <= wanted, (name, life)
