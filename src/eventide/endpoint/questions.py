"""What can be asked of a running engine, and answers kept for those who ask again.

Law: one prod is answered at a time, so that rounds never queue behind many; status and why never wait for a round. Rows
of an answer are the objects that `eventide run --json` prints.

An early answer is made of what the last committed round left, so until the next one the same prod has the same answer;
it is given again without asking the engine, which would have to keep every answer until a round has scored it. A
dashboard over a silent stream so costs nothing. What is cached is of one round, and is bounded.

>>> cache = AnswerCache()
>>> cache.keep(3, "plan", "speeds", Prod(), ProdAnswer(3, Timing.TIMELY, b"{}"))
>>> cache.find(3, "plan", "speeds", Prod()).timing.value, cache.find(4, "plan", "speeds", Prod())
('repeated', None)
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from eventide.endpoint.auth import HttpError, as_json
from eventide.endpoint.prod_request import named, names, prod_of, times_of
from eventide.engine.early.prodding import EarlyResults
from eventide.engine.introspection.why import OpenWindow
from eventide.engine.running import Running
from eventide.errors import DeclarationError, EngineError
from eventide.eventtime.early.prod import Prod, Timing
from eventide.plan.declared.query import Query
from eventide.sinks.lines import LineWriter
from eventide.telemetry.tracing import traced, traces_data
from eventide.watch.watching import watch

MOST, MOST_BYTES = 256, 4 << 20
"""Answers that are cached, and their size."""


@dataclass(frozen=True)
class ProdAnswer:
    """How a prod came in a round, and the rows of its answer as JSON, with commas between them."""

    round: int
    timing: Timing
    rows: bytes


class AnswerCache:
    """Answers by query and prod; to be used by one thread at a time."""

    def __init__(self) -> None:
        self._round: int | None = None
        self._plan: object = None
        self._answers: OrderedDict[Hashable, ProdAnswer] = OrderedDict()
        self._bytes = 0

    def find(self, round: int, plan: object, query: str, prod: Prod) -> ProdAnswer | None:
        """The answer to the same prod after the same round, of the same plan."""
        found = self._answers.get(_key(query, prod)) if round == self._round and plan is self._plan else None
        if found is None or found.timing is not Timing.TIMELY:
            return found
        return replace(found, timing=Timing.REPEATED)

    def keep(self, round: int, plan: object, query: str, prod: Prod, answer: ProdAnswer) -> None:
        """Remember an answer, and forget those of another round, and the oldest ones where there are too many."""
        if round != self._round or plan is not self._plan:
            self._answers.clear()
            self._round, self._plan, self._bytes = round, plan, 0
        self._bytes += len(answer.rows)
        self._answers[_key(query, prod)] = answer
        while len(self._answers) > MOST or self._bytes > MOST_BYTES:
            _, oldest = self._answers.popitem(last=False)
            self._bytes -= len(oldest.rows)


def _key(query: str, prod: Prod) -> Hashable:
    return query, prod.up_to, prod.after, frozenset(prod.groups.items())


MOST_ROWS = 100_000
"""An answer with more rows is refused: it would be nobody's glance at a query."""
WAITS = 30.0
"""Seconds that a prod waits for its turn."""
LEFT_OUT = ("rows", "heartbeat")
"""Columns of every result that the lines of `eventide run --json` do not have either."""

Words = Callable[[OpenWindow], str]


