"""The executor: runs a statement over relations where they are.

Laws. *Place*: where every relation that a statement reads is with the driver, DuckDB runs it there, or Spark over the
small tables where DuckDB's answer could be another; where one is on the cluster, a Spark job does, over files alone,
and its rows stay there. The answer is the same. *Small answers*: `table` brings rows to the driver, for statements
whose answer steers and is small by its nature. *Fail-safe*: a row that makes a statement fail makes it run again in its
fail-safe form, and the relation says that it is lossy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from eventide.engine.relations.backend import Backend
from eventide.engine.relations.files import RelationFiles
from eventide.engine.relations.relation import Layout, Relation, Summary, numbered
from eventide.engine.relations.segments import Segments
from eventide.engine.relations.statement import Statement
from eventide.errors import DataFaultError
from eventide.plan.declared.stream import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Inputs = Mapping[str, Relation | Segments | pa.Table]
"""What a statement reads, by the names that it has for it; tables are small and go where it runs."""


BIRTHS = 4
"""What comes to the driver at once may take this part of its memory: state, and the rest of the round, take some too.
"""


class Executor:
    """Runs the statements of one engine, or of one question that is asked beside it (`apart`)."""

    def __init__(self, backend: Backend, files: RelationFiles, driver_bytes: int) -> None:
        self.backend = backend
        self.files = files
        self.driver_bytes = driver_bytes if backend.has_cluster else 2**62

    def apart(self, files: RelationFiles) -> Executor:
        """The same, leaving its files elsewhere."""
        other = copy(self)
        other.files = files
        return other

    def fits(self, size: int) -> bool:
        """Whether rows of about this size may come to the driver from Spark."""
        return size <= self.driver_bytes // BIRTHS

    def relation(self, statement: Statement, inputs: Inputs, layout: Layout) -> Relation:
        """Run a statement; its rows stay where those are that it reads."""
        given = _relations(inputs)
        if all(part.table is not None for parts in given.values() for part in parts.parts):
            tables = {**_tables(inputs), **{name: parts.table() for name, parts in given.items()}}
            return self._on_driver(statement, tables, layout)
        return self._on_cluster(statement, given, _tables(inputs), layout)

    def table(self, statement: Statement, inputs: Inputs) -> pa.Table:
        """Run a statement whose answer is small by its nature."""
        given = _relations(inputs)
        if all(part.table is not None for parts in given.values() for part in parts.parts):
            tables = {**_tables(inputs), **{name: parts.table() for name, parts in given.items()}}
            return self.backend.sql(statement.portable).ask(statement.sql, tables, statement.inner)
        return self.backend.collect_over(statement.sql, self._listed(given), _tables(inputs))

    def stored(
        self,
        stream: Stream,
        sql: str,
        plain: bool,
        layout: Layout,
        tables: Mapping[str, pa.Table] | None = None,
    ) -> Relation:
        """Run a statement over the rows of a round; its rows stay on the cluster."""
        sequence = self.files.sequence() if layout.is_numbered else None
        return self._stored(
            layout, lambda folder: self.backend.store(stream, sql, plain, folder, layout, sequence, tables)
        )

    def of_table(self, layout: Layout, table: pa.Table, lossy: bool = False, identified: bool = False) -> Relation:
        """A table as a relation of the driver: with the columns of the layout, numbered where it says so."""
        if layout.is_numbered and not identified:
            table = numbered(table, self.files.sequence())
        return Relation.of_table(layout, table.select(layout.schema.names).cast(layout.schema), lossy)

    def merged(self, segments: Segments, statement: Statement | None = None) -> Relation:
        """Several segments as one, under the name `segments` in the statement."""
        tables = [part.table for part in segments.parts]
        if statement is None and all(table is not None for table in tables):
            return Relation.of_table(segments.layout, pa.concat_tables(tables).combine_chunks())
        # Rows keep the numbers that they have.
        layout = segments.layout
        said = statement or Statement("SELECT * FROM segments")
        given = _relations({"segments": segments})
        if all(table is not None for table in tables):
            answer = self.backend.sql(said.portable).ask(said.sql, {"segments": segments.table()}, said.inner)
            return Relation.of_table(layout, answer.select(layout.schema.names).cast(layout.schema))
        listed = self._listed(given)
        return self._stored(layout, lambda folder: self.backend.store_over(said.sql, listed, {}, folder, layout, None))

    def loaded(self, relation: Relation) -> Relation:
        """The same rows on the driver."""
        return self.files.loaded(relation)

    def persisted(self, relation: Relation) -> Relation:
        """The same rows, in files too."""
        return relation if relation.files else self.files.persisted(relation)

    def batches(self, relation: Relation) -> Iterator[pa.Table]:
        """The rows, part by part; those on the cluster are read as they are needed."""
        if relation.table is not None:
            yield relation.table
        else:
            yield from self.files.batches(relation)

    def frame(self, sql: str, inputs: Inputs) -> DataFrame:
        """A statement over relations as a DataFrame of Spark, for a sink that takes one."""
        return self.backend.frame_over(sql, self._listed(_relations(inputs)), _tables(inputs))

    def _on_driver(self, statement: Statement, tables: Mapping[str, pa.Table], layout: Layout) -> Relation:
        bench, lossy = self.backend.sql(statement.portable), False
        try:
            answer = bench.ask(statement.sql + statement.order, tables, statement.inner)
        except DataFaultError:
            if statement.fail_safe is None:
                raise
            answer, lossy = bench.ask(statement.fail_safe() + statement.order, tables, statement.inner), True
        return self.of_table(layout, answer, lossy, statement.identified)

    def _on_cluster(
        self, statement: Statement, given: Mapping[str, Segments], tables: Mapping[str, pa.Table], layout: Layout
    ) -> Relation:
        listed = self._listed(given)
        order = statement.order if statement.ordered else ""
        sequence = self.files.sequence() if layout.is_numbered and not statement.identified else None

        def run(sql: str) -> Relation:
            return self._stored(
                layout, lambda folder: self.backend.store_over(sql + order, listed, tables, folder, layout, sequence)
            )

        try:
            return run(statement.sql)
        except DataFaultError:
            if statement.fail_safe is None:
                raise
            found = run(statement.fail_safe())
            return Relation(found.layout, None, found.files, found.stored, lossy=True)

    def _stored(self, layout: Layout, store: Callable[[str], Summary]) -> Relation:
        folder = self.files.folder()
        summary = store(self.files.uri(folder))
        if not summary.rows:
            self.files.discard(folder)
            return Relation.nothing(layout)
        files = self.files.adopted(folder)
        return Relation(layout, None, files, replace(summary, bytes=sum(file.bytes for file in files)))

    def _listed(self, given: Mapping[str, Segments]) -> dict[str, tuple[list[str], str]]:
        """For Spark: the files of each input, and their columns."""
        return {
            name: (
                [self.files.uri(file.name) for part in parts.parts for file in self.persisted(part).files],
                parts.layout.ddl,
            )
            for name, parts in given.items()
        }


def _relations(inputs: Inputs) -> dict[str, Segments]:
    found = {}
    for name, given in inputs.items():
        if isinstance(given, Relation):
            found[name] = Segments(given.layout).add(given)
        elif isinstance(given, Segments):
            found[name] = given
    return found


def _tables(inputs: Inputs) -> dict[str, pa.Table]:
    return {name: given for name, given in inputs.items() if isinstance(given, pa.Table)}
