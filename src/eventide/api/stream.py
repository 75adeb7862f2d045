"""A stream in Python: rows, who tells their time, and how time moves.

Law: a stream never changes. Every method gives a new one, over the same rows. One method says how time moves (the
policy; without it at most 1 % of the rows may be late); wrappers such as `timeout` come after it, around what is there.

>>> import pyarrow as pa
>>> rows = pa.table({"t": [1, 12, 25], "detector": ["A", "B", "A"], "speed": [50, 60, 70]})
>>> traffic = stream(rows, time="t", source="detector", name="traffic").delay(0)
>>> traffic.declared.policy, traffic.declared.source
(FixedDelay(delay=0), ('detector',))
>>> totals = traffic.window(10).agg(total="sum(speed)")
>>> [(row["window_end"], row["total"]) for row in totals.run().to_pylist()]
[(10, 50), (20, 60), (30, 70)]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import TYPE_CHECKING

from eventide.api.arguments import Length, length
from eventide.api.inputs import ArrowData, Given, SparkRows, given_rows
from eventide.api.rows import NamedRows
from eventide.errors import DeclarationError
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.clock_skew import ClockSkew
from eventide.eventtime.policies.drop_ratio.learned import Learned
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.eventtime.policies.slack import Slack
from eventide.eventtime.policies.wrappers.expected_sources import Expected
from eventide.eventtime.policies.wrappers.idleness import Idle
from eventide.eventtime.policies.wrappers.timeout import Timeout
from eventide.language.scope.scope import Scope, over_stream
from eventide.plan.declared.program import NAME
from eventide.plan.declared.stream import Future, Stream, TimeKind, Timestamps, kind_of
from eventide.plan.expressions.columns import Column

if TYPE_CHECKING:
    from eventide.api.table import TablePlace

UNNAMED = "stream"


def stream(
    rows: Given,
    time: str | None,
    source: str | Sequence[str] = (),
    arrival: str | None = None,
    name: str | None = None,
    prodded: str | None = None,
) -> EventStream:
    """Make a stream of a streaming DataFrame, an Arrow table, or an iterator of Arrow batches.

    Over a DataFrame queries run on Spark, over Arrow data in this process. Each Arrow batch is a round (a micro-batch);
    `table.to_batches(max_chunksize=1000)` cuts a table into rounds.

    - `time`: the column with the event time, of type TIMESTAMP, TIMESTAMP_NTZ, DATE, or a whole number (a sequence).
      `None` stamps rows with the clock of the round in which they arrive.
    - `source`: the column or columns that name a source. Each source has its own heartbeat (its own watermark).
    - `arrival`: a column with the time of arrival, for recordings. The clock is then the largest arrival so far.
    - `prodded`: a BOOLEAN column. Rows in which it is TRUE are no data but prods: they ask every query over the stream
      for early results up to their time (see `docs/prods.md`).

    >>> import pyarrow as pa
    >>> cars = stream(pa.table({"t": [1, 12], "car": ["x", "y"]}), time="t", source="car", name="cars")
    >>> cars
    <stream 'cars' (t BIGINT, car STRING), time by t, source by car>
    >>> stream(pa.table({"ts": [1], "device": ["a"]}), time="tss")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: stream 'stream' has no column 'tss': did you mean 'ts'? It has ts, device
    """
    known = name or UNNAMED
    if not NAME.fullmatch(known):
        raise DeclarationError(f"{name!r} cannot name a stream: use letters, digits and underscores, a letter first")
    given = given_rows(rows)
    stamps = Timestamps.INTERNAL if time is None else Timestamps.EXTERNAL
    sources = (source,) if isinstance(source, str) else tuple(source)
    return EventStream(Stream(known, given.columns, time, sources, arrival, stamps, prods=prodded), given)


@dataclass(frozen=True)
class EventStream(NamedRows):
    """A stream that queries can read, made by `eventide.stream`; `declared` is its node in the plan.

    Law: it is immutable. Each method returns another stream over the same rows.
    """

    declared: Stream
    given: SparkRows | ArrowData | TablePlace
    chosen: bool = False
    """Whether the user has declared a policy."""

    twin_of: EventStream | None = None
    """The stream whose rows these are, where this one was made by `twin`."""

    def __repr__(self) -> str:
        rows = ", ".join(f"{column.name} {column.type}" for column in self.columns)
        source = f", source by {', '.join(self.declared.source)}" if self.declared.source else ""
        return f"<stream {self.declared.name!r} ({rows}), time by {self.declared.time or 'arrival'}{source}>"

    @property
    def columns(self) -> tuple[Column, ...]:
        """Names and types of its rows."""
        return self.declared.columns

    @property
    def time_kind(self) -> TimeKind:
        """What the times of its rows look like."""
        return self.declared.time_kind

    @property
    def _name(self) -> str:
        return self.declared.name

    def _scope(self) -> Scope:
        return over_stream(self.declared, {self.declared.name.lower()})

    # How time moves

    def drop_ratio(self, ratio: float, learned: str | PathLike[str] | None = None) -> EventStream:
        """Let at most this share of the rows be late: 0.01 is one in a hundred. This is the default.

        `learned` is a recording with the same columns, or the checkpoint of an earlier run: it shows how late rows are
        before the first one comes.

        >>> import pyarrow as pa
        >>> stream(pa.table({"t": [1]}), time="t").drop_ratio(0.05).declared.policy
        DropRatio(ratio=0.05)
        """
        if isinstance(ratio, str):
            raise DeclarationError(f".drop_ratio({ratio!r}): give a number, 0.01 for 1 %")
        return self.policy(DropRatio(ratio, None if learned is None else Learned(fspath(learned))))

    def slack(self, rows: int) -> EventStream:
        """Hold so many rows back: a row is late when more than `rows` larger times came before it."""
        if not isinstance(rows, int):
            raise DeclarationError(
                f".slack({rows!r}): give a whole number of rows; a length of time is .delay('5 seconds')"
            )
        return self.policy(Slack(rows))

    def delay(self, length_of_time: Length) -> EventStream:
        """Keep heartbeats this much behind the largest time seen, as Spark's `withWatermark` does."""
        return self.policy(FixedDelay(length(length_of_time, self.declared.time_kind, "the delay")))

    def clock_skew(self, at_most: Length) -> EventStream:
        """Keep heartbeats this much behind the clock: no row is expected to be older than that when it arrives."""
        return self.policy(ClockSkew(length(at_most, self._clock_kind, "the clock skew")))

    def policy(self, policy: Policy) -> EventStream:
        """Compute heartbeats by any policy of `eventide.eventtime`, declared once for a stream.

        Lengths in a policy are microseconds, or numbers of a sequence.

        >>> import pyarrow as pa
        >>> from eventide import OwnProgress
        >>> stream(pa.table({"t": [1]}), time="t").policy(OwnProgress(slack=2)).declared.policy
        OwnProgress(slack=2, known=0)
        """
        if self.chosen:
            raise DeclarationError(
                f"stream {self.declared.name!r} already goes by {self.declared.policy}: say how time moves once, "
                "before .timeout or .idle_after; for another one start from eventide.stream(...) again"
            )
        if not isinstance(policy, Policy):
            raise DeclarationError(f"{policy!r} is no policy: give one of eventide.eventtime, such as DropRatio(0.01)")
        return replace(self, declared=replace(self.declared, policy=policy), chosen=True)

    def punctuated_by(self, column: str, ranges: Mapping[str, tuple[str, str]] | None = None) -> EventStream:
        """Take rows in which this BOOLEAN column is TRUE as promises: their source sends no more rows up to their time.

        If the source columns of such a row are NULL, it speaks for all sources. With a policy declared before, the
        larger of both heartbeats counts for each source; without one, only promises move heartbeats. `ranges` names the
        columns of which a promise has a range, each with the columns of its first and last value: the time
        (`{"ts": ("since", "ts")}`), or a column of the source.

        >>> import pyarrow as pa
        >>> rows = pa.table({"t": [1, 9, 12], "v": [5, None, 7], "done": [False, True, False]})
        >>> totals = stream(rows, time="t").punctuated_by("done").window(10).agg(total="sum(v)", n="count(*)")
        >>> [(row["window_end"], row["total"], row["n"]) for row in totals.run().to_pylist()]
        [(10, 5, 1), (20, 7, 1)]
        """
        policy = Punctuated(self.declared.policy if self.chosen else None)
        promised = tuple((name, *edges) for name, edges in (ranges or {}).items())
        declared = replace(self.declared, policy=policy, punctuation=column, promised=promised)
        return replace(self, declared=declared, chosen=True)

    def timeout(self, after: Length) -> EventStream:
        """Move the heartbeat to the largest time seen when no source has sent a row for this long.

        >>> import pyarrow as pa
        >>> stream(pa.table({"t": [1]}), time="t").delay(2).timeout("1 minute").declared.policy
        Timeout(inner=FixedDelay(delay=2), after=60000000)
        """
        return self._wrapped(Timeout(self.declared.policy, length(after, self._clock_kind, "the timeout")))

    def idle_after(self, silence: Length) -> EventStream:
        """Do not wait for a source that has been silent for this long, until it sends a row again."""
        return self._wrapped(Idle(self.declared.policy, length(silence, self._clock_kind, "the silence")))

    def expecting(self, *sources: str, give_up_after: Length | None = None) -> EventStream:
        """Wait for these sources from the start, before their first rows; at most `give_up_after`, if that is given."""
        declared = self.declared
        if len(declared.source) != 1:
            raise DeclarationError(f"stream {declared.name!r} expects sources by name: give one `source` column")
        wait = None if give_up_after is None else length(give_up_after, self._clock_kind, "how long to wait")
        known = tuple(dict.fromkeys((*declared.known, *sources)))
        numbers = tuple(known.index(name) for name in dict.fromkeys(sources))
        waiting = Expected(declared.policy, numbers, wait)
        return replace(self, declared=replace(declared, policy=waiting, known=known), chosen=True)

    def future(self, ahead: Length, reject: bool = False) -> EventStream:
        """Never let rows move heartbeats that are further ahead of the clock than this; `reject` drops them, too.

        Without `reject` they are kept for their window. Rejected rows are in the rejects table.
        """
        allowed = Future(length(ahead, self.declared.time_kind, "how far ahead a row may be"), reject)
        return replace(self, declared=replace(self.declared, future=allowed))

    def twin(self, name: str, time: str | None = None) -> EventStream:
        """The same rows, for queries that want heartbeats by a policy of their own: they are read once for all.

        Say how its time moves as for any stream. `time` is another column that tells a time, to go by that. A row that
        is late for the queries of one may be in time for those of the other.

        >>> import pyarrow as pa
        >>> from eventide.api.start import start
        >>> rows = pa.table({"t": [5, 12, 7, 21]}).to_batches(max_chunksize=1)
        >>> cars = stream(iter(rows), time="t", name="cars").slack(0)
        >>> patient = cars.twin("patient_cars").slack(2)
        >>> running = start(quick=cars.window(10).agg(n="count(*)"), sure=patient.window(10).agg(n="count(*)"))
        >>> running.awaitTermination()
        True
        >>> [running[name].results().column("n").to_pylist() for name in ("quick", "sure")]
        [[1, 1, 1], [2, 1, 1]]
        """
        if not NAME.fullmatch(name):
            raise DeclarationError(f"{name!r} cannot name a twin: use letters, digits and underscores, a letter first")
        policy = Punctuated() if self.declared.punctuation is not None else DropRatio(0.01)
        first = self.twin_of or self
        return EventStream(first.declared.twin(name, policy, time=time), self.given, twin_of=first)

    def _wrapped(self, policy: Policy) -> EventStream:
        return replace(self, declared=replace(self.declared, policy=policy), chosen=True)

    @property
    def _clock_kind(self) -> TimeKind:
        """The clock is in microseconds, unless a column of whole numbers tells it."""
        arrival = self.declared.arrival
        return (kind_of(self.declared.column(arrival)) if arrival else None) or TimeKind.TIMESTAMP
