"""Rows for the streams of a script, made up from their columns: enough for every query of the pages to have results.

A row every two seconds for twenty minutes, in order; sources and other texts take turns, numbers go up and down. What
is BOOLEAN is TRUE in one row of fifty: such a row promises or asks, and keeps its word.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

from eventide.plan.declared.stream import CHANGED_AT, REMOVED, Input, Stream

ROWS = 600


def rows_of(stream: Stream, number: int = 0, rows: int = ROWS) -> list[dict[str, object]]:
    """The rows of a stream; `number` tells several of them apart: each misses some of the numbers of the one before."""

    def value(name: str, kind: str, row: int) -> object:
        match kind:
            case "TIMESTAMP":
                minute, second = divmod(2 * row, 60)
                return f"2026-01-31 09:{minute:02}:{second:02}"
            case "STRING" if name in stream.source and stream.known:
                return stream.known[row % len(stream.known)]
            case "STRING":
                return f"{name} {row % 3}"
            case "BOOLEAN":
                return row % 50 == 49
            case "BIGINT" if name == stream.time:
                return row
            case "BIGINT" if name == "ms":
                return 1_767_225_600_000 + 1000 * row
            case "INT" | "DOUBLE":
                return row * 37 % (140 - 10 * number)
        raise AssertionError(f"no values are known for {name} {kind} of stream {stream.name!r}")

    return [
        {column.name: value(column.name, column.type, row) for column in stream.as_read.columns} for row in range(rows)
    ]


def message(row: dict[str, object]) -> dict[str, object]:
    """A change of a table, as Debezium writes it.

    >>> message({"k": 1, "changed_at": "1970-01-01 00:00:02", "removed": True})
    {'before': {'k': 1}, 'after': None, 'op': 'd', 'ts_ms': 2000}
    """
    of_table = {name: value for name, value in row.items() if name not in (CHANGED_AT, REMOVED)}
    at = datetime.fromisoformat(str(row[CHANGED_AT])).replace(tzinfo=UTC).timestamp()
    before, after = (of_table, None) if row[REMOVED] else (None, of_table)
    return {"before": before, "after": after, "op": "d" if row[REMOVED] else "u", "ts_ms": round(1000 * at)}


def write_rows(stream: Stream, folder: Path, number: int = 0, rows: int = ROWS) -> None:
    """The rows as the file that the stream's input would find."""
    given = stream.input
    assert isinstance(given, Input)
    assert (given.format, given.path is None) == ("json", False), f"write rows of {given} here"
    place = folder / str(given.path)
    place.mkdir(parents=True, exist_ok=True)
    # A row of a table for each text.
    count = 3 if stream.table is not None else rows
    made = (message(row) if stream.is_in_envelopes else row for row in rows_of(stream, number, count))
    lines = "".join(f"{json.dumps(row)}\n" for row in made)
    (place / "rows.json").write_text(lines, encoding="utf-8")
