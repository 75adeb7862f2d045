"""The results of one query in one round, and the grammar of results: what may follow what in a query's output.

Law: a result row names its query, its kind, its window [window_start, window_end), the round that gave it, how many
rows went into it and the heartbeat that closed it; then come the group columns and the values. A round gives one
`Results` per query, also an empty one; the same round run again gives the same.

Laws of the grammar, for each window and group (prodding thesis, section 2.2, grammatical streams, and 6.2 (a), range
punctuations):

1. a final row comes once, and nothing but revised rows comes after it; a revised row comes only after it, or when its
   window is over; a changed row, which may change again, is of a window that is not over;
2. a window of time is final only when it is closed: its last instant is at or before the heartbeat that the row names,
   and no part of it lies in a hole, a span that was set aside and is not settled;
3. what is over stays over: after a promise that windows up to an instant are closed, outside the holes there are then,
   no early or final row of such a window comes.

So finals of later windows may come while an earlier one is held up in a hole, and the output is still grammatical.

>>> r = Results.of_table("q", 3, pa.table({"query": ["q"], "total": [7]}))
>>> r.rows, r.table().column_names
(1, ['query', 'total'])

>>> grammar = Grammar(groups=())
>>> row = {"window_start": [0], "window_end": [10], "heartbeat": [9]}
>>> grammar.read(pa.table({"kind": ["early"], **row}))
>>> grammar.read(pa.table({"kind": ["final"], **row}))
>>> grammar.read(pa.table({"kind": ["early"], **row}))
Traceback (most recent call last):
    ...
eventide.errors.GrammarError: an early row of window 0 to 10 came after the final one

*Early columns.* A person reads early rows as `614 ± 21 %, ~773`, until the final row takes their place. The columns
that early answers have beside a query's own (`point`, `completeness`, `NAME_error`, `NAME_estimate`) stand at the end
of its results, and are read as part of the values they are about. Of a window and group only the last row is worth
reading, unless it is more than early.

>>> names = ("kind", "window_start", "window_end", "detector", "total", "point", "completeness", "total_error")
>>> early = EarlyColumns.of(names)
>>> early.groups, early.values, EarlyColumns.of(names[:-1])
(('detector',), ('total',), None)
>>> early.amount("614", 0.2123, None), early.amount("614", None, "773"), early.amount("683", None, None)
('614 ± 21 %', '614, ~773', '683')
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pyarrow as pa

from eventide.errors import GrammarError
from eventide.eventtime.instant import NEVER
from eventide.eventtime.punctuation import Span
from eventide.plan.declared.query import COMPLETENESS, ERROR, ESTIMATE, POINT, RESERVED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Made = TypeVar("Made")

ROW_SPAN = {b"eventide.span": b"row"}
"""Metadata of `window_end` where a result is a row, or rows that were joined: its window is just their times."""


class Kind(Enum):
    """How sure a result is."""

    EARLY = "early"
    FINAL = "final"
    REVISED = "revised"
    CHANGED = "changed"


class Parts(Protocol):
    """Rows on the cluster in parts, each of which one of Spark's tasks reads where it is."""

    def map(self, function: Callable[[int, Iterator[pa.RecordBatch]], Made]) -> list[Made]:
        """Call a function with the number and the rows of every part, in tasks; what it returned, by number.

        The function and what it returns are pickled; a task that fails may be tried again, by another worker.
        """
        ...

    def share(self, count: int, function: Callable[[int, Callable[[], Iterator[pa.RecordBatch]]], Made]) -> list[Made]:
        """Call a function `count` times, in tasks, each time with the number and all rows, of which it takes its share.

        For who has to cut the rows in a way that does not depend on how they are stored.
        """
        ...


@dataclass(frozen=True)
class Results:
    """All result rows of `query` in `round`. `batches` may be read again; it never holds more than needed at once.

    `key` names the columns by which a result takes the place of an earlier one: window and groups, or the groups alone
    where values are shown as they change. Rows have none.

    Rows that are on the cluster can be taken without passing through this process: `frame` gives them as a DataFrame
    of Spark, and `parts` to functions that run in Spark's tasks. Where they are with the driver, both are None.
    """

    query: str
    round: int
    rows: int
    schema: pa.Schema
    batches: Callable[[], Iterator[pa.RecordBatch]]
    frame: Callable[[], DataFrame] | None = None
    parts: Parts | None = None
    key: tuple[str, ...] = ()

    @classmethod
    def of_table(cls, query: str, round: int, table: pa.Table) -> Results:
        """Results from a table in memory."""
        return cls(query, round, table.num_rows, table.schema, lambda: iter(table.to_batches()))

    def table(self) -> pa.Table:
        """All rows at once."""
        return pa.Table.from_batches(list(self.batches()), schema=self.schema)


