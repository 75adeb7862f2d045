"""Side tables: rows that did not go into a result, as Parquet files of the checkpoint, by round.

Law: a row that a query wanted and could not take is in the late table, with its source, the heartbeat it came behind
and by how much; one that misses some of its windows is there too, and says which were answered without it; a row that
no query can take is in the rejects table, with the reason. A round run again takes the place of what it wrote before.
Rows that are with the driver are `ROUND.parquet`; those on the cluster stay in the files that Spark's executors wrote,
which get the names `ROUND-0.parquet` and so on: the driver reads none of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.operators.operator import Output
from eventide.engine.relations.executor import Executor, Statement, one_row
from eventide.engine.relations.relation import Layout, Relation
from eventide.engine.relations.segments import Segments
from eventide.plan.bound.query import BoundQuery
from eventide.plan.declared.stream import Stream, TimeKind
from eventide.plan.expressions.columns import Column, literal, quoted
from eventide.plan.sql.stream_rows import MALFORMED
from eventide.storage.storage import Storage

LATE, REJECTS = "late", "rejects"
ROUND = re.compile(r"(\d+)(?:-\d+)?\.parquet$")
ANSWERED, CLOSED = "a window that holds it was answered", "its time was closed"
REASONS = Statement("SELECT _reason, count(*) AS n FROM found GROUP BY _reason")
LOST = Statement("SELECT * FROM found WHERE __lost IS NOT NULL")


class SideTables:
    """Writes the late table and the rejects table of a checkpoint."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._round = -1
        self._written: set[str] = set()

    def write(self, kind: str, stream: str, round: int, parts: Sequence[Relation]) -> None:
        """Write the late, or the rejected, rows of a round."""
        name = f"{kind}/{stream}/{round:010d}"
        self._forget(name, round)
        tables = [part.table for part in parts if part.table is not None]
        if tables:
            whole = pa.concat_tables(tables, promote_options="default")
            self._write(f"{name}.parquet", whole)
        files = (file for part in parts if part.table is None for file in part.files)
        for number, file in enumerate(files):
            self._storage.copy(file.name, f"{name}-{number}.parquet")
            self._written.add(f"{name}-{number}.parquet")

    def _forget(self, name: str, round: int) -> None:
        """A round that failed and is run again may have other files, and fewer."""
        if round != self._round:
            self._round, self._written = round, set()
        for file in [file for file in self._written if file.startswith((f"{name}.", f"{name}-"))]:
            self._storage.remove(file)
            self._written.discard(file)

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
        pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
        self._storage.write(name, sink.getvalue())
        self._written.add(name)


def rejects_layout(stream: Stream) -> Layout:
    """The columns of rejected rows."""
    added = (Column(MALFORMED, "STRING"), Column("_reason", "STRING"), Column("_round", "BIGINT"))
    return Layout((*stream.columns, *added))


def late_layout(stream: Stream) -> Layout:
    """The columns of late rows."""
    time = "BIGINT" if stream.time_kind is TimeKind.SEQUENCE else "TIMESTAMP"
    added = {"_query": "STRING", "_source": "STRING", "_time": time, "_heartbeat": time, "_late_by": "BIGINT"}
    added |= {"_answered": time, "_counted": "BOOLEAN", "_reason": "STRING", "_round": "BIGINT"}
    return Layout((*stream.columns, *(Column(name, kind) for name, kind in added.items())))


def side_rows(
    executor: Executor,
    stream: Stream,
    sql: str,
    layout: Layout,
    most: int,
    round: int,
    tables: Mapping[str, pa.Table] | None = None,
) -> Relation:
    """Rows of a round for a side table, with its number; `most`: so many there can be."""
    text, given = with_round(sql), {**(tables or {}), "constants": one_row(round=round)}
    if executor.fits(most * layout.row_bytes):
        return executor.of_table(layout, executor.backend.ask(text, given))
    return executor.stored(stream, text, False, layout, given)


def with_round(sql: str) -> str:
    """The rows of a statement with the number of their round, which the table `added` has."""
    return f"SELECT found.*, constants.__round AS _round FROM ({sql}) found CROSS JOIN constants"