class Questions:
    """Answers questions for one engine, in whatever thread; `words` tells an open window in a sentence."""

    def __init__(self, running: Running, words: Words | None = None) -> None:
        self._running = running
        self._words = words
        self._turn = threading.Lock()
        self._cache = AnswerCache()
        self._lines: dict[str, tuple[pa.Schema, LineWriter]] = {}

    def close(self) -> None:
        """Let go of what was made to write answers, which must be gone before the interpreter is."""
        if self._turn.acquire(timeout=1.0):
            self._lines.clear()
            self._turn.release()

    def prod(self, asked: Mapping[str, Any]) -> bytes:
        """Early results as a line of JSON; `asked` has the keys of a prod's body."""
        if not self._turn.acquire(timeout=WAITS):
            raise HttpError(503, "others are asking, one after another", "ask again", Retry_After="1")
        try:
            name, prod = prod_of(self._running.engine, asked)
            found = self._answered(name, prod)
        except DeclarationError as error:
            raise HttpError(400, str(error)) from None
        except EngineError as error:
            raise HttpError(503, str(error)) from None
        finally:
            self._turn.release()
        head = as_json({"query": name, "round": found.round, "timing": found.timing.value}).rstrip(b"}\n")
        return head + b',"rows":[' + found.rows + b"]}\n"

    def _answered(self, name: str, prod: Prod) -> ProdAnswer:
        """From the engine, or as it answered before if nothing has happened since."""
        running = self._running
        round, plan = running.engine.state.round, running.engine.plan
        known = None if running.stopping.is_set() else self._cache.find(round, plan, name, prod)
        if known is not None:
            return known
        found = running.prod(name, prod)
        if found.rows > MOST_ROWS:
            raise HttpError(
                400,
                f"the answer has {found.rows:,} rows, and {MOST_ROWS:,} are given at most",
                "name groups, or an earlier up_to",
            )
        answer = ProdAnswer(found.round, found.timing, self._rows(found))
        if found.round == round and running.engine.plan is plan:
            self._cache.keep(round, plan, name, prod, answer)
        return answer

    def _rows(self, found: EarlyResults) -> bytes:
        table = found.table().drop_columns([name for name in LEFT_OUT if name in found.schema.names])
        schema, lines = self._lines.get(found.query, (None, None))
        if lines is None or schema is None or not table.schema.equals(schema):
            # Planning them takes longer than writing a few rows; they are used by one prod at a time.
            lines = LineWriter("json", table.schema)
            self._lines[found.query] = table.schema, lines
        return lines.of(table).rstrip(b"\n").replace(b"\n", b",")

    def status(self) -> dict[str, Any]:
        """The status of the engine, as JSON."""
        return self._running.status().as_json()

    def why(self, query: str | None) -> dict[str, Any]:
        """Why the open windows of a query are open, or what an operator waits for."""
        engine = self._running.engine
        name = named(engine, query)
        data: dict[str, Any] = {"query": name, "round": engine.state.round, "clock": engine.state.clock}
        if engine.program.operator(name) is not None:
            progress = engine.state.progress(engine.program, engine.scheduling)
            return data | ((progress and progress.operator_data(name)) or {})
        words = self._words
        windows = self._running.why(name)
        data["windows"] = [one.as_data() | ({} if words is None else {"words": words(one)}) for one in windows]
        return data

    def alerts(self) -> dict[str, Any]:
        """The alerts that stand, and the last that were raised or have cleared; watched from the first question on."""
        board = watch(self._running).board
        standing, recent = board.standing, list(board.recent)
        return {"standing": [one.as_json() for one in standing], "recent": [one.as_json() for one in recent]}

    def traces(self) -> dict[str, Any]:
        """Heartbeats and the time they waited in each operator; they are sampled from the first question on."""
        engine = self._running.engine
        found = traced(self._running).traces()
        return traces_data(found, engine.state.progress(engine.program, engine.scheduling))

    def queries(self) -> dict[str, Any]:
        """What can be asked: names, groups with their types, and what times are."""
        engine = self._running.engine
        data = []
        for name in names(engine):
            bound = engine.plan.queries.get(name)
            step = engine.program.operator(name) or engine.program.query(name)
            data.append(
                {
                    "query": name,
                    "groups": {} if bound is None else {key.name: key.type for key in bound.keys},
                    "times": times_of(engine, name).value,
                    "prods_itself": isinstance(step, Query) and step.prods is not None,
                }
            )
        return {"queries": data}
