"""Say in one line how a run stands, and what it has lost.

>>> status_line(Status("local", 3, 10, False, (), (), {}, rows_per_second=1234.5))
'round 3, 1,234 rows/s'

The state of all queries is summed up together, but for that on the cluster:

>>> pairs = QueryStatus("pairs", "cluster", 3, 2_000, 5_000_000, None)
>>> sums = QueryStatus("sums", "driver", 3, 10, 2_048, None)
>>> status_line(Status("spark", 3, 10, False, (), (pairs, sums), {}, rows_per_second=5))
'round 3, 5 rows/s, state 2 KiB and on the cluster pairs 4.77 MiB'

*Log.* For a service (`eventide run --log`) there is a line at the start, one a minute, and one at the end, on standard
error; results are never among them.

*Losses.* Late and rejected rows, which are in no answer, are counted with their reasons while an engine runs.

>>> counted = LossReport()
>>> counted.rejected["malformed row"] = 3
>>> counted.sentences("state")
['3 rows rejected: malformed row; see state/rejects']
>>> counted.sentences(None)[0]
'3 rows rejected: malformed row; gone with the temporary checkpoint (--checkpoint DIR keeps such rows)'
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from eventide.engine.introspection.status import QueryStatus, Status, StreamStatus
from eventide.engine.round.report import RoundReport
from eventide.engine.running import Running
from eventide.engine.stream_progress import StreamProgress
from eventide.eventtime.instant import NEVER, Instants
from eventide.eventtime.policies.drop_ratio.policy import permitted_ratio
from eventide.eventtime.policies.skew.confidence import is_broken
from eventide.eventtime.policies.skew.declared import declared_loss
from eventide.plan.declared.stream import Stream, TimeKind, Timestamps
from eventide.profile.amounts import percent, size_words, spoken

SEPARATOR = "\x1f"
"""Between the values that name a source together."""

EVERY = 60.0
"""Seconds between two lines."""

LOOKED_EVERY = 0.25
"""Seconds between two looks at the sources, however short the rounds."""


class StatusLine:
    """Watches an engine, and tells how it stands whenever it is asked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._engine: Running | None = None
        self._held: dict[str, str] = {}
        self._looked = 0.0
        self.results = 0

    def watch(self, engine: Running) -> None:
        """Look at this engine after every round of it."""
        self._engine = engine
        engine.on_round(self._after)

    def text(self) -> str:
        """The line as the run stands now."""
        if self._engine is None:
            return "starting"
        unitless = {s.name for s in self._engine.engine.program.streams if s.time_kind is TimeKind.SEQUENCE}
        with self._lock:
            return status_line(self._engine.status(), self._held, unitless)

    def _after(self, work: RoundReport) -> None:
        assert self._engine is not None
        engine = self._engine.engine
        shown = engine.sinks
        self.results += sum(results.rows for name, results in work.results.items() if name in shown)
        if time.monotonic() - self._looked < LOOKED_EVERY:
            return
        self._looked = time.monotonic()
        progress = engine.state.progress(engine.program, engine.scheduling)
        assert progress is not None, "a round has just been committed"
        found = {stream.name: holder(*progress.as_it_is(stream)) for stream in engine.program.streams}
        held = {name: who for name, who in found.items() if who is not None}
        with self._lock:
            self._held = held


def holder(stream: StreamProgress, far: Instants) -> str | None:
    """The source that is least far and behind most others, and whether it is silent; None where no single one is.

    `far` is how far each source of the stream has come; it is not asked again.
    """
    if stream.stream.timestamps is not Timestamps.EXTERNAL or len(stream.sources) < 2:
        return None
    waited_for = np.ones(len(far), dtype=np.bool_)
    for out in stream.left_out():
        waited_for[out.sources[out.sources < len(far)]] = False
    if np.count_nonzero(waited_for) < 2 or not np.median(far[waited_for]) > far[waited_for].min():
        return None
    slowest = int(np.flatnonzero(waited_for)[far[waited_for].argmin()])
    heard = stream.hearing.heard_of(slowest)
    silence = stream.clock - heard if heard != NEVER else 0
    unitless = stream.stream.arrival is not None and stream.stream.time_kind is TimeKind.SEQUENCE
    idle = f" (silent for {spoken(silence, unitless)})" if silence > 0 else ""
    return f"{stream.name_of(slowest).replace(SEPARATOR, '|')!r}{idle}"


def status_line(
    status: Status, held: Mapping[str, str] | None = None, unitless: set[str] | frozenset[str] = frozenset()
) -> str:
    """The status in one line; `unitless` names streams whose times are numbers, `held` who holds each stream back."""
    parts = [f"round {status.round}" if status.round >= 0 else "waiting for rows"]
    parts.append(f"{int(status.rows_per_second):,} rows/s")
    if state := _state(status.queries):
        parts[1] += f", state {state}"
    several = len(status.streams) > 1
    for stream in status.streams:
        parts_of = _of_stream(stream, stream.name in unitless)
        if held and stream.name in held and stream.lag:
            parts_of.append(f"held back by {held[stream.name]}")
        parts.append((f"{stream.name}: " if several else "") + ", ".join(parts_of))
    return ", ".join(parts) if not several else "; ".join([", ".join(parts[:2]), *parts[2:]])


def _state(queries: Sequence[QueryStatus]) -> str:
    """How large the state with the driver is, and that of each query on the cluster."""
    here = sum(query.state_bytes for query in queries if query.placement == "driver")
    there = [query for query in queries if query.placement == "cluster" and query.state_bytes]
    named = ", ".join(f"{query.name} {size_words(query.state_bytes)}" for query in there)
    return " and ".join(filter(None, [size_words(here) if here else "", f"on the cluster {named}" if there else ""]))