def late_rows_text(query: BoundQuery, sql: str, own: bool, of_windows: bool) -> str:
    """Late rows with why they are: the heartbeat of all, in the table `beat`, or a later one of their `own` source.

    `names` has the names of their sources. `of_windows`: they are late for windows that were answered.
    """
    stream = query.stream
    instant = "{}" if stream.time_kind is TimeKind.SEQUENCE else "timestamp_micros({})"
    behind = "greatest(beat.__heartbeat, late.__behind)" if own else "beat.__heartbeat"
    added = {
        "_query": literal(query.display_name),
        "_source": "names.__name" if stream.source else "CAST(NULL AS STRING)",
        "_time": instant.format("late.__t"),
        "_heartbeat": instant.format(behind),
        "_late_by": f"{behind} - late.__t",
        "_answered": instant.format("late.__answered" if of_windows else "CAST(NULL AS BIGINT)"),
        "_counted": "late.__counted",
        "_reason": f"'{ANSWERED if of_windows else CLOSED}'",
    }
    same = " AND ".join(f"late.{quoted(name)} <=> names.__s{place}" for place, name in enumerate(stream.source))
    columns = [f"late.{quoted(column.name)}" for column in stream.columns]
    columns += [f"{value} AS {name}" for name, value in added.items()]
    join = f" LEFT JOIN names ON {same}" if stream.source else ""
    return f"SELECT {', '.join(columns)} FROM ({sql}) late CROSS JOIN beat{join}"


def lost_values(executor: Executor, query: BoundQuery, output: Output, round: int) -> Relation | None:
    """Values of results that are missing (a sum that does not fit its type), one row each, or None."""
    reasons = []
    for row in _lost(executor, (rows for _, rows in output.by_kind), bool(query.checks)):
        groups = "".join(f", {key.name}={row[key.name]}" for key in query.keys)
        where = f"query {query.query.name}, window {row['window_start']} to {row['window_end']}"
        reasons.append(f"{row['__lost']} ({where}{groups})")
    return _reasons(reasons, round)


def lost_rows(executor: Executor, operator: str, output: Output, round: int) -> Relation | None:
    """Values of an operator's rows that are missing, one row each, or None."""
    reasons = []
    for row in _lost(executor, (output.final,), False):
        reasons.append(f"{row['__lost']} (query {operator}, a row of {row['window_start']} to {row['window_end']})")
    return _reasons(reasons, round)


def reasons_of(executor: Executor, rejected: Iterable[Sequence[Relation]]) -> dict[str, int]:
    """How many rows were rejected, by reason."""
    found: dict[str, int] = {}
    for part in (part for parts in rejected for part in parts):
        for row in executor.table(REASONS, {"found": part}).to_pylist():
            found[row["_reason"]] = found.get(row["_reason"], 0) + row["n"]
    return found


def late_by_source(late: Mapping[str, Sequence[Relation]]) -> dict[str, dict[str, int]]:
    """How many late rows each source had, by stream, of those that are with the driver.

    >>> layout = Layout((Column("_source", "STRING"),))
    >>> late_by_source({"s": [Relation.of_table(layout, pa.table({"_source": ["a", "b", "a"]}))]})
    {'s': {'a': 2, 'b': 1}}
    """
    found: dict[str, dict[str, int]] = {}
    for stream, parts in late.items():
        for part in parts:
            if part.table is not None and part.rows:
                counts = found.setdefault(stream, {})
                for value in pc.value_counts(part.table.column("_source")).to_pylist():
                    name = stream if value["values"] is None else value["values"]
                    counts[name] = counts.get(name, 0) + value["counts"]
    return found


def _lost(executor: Executor, outputs: Iterable[Segments], always: bool) -> Iterable[dict[str, Any]]:
    for output in outputs:
        for part in output.parts:
            if part.table is not None and (always or part.lossy):
                yield from part.table.filter(pc.is_valid(part.table.column("__lost"))).to_pylist()
            elif always or part.lossy:
                yield from executor.table(LOST, {"found": part}).to_pylist()


def _reasons(reasons: Sequence[str], round: int) -> Relation | None:
    if not reasons:
        return None
    table = pa.table({"_reason": reasons, "_round": pa.repeat(pa.scalar(round, pa.int64()), len(reasons))})
    return Relation.of_table(Layout((Column("_reason", "STRING"), Column("_round", "BIGINT"))), table)
