"""Sinks that another process can make, and how anyone reads what they have written."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eventide.sinks import Callback

Rows = list[dict[str, Any]]


def parquet_rows(file: Path) -> Rows:
    rows: Rows = pq.read_table(file).to_pylist()
    return rows


def json_rows(file: Path) -> Rows:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n")[:-1]]


def csv_rows(file: Path) -> Rows:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


READERS: dict[str, Callable[[Path], Rows]] = {"parquet": parquet_rows, "json": json_rows, "csv": csv_rows}


def directory_rows(folder: Path, format: str, query: str) -> Rows:
    """What a reader of the directory sees: files that are not hidden; all of them, to see if one is too many."""
    rows = [row for file in visible(folder) for row in READERS[format](file)]
    return [row for row in rows if row["query"] == query]


def visible(folder: Path) -> list[Path]:
    """The files of a directory that are not hidden, and the parts of those that are folders."""
    shown = sorted(file for file in folder.glob("*") if not file.name.startswith((".", "_")))
    return [part for file in shown for part in (visible(file) if file.is_dir() else [file])]


def sqlite_sink(database: str) -> Callback:
    """A callback that keeps results in a database, each round in one transaction."""

    def store(query: str, round: int, batches: pa.RecordBatchReader) -> None:
        with closing(sqlite3.connect(database)) as db, db:
            db.execute("CREATE TABLE IF NOT EXISTS results (query, round, device, total)")
            db.execute("DELETE FROM results WHERE query = ? AND round = ?", [query, round])
            for batch in batches:
                db.executemany("INSERT INTO results VALUES (:query, :round, :device, :total)", batch.to_pylist())

    return Callback(store)


def sqlite_rows(database: str, query: str) -> Rows:
    with closing(sqlite3.connect(database)) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute("SELECT * FROM results WHERE query = ?", [query])]
