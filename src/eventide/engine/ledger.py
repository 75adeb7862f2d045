"""Rows that did not go into an answer: the late table and the rejects table, as Parquet, by round.

Law: a row that a query wanted and could not take is in the late table, with its source, the heartbeat it came behind
and by how much; a row that no query can take is in the rejects table, with the reason. A round run again writes the
same file.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.answers import time_type
from eventide.engine.storage import Storage
from eventide.engine.stream_time import source_names
from eventide.engine.taken import Answer
from eventide.eventtime.instant import Instants
from eventide.plan.bound import Bound

LATE, REJECTS = "late", "rejects"
ROUND = re.compile(r"(\d+)\.parquet$")


class Ledger:
    """The two tables of a checkpoint."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def late(self, stream: str, round: int, parts: list[pa.Table]) -> None:
        """Write the late rows of a round."""
        if parts:
            self._write(f"{LATE}/{stream}/{round:010d}.parquet", pa.concat_tables(parts))

    def rejects(self, stream: str, round: int, parts: list[pa.Table]) -> None:
        """Write the rejected rows of a round."""
        if parts:
            self._write(f"{REJECTS}/{stream}/{round:010d}.parquet", pa.concat_tables(parts, promote_options="default"))

    def rewind(self, last: int) -> None:
        """Rounds after `last` have not happened."""
        for folder in (LATE, REJECTS):
            for name in self._storage.list(folder):
                found = ROUND.search(name)
                if found is not None and int(found[1]) > last:
                    self._storage.remove(name)

    def _write(self, name: str, table: pa.Table) -> None:
        # Not loaded with the engine: most runs have nothing to write here.
        import pyarrow.parquet as pq

        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        self._storage.write(name, sink.getvalue())


def late_rows(query: Bound, rows: pa.Table, round: int, heartbeat: int | Instants) -> pa.Table:
    """The late rows of a query, each with why it is late; the heartbeat of all, or one for each."""
    stream, count = query.stream, rows.num_rows
    kind = time_type(stream.time_kind)
    times = rows.column("__t")
    behind = pa.repeat(pa.scalar(heartbeat, pa.int64()), count) if isinstance(heartbeat, int) else pa.array(heartbeat)
    named = source_names(rows, stream.source) if stream.source else pa.nulls(count, pa.string())
    added: dict[str, Any] = {
        "_query": pa.repeat(pa.scalar(query.told_as), count),
        "_source": named,
        "_time": times.cast(kind),
        "_heartbeat": behind.cast(kind),
        "_late_by": pc.subtract(behind, times),
        "_reason": pa.repeat(pa.scalar("its pane was closed"), count),
        "_round": pa.repeat(pa.scalar(round, pa.int64()), count),
    }
    table = rows.drop_columns(["__t"])
    for name, column in added.items():
        table = table.append_column(name, column)
    return table


def rejected_rows(rows: pa.Table, round: int) -> pa.Table:
    """Rejected rows with the round in which they came."""
    return rows.append_column("_round", pa.repeat(pa.scalar(round, pa.int64()), rows.num_rows))


def lost_values(query: Bound, answer: Answer, round: int) -> pa.Table | None:
    """Values that could not be told (a sum that does not fit its type), one row each, or None."""
    if not query.checks and not answer.lossy:
        return None
    reasons = []
    for part in answer.parts():
        for row in part.filter(pc.is_valid(part.column("__lost"))).to_pylist():
            groups = "".join(f", {key.name}={row[key.name]}" for key in query.keys)
            where = f"query {query.query.name}, window {row['window_start']} to {row['window_end']}"
            reasons.append(f"{row['__lost']} ({where}{groups})")
    if not reasons:
        return None
    return pa.table({"_reason": reasons, "_round": pa.repeat(pa.scalar(round, pa.int64()), len(reasons))})


def lost_rows(operator: str, answer: Answer, round: int) -> pa.Table | None:
    """Values of an operator's rows that could not be told, one row each, or None."""
    reasons = []
    for part in answer.parts() if answer.lossy else ():
        for row in part.filter(pc.is_valid(part.column("__lost"))).to_pylist():
            span = f"{row['window_start']} to {row['window_end']}"
            reasons.append(f"{row['__lost']} (query {operator}, a row of {span})")
    if not reasons:
        return None
    return pa.table({"_reason": reasons, "_round": pa.repeat(pa.scalar(round, pa.int64()), len(reasons))})
