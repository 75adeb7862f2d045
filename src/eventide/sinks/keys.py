"""By which columns a result takes the place of an earlier one, and what that leaves of several.

Laws. *Key*: the columns that the user named, or else window and groups; rows have neither, so their key has to be
named. The query belongs to every key, because several may write into one place. *Newest*: of rows with the same key the
last one stays; NULL is the same as NULL.

>>> rows = pa.table({"query": ["q"] * 3, "k": ["a", None, None], "n": [1, 2, 3]})
>>> newest_of(rows, ("query", "k")).column("n").to_pylist()
[1, 3]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide.errors import DeclarationError, EngineError
from eventide.results.results import Results
from eventide.sinks.sink import MODES

UPSERT = MODES[0]
"""The mode in which the newest result of each key stays."""


def check_mode(mode: str | None, key: Sequence[str]) -> None:
    """Refuse a mode that there is not, and a key where every result stays.

    >>> check_mode("overwrite", ())
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: there is no mode 'overwrite': choose upsert, append or replace round
    """
    if mode is not None and mode not in MODES:
        raise DeclarationError(f"there is no mode {mode!r}: choose {', '.join(MODES[:-1])} or {MODES[-1]}")
    if key and mode not in (None, UPSERT):
        raise DeclarationError(f"a key is for the mode upsert, and {mode} keeps every result: leave it out")


def key_of(results: Results, named: Sequence[str] = ()) -> tuple[str, ...]:
    """The columns of which there is to be each combination once: the query, and those named or window and groups."""
    key = named or results.key
    if not key:
        raise EngineError(
            f"the rows of {results.query!r} have no window and no groups to be known by: name their key "
            "(OPTIONS (key 'id')), or take the mode append"
        )
    for name in key:
        if name not in results.schema.names:
            has = ", ".join(results.schema.names)
            raise EngineError(f"the key {name!r} is no column of {results.query!r}; it has {has}")
    return ("query", *(name for name in key if name != "query"))


def newest_of(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """The last row of each key, in the order in which they stand."""
    if not rows.num_rows:
        return rows
    place = "eventide_place"
    keys = pa.table([_comparable(rows.column(name)) for name in key], names=list(key))
    numbered = keys.append_column(place, pa.array(range(rows.num_rows), pa.int64()))
    last = numbered.group_by(list(key)).aggregate([(place, "max")]).column(f"{place}_max")
    return rows if len(last) == rows.num_rows else rows.take(last.take(pc.sort_indices(last)))


def _comparable(values: Any) -> Any:
    """A column by which Arrow can group; lists and structs go by their text."""
    return pa.array(map(repr, values.to_pylist())) if pa.types.is_nested(values.type) else values