def _of_stream(stream: StreamStatus, unitless: bool) -> list[str]:
    parts_of = [f"{stream.rows:,} rows"]
    if stream.lag is not None:
        parts_of.append(f"lag {spoken(stream.lag, unitless)}")
    if stream.wanted:
        parts_of.append(f"late {percent(stream.drop_ratio)}")
    if stream.rejected:
        parts_of.append(f"rejected {stream.rejected:,}")
    return parts_of


@contextmanager
def logging_of(
    engine: Running, line: StatusLine, form: str | None, every: float = EVERY, now: Callable[[], datetime] | None = None
) -> Iterator[None]:
    """Write lines about an engine while the block runs; `form` None writes none."""
    if form is None:
        yield
        return
    clock = now or (lambda: datetime.now(UTC))
    ended = threading.Event()

    def write() -> None:
        with suppress(OSError):
            print(line_of(engine, line, form, clock()), file=sys.stderr, flush=True)

    def work() -> None:
        while not ended.wait(every):
            write()

    write()
    thread = threading.Thread(target=work, name="eventide-log", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        write()


def line_of(engine: Running, line: StatusLine, form: str, at: datetime) -> str:
    """One line: how many rows and results there were, how far time is behind, what was lost."""
    stamp = at.isoformat(timespec="seconds").replace("+00:00", "Z")
    if form == "text":
        return f"{stamp} {line.text()}, {line.results:,} results"
    status = engine.status()
    streams = [
        {
            "name": stream.name,
            "rows": stream.rows,
            "late": stream.late,
            "rejected": stream.rejected,
            "lag": stream.lag,
        }
        for stream in status.streams
    ]
    entry = {
        "at": stamp,
        "event": "status",
        "round": status.round,
        "rows_per_second": status.rows_per_second,
        "results": line.results,
    }
    return json.dumps({**entry, "streams": streams})


REASONS_SHOWN = 3
PLACE = re.compile(r" \(query [^()]*\)$")


@dataclass
class LossReport:
    """Late rows by stream, rejects by reason; `functions` have the names by which they are known here.

    >>> counted = LossReport(functions=("halfOf",))
    >>> counted.spelled("query 'q': HALFOF(v) fails")
    "query 'q': halfOf(v) fails"
    """

    late: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    functions: Sequence[str] = ()

    def watch(self, engine: Running) -> None:
        """Count after every round of this engine."""
        engine.on_round(self._after)

    def _after(self, work: RoundReport) -> None:
        self.late.update(work.late)
        for reason, count in work.rejected.items():
            # A lost value names its window; here only what happened counts.
            self.rejected[self.spelled(PLACE.sub("", reason))] += count

    def spelled(self, reason: str) -> str:
        """The reason, in which SQL has written all functions in capital letters."""
        for name in self.functions:
            reason = re.sub(rf"\b{re.escape(name)}\(", f"{name}(", reason, flags=re.IGNORECASE)
        return reason

    def sentences(self, checkpoint: str | None, keeping: str = "--checkpoint DIR") -> list[str]:
        """What to tell in the end; `checkpoint` None says that it was a temporary one, `keeping` how to have one."""
        parts_of = []
        if late := sum(self.late.values()):
            parts_of.append(f"{_rows(late)} came too late; {_where('late', checkpoint, keeping)}")
        if rejected := sum(self.rejected.values()):
            common = self.rejected.most_common()
            reasons = common[0][0] if len(common) == 1 else "; ".join(f"{n:,} {r}" for r, n in common[:REASONS_SHOWN])
            more = f"; {len(common) - REASONS_SHOWN} more reasons" if len(common) > REASONS_SHOWN else ""
            parts_of.append(f"{_rows(rejected)} rejected: {reasons}{more}; {_where('rejects', checkpoint, keeping)}")
        return parts_of


def beyond_permitted(streams: Iterable[Stream], status: Iterable[StreamStatus]) -> list[str]:
    """What to tell of streams that lost more rows than their declaration permits, and what to do about it."""
    streams = list(streams)
    permitted = {stream.name: permitted_ratio(stream.policy) for stream in streams}
    by_bounds = {stream.name: declared_loss(stream.policy) for stream in streams}
    parts_of = []
    for one in status:
        ratio, share = permitted.get(one.name), one.late / max(1, one.rows)
        loss = by_bounds.get(one.name)
        if loss is not None and is_broken(one.late, one.rows, loss):
            parts_of.append(
                f"stream {one.name!r}: {one.late:,} of {_rows(one.rows)} came too late ({100 * share:.1f} %), and its "
                f"bounds say that at most {100 * loss:.4g} % do: they do not hold. `eventide why` names the sources "
                "that break them; widen BY, AFTER or LATENCY"
            )
        if ratio is not None and one.late > 1 and share > ratio:
            parts_of.append(
                f"stream {one.name!r}: {one.late:,} of {_rows(one.rows)} came too late ({100 * share:.1f} %), and "
                f"{100 * ratio:.4g} % was permitted: they are not read in the order in which they came. Sort files by "
                "time before they are read, name the column that says when a row came (ARRIVAL BY), or wait (DELAY)"
            )
    return parts_of


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _where(table: str, checkpoint: str | None, keeping: str) -> str:
    if checkpoint is None:
        return f"gone with the temporary checkpoint ({keeping} keeps such rows)"
    return f"see {checkpoint}/{table}"