Key = tuple[Any, ...]


class Grammar:
    """Reads the results of one query in the order in which they come, and refuses what may not come.

    `of_time`: whether its windows are windows of time; those over counts of rows are closed by numbers.
    """

    def __init__(self, groups: tuple[str, ...], of_time: bool = True) -> None:
        self._groups = groups
        self._of_time = of_time
        self._final: set[Key] = set()
        self._promised = NEVER
        self._exempt: tuple[Span, ...] = ()
        self._holes: tuple[Span, ...] = ()

    def read(self, results: pa.Table) -> None:
        """Read some result rows; `GrammarError` says what is wrong with the first that may not come."""
        names = ("kind", "window_start", "window_end", "heartbeat", *self._groups)
        columns = [_whole_numbers(results.column(name)) for name in names]
        for kind, start, end, heartbeat, *group in zip(*columns, strict=True):
            self._check(Kind(kind), start, end, heartbeat, tuple(map(repr, group)))

    def promise(self, closed: int, holes: Iterable[Span] = ()) -> None:
        """From now on windows with their last instant up to `closed` are over, but for those that meet a hole.

        >>> grammar = Grammar(groups=())
        >>> grammar.promise(29, holes=[Span(0, 10)])
        >>> grammar.read(pa.table({"kind": ["early"], "window_start": [0], "window_end": [10], "heartbeat": [29]}))
        >>> grammar.read(pa.table({"kind": ["final"], "window_start": [10], "window_end": [20], "heartbeat": [29]}))
        Traceback (most recent call last):
            ...
        eventide.errors.GrammarError: a final row of window 10 to 20 came after the promise that it is over
        """
        self._promised = max(self._promised, closed)
        self._exempt = self._holes = tuple(holes)

    def settle(self, holes: Iterable[Span] = ()) -> None:
        """From now on no more than this is set aside: what waited for the rest may be final.

        >>> grammar = Grammar(groups=())
        >>> grammar.promise(29, holes=[Span(0, 10)])
        >>> row = pa.table({"kind": ["final"], "window_start": [0], "window_end": [10], "heartbeat": [29]})
        >>> grammar.read(row)
        Traceback (most recent call last):
            ...
        eventide.errors.GrammarError: a final row of window 0 to 10 came while part of it is set aside
        >>> grammar.settle()
        >>> grammar.read(row)
        """
        self._holes = tuple(holes)

    def _check(self, kind: Kind, start: int, end: int, heartbeat: int | None, group: Key) -> None:
        key = (start, end, *group)
        window = f"window {start} to {end}" + (f" of group {', '.join(group)}" if group else "")
        known = key in self._final
        if kind is Kind.REVISED:
            # A late row may be the first of its group: then there was no final row of it, but the window is over.
            if not known and not (self._of_time and heartbeat is not None and end - 1 <= heartbeat):
                raise GrammarError(f"a revised row of {window} came before the final one")
            self._final.add(key)
            return
        if kind is Kind.CHANGED and heartbeat is not None and end <= heartbeat:
            raise GrammarError(f"a changed row of {window} came at heartbeat {heartbeat}, when it was over")
        article = "an early" if kind is Kind.EARLY else f"a {kind.value}"
        if known:
            raise GrammarError(f"{article} row of {window} came after the final one")
        if self._of_time:
            self._check_time(kind, start, end, heartbeat, f"{article} row of {window}")
        if kind is Kind.FINAL:
            self._final.add(key)

    def _check_time(self, kind: Kind, start: int, end: int, heartbeat: int | None, row: str) -> None:
        window = Span(start, end)
        exempt, held = (any(window.overlaps(hole) for hole in holes) for holes in (self._exempt, self._holes))
        if not exempt and end - 1 <= self._promised:
            raise GrammarError(f"{row} came after the promise that it is over")
        if kind is Kind.FINAL and held:
            raise GrammarError(f"{row} came while part of it is set aside")
        if kind is Kind.FINAL and heartbeat is not None and end - 1 > heartbeat:
            raise GrammarError(f"{row} came at heartbeat {heartbeat}, before its end")


