"""Declare projections, merges and samples of rows, and queues before expensive functions.

*Rows* are chosen and computed one by one, of one input or of several merged. *Span*: a row of an operator spans
[`window_start`, `window_end`), from the first instant that went into it up to after the last: a row of a stream spans
its own instant, a result its window. Its time is the last instant of its span. *Merge*: the rows of all inputs, each
once; the heartbeat of the whole is the least of the inputs'. With `ordered`, rows are emitted in the order of time,
simultaneous ones in the order of their values, each when the heartbeat has passed it; without, in the round in which
they come (the union of the Stream Mill paper, section 2; the merge of Gigascope, section 5.3). With `simultaneous`, in
the order of time alone: a row is emitted as soon as no earlier one can come, and simultaneous rows follow it as they
come (the union by TSM registers of the Stream Mill paper, section 4.1).

>>> from eventide.plan.declared.query import named_as
>>> Rows("fast", ("north", "south"), named_as("detector", kmh="speed * 1.6"), where="speed > 60").inputs
('north', 'south')

*Samples.* A share of the rows, chosen by what is in them. Whether a row is taken depends on its values alone, not on
rounds, on the order of arrival or on the engine; so rows that are equal are taken together or not at all. Of rows that
differ, about the share is taken.

Texts, numbers, times and truth values count; columns of other types do not.

*Queues.* Rows wait before an expensive function, so that rounds stay short, and a burst can be set aside. A queue tells
every row that comes into it once, unchanged, the earliest first, about so many in a round as there is room for. No
window of whoever reads it closes before all its rows have gone through. With `sideline`, rows of a burst that wait once
their window was prodded after its end are set aside: they go through in lulls, and windows that hold none of them close
meanwhile (prodding thesis, sections 4.3.2, Expensive, and 6.2 (a)).

>>> queue = Queue("words_queue", ("words",), window=Window(300, 60), sideline=Sideline(one_in=3))
>>> queue.passes_through, queue.ordered
(False, False)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.plan.declared.query import Named, Query, Selecting, check_names
from eventide.plan.declared.stream import Stream, kind_of
from eventide.plan.declared.window import AnyWindow, SameWindow, SessionWindow, Window
from eventide.plan.expressions.aggregate_call import FRACTIONS, decimal_of
from eventide.plan.expressions.columns import WHOLE_NUMBERS, Column, quoted
from eventide.plan.expressions.parse import parsed


@dataclass(frozen=True)
class Rows(Selecting):
    """The rows of `inputs` (streams, queries or operators of one schema) that pass `where`.

    Each of `select` is an expression over single rows; without any, all columns of the inputs are emitted, and the
    inputs have the same ones. Which of them tells the time may differ from input to input.

    >>> Rows("all", ())
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: 'all' merges nothing: name at least one stream or query
    """

    name: str
    inputs: tuple[str, ...]
    select: tuple[Named, ...] = ()
    where: str | None = None
    ordered: bool = True
    simultaneous: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.simultaneous and not self.ordered:
            raise DeclarationError(f"{self.name!r} has no order of time at all: leave out `simultaneous`")
        if not self.inputs:
            raise DeclarationError(f"{self.name!r} merges nothing: name at least one stream or query")
        if len(set(self.inputs)) < len(self.inputs):
            raise DeclarationError(f"{self.name!r} merges an input with itself: name each once")
        check_names(self.name, self.select)

    @property
    def called(self) -> Mapping[str, str]:
        """The names by which expressions call its inputs."""
        return {name: name for name in self.inputs}

    @property
    def passes_through(self) -> bool:
        """Whether every row is emitted just as it came: what reads this may as well read the inputs."""
        return not self.select and self.where is None


BETWEEN, NOTHING = "\x1f", "\x1e"
"""What stands between two values, and in the place of NULL: no text has them."""

DIGITS = 8


def sampled(stream: Stream, share: float) -> str | None:
    """The condition under which a row is among the share; None where all rows are.

    >>> from eventide.plan.declared.stream import columns
    >>> s = Stream("s", columns("t BIGINT, k STRING"), time="t")
    >>> sampled(s, 1.0) is None
    True
    >>> print(sampled(s, 0.25).replace(BETWEEN, "|").replace(NOTHING, "~"))
    left(md5(concat_ws('|', COALESCE(CAST(`t` AS STRING), '~'), COALESCE(`k`, '~'))), 8) < '40000000'
    """
    threshold = round(share * 16**DIGITS)
    if threshold >= 16**DIGITS:
        return None
    texts = [text for column in stream.columns if (text := _text(column)) is not None]
    if not texts:
        raise DeclarationError(
            f"no column of stream {stream.name!r} can tell which rows to take: a sample needs a column of texts, "
            "numbers, times or truth values"
        )
    values = ", ".join(f"COALESCE({text}, '{NOTHING}')" for text in texts)
    return f"left(md5(concat_ws('{BETWEEN}', {values})), {DIGITS}) < '{threshold:0{DIGITS}x}'"


def _text(column: Column) -> str | None:
    """The value as a text that both engines write alike."""
    name = quoted(column.name)
    if column.type == "STRING":
        return name
    if column.type in (*WHOLE_NUMBERS, *FRACTIONS, "BOOLEAN") or decimal_of(column.type) is not None:
        return f"CAST({name} AS STRING)"
    if column.type == "DATE":
        return f"CAST(unix_date({name}) AS STRING)"
    if kind_of(column) is not None:
        return f"CAST(unix_micros(CAST({name} AS TIMESTAMP)) AS STRING)"
    return None


@dataclass(frozen=True)
class Sideline:
    """How rows that were set aside go through: one after every `one_in` new rows, and first of all after `within`.

    `within` is a length on the clock, counted from when a row was set aside. Without either they go in lulls alone.

    >>> Sideline(one_in=0)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: SIDELINE 1 IN 0 would let no new row go first: give 1 or more
    """

    one_in: int | None = None
    within: int | None = None

    def __post_init__(self) -> None:
        if self.one_in is not None and self.one_in < 1:
            raise DeclarationError(f"SIDELINE 1 IN {self.one_in} would let no new row go first: give 1 or more")
        if self.within is not None and self.within <= 0:
            raise DeclarationError(f"SIDELINE WITHIN {self.within} sets nothing aside: give a length above 0")


@dataclass(frozen=True)
class Queue(Rows):
    """The rows of `inputs`, before the query that calls an expensive function for each of them.

    `room` rows go through in a round; without it, as many as the time permits that the engine gives to it. `window` is
    that of the reader: bursts are set aside by its panes.
    """

    ordered: bool = False
    room: int | None = None
    window: AnyWindow | None = None
    sideline: Sideline | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.room is not None and self.room < 1:
            raise DeclarationError(f"{self.name!r}: no row would go through in a round of {self.room}: give 1 or more")
        if self.sideline is not None and not isinstance(self.window, Window):
            raise DeclarationError(
                f"{self.name!r}: only windows of time can be set aside: leave SIDELINE out, or give a RANGE of time"
            )

    @property
    def passes_through(self) -> bool:
        """False: readers of a queue must not read its inputs in its place."""
        return False


def queued(
    query: Query,
    inputs: tuple[str, ...],
    name: str,
    expensive: Collection[str] = (),
    room: int | None = None,
    sideline: Sideline | None = None,
) -> tuple[Queue, Query]:
    """A queue of that name before a query that takes its rows from `inputs`, and the query that reads it.

    Conditions that call none of the `expensive` functions are looked at before the queue: what they refuse need not
    wait.

    >>> from eventide.plan.declared.query import named_as
    >>> words = Query("words", "s", Window(300), named_as(n="count(*)"), where="(len > 3 AND found_in(word))")
    >>> queue, query = queued(words, ("s",), "words_queue", ["found_in"])
    >>> queue.where, query.where, query.stream
    ('len > 3', 'FOUND_IN(word)', 'words_queue')
    """
    if isinstance(query.window, SameWindow):
        raise DeclarationError(
            f"query {query.name!r} has the windows of a query below it, and its rows are few: it needs no queue"
        )
    if query.by_source:
        raise DeclarationError(
            f"query {query.name!r} cannot close by source: its rows wait together before an expensive function"
        )
    if sideline is not None:
        check_sideline(query)
    before, after = _parted(query.where, expensive)
    queue = Queue(name, inputs, where=before, room=room, window=query.window, sideline=sideline)
    return queue, replace(query, stream=name, where=after)


def check_sideline(query: Query) -> None:
    """Refuse a query whose windows cannot be set aside."""
    if isinstance(query.window, SessionWindow):
        raise DeclarationError(
            f"query {query.name!r}: where an open {query.window.noun} ends nobody knows, so none can be set aside: "
            "leave SIDELINE out"
        )
    if query.retain or (isinstance(query.window, Window) and query.window.empty):
        raise DeclarationError(
            f"query {query.name!r}: windows that are revised, or have results without rows, cannot be set aside: "
            "leave SIDELINE out, or the other"
        )


def calls(sql: str | None, functions: Collection[str]) -> bool:
    """Whether an expression calls one of these functions, whatever the capital letters.

    >>> calls("sum(Score(text))", ["score"]), calls("score + 1", ["score"])
    (True, False)
    """
    return sql is not None and _calls(parsed(sql, "an expression"), functions)


def _calls(tree: exp.Expr, functions: Collection[str]) -> bool:
    names = {str(name).lower() for name in functions}
    return any(
        (call.name if isinstance(call, exp.Anonymous) else call.sql_name()).lower() in names
        for call in tree.find_all(exp.Func)
    )


def _parted(where: str | None, expensive: Collection[str]) -> tuple[str | None, str | None]:
    """The conditions before a queue, and those after it."""
    if where is None or not expensive:
        return None, where
    tree = parsed(where, "WHERE").unnest()
    parts = list(tree.flatten()) if isinstance(tree, exp.And) else [tree]
    dear = [_calls(part, expensive) for part in parts]
    cheap = [part for part, one in zip(parts, dear, strict=True) if not one]
    rest = [part for part, one in zip(parts, dear, strict=True) if one]
    return _all_of(cheap), _all_of(rest)


def _all_of(parts: list[exp.Expr]) -> str | None:
    return exp.and_(*parts).sql("spark") if parts else None
