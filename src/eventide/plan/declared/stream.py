"""A stream as declared: its columns, its time, its sources; also one made of the results of a query.

Laws. *Timestamps* (Stream Mill paper, section 5) are *external*, a column of the row; *internal*, the clock of the
round in which the row arrived; or *latent*, none until an operator needs one, which then stamps it with its clock.
*Derived*: a row of it is a final result of the query below: its groups and values, `window_start` and `window_end`. Its
time is the last instant of its window, so a window below counts in the window above in which it ends. Its heartbeat is
the bound of the query below less 1: every later result has a time at or after the bound. So no row of it is ever late,
and it has neither sources nor a policy of its own. Results of windows over a count of rows have numbers of rows for
times.

>>> s = Stream("traffic", columns("ts TIMESTAMP, detector STRING, speed INT"), time="ts", source=("detector",))
>>> s.time_kind.value, s.timestamps.value
('timestamp', 'external')

>>> from eventide.plan.expressions.columns import columns
>>> sums = Derived.of("sums", columns("sensor INT, total BIGINT"), TimeKind.TIMESTAMP, Window(60, 20))
>>> [column.name for column in sums.columns], sums.time_kind.value
(['sensor', 'total', 'window_start', 'window_end'], 'timestamp')
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction

from eventide.errors import DeclarationError
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.punctuated import Punctuated, punctuated_in
from eventide.eventtime.policies.skew.between_streams import between_streams
from eventide.eventtime.policies.skew.declared import names_of_bounds
from eventide.plan.declared.window import Window
from eventide.plan.expressions.columns import WHOLE_NUMBERS, Column, checked, columns, named

__all__ = ["Future", "Input", "Stream", "TimeKind", "Timestamps", "columns"]

NESTED = ("ARRAY", "STRUCT", "MAP", "VARIANT")
"""Types of values that hold others."""


ENVELOPE = "envelope"
"""The option of an input that says in what its rows are packed: messages of change data, `debezium`."""
CHANGED_AT, REMOVED = "changed_at", "removed"
"""The columns that a change has beside those of its table: when it was, and whether it ended the row."""


class Timestamps(Enum):
    """Where the time of a row comes from."""

    EXTERNAL = "external"
    INTERNAL = "internal"
    LATENT = "latent"


class TimeKind(Enum):
    """What times look like to the user; inside they are int64, microseconds or the number itself."""

    TIMESTAMP = "timestamp"
    DATE = "date"
    SEQUENCE = "sequence"


@dataclass(frozen=True)
class Input:
    """Where rows come from: any format Spark can stream, a path, options, and limits of what one round may take.

    >>> Input("json", path="in", options=(("multiLine", "false"),), max_files=10).max_files
    10
    """

    format: str
    path: str | None = None
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Not shown: passwords may be among them."""

    max_files: int | None = None
    max_offsets: int | None = None
    max_rows: int | None = None


@dataclass(frozen=True)
class Future:
    """Rows that are further ahead of the clock than `ahead` never move time; they wait, or are rejected.

    >>> Future(ahead=60_000_000, reject=True).reject
    True
    """

    ahead: int
    reject: bool = False

    def __post_init__(self) -> None:
        if self.ahead < 0:
            raise DeclarationError(
                f"ahead {self.ahead} is negative: give how far an honest row may be ahead, 0 or more"
            )


@dataclass(frozen=True)
class Table:
    """What makes a declaration that of a table: its rows in a round are all that it holds from then on.

    `refresh`: it is read again after so many microseconds, when rows come that need it; None: at every start only.
    """

    refresh: int | None = None

    def __post_init__(self) -> None:
        if self.refresh is not None and self.refresh <= 0:
            raise DeclarationError(f"REFRESH EVERY {self.refresh} would read all the time: give a length above 0")


