"""Promises in the data: rows that say how far their source has come, given to the policy.

Laws. A promise names a time and, in the columns of the source, for whom it speaks; NULL in one of them stands for any
value (a punctuation `[time <= t, site = 3, sensor = *]`). Without any value it is for the whole stream, also for
sources that nobody knows yet; with some, for the sources known so far that have these. Rows of the round in which a
promise comes are not behind it: they came together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eventide.eventtime.punctuated import PunctuatedPacemaker
from eventide.eventtime.punctuation import Punctuation

SEPARATOR = "\x1f"
"""Between the columns that name a source."""

Numbers = Callable[[pa.Table, tuple[str, ...]], NDArray[np.intp]]
"""The numbers of sources that these columns name; a source that is new gets one."""


def take_promises(
    pacemaker: PunctuatedPacemaker,
    promises: pa.Table,
    columns: tuple[str, ...],
    numbers: Numbers,
    names: Callable[[], pa.Array],
) -> NDArray[np.intp]:
    """Give promises to a pacemaker: `columns` name their sources, `__hi` is how far each reaches.

    The answer are the sources that were spoken for, but for promises that are for everyone.

    >>> from eventide.eventtime.punctuated import Punctuated
    >>> pacemaker, known = Punctuated().start(), pa.array(["a", "b"])
    >>> promises = pa.table({"who": pa.array(["b", "a", None]), "__hi": [9, 3, 5]})
    >>> number = lambda table, columns: pc.index_in(table.column("who"), value_set=known).to_numpy()
    >>> take_promises(pacemaker, promises, ("who",), number, lambda: known).tolist()
    [1, 0]
    >>> pacemaker.heartbeats(0).by_source.tolist()
    [5, 9]
    """
    given = np.zeros(promises.num_rows, dtype=np.intp)
    for name in columns:
        given += pc.is_valid(promises.column(name)).to_numpy()
    for_all = promises.filter(pa.array(given == 0))
    if for_all.num_rows:
        pacemaker.take(Punctuation(pc.max(for_all.column("__hi")).as_py()))
    spoken_for = [np.zeros(0, dtype=np.intp)]
    for_one = promises.filter(pa.array((given > 0) & (given == len(columns))))
    if for_one.num_rows:
        spoken_for.append(numbers(for_one, columns))
        pacemaker.take_all(spoken_for[-1], for_one.column("__hi").to_numpy())
    for_some = promises.filter(pa.array((given > 0) & (given < len(columns))))
    for place in range(for_some.num_rows):
        pattern = for_some.slice(place, 1)
        sources = _matching(pattern, columns, names())
        spoken_for.append(sources)
        pacemaker.take_all(sources, np.full(len(sources), pattern.column("__hi")[0].as_py(), dtype=np.int64))
    return np.concatenate(spoken_for)


def _matching(pattern: pa.Table, columns: tuple[str, ...], names: pa.Array) -> NDArray[np.intp]:
    """The sources that have the values of a pattern; NULL in it stands for any."""
    parts = pc.split_pattern(names, SEPARATOR)
    fits = np.ones(len(names), dtype=np.bool_)
    for place, name in enumerate(columns):
        if (value := pattern.column(name).cast(pa.string())[0]).is_valid:
            fits &= pc.equal(pc.list_element(parts, place), value).to_numpy(zero_copy_only=False)
    return np.flatnonzero(fits)
