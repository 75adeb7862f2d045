"""Projections and merges of rows, and samples of them.

Rows as they are: chosen and computed one by one, of one input or of several merged.

Laws. *Span*: a row of an operator spans [`window_start`, `window_end`), from the first instant that went into it up to
after the last: a row of a stream spans its own instant, a result its window. Its time is the last instant of its span.
*Merge*: the rows of all inputs, each once; the heartbeat of the whole is the least of the inputs'. With `ordered`, rows
are told in the order of time, simultaneous ones in the order of their values, each when the heartbeat has passed it;
without, in the round in which they come (the union of the Stream Mill paper, section 2; the merge of Gigascope,
section 5.3).

>>> from eventide.plan.declared.query import named_as
>>> Rows("fast", ("north", "south"), named_as("detector", kmh="speed * 1.6"), where="speed > 60").inputs
('north', 'south')

A share of the rows, chosen by what is in them.

Law: whether a row is taken depends on its values alone, not on rounds, on the order of arrival or on the engine; so
rows that are equal are taken together or not at all. Of rows that differ, about the share is taken.

Texts, numbers, times and truth values count; columns of other types do not.
"""

from __future__ import annotations

from dataclasses import dataclass

from eventide.errors import DeclarationError
from eventide.plan.declared.query import Named, check_names
from eventide.plan.declared.stream import Stream, kind_of
from eventide.plan.expressions.aggregate_call import FRACTIONS, decimal_of
from eventide.plan.expressions.columns import WHOLE_NUMBERS, Column, quoted


@dataclass(frozen=True)
class Rows:
    """The rows of `inputs` (streams, queries or operators of one schema) that pass `where`.

    Each of `select` is an expression over single rows; without any, all columns of the inputs are told, and the inputs
    have the same ones. Which of them tells the time may differ from input to input.

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

    def __post_init__(self) -> None:
        if not self.inputs:
            raise DeclarationError(f"{self.name!r} merges nothing: name at least one stream or query")
        if len(set(self.inputs)) < len(self.inputs):
            raise DeclarationError(f"{self.name!r} merges an input with itself: name each once")
        check_names(self.name, self.select)

    @property
    def is_plain(self) -> bool:
        """Whether every row is told just as it came: what reads this may as well read the inputs."""
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