@dataclass(frozen=True)
class Stream:
    """A declared stream. `policy` says what is known or tolerated; by default 1 % of the rows may be late.

    `arrival` names a column with the time of arrival, for sources that know it; the clock of a round is then the
    largest one so far, so that a recording gives the same answers whenever it is replayed.

    `punctuation` names a BOOLEAN column: a row in which it is TRUE is no data but a promise, that no more rows up to
    its time come from its source, or from any where its source is NULL. The policy takes promises: `Punctuated`. In
    `promised` are columns of which a promise names a range, each with the columns of its first and last value: of the
    time column, `("ts", "since", "ts")`, or of a column of the source. NULL is an open end.

    `prods` names a BOOLEAN column: a row in which it is TRUE is no data but a prod, that asks every query which reads
    the stream for early answers up to its time, in the groups that its columns name, any where they are NULL.

    `known` names sources before they speak, for a policy that numbers them: the first is source 0, and so on.

    >>> Stream("s", columns("t STRING"), time="t")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: stream 's' cannot take its time from 't': it is STRING, and time must be \
TIMESTAMP, TIMESTAMP_NTZ, DATE or a whole number
    """

    name: str
    columns: tuple[Column, ...]
    time: str | None = None
    source: tuple[str, ...] = ()
    arrival: str | None = None
    timestamps: Timestamps = Timestamps.EXTERNAL
    policy: Policy = field(default_factory=lambda: DropRatio(0.01))
    future: Future | None = None
    input: Input | None = None
    known: tuple[str, ...] = ()
    punctuation: str | None = None
    promised: tuple[tuple[str, str, str], ...] = ()
    prods: str | None = None
    table: Table | None = None
    """For a table that is joined as it is: rows of a round take the place of those of before."""
    removed: str | None = None
    """A condition that holds for rows which end the row of their key, where this is a stream of versions of a table."""

    computed: tuple[tuple[str, str], ...] = ()
    """The columns that are computed from the others, each with its expression in Spark SQL."""

    twin_of: str | None = None
    """The stream whose rows these are, where this one only has a policy, or a time, of its own for them."""

    def __post_init__(self) -> None:
        checked(self.columns)
        owner = f"stream {self.name!r}"
        self._name_sources(owner)
        if self.known and not self.source:
            raise DeclarationError(f"{owner} knows sources by name, but no column names them: give `source`")
        if (self.time is None) == (self.timestamps is Timestamps.EXTERNAL):
            raise DeclarationError(
                f"{owner}: external timestamps need a time column, internal and latent ones have none"
            )
        for name in (*self.source, *filter(None, (self.time, self.arrival))):
            named(name, self.columns, owner)
        for name in self.source:
            if (kind := named(name, self.columns, owner).type).startswith(NESTED):
                raise DeclarationError(
                    f"{owner} cannot tell its sources by {name!r}: it is {kind}, and a source goes by plain values; "
                    "choose a STRING or a number"
                )
        if self.punctuation is not None:
            self._check_punctuation(self.punctuation, owner)
        self._check_promised(owner)
        if self.prods is not None:
            self._check_prods(self.prods, owner)
        for use, column in (("time", self.time), ("arrival time", self.arrival)):
            if column is not None and kind_of(named(column, self.columns, owner)) is None:
                raise DeclarationError(
                    f"{owner} cannot take its {use} from {column!r}: it is {self.column(column).type}, "
                    "and time must be TIMESTAMP, TIMESTAMP_NTZ, DATE or a whole number"
                )

    @property
    def is_in_envelopes(self) -> bool:
        """Whether its rows come in messages of change data."""
        return self.input is not None and any(name.lower() == ENVELOPE for name, _ in self.input.options)

    @property
    def is_captured(self) -> bool:
        """Whether its rows are the changes of a table of a database, which is asked for them."""
        given = self.input
        return given is not None and given.format.lower() == "postgres" and self.table is None

    @property
    def as_read(self) -> Stream:
        """The stream as its input knows it: without the columns that are computed."""
        names = {name.lower() for name, _ in self.computed}
        if not names:
            return self

        def read(name: str | None) -> str | None:
            return None if name is None or name.lower() in names else name

        time = read(self.time)
        return replace(
            self,
            columns=tuple(column for column in self.columns if column.name.lower() not in names),
            time=time,
            timestamps=self.timestamps if time == self.time else Timestamps.LATENT,
            source=tuple(name for name in self.source if name.lower() not in names),
            arrival=read(self.arrival),
            policy=DropRatio(0.01),
            known=(),
            punctuation=None,
            promised=(),
            prods=None,
            computed=(),
        )

    @property
    def rows_of(self) -> str:
        """The name of the stream that rows are read for: its own, unless it is a twin."""
        return self.twin_of or self.name

    def twin(self, name: str, policy: Policy, known: tuple[str, ...] = (), time: str | None = None) -> Stream:
        """A twin: the rows of this stream, under a policy of its own; `time` is another column to go by.

        Promises and prods among the rows speak of the time of the stream, so they are no others' (Kim et al., section
        4: each query has a disorder controller, over one stream).

        >>> traffic = Stream("traffic", columns("ts TIMESTAMP, sent TIMESTAMP, v INT"), time="ts")
        >>> by_sent = traffic.twin("traffic_sent", DropRatio(0.05), time="sent")
        >>> by_sent.rows_of, by_sent.time
        ('traffic', 'sent')
        """
        if time is None or time == self.time:
            return replace(self, name=name, policy=policy, known=known, twin_of=self.rows_of)
        if (mark := self.punctuation or self.prods) is not None:
            raise DeclarationError(
                f"stream {self.rows_of!r} cannot go by {time!r}, too: rows in which {mark!r} is TRUE speak of "
                f"{self.time!r}; declare a stream of its own for that"
            )
        other = replace(self, name=name, time=time, timestamps=Timestamps.EXTERNAL, policy=policy, known=known)
        future = self.future if other.time_kind is self.time_kind else None
        return replace(other, future=future, twin_of=self.rows_of)

    @property
    def stamped_by_broker(self) -> bool:
        """Whether rows arrive at the times that Kafka notes, whose clock goes on while a topic is empty."""
        of_kafka = self.input is not None and self.input.format.lower() == "kafka"
        return of_kafka and self.arrival is not None and self.arrival.lower() == "kafka_timestamp"

    def _name_sources(self, owner: str) -> None:
        """Bounds hold between sources of certain names, not between whoever speaks first and second."""
        names = names_of_bounds(self.policy)
        if names is None or not self.source or between_streams(self.policy) is not None:
            return
        known = self.known or names
        if not known:
            raise DeclarationError(
                f"{owner} has bounds between sources by number, and nothing says which source has which number: name "
                "them, DeclaredSkew(skew, sources=('north', 'south'))"
            )
        if names and known[: len(names)] != names:
            raise DeclarationError(
                f"{owner} knows {', '.join(known)}, and its bounds number {', '.join(names)}: give both one order"
            )
        object.__setattr__(self, "known", known)

    def check_named_sources(self) -> None:
        """Refuse what speaks of a source by its name where no column names them."""
        if not self.source:
            raise DeclarationError(f"stream {self.name!r} is one source without a name: give `source` (SOURCE BY)")

    def _check_punctuation(self, name: str, owner: str) -> None:
        if (kind := named(name, self.columns, owner).type) != "BOOLEAN":
            raise DeclarationError(
                f"{owner} cannot tell promises by {name!r}: it is {kind}; make it BOOLEAN, TRUE in rows that promise"
            )
        if self.time is None:
            raise DeclarationError(f"{owner} promises nothing by {name!r}: its rows have no time of their own")
        if punctuated_in(self.policy) is None:
            raise DeclarationError(
                f"{owner} has promises in {name!r}, and its policy does not take them: use Punctuated({self.policy})"
            )

    def _check_promised(self, owner: str) -> None:
        if self.promised and self.punctuation is None:
            raise DeclarationError(f"{owner} has ranges of promises, and no promises: give `punctuation`")
        seen = set[str]()
        time = "" if self.time is None else self.time.lower()
        for name, *edges in self.promised:
            column = named(name, self.columns, owner)
            of_time = name.lower() == time
            if not of_time and name.lower() not in {source.lower() for source in self.source}:
                raise DeclarationError(
                    f"{owner} promises nothing of {name!r}: ranges are of its time or of columns of its source"
                )
            if of_time and edges[1].lower() != time:
                raise DeclarationError(f"{owner}: a range of time ends with that of the promise: {self.time!r}")
            if not of_time and column.type not in (*WHOLE_NUMBERS, "STRING"):
                raise DeclarationError(
                    f"{owner} cannot promise ranges of {name!r}: it is {column.type}; make it STRING or a number"
                )
            for edge in edges:
                if (kind := named(edge, self.columns, owner).type) != column.type:
                    raise DeclarationError(
                        f"{owner} cannot promise {name!r} by {edge!r}: it is {kind}; make it {column.type}"
                    )
            if name.lower() in seen:
                raise DeclarationError(f"{owner} has two ranges of {name!r}: give one")
            seen.add(name.lower())

    def _check_prods(self, name: str, owner: str) -> None:
        if (kind := named(name, self.columns, owner).type) != "BOOLEAN":
            raise DeclarationError(
                f"{owner} cannot tell prods by {name!r}: it is {kind}; make it BOOLEAN, TRUE in rows that are prods"
            )
        if self.time is None:
            raise DeclarationError(f"{owner} asks for no time by {name!r}: its rows have no time of their own")

    @property
    def time_kind(self) -> TimeKind:
        """What the times of this stream look like."""
        if self.time is None:
            return TimeKind.TIMESTAMP
        kind = kind_of(named(self.time, self.columns, self.name))
        assert kind is not None
        return kind

    def column(self, name: str) -> Column:
        """The column of that name, or an error that says which there are."""
        return named(name, self.columns, f"stream {self.name!r}")


