"""The rows of a step as they are written, as a table with the columns of their stream.

Law: a row is a list with a value for every column, or a mapping of some columns to values, the others being NULL;
`{malformed: text}` is a row that its source could not read, which has a value in no column.

>>> from eventide.plan.declared.stream import Stream, columns
>>> s = Stream("s", columns("t BIGINT, v INT"), time="t")
>>> table_of([[1, 5], {"t": 2}, {"malformed": "2;x"}], s).to_pydict()
{'t': [1, 2, None], 'v': [5, None, None], '_malformed': [None, None, '2;x']}
>>> table_of([[1, "five"]], s)
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: column 'v' of stream 's': 'five' is no value of a column of type int32
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from eventide.engine.relations.arrow_types import arrow_type
from eventide.errors import DeclarationError
from eventide.plan.declared.stream import Stream
from eventide.plan.sql.reduce import MALFORMED
from eventide.testing.transcript_values import converted


def table_of(written: Any, stream: Stream) -> pa.Table:
    """The rows as a table, `_malformed` the last of its columns."""
    if not isinstance(written, list):
        raise DeclarationError(f"the rows of stream {stream.name!r} must be a list, not {written!r}")
    rows = [_row(row, stream) for row in written]
    columns = {column.name: arrow_type(column.type) for column in stream.columns} | {MALFORMED: pa.string()}
    arrays = {}
    for name, kind in columns.items():
        try:
            arrays[name] = pa.array([converted(row.get(name), kind) for row in rows], type=kind)
        except (DeclarationError, pa.ArrowException, OverflowError) as error:
            raise DeclarationError(f"column {name!r} of stream {stream.name!r}: {error}") from error
    return pa.table(arrays)


def _row(written: Any, stream: Stream) -> dict[str, Any]:
    names = [column.name for column in stream.columns]
    if isinstance(written, dict):
        if list(written) == ["malformed"] and "malformed" not in names:
            return {MALFORMED: str(written["malformed"])}
        return {stream.column(name).name: value for name, value in written.items()}
    if not isinstance(written, list) or len(written) != len(names):
        raise DeclarationError(f"the row {written!r} of stream {stream.name!r} is not a list of {', '.join(names)}")
    return dict(zip(names, written, strict=True))
