"""A program that changes over its checkpoint: what stays goes on as if nothing had changed, what comes begins right."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from eventide.engine.local.engine import LocalEngine
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.plan.declared.evolution import Consent
from eventide.plan.declared.join import Band, Join, Side
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Input, Stream, columns
from eventide.plan.declared.window import Window
from eventide.sinks.sink import Memory

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

    def declared(self, name: str, least: int) -> tuple[tuple[Query, ...], tuple[Rows | Join, ...]]:
        """The queries and operators of it; a variant takes values from `least` on."""
        if name == "sums":
            made = named_as(n="count(*)", total="sum(v)")
            return (Query(name, "a", Window(self.length, self.slide), made, named_as("k"), where=f"v >= {least}"),), ()
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
}


@dataclass(frozen=True)
class Version:
    """A program: its kinds and variants, the delays of its policies, and whether streams have more columns."""

    least: Mapping[str, int]
    delays: tuple[int, int]
    wider: bool
    backfill: bool

    def program(self, folder: Path) -> Program:
        more = columns("t BIGINT, k STRING, v INT, w INT") if self.wider else columns("t BIGINT, k STRING, v INT")
        streams = tuple(
            Stream(name, more, "t", policy=FixedDelay(delay), input=Input("parquet", str(folder / name), max_files=1))
            for name, delay in zip("ab", self.delays, strict=True)
        )
        parts = [KINDS[name].declared(name, least) for name, least in self.least.items()]
        queries = tuple(query for part, _ in parts for query in part)
        return Program(streams, queries, tuple(one for _, part in parts for one in part))


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Version, dict[str, list[Row]]]]:
    """A version and the rows of both streams for each round; about half of the rounds go on with the version before."""
    found: list[tuple[Version, dict[str, list[Row]]]] = []
    reached = {"a": 0, "b": 0}
    version: Version | None = None
    for _ in range(draw(st.integers(2, 6))):
        if version is None or draw(st.booleans()):
            names = draw(st.sets(st.sampled_from(sorted(KINDS)), min_size=1))
            delays = draw(st.integers(JITTER, 20)), draw(st.integers(JITTER, 20))
            least = {name: draw(st.integers(0, 2)) for name in sorted(names)}
            version = Version(least, delays, draw(st.booleans()), draw(st.booleans()))
        rows: dict[str, list[Row]] = {}
        for name in "ab":
            steps = draw(
                st.lists(st.tuples(st.integers(-JITTER, 9), st.sampled_from("xy"), st.integers(0, 3)), max_size=5)
            )
            rows[name] = []
            for step, key, value in steps:
                time = max(0, reached[name] + step)
                reached[name] = max(reached[name], time)
                rows[name].append((time, key, value))
        found.append((version, rows))
    return found


@dataclass
class Life:
    """A kind of query from the round in which it began, with the time before which no window of it starts."""

    began: int
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


@settings(deadline=None, max_examples=15, phases=[Phase.explicit, Phase.generate])
@given(histories())
def test_queries_that_stay_and_queries_that_come_give_what_a_batch_over_their_rows_gives(
    history: list[tuple[Version, dict[str, list[Row]]]],
) -> None:
    with folders() as folder:
        for name in "ab":
            (folder / name).mkdir()
        sink, lives, ended = Memory(), dict[str, Life](), list[tuple[str, Life, int]]()
        given: dict[int, dict[str, list[Row]]] = {}
        engine_round, before = 0, None
        for number, (version, rows) in enumerate(history):
            if before is not None and version != before:
                ended += [
                    (n, lives.pop(n), engine_round) for n in list(lives) if version.least.get(n) != lives[n].least
                ]
            fresh = [name for name in version.least if name not in lives]
            backfilled = version.backfill and before is not None
            for name in fresh:
                seen = [row[0] for some in given.values() for of in KINDS[name].over for row in some[of]]
                start, slide = max(seen, default=-1) + 1, KINDS[name].slide
                # An aggregate begins with a window, and takes no row of before.
                start = -(-start // slide) * slide if name == "sums" else start
                begins = ALWAYS if backfilled or not seen else start
                lives[name] = Life(number, begins, version.least[name], engine_round)
            for name, some in rows.items():
                if some:
                    write(folder / name, number, some)
            given[number] = rows
            program = version.program(folder)
            consent = Consent(True, tuple(fresh) if backfilled else ())
            sinks = dict.fromkeys(version.least, sink)
            with LocalEngine(program, str(folder / "checkpoint"), sinks, consent=consent) as engine:
                engine.recover()
                engine.step(bounded=True)
                if number == len(history) - 1:
                    engine.end()
                engine_round = engine.engine.next_round
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
