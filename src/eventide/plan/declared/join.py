"""Declare joins of two inputs, and lookups in a table whose versions are streamed.

*Joins* give pairs of rows of two inputs whose times belong together. *Pairs*: rows l and r are a pair when every band
holds, their keys are equal (NULL equals nothing) and the condition is true. A band says low <= g(r) - f(l) <= high for
temporal attributes f and g of the two sides: an epoch join `l.t/60 = r.t/60` is the band [0, 0], `|l.t - r.t| <= 5` the
band [-5, 5], and the symmetric window join of the Stream Mill paper (figures 1 and 6: every row with the window of the
other input) the band [1 - range(right), range(left) - 1]. *Done*: a row is done with when no later row of the other
input can be its partner by some band; then it is freed, and where its side is kept by the outer join and it never had a
partner, it is emitted alone, in that round (Gigascope paper, section 5.5). A band may be open at one end, and then one
of its sides may be what a row says itself: `r.t <= l.expires` ends the partners of each left row where that row says. A
pair is emitted in the round in which its second row comes; a semi join emits the left row alone, in the round in which
its first partner is there, an anti join when none can come any more. *Time*: a pair spans what its two rows span
together, so its time is that of the later one. *Heartbeat*: later rows of the output are pairs with a later row, or
rows that are still held, alone; so it is the least of the inputs' heartbeats and of the instant before the earliest
held row that may yet be emitted alone.

>>> flows = Join(
...     "full_flow", Side("flow1", keys=("srcIP",)), Side("flow2", keys=("srcIP",)), (Band("tb", "tb"),), JoinKind.FULL
... )
>>> flows.bands[0].low, flows.left.alias
(0, 'flow1')

*Lookups* give rows of a stream with what a table said at their time; the updates of the table are streamed too. A table
is a stream of *versions*: a row of it holds for its key from its time on, until the next version of the key. A row of
the stream is emitted with the version of its key as of its own time: the latest one at or before it; of versions of one
time, the greatest by values. It waits until the heartbeat of the table has passed its time, so that no earlier version
can come; then it is emitted, in that round, with the time of the row. A version is freed when a later one
holds for all rows that can still come.

>>> from eventide.plan.declared.query import named_as
>>> priced = Lookup(
...     "priced", Side("orders", "o", keys=("product",)), Side("prices", "p", keys=("product",)),
...     removed="price IS NULL", select=named_as("o.product", total="o.amount * p.price"),
... )
>>> priced.inputs, priced.keeps_all
(('orders', 'prices'), False)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from eventide.errors import DeclarationError
from eventide.plan.declared.query import Named, Selecting, check_names
from eventide.plan.declared.window import LONGEST_GAP


class JoinKind(Enum):
    """Whose rows are emitted although they have no partner; or by what rows of the left input are chosen."""

    INNER = "inner"
    LEFT = "left"
    RIGHT = "right"
    FULL = "full"
    SEMI = "semi"
    """Rows of the left input that have a partner, each once."""
    ANTI = "anti"
    """Rows of the left input that have none."""

    @property
    def chooses(self) -> bool:
        """Whether it gives rows of the left input alone, and no pairs."""
        return self in (JoinKind.SEMI, JoinKind.ANTI)

    @property
    def keeps_left(self) -> bool:
        """Whether rows of the left input are emitted alone."""
        return self.chooses or self in (JoinKind.LEFT, JoinKind.FULL)

    @property
    def keeps_right(self) -> bool:
        """Whether rows of the right input are emitted alone."""
        return self in (JoinKind.RIGHT, JoinKind.FULL)


@dataclass(frozen=True)
class Side:
    """One input of a join: a stream, query or operator, the name by which its columns are called, its equal keys.

    `where` chooses rows before they are joined; rows that it leaves out are not emitted alone either.

    >>> Side("traffic").alias, Side("traffic", "t").alias
    ('traffic', 't')
    """

    input: str
    alias: str = ""
    keys: tuple[str, ...] = ()
    where: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "alias", self.alias or self.input)


@dataclass(frozen=True)
class Band:
    """How a temporal attribute of each side relates: low <= right - left <= high; None leaves that end open.

    Both are expressions over the columns of their own side, without the alias. In microseconds where they are times.
    `high` ends the partners of a left row, so with `low` open its side may be any column: what the row says itself.
    With `high` open, so may the right side.

    >>> Band("t", "t", -5, 5).is_closed, Band("expires", "t", None, 0).is_closed
    (True, False)
    """

    left: str
    right: str
    low: int | None = 0
    high: int | None = 0

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            raise DeclarationError(f"a band of {self.left} and {self.right} without ends says nothing: give one end")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise DeclarationError(
                f"no pair has {self.low} <= {self.right} - {self.left} <= {self.high}: the first must not be larger"
            )

    @property
    def is_closed(self) -> bool:
        """Whether both ends are known."""
        return self.low is not None and self.high is not None

    @property
    def is_endless(self) -> bool:
        """Whether no two rows are too far apart for it."""
        return self.low is not None and self.high is not None and self.high - self.low >= 2 * LONGEST_GAP


@dataclass(frozen=True)
class Join(Selecting):
    """Pairs of rows; `condition` is part of what makes a pair, `where` chooses among what is emitted.

    `condition`, `where` and `select` name columns as `alias.column`.

    >>> Join("j", Side("a"), Side("b"), ())
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: join 'j' could never let go of a row: relate a temporal attribute of 'a' to one \
of 'b', such as a.time = b.time, or a.time BETWEEN b.time - INTERVAL 5 SECONDS AND b.time
    """

    name: str
    left: Side
    right: Side
    bands: tuple[Band, ...]
    kind: JoinKind = JoinKind.INNER
    condition: str | None = None
    where: str | None = None
    select: tuple[Named, ...] = ()

    def __post_init__(self) -> None:
        if self.left.alias.lower() == self.right.alias.lower():
            raise DeclarationError(
                f"join {self.name!r} calls both inputs {self.left.alias!r}: give one another name with AS"
            )
        if len(self.left.keys) != len(self.right.keys):
            raise DeclarationError(f"join {self.name!r} has keys on one side that are equal to nothing")
        if not self.bands:
            left, right = self.left.alias, self.right.alias
            raise DeclarationError(
                f"join {self.name!r} could never let go of a row: relate a temporal attribute of {left!r} to one of "
                f"{right!r}, such as {left}.time = {right}.time, or {left}.time BETWEEN {right}.time - INTERVAL 5 "
                f"SECONDS AND {right}.time"
            )
        highs, lows = [one.high for one in self.bands], [one.low for one in self.bands]
        for side, ends in ((self.left, highs), (self.right, lows)):
            if all(end is None for end in ends):
                raise DeclarationError(
                    f"join {self.name!r} could never let go of a row of {side.alias!r}: no band says until when its "
                    "partners come"
                )
        check_names(self.name, self.select)

    @property
    def called(self) -> Mapping[str, str]:
        """The names by which expressions call its inputs."""
        return {side.alias: side.input for side in (self.left, self.right)}

    @property
    def inputs(self) -> tuple[str, ...]:
        """What it reads; a join of an input with itself reads it once."""
        return tuple(dict.fromkeys((self.left.input, self.right.input)))


@dataclass(frozen=True)
class Lookup(Selecting):
    """Each row of `rows` with the version in `versions` that holds at its time for the same keys.

    With `keeps_all`, rows without a version are emitted too, with NULL for its columns. `removed`, a condition over the
    columns of `versions`, tells versions that end the table's row for their key. `where` and `select` name columns as
    `alias.column`.

    With `as_it_is`, `versions` is a table without times (`Stream.table`): a row is joined with all rows of its keys, in
    the round in which it comes, as the table was read last.

    >>> Lookup("l", Side("orders"), Side("prices"))
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: 'l' looks up nothing in 'prices': give keys of both sides that must be equal
    """

    name: str
    rows: Side
    versions: Side
    keeps_all: bool = False
    removed: str | None = None
    where: str | None = None
    select: tuple[Named, ...] = ()
    as_it_is: bool = False

    def __post_init__(self) -> None:
        if self.rows.alias.lower() == self.versions.alias.lower():
            raise DeclarationError(
                f"{self.name!r} calls both inputs {self.rows.alias!r}: give one another name with AS"
            )
        if not self.rows.keys or len(self.rows.keys) != len(self.versions.keys):
            raise DeclarationError(
                f"{self.name!r} looks up nothing in {self.versions.input!r}: give keys of both sides that must be equal"
            )
        check_names(self.name, self.select)

    @property
    def called(self) -> Mapping[str, str]:
        """The names by which expressions call its inputs."""
        return {side.alias: side.input for side in (self.rows, self.versions)}

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of what the lookup reads."""
        return tuple(dict.fromkeys((self.rows.input, self.versions.input)))
