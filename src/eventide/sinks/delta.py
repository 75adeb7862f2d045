"""Results in a Delta table, exactly once.

Law: a round is one commit of the table, with the transaction of an application (`txn`): it names the query and its
checkpoint, and its version is the round. So a round is there as a whole or not at all, and one that comes again takes
the place of what was there. Columns that are new are added to the table.

With the mode `append` every result stays, with its `kind`: whoever reads the table takes final and revised rows, or the
newest of each window. With `upsert` (a MERGE) the table has one row for each key, by default window and groups: an
early result gives way to the final one, and that to a revised one. What a round has replaced is found in the version of
the table before it, so rounds can be taken back as long as that version is there.

Many rows that are on the cluster and are appended do not come here: Spark's tasks write them as Parquet files into the
folder of the table, and one commit makes them part of it. No package of Spark's is needed. Files of a round that died
stay in the folder and are no part of the table, until somebody vacuums it.

>>> import tempfile
>>> import pyarrow as pa
>>> place = f"{tempfile.mkdtemp()}/speeds"
>>> sink, rows = Delta(place), pa.table({"query": ["speeds"], "round": [3], "mean": [51.5]})
>>> sink.emit(Results.of_table("speeds", 3, rows))
>>> sink.emit(Results.of_table("speeds", 3, rows))
>>> DeltaTable(place).to_pyarrow_table().select(["round", "mean"]).to_pylist()
[{'round': 3, 'mean': 51.5}]
>>> sink.rewind("speeds", last=2)
>>> DeltaTable(place).to_pyarrow_table().num_rows
0
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from eventide.errors import DeclarationError, EngineError, first_line
from eventide.results.results import Results
from eventide.sinks.committed_table import LARGE, CommittedTable
from eventide.sinks.directory import can_be_given
from eventide.sinks.folder import folder_at
from eventide.sinks.keys import key_of, newest_of
from eventide.sinks.sink import Owner
from eventide.storage.storage import Storage

try:
    from deltalake import CommitProperties, DeltaTable, QueryBuilder, Transaction, write_deltalake
    from deltalake.exceptions import DeltaError
    from deltalake.transaction import AddAction
except ModuleNotFoundError as missing:  # pragma: no cover - the tests have it
    raise DeclarationError("INTO delta needs deltalake: pip install 'eventide[delta]'") from missing

MARKS = "_eventide"
"""The folder in a table that says whose the results are; Delta reads nothing that begins with `_`."""


class Delta(CommittedTable):
    """Writes results into the Delta table at a local path, or at a URI that `deltalake` knows (s3://, abfss://, gs://).

    Law: each round is one commit, and replaces what the same round wrote before.

    `mode` is `append` or `upsert`; `key` names the columns by which an upsert tells rows apart, if these are not window
    and groups.
    """

    def __init__(
        self, path: str | os.PathLike[str], mode: str = "append", *, key: Sequence[str] = (), large: int = LARGE
    ) -> None:
        super().__init__(mode, key, large)
        self._path = os.fspath(path)
        self._owners: dict[str, str] = {}

    def _has_round(self, query: str, round: int) -> bool:
        return self._rows(f"{_of(query)} AND round = {round}") > 0

    def _take_round_back(self, query: str, round: int) -> None:
        self._take_back(query, round - 1, f"round = {round}")

    def _write(self, results: Results, again: bool) -> None:
        """Add the rows, in place of those of the same round."""
        batches = pa.RecordBatchReader.from_batches(results.schema, _nonempty(results))
        commit = self._commit(results.query, results.round)
        if again:
            same = f"{_of(results.query)} AND round = {results.round}"
            write_deltalake(
                self._path, batches, mode="overwrite", predicate=same, schema_mode="merge", commit_properties=commit
            )
        else:
            write_deltalake(self._path, batches, mode="append", schema_mode="merge", commit_properties=commit)

    def rewind(self, query: str, last: int) -> None:
        """Delete the results of later rounds."""
        with self._translated(f"the results of {query!r} after round {last} cannot be deleted from {self.where}"):
            if self._rows(f"{_of(query)} AND round > {last}"):
                self._take_back(query, last, f"round > {last}")
        self._newest[query] = last

    # Upserts

    def _put_round(self, results: Results, again: bool) -> None:
        """Put rows in the place of those with the same key."""
        if again:
            self._take_back(results.query, results.round - 1, f"round = {results.round}", results)
            return
        key = key_of(results, self._key)
        if not DeltaTable.is_deltatable(self._path):
            write_deltalake(self._path, results.schema.empty_table())
        self._put(newest_of(results.table(), key), key, results.query, results.round)

    def _put(self, rows: pa.Table, key: Sequence[str], query: str, round: int, undone: str | None = None) -> None:
        """Put rows in the place of those with the same key; of what is undone, goes what is not replaced."""
        nulls = {name for name in key if rows.column(name).null_count}
        same = " AND ".join(f'(o."{n}" {"IS NOT DISTINCT FROM" if n in nulls else "="} n."{n}")' for n in key)
        commit = self._commit(query, round, key)
        merge = self._table().merge(rows, same, "n", "o", merge_schema=True, commit_properties=commit)
        merge = merge.when_matched_update_all().when_not_matched_insert_all()
        if undone is not None:
            merge = merge.when_not_matched_by_source_delete(f"o.{_of(query)} AND o.{undone}")
        merge.execute()

    def _take_back(self, query: str, last: int, undone: str, results: Results | None = None) -> None:
        """Undo rounds after `last`, and put the rows of one of them in their place, in one commit."""
        history = self._table().history()
        commits = [one for one in history if one.get("eventide.query") == query]
        written = json.loads(commits[0].get("eventide.key", "[]")) if commits else []
        before = next((one["version"] for one in commits if int(one["eventide.round"]) <= last), None)
        if written and before is None and history[-1]["version"] > 0:
            raise EngineError(
                f"{self.where} does not remember what it was before round {last + 1} of {query!r}, because its log was "
                "cleaned: start anew with --replace"
            )
        rows = self._replaced(query, last, undone, written, before) if written and before is not None else None
        if results is not None:
            key = key_of(results, self._key)
            new = newest_of(results.table(), key)
            rows = new if rows is None else newest_of(pa.concat_tables([rows, new], promote_options="default"), key)
            self._put(rows, key, query, results.round, undone)
        elif rows is not None and rows.num_rows:
            self._put(rows, written, query, last, undone)
        else:
            self._table().delete(f"{_of(query)} AND {undone}", commit_properties=self._commit(query, last))

    def _replaced(self, query: str, last: int, undone: str, key: Sequence[str], version: int) -> pa.Table:
        """What the rounds that are undone have replaced, as it was in the version before them."""
        now, before = self._table(), DeltaTable(self._path, version=version)
        same = " AND ".join(f'(now."{name}" IS NOT DISTINCT FROM before."{name}")' for name in key)
        asked = QueryBuilder().register("now", now).register("before", before)
        rows = pa.table(
            asked.execute(
                f"SELECT before.* FROM before JOIN (SELECT * FROM now WHERE {_of(query)} AND {undone}) AS now "
                f"ON {same} WHERE before.{_of(query)} AND before.round <= {last}"
            )
        )
        there = now.to_pyarrow_dataset().schema
        return rows.cast(pa.schema([there.field(name) for name in rows.column_names]))

    @property
    def where(self) -> str:
        """The table, for messages."""
        return f"the Delta table {self._path}"

    def holds(self, query: str) -> bool:
        """Whether there are results of a query."""
        with self._translated(f"{self.where} cannot be read"):
            return self._rows(_of(query)) > 0

    def owner_of(self, query: str) -> Owner | None:
        """Whose the results of a query are; None where nobody has claimed them."""
        storage, name = Storage.at(self._path, make=False), _mark(query)
        if not storage.exists(name):
            return None
        found = json.loads(storage.read(name))
        return Owner(found["id"], found["checkpoint"])

    def claim(self, query: str, owner: Owner) -> None:
        """Mark the results of a query as those of an owner, and of no other."""
        text = json.dumps({"id": owner.id, "checkpoint": owner.checkpoint})
        Storage.at(self._path).write(_mark(query), text.encode())
        self._owners[query] = owner.id

    def _table(self) -> DeltaTable:
        return DeltaTable(self._path)

    def _rows(self, predicate: str) -> int:
        """How many rows of the table this holds for."""
        return self._asked("count(*)", predicate) or 0

    def _newest_of(self, query: str) -> int:
        """The newest round of a query that is there; -1 where there is none."""
        found = self._asked("max(round)", _of(query))
        return -1 if found is None else found

    def _asked(self, value: str, predicate: str) -> int | None:
        if not DeltaTable.is_deltatable(self._path):
            return None
        table = self._table()
        if "round" not in {field.name for field in table.schema().fields}:
            raise EngineError(f"{self.where} has no column `round`: it is none of Eventide's. Name another place")
        asked = QueryBuilder().register("results", table)
        found = pa.table(asked.execute(f"SELECT {value} AS n FROM results WHERE {predicate}"))
        answer: int | None = found.column("n")[0].as_py()
        return answer

    def _commit(self, query: str, round: int, key: Sequence[str] = ()) -> CommitProperties:
        """What every commit says of itself: whose round it is, and by which key it has replaced rows."""
        application = f"eventide {self._owners.get(query, '')} {query}"
        said = {"eventide.query": query, "eventide.round": str(round)}
        if key:
            said["eventide.key"] = json.dumps(key)
        return CommitProperties(app_transactions=[Transaction(application, round)], custom_metadata=said)

    def _gathered(self, results: Results) -> bool:
        """Have the results written where they are, and make them part of the table; False where that cannot be."""
        if results.parts is None or results.rows <= self._large or self._tasks_fail or "://" in self._path:
            return False
        if not DeltaTable.is_deltatable(self._path):
            write_deltalake(self._path, results.schema.empty_table())
        table = self._table()
        if {field.name for field in table.schema().fields} != set(results.schema.names):
            # Other columns than those of before: the table takes them from what this process writes.
            return False
        folder = folder_at(self._path)
        if not can_be_given(folder):
            return False
        name = f"{quote(results.query, safe='')}-{results.round:010d}"
        if not self._by_tasks(results, results.schema, folder, name):
            return False
        added = [_added(self._path, f"{name}/{part}") for part in sorted(os.listdir(os.path.join(self._path, name)))]
        table.create_write_transaction(
            [one for one in added if one is not None],
            mode="append",
            schema=table.schema(),
            commit_properties=self._commit(results.query, results.round),
        )
        return True

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        try:
            yield
        except (DeltaError, OSError, pa.ArrowException) as error:
            raise EngineError(f"{what}: {first_line(error)}") from error


def _of(query: str) -> str:
    """The rows of a query.

    >>> _of("o'clock")
    "query = 'o''clock'"
    """
    escaped = query.replace("'", "''")
    return f"query = '{escaped}'"


def _mark(query: str) -> str:
    return f"{MARKS}/{quote(query, safe='')}.json"


def _nonempty(results: Results) -> Iterator[pa.RecordBatch]:
    return (batch for batch in results.batches() if batch.num_rows)


def _added(folder: str, name: str) -> AddAction | None:
    """A file as a part of the table; one without rows is none."""
    path = os.path.join(folder, name)
    rows = pq.read_metadata(path).num_rows
    if not rows:
        return None
    there = os.stat(path)
    changed = there.st_mtime_ns // 1_000_000
    return AddAction(name, there.st_size, {}, changed, True, json.dumps({"numRecords": rows}))
