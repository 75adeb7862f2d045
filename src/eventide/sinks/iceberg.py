"""Results in an Iceberg table, exactly once.

Law: a round is one commit of the table, whose snapshots name the query and the round in their summary
(`eventide.query`, `eventide.round`). So a round is there as a whole or not at all, and one that comes again takes the
place of what was there. Columns that are new are added to the table.

With the mode `append` every result stays, with its `kind`: whoever reads the table takes final and revised rows, or the
newest of each window. With `upsert` the table has one row for each key, by default window and groups: an early result
gives way to the final one, and that to a revised one. What a round has replaced is found in the snapshot before it, so
rounds can be taken back as long as that one has not expired.

Many rows that are on the cluster and are appended do not come here: Spark's tasks write them as Parquet files into the
folder of the table, and one commit makes them part of it. No package of Spark's is needed, which Iceberg has for few
versions. Files of a round that died stay in the folder and are no part of the table.

>>> import tempfile
>>> import pyarrow as pa
>>> sink = Iceberg("lake.speeds", warehouse=tempfile.mkdtemp())
>>> rows = pa.table({"query": ["speeds"], "round": [3], "mean": [51.5]})
>>> sink.emit(Results.of_table("speeds", 3, rows))
>>> sink.emit(Results.of_table("speeds", 3, rows))
>>> sink.rows("speeds").select(["round", "mean"]).to_pylist()
[{'round': 3, 'mean': 51.5}]
>>> sink.rewind("speeds", last=2)
>>> sink.rows("speeds").num_rows
0
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from eventide.errors import DeclarationError, EngineError, EventideError, first_line
from eventide.results.results import Results
from eventide.sinks.committed_table import LARGE, CommittedTable
from eventide.sinks.directory import can_be_given
from eventide.sinks.folder import folder_at
from eventide.sinks.keys import key_of, newest_of
from eventide.sinks.sink import Owner
from eventide.storage.iceberg import catalog_of, identifier, is_folder, table_at, without_warnings
from eventide.storage.storage import Storage

try:
    from pyiceberg.expressions import And, BooleanExpression, EqualTo, GreaterThanOrEqual, LessThanOrEqual, Not
    from pyiceberg.table import Table, Transaction
except ModuleNotFoundError as missing:  # pragma: no cover - the tests have it
    raise DeclarationError("INTO iceberg needs pyiceberg: pip install 'eventide[iceberg]'") from missing

# What they take is known to pydantic alone.
Equal: Any = EqualTo
AtLeast: Any = GreaterThanOrEqual
AtMost: Any = LessThanOrEqual

PROPERTIES = {
    # A long row of rounds would leave as many small files of metadata.
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
}
QUERY, ROUND, KEY = "eventide.query", "eventide.round", "eventide.key"
OWNER = "eventide.owner."
"""How properties of a table begin that say whose the results of a query are."""


class Iceberg(CommittedTable):
    """Writes results into the Iceberg table `table` (`namespace.name`) of a catalog.

    Law: each round is one commit, and replaces what the same round wrote before.

    `mode` is `append` or `upsert`; `key` names the columns by which an upsert tells rows apart, if these are not window
    and groups. Everything else says which catalog it is, in the words of pyiceberg: `warehouse`, `type`, `uri`, or
    `catalog` for the name of one that is configured.
    """

    def __init__(
        self, table: str, mode: str = "append", *, key: Sequence[str] = (), large: int = LARGE, **catalog: str
    ) -> None:
        super().__init__(mode, key, large)
        if is_folder(table):
            raise DeclarationError(
                f"{table!r} is a folder, and Iceberg writes into tables of a catalog: INTO iceberg 'lake.speeds' "
                "OPTIONS (warehouse '/folder')"
            )
        self._name, self._options = table, catalog
        self._claims: dict[str, str] = {}

    def _has_round(self, query: str, round: int) -> bool:
        return self._has(_rounds(query, round, round))

    def _take_round_back(self, query: str, round: int) -> None:
        self._take_back(query, round, _rounds(query, round, round))

    def _put_round(self, results: Results, again: bool) -> None:
        query, round = results.query, results.round
        self._put(query, round, results, _rounds(query, round, round) if again else None)

    def rewind(self, query: str, last: int) -> None:
        """Delete the results of later rounds, and bring back what they had replaced."""
        with self._translated(f"the results of {query!r} after round {last} cannot be deleted from {self.where}"):
            if self._has(later := _rounds(query, last + 1)):
                self._take_back(query, last + 1, later)
        self._newest[query] = last

    def _take_back(self, query: str, round: int, undone: BooleanExpression) -> None:
        """Remove the rows of rounds from that one on, as if these had never been."""
        if self._key_before(query):
            self._put(query, round, None, undone)
            return
        with self._committing() as commit:
            commit.delete(undone, snapshot_properties=_summary(query, round - 1))

    def _write(self, results: Results, again: bool) -> None:
        """Add the rows, in place of those of the same round."""
        summary = _summary(results.query, results.round)
        with self._committing(results.schema) as commit:
            schema = _storable(results.schema)
            batches = pa.RecordBatchReader.from_batches(schema, (b.cast(schema) for b in results.batches()))
            # Those of a table that is partitioned are sorted into files, all at once.
            rows = batches.read_all() if commit.table_metadata.spec().fields else batches
            if again:
                same = _rounds(results.query, results.round, results.round)
                commit.overwrite(rows, same, snapshot_properties=summary)
            else:
                commit.append(rows, snapshot_properties=summary)

    # Upserts

    def _put(self, query: str, round: int, results: Results | None, undone: BooleanExpression | None) -> None:
        """Put rows in the place of those with the same key, and what was there before in that of what is undone."""
        new = None if results is None else results.table().cast(_storable(results.schema))
        key = self._key_before(query) if results is None else key_of(results, self._key)
        near = _near(query, _together(None if undone is None else self._found(undone), new), key)
        if undone is None:
            kept = [self._found(near)]
        else:
            before = self._before(query, round)
            kept = [None if before is None else self._found(near, before), self._found(And(near, Not(undone)))]
        rows = newest_of(_together(*kept, new), key)
        summary = _summary(query, round - (results is None), key)
        with self._committing(rows.schema) as commit:
            if rows.num_rows:
                commit.overwrite(rows, near, snapshot_properties=summary)
            else:
                commit.delete(near, snapshot_properties=summary)

    def _key_before(self, query: str) -> tuple[str, ...]:
        """By which columns the last round of a query was told apart; none where every result stays."""
        commits = self._commits(query)
        return tuple(json.loads(commits[-1].get(KEY) or "[]")) if commits else ()

    def _commits(self, query: str) -> list[dict[str, str]]:
        """What the snapshots that rounds of a query have made say of themselves, oldest first."""
        table = self._table()
        made = [] if table is None else table.snapshots()
        said = [{"id": str(one.snapshot_id), **one.summary.additional_properties} for one in made if one.summary]
        return [one for one in said if one.get(QUERY) == query]

    def _before(self, query: str, round: int) -> int | None:
        """The snapshot that the rounds before have left; None where there were none."""
        earlier = [int(one["id"]) for one in self._commits(query) if int(one[ROUND]) < round]
        if earlier:
            return earlier[-1]
        table = self._table()
        # Whatever expires, snapshots keep their numbers, which begin with 1.
        if table is None or min((one.sequence_number or 0 for one in table.snapshots()), default=0) <= 1:
            return None
        raise EngineError(
            f"{self.where} does not remember what it was before round {round} of {query!r}, because that snapshot "
            "has expired: start anew with --replace"
        )

    # Rows and commits

    def rows(self, query: str) -> pa.Table:
        """The results of a query that are in the table."""
        found = self._found(Equal("query", query))
        return pa.table({}) if found is None else found

    def _found(self, which: BooleanExpression, snapshot: int | None = None) -> pa.Table | None:
        table = self._table()
        return None if table is None else table.scan(which, snapshot_id=snapshot).to_arrow()

    def _has(self, which: BooleanExpression) -> bool:
        table = self._table()
        return table is not None and table.scan(which, selected_fields=("round",), limit=1).to_arrow().num_rows > 0

    def _newest_of(self, query: str) -> int:
        """The newest round of a query that is there; -1 where there is none."""
        table = self._table()
        if table is None:
            return -1
        newest = pc.max(table.scan(Equal("query", query), selected_fields=("round",)).to_arrow().column("round"))
        return -1 if newest.as_py() is None else int(newest.as_py())

    def _table(self) -> Table | None:
        """The table as it is now; None where there is none."""
        table = table_at(self._name, self._options)
        if table is not None and "round" not in table.schema().column_names:
            raise EngineError(f"{self.where} has no column `round`: it is none of Eventide's. Name another one")
        return table

    @contextmanager
    def _committing(self, schema: pa.Schema | None = None) -> Iterator[Transaction]:
        """One commit of the table, which has all columns of a schema then; it is made if it is not there."""
        table = self._table()
        if table is None:
            assert schema is not None
            catalog, name = catalog_of(self._options), identifier(self._name)
            catalog.create_namespace_if_not_exists(name[:-1])
            table = catalog.create_table(name, _storable(schema), properties={**PROPERTIES, **self._claims})
        with table.transaction() as commit:
            if schema is not None and not set(schema.names) <= set(table.schema().column_names):
                with commit.update_schema() as change:
                    change.union_by_name(_storable(schema))
            yield commit

    def _gathered(self, results: Results) -> bool:
        """Have the results written where they are, and make them part of the table; False where that cannot be."""
        if results.parts is None or results.rows <= self._large or self._tasks_fail:
            return False
        table = self._table()
        if table is None:
            with self._committing(results.schema):
                table = self._table()
        assert table is not None
        if table.spec().fields or set(table.schema().column_names) != set(results.schema.names):
            # Tasks know nothing of partitions, nor of columns that others have added.
            return False
        place = f"{table.location()}/data"
        Storage.at(place)
        folder = folder_at(place)
        if not can_be_given(folder):
            return False
        # A name of its own: what was there under another one may belong to an earlier snapshot.
        name = f"{quote(results.query, safe='')}-{results.round:010d}-{uuid4().hex}"
        if not self._by_tasks(results, _storable(results.schema), folder, name):
            return False
        files = [f"{place}/{name}/{part}" for part in folder.parts(name)]
        with self._committing() as commit:
            commit.add_files(files, _summary(results.query, results.round), check_duplicate_files=False)
        return True

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        try:
            with without_warnings():
                yield
        except EventideError:
            raise
        except Exception as error:
            # What pyiceberg and its catalogs raise has no common root.
            raise EngineError(f"{what}: {first_line(error)}") from error

    # Whose they are

    @property
    def where(self) -> str:
        """The table, for messages."""
        return f"the Iceberg table {'.'.join(identifier(self._name))}"

    def holds(self, query: str) -> bool:
        """Whether there are results of a query."""
        with self._translated(f"{self.where} cannot be read"):
            return self._has(Equal("query", query))

    def owner_of(self, query: str) -> Owner | None:
        """Whose the results of a query are; None where nobody has claimed them."""
        with self._translated(f"{self.where} cannot be read"):
            table = self._table()
        said = None if table is None else table.properties.get(OWNER + query)
        found = None if said is None else json.loads(said)
        return None if found is None else Owner(found["id"], found["checkpoint"])

    def claim(self, query: str, owner: Owner) -> None:
        """Mark the results of a query as those of an owner; a table that is not there is marked when it is made."""
        self._claims[OWNER + query] = json.dumps({"id": owner.id, "checkpoint": owner.checkpoint})
        with self._translated(f"{self.where} cannot be written"):
            if self._table() is not None:
                with self._committing() as commit:
                    commit.set_properties(self._claims)


def _summary(query: str, round: int, key: Sequence[str] = ()) -> dict[str, str]:
    """What a snapshot says of itself: whose round it is, and by which key it has replaced rows."""
    return {QUERY: query, ROUND: str(round), **({KEY: json.dumps(key)} if key else {})}


def _rounds(query: str, first: int, last: int | None = None) -> BooleanExpression:
    """The rows of a query in rounds from `first` on, to `last`."""
    since = And(Equal("query", query), AtLeast("round", first))
    return since if last is None else And(since, AtMost("round", last))


def _near(query: str, rows: pa.Table, key: Sequence[str]) -> BooleanExpression:
    """The rows of a query with keys between those of these rows: some more than have the same key, in few files."""
    found: BooleanExpression = Equal("query", query)
    for name in key:
        column = rows.column(name)
        if column.null_count or not (types.is_timestamp(column.type) or types.is_integer(column.type)):
            continue
        edges = pc.min_max(column.cast(pa.int64())).as_py()
        found = And(found, AtLeast(name, edges["min"]), AtMost(name, edges["max"]))
    return found


def _together(*several: pa.Table | None) -> pa.Table:
    """The rows of all, one after the other."""
    return pa.concat_tables([one for one in several if one is not None], promote_options="permissive")


def _storable(schema: pa.Schema) -> pa.Schema:
    """The columns as Iceberg has them: it knows no column without a type."""
    return pa.schema([f.with_type(pa.string()) if types.is_null(f.type) else f for f in schema])
