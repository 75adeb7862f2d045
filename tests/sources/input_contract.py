"""What every input of the local engine must keep; each test of an input runs these."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from eventide.sources.local_input import LocalInput

Open = Callable[[], LocalInput]


def drained(given: LocalInput, max_rows: int = 1000) -> list[dict[str, Any]]:
    """All rows that are there now."""
    rows: list[dict[str, Any]] = []
    while (table := given.take(max_rows, 0.0)) is not None:
        assert 0 < table.num_rows <= max_rows
        rows += table.to_pylist()
    assert given.caught_up
    return rows


def continues_from_every_position(open_input: Open, max_rows: int) -> list[dict[str, Any]]:
    """Stop after every `take`, continue in a new input from the position: always the same rows in all."""
    whole = drained(open_input(), max_rows)
    before: list[dict[str, Any]] = []
    given = open_input()
    while True:
        position = json.loads(json.dumps(given.position()))
        given.close()
        again = open_input()
        again.seek(position)
        assert before + drained(again, max_rows) == whole
        given = open_input()
        given.seek(position)
        table = given.take(max_rows, 0.0)
        if table is None:
            assert before == whole
            return whole
        before += table.to_pylist()


def columns_of(table: pa.Table) -> dict[str, list[Any]]:
    """A table without its `_malformed` column, which must hold nothing."""
    assert table.column("_malformed").null_count == table.num_rows
    found: dict[str, list[Any]] = table.drop_columns("_malformed").to_pydict()
    return found