def _whole_numbers(column: pa.ChunkedArray) -> list[Any]:
    """Times as whole numbers."""
    return list((column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist())


WINDOW = ("window_start", "window_end")


@dataclass(frozen=True)
class EarlyColumns:
    """The groups and values of a query that declares prods, and those of its values that are extrapolated."""

    groups: tuple[str, ...]
    values: tuple[str, ...]
    estimates: tuple[str, ...]

    @classmethod
    def of(cls, names: Sequence[str]) -> EarlyColumns | None:
        """Told by the names of all columns; None where there is nothing about early answers."""
        own = [name for name in names if name not in RESERVED]
        if POINT not in own or own.index(POINT) + 1 >= len(own) or own[own.index(POINT) + 1] != COMPLETENESS:
            return None
        first, added = own[: own.index(POINT)], own[own.index(POINT) + 2 :]
        values = tuple(name.removesuffix(ERROR) for name in added if name.endswith(ERROR))
        estimates = tuple(name.removesuffix(ESTIMATE) for name in added if not name.endswith(ERROR))
        expected = [*(f"{name}{ERROR}" for name in values), *(f"{name}{ESTIMATE}" for name in estimates)]
        if not values or added != expected or tuple(first[len(first) - len(values) :]) != values:
            return None
        return cls(tuple(first[: len(first) - len(values)]), values, estimates)

    @property
    def added(self) -> frozenset[str]:
        """The columns that are read as part of others."""
        of_values = {f"{name}{ERROR}" for name in self.values} | {f"{name}{ESTIMATE}" for name in self.estimates}
        return frozenset({POINT, COMPLETENESS} | of_values)

    def amount(self, value: str, error: float | None, estimate: str | None) -> str:
        """A value as one reads it, with its expected error, and what it will probably be."""
        close = "" if error is None else f" ± {share(error)}"
        return f"{value}{close}" + ("" if estimate is None else f", ~{estimate}")

    def kind(self, kind: str, completeness: float | None) -> str:
        """The kind of a row, and which share of its rows is there, as far as is known.

        >>> EarlyColumns((), ("n",), ()).kind("early", 0.79), EarlyColumns((), ("n",), ()).kind("final", None)
        ('early 79 %', 'final')
        """
        return kind if completeness is None else f"{kind} {share(completeness)}"

    def outlived(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        """The older rows, without early ones of windows and groups that newer rows tell of."""
        if older.num_rows == 0 or newer.num_rows == 0:
            return older
        newest = set(self._keys(newer))
        kinds = older.column("kind").to_pylist()
        kept = [
            kind != Kind.EARLY.value or key not in newest for kind, key in zip(kinds, self._keys(older), strict=True)
        ]
        return older if all(kept) else older.filter(pa.array(kept))

    def latest(self, table: pa.Table) -> pa.Table:
        """The rows of a table without early ones that a later row tells of again.

        >>> rows = {"kind": ["early", "early", "final"], "window_start": [0, 5, 0], "window_end": [5, 9, 5]}
        >>> EarlyColumns((), (), ()).latest(pa.table({**rows, "n": [1, 2, 3]})).column("n").to_pylist()
        [2, 3]
        """
        last = {key: at for at, key in enumerate(self._keys(table))}
        kinds = table.column("kind").to_pylist()
        kept = [kinds[at] != Kind.EARLY.value or last[key] == at for at, key in enumerate(self._keys(table))]
        return table.filter(pa.array(kept, pa.bool_()))

    def _keys(self, table: pa.Table) -> list[str]:
        # By way of text: groups may be lists or structs.
        columns = [table.column(name).to_pylist() for name in (*WINDOW, *self.groups)]
        return [repr(key) for key in zip(*columns, strict=True)]


def share(of_one: float) -> str:
    """A share in percent, as exact as one reads it.

    >>> share(0.2123), share(0.0123), share(2.0)
    ('21 %', '1.2 %', '200 %')
    """
    return f"{100 * of_one:.0f} %" if of_one >= 0.0995 else f"{100 * of_one:.1f} %"


def readings(early: EarlyColumns, table: pa.Table, texts: dict[str, list[str]]) -> dict[str, list[str]]:
    """The columns that are shown, by name: the kind, the groups, and the values with all that is said of them.

    `texts` has the columns as text. While it is not known how many rows are missing, nothing is extrapolated.
    """
    shares: dict[str, list[Any]] = {name: table.column(name).to_pylist() for name in early.added}
    rows = range(table.num_rows)
    shown = {"kind": [early.kind(texts["kind"][at], shares[COMPLETENESS][at]) for at in rows]}
    shown |= {name: texts[name] for name in early.groups}
    for name in early.values:
        about = shares.get(f"{name}{ESTIMATE}", [None] * table.num_rows)
        shown[name] = [
            early.amount(
                texts[name][at],
                shares[f"{name}{ERROR}"][at],
                None if about[at] is None or shares[COMPLETENESS][at] is None else rounded(about[at]),
            )
            for at in rows
        ]
    return shown


def rounded(estimate: float) -> str:
    """An estimate, with no more digits than it deserves.

    >>> rounded(773.1646), rounded(12.345), rounded(1234567.8)
    ('773', '12.3', '1234568')
    """
    return f"{estimate:.0f}" if abs(estimate) >= 100 else f"{estimate:.3g}"
