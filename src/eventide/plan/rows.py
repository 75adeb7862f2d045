"""Rows as they are: chosen and computed one by one, of one input or of several merged.

Laws. *Span*: a row of an operator spans [`window_start`, `window_end`), from the first instant that went into it up to
after the last: a row of a stream spans its own instant, a result its window. Its time is the last instant of its span.
*Merge*: the rows of all inputs, each once; the heartbeat of the whole is the least of the inputs'. With `ordered`, rows
are told in the order of time, simultaneous ones in the order of their values, each when the heartbeat has passed it;
without, in the round in which they come (the union of the Stream Mill paper, section 2; the merge of Gigascope,
section 5.3).

>>> from eventide.plan.query import named_as
>>> Rows("fast", ("north", "south"), named_as("detector", kmh="speed * 1.6"), where="speed > 60").inputs
('north', 'south')
"""

from __future__ import annotations

from dataclasses import dataclass

from eventide.errors import DeclarationError
from eventide.plan.query import Named, check_names


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