def kind_of(column: Column) -> TimeKind | None:
    """The kind of time a column can tell, or None.

    >>> kind_of(Column("n", "BIGINT")), kind_of(Column("n", "DOUBLE"))
    (<TimeKind.SEQUENCE: 'sequence'>, None)
    """
    if column.type in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        return TimeKind.TIMESTAMP
    if column.type == "DATE":
        return TimeKind.DATE
    return TimeKind.SEQUENCE if column.type in WHOLE_NUMBERS else None


WINDOW_START, WINDOW_END = "window_start", "window_end"

Least = Callable[[int], int | Fraction]
"""What a column has at least in a row of a time (`time_columns`); None where only the running operator knows."""


@dataclass(frozen=True)
class Derived(Stream):
    """The stream of a query's final results; `windows` are those of the query, `carries` its columns with time."""

    windows: Window = field(default_factory=lambda: Window(1))
    carries: tuple[tuple[str, Least | None], ...] = field(default=(), compare=False)

    @classmethod
    def of(
        cls,
        query: str,
        outputs: tuple[Column, ...],
        kind: TimeKind,
        windows: Window,
        carries: tuple[tuple[str, Least | None], ...] = (),
    ) -> Derived:
        """The stream of the query of that name, whose windows have edges of that kind."""
        edge = "BIGINT" if kind is TimeKind.SEQUENCE else "TIMESTAMP"
        columns = (*outputs, Column(WINDOW_START, edge), Column(WINDOW_END, edge))
        return cls(query, columns, time=WINDOW_END, policy=Punctuated(), windows=windows, carries=carries)
