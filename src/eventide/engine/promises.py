"""Promises in the data: for whom each speaks, and how far.

Law: a promise names a time and, in the columns of the source, for whom it speaks; NULL in one of them stands for any
value (a punctuation `[time <= t, site = 3, sensor = *]`). Without any value it is for the whole stream, also for
sources that nobody knows yet; with some, for the sources known so far that have these. Where the stream declares it
(`Stream.promised`), a promise names a range of time, or of a column of the source, and NULL is an open end (`[since <=
time <= t, 3 <= site <= 7, sensor = *]`). A promise whose range is empty says nothing. Rows of the round in which a
promise comes are not behind it: they came together. (NiagaraST thesis, section 2.1: the values of a punctuation are
"predicates or patterns".)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eventide.eventtime.instant import EDGE
from eventide.eventtime.policies.punctuated import PunctuatedGenerator
from eventide.eventtime.punctuation import Punctuation

SEPARATOR = "\x1f"
"""Between the columns that name a source."""

NO_VALUE = "(null)"
"""What names a source where a column of it is NULL."""

Numbers = Callable[[pa.Table, tuple[str, ...]], NDArray[np.intp]]
"""The numbers of sources that these columns name; a source that is new gets one."""


def take_promises(
    generator: PunctuatedGenerator,
    promises: pa.Table,
    columns: tuple[str, ...],
    numbers: Numbers,
    names: Callable[[], pa.Array],
) -> NDArray[np.intp]:
    """Give promises to a heartbeat generator: `columns` name their sources, `__hi` is how far each reaches.

    `__from` is where it begins, and `__low0` and `__high0` are a range of the first of these columns. The answer are
    the sources that were spoken for, but for promises that are for everyone.

    >>> from eventide.eventtime.policies.punctuated import Punctuated
    >>> generator, known = Punctuated().start(), pa.array(["a", "b"])
    >>> promises = pa.table({"who": pa.array(["b", "a", None]), "__hi": [9, 3, 5]})
    >>> number = lambda table, columns: pc.index_in(table.column("who"), value_set=known).to_numpy()
    >>> take_promises(generator, promises, ("who",), number, lambda: known).tolist()
    [1, 0]
    >>> generator.heartbeats(0).by_source.tolist()
    [5, 9]
    """
    ranged = [name for name in promises.column_names if name.startswith(("__from", "__low", "__high"))]
    with_ranges = np.zeros(promises.num_rows, dtype=np.bool_)
    for name in ranged:
        with_ranges |= pc.is_valid(promises.column(name)).to_numpy()
    spoken_for = [np.zeros(0, dtype=np.intp)]
    for place in np.flatnonzero(with_ranges).tolist():
        spoken_for.append(_take_range(generator, promises.slice(place, 1), columns, numbers, names))
    promises = promises.filter(pa.array(~with_ranges))
    given = np.zeros(promises.num_rows, dtype=np.intp)
    for name in columns:
        given += pc.is_valid(promises.column(name)).to_numpy()
    for_all = promises.filter(pa.array(given == 0))
    if for_all.num_rows:
        generator.take(Punctuation(pc.max(for_all.column("__hi")).as_py()))
    for_one = promises.filter(pa.array((given > 0) & (given == len(columns))))
    if for_one.num_rows:
        spoken_for.append(numbers(for_one, columns))
        generator.take_all(spoken_for[-1], for_one.column("__hi").to_numpy())
    for_some = promises.filter(pa.array((given > 0) & (given < len(columns))))
    for place in range(for_some.num_rows):
        pattern = for_some.slice(place, 1)
        sources = _matching(pattern, columns, names())
        spoken_for.append(sources)
        generator.take_all(sources, np.full(len(sources), pattern.column("__hi")[0].as_py(), dtype=np.int64))
    return np.concatenate(spoken_for)


def _take_range(
    generator: PunctuatedGenerator,
    promise: pa.Table,
    columns: tuple[str, ...],
    numbers: Numbers,
    names: Callable[[], pa.Array],
) -> NDArray[np.intp]:
    """Give one promise that names a range; the answer are the sources that it speaks for, if it names any."""
    row = promise.to_pylist()[0]
    start, up_to = row.get("__from"), row["__hi"]
    if start is not None and start > up_to:
        return np.zeros(0, dtype=np.intp)
    start = None if start is None else max(start, -EDGE)
    edges = [row[name] for name in row if name.startswith(("__low", "__high"))]
    inside = any(edge is not None for edge in edges)
    if not inside and all(row[name] is None for name in columns):
        generator.take(Punctuation(up_to, start))
        return np.zeros(0, dtype=np.intp)
    whole = not inside and all(row[name] is not None for name in columns)
    sources = np.asarray(numbers(promise, columns) if whole else _matching(promise, columns, names()), dtype=np.intp)
    generator.take(Punctuation(up_to, start, tuple(sources.tolist())))
    return sources


def _matching(pattern: pa.Table, columns: tuple[str, ...], names: pa.Array) -> NDArray[np.intp]:
    """The sources that match a pattern of values and ranges; NULL in it matches any value, or is an open end."""
    parts = pc.split_pattern(names, SEPARATOR)
    fits = np.ones(len(names), dtype=np.bool_)
    for place, name in enumerate(columns):
        known = pc.list_element(parts, place)
        if (value := pattern.column(name).cast(pa.string())[0]).is_valid:
            fits &= pc.equal(known, value).to_numpy(zero_copy_only=False)
        for edge, compare in ((f"__low{place}", pc.greater_equal), (f"__high{place}", pc.less_equal)):
            if edge in pattern.column_names and (limit := pattern.column(edge)[0]).is_valid:
                typed = pc.if_else(pc.equal(known, NO_VALUE), None, known).cast(limit.type)
                fits &= pc.fill_null(compare(typed, limit), False).to_numpy(zero_copy_only=False)
    return np.flatnonzero(fits)


def source_names(table: pa.Table, columns: tuple[str, ...]) -> pa.Array:
    """One text for each row that tells its source apart from all others."""
    texts = [pc.fill_null(_text(table.column(name)), NO_VALUE) for name in columns]
    joined = texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, SEPARATOR)
    return joined.combine_chunks()


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column if column.type == pa.string() else column.cast(pa.string())
